package onceproof.streams;

import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/** The settings {@code stores} and {@code caching}, which every topology has, and the stores they make. */
final class StoreKind {

    private static final String IN_MEMORY = "in-memory";
    private static final String TIMESTAMPED = "rocksdb-timestamped";
    private static final String VERSIONED = "versioned";
    private static final String WINDOW = "window";
    private static final String SESSION = "session";
    private static final Duration KEPT = Duration.ofHours(1); // longer than any trial
    private static final Duration WINDOW_SIZE = Duration.ofMillis(1);

    private final String kind;
    private final boolean caching;

    private StoreKind(String kind, boolean caching) {
        this.kind = kind;
        this.caching = caching;
    }

    static StoreKind of(Settings settings) {
        return of(settings, "rocksdb", IN_MEMORY);
    }

    /** For a topology that accesses its stores through {@link Numbers}. */
    static StoreKind ofAny(Settings settings) {
        return of(settings, "rocksdb", IN_MEMORY, TIMESTAMPED, VERSIONED, WINDOW, SESSION);
    }

    private static StoreKind of(Settings settings, String... kinds) {
        return new StoreKind(settings.oneOf("stores", kinds), settings.flag("caching"));
    }

    <K, V> StoreBuilder<?> builder(String name, Serde<K> keys, Serde<V> values) {
        StoreBuilder<?> builder = uncached(name, keys, values);
        return caching ? builder.withCachingEnabled() : builder.withCachingDisabled();
    }

    private <K, V> StoreBuilder<?> uncached(String name, Serde<K> keys, Serde<V> values) {
        switch (kind) {
            case TIMESTAMPED:
                return Stores.timestampedKeyValueStoreBuilder(Stores.persistentTimestampedKeyValueStore(name), keys, values);
            case VERSIONED:
                return VersionedStore.builder(name, KEPT, keys, values);
            case WINDOW:
                return Stores.windowStoreBuilder(Stores.persistentWindowStore(name, KEPT, WINDOW_SIZE, false), keys, values);
            case SESSION:
                return Stores.sessionStoreBuilder(Stores.persistentSessionStore(name, KEPT), keys, values);
            default:
                return Stores.keyValueStoreBuilder(supplier(name), keys, values);
        }
    }

    /** How the DSL is to keep a table in a store of this kind; there its values have timestamps. */
    <K, V> Materialized<K, V, KeyValueStore<Bytes, byte[]>> materialized(String name, Serde<K> keys, Serde<V> values) {
        KeyValueBytesStoreSupplier supplier = kind.equals(IN_MEMORY)
                ? Stores.inMemoryKeyValueStore(name)
                : Stores.persistentTimestampedKeyValueStore(name);
        Materialized<K, V, KeyValueStore<Bytes, byte[]>> materialized =
                Materialized.<K, V>as(supplier).withKeySerde(keys).withValueSerde(values);
        return caching ? materialized.withCachingEnabled() : materialized.withCachingDisabled();
    }

    private KeyValueBytesStoreSupplier supplier(String name) {
        return kind.equals(IN_MEMORY) ? Stores.inMemoryKeyValueStore(name) : Stores.persistentKeyValueStore(name);
    }
}
