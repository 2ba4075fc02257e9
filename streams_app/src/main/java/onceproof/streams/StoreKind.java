package onceproof.streams;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/** The settings {@code stores} and {@code caching}, which every topology has, and the key-value stores they make. */
final class StoreKind {

    private final boolean inMemory;
    private final boolean caching;

    private StoreKind(boolean inMemory, boolean caching) {
        this.inMemory = inMemory;
        this.caching = caching;
    }

    static StoreKind of(Settings settings) {
        boolean caching = settings.flag("caching");
        return new StoreKind(settings.oneOf("stores", "rocksdb", "in-memory").equals("in-memory"), caching);
    }

    <K, V> StoreBuilder<KeyValueStore<K, V>> builder(String name, Serde<K> keys, Serde<V> values) {
        KeyValueBytesStoreSupplier supplier =
                inMemory ? Stores.inMemoryKeyValueStore(name) : Stores.persistentKeyValueStore(name);
        StoreBuilder<KeyValueStore<K, V>> builder = Stores.keyValueStoreBuilder(supplier, keys, values);
        return caching ? builder.withCachingEnabled() : builder.withCachingDisabled();
    }
}
