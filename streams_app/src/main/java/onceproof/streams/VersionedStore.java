package onceproof.streams;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/**
 * A versioned store (KIP-889). Kafka Streams has them from 3.5 on, and this is compiled against 3.0.0: hence reflection.
 *
 * <p>No release can scan one, so its entries are asked for key by key, and their keys are bounded.
 */
final class VersionedStore implements Numbers {

    private static final String PACKAGE = "org.apache.kafka.streams.state.";
    private static final String SUPPLIER = "VersionedBytesStoreSupplier";
    private static final int KEYS = 100_000;

    private final Object store;

    VersionedStore(Object store) {
        this.store = store;
    }

    static <K, V> StoreBuilder<?> builder(String name, Duration history, Serde<K> keys, Serde<V> values) {
        KeyValueBytesStoreSupplier supplier = supplier(name, history);
        return (StoreBuilder<?>) Newer.call(
                null, Stores.class, "versionedKeyValueStoreBuilder",
                List.of(type(SUPPLIER), Serde.class, Serde.class), supplier, keys, values);
    }

    static KeyValueBytesStoreSupplier supplier(String name, Duration history) {
        type(SUPPLIER); // refuses releases that have none
        return (KeyValueBytesStoreSupplier) Newer.call(
                null, Stores.class, "persistentVersionedKeyValueStore",
                List.of(String.class, Duration.class), name, history);
    }

    @Override
    public Integer get(int key, long time) {
        return latest(key);
    }

    private Integer latest(int key) {
        Object version = Newer.call(store, type("VersionedKeyValueStore"), "get", List.of(Object.class), key);
        return version == null ? null : (Integer) Newer.call(version, type("VersionedRecord"), "value", List.of());
    }

    @Override
    public void put(int key, int number, long time) {
        if (key < 0 || key >= KEYS) {
            throw new IllegalArgumentException(
                    "Key " + key + " would not be seen in a versioned store; take keys from 0 to " + (KEYS - 1) + ".");
        }
        Newer.call(
                store, type("VersionedKeyValueStore"), "put",
                List.of(Object.class, Object.class, long.class), key, number, time);
    }

    @Override
    public List<KeyValue<Object, Object>> entries() {
        List<KeyValue<Object, Object>> entries = new ArrayList<>();
        for (int key = 0; key < KEYS; key++) {
            Integer number = latest(key);
            if (number != null) {
                entries.add(KeyValue.pair(key, number));
            }
        }
        return entries;
    }

    private static Class<?> type(String name) {
        return Newer.type(PACKAGE + name, "versioned stores; take 3.5.0 or later, or another kind of store");
    }
}
