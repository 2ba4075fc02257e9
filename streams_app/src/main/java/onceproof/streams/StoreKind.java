package onceproof.streams;

import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

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

    /** Whatever the settings say: in memory, and not cached. */
    static StoreKind inMemory() {
        return new StoreKind(IN_MEMORY, false);
    }

    static StoreKind of(Settings settings) {
        return of(settings, "rocksdb", IN_MEMORY);
    }

    /** For a topology that accesses its stores through {@link Numbers}. */
    static StoreKind ofAny(Settings settings) {
        return of(settings, "rocksdb", IN_MEMORY, TIMESTAMPED, VERSIONED, WINDOW, SESSION);
    }

    /** For a table of the DSL. */
    static StoreKind ofTable(Settings settings) {
        return of(settings, "rocksdb", IN_MEMORY, VERSIONED);
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
                return Stores.timestampedKeyValueStoreBuilder(timestamped(name), keys, values);
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
        return table(name, KEPT, keys, values);
    }

    /** The same; a versioned one keeps so much of its history. */
    <K, V> Materialized<K, V, KeyValueStore<Bytes, byte[]>> table(
            String name, Duration history, Serde<K> keys, Serde<V> values) {
        return cached(this.<K, V>table(name, history).withKeySerde(keys).withValueSerde(values));
    }

    /** In RocksDB as the DSL chooses, since {@code dsl.store.format} (KIP-1271) counts only where it does. */
    private <K, V> Materialized<K, V, KeyValueStore<Bytes, byte[]>> table(String name, Duration history) {
        switch (kind) {
            case IN_MEMORY:
                return Materialized.as(Stores.inMemoryKeyValueStore(name));
            case VERSIONED:
                return Materialized.as(VersionedStore.supplier(name, history));
            default:
                return Materialized.as(name);
        }
    }

    /** A store whose values have timestamps, for a processor that needs them. */
    <K, V> StoreBuilder<TimestampedKeyValueStore<K, V>> timestamped(String name, Serde<K> keys, Serde<V> values) {
        StoreBuilder<TimestampedKeyValueStore<K, V>> builder =
                Stores.timestampedKeyValueStoreBuilder(timestamped(name), keys, values);
        return caching ? builder.withCachingEnabled() : builder.withCachingDisabled();
    }

    /** How the DSL is to keep windows of this size; there their values have timestamps. */
    <K, V> Materialized<K, V, WindowStore<Bytes, byte[]>> windows(
            String name, Duration kept, Duration size, Serde<K> keys, Serde<V> values) {
        return suppliedWindows(name, kept, size, keys, values).withRetention(kept); // of the changelog, from 3.7 on
    }

    /** The same; only the supplier of the store says for how long windows are kept. */
    <K, V> Materialized<K, V, WindowStore<Bytes, byte[]>> suppliedWindows(
            String name, Duration kept, Duration size, Serde<K> keys, Serde<V> values) {
        return cached(Materialized.<K, V>as(
                        kind.equals(IN_MEMORY)
                                ? Stores.inMemoryWindowStore(name, kept, size, false)
                                : Stores.persistentTimestampedWindowStore(name, kept, size, false))
                .withKeySerde(keys)
                .withValueSerde(values));
    }

    /** The same for windows that are emitted when they close: on disk in a store in order of time, as the DSL chooses. */
    <K, V> Materialized<K, V, WindowStore<Bytes, byte[]>> windowsOfDsl(
            String name, Duration kept, Duration size, Serde<K> keys, Serde<V> values) {
        return kind.equals(IN_MEMORY)
                ? windows(name, kept, size, keys, values)
                : cached(Materialized.<K, V, WindowStore<Bytes, byte[]>>as(name)
                        .withRetention(kept)
                        .withKeySerde(keys)
                        .withValueSerde(values));
    }

    /** The same for sessions that are emitted when they close. */
    <K, V> Materialized<K, V, SessionStore<Bytes, byte[]>> sessionsOfDsl(
            String name, Duration kept, Serde<K> keys, Serde<V> values) {
        return kind.equals(IN_MEMORY)
                ? sessions(name, kept, keys, values)
                : cached(Materialized.<K, V, SessionStore<Bytes, byte[]>>as(name)
                        .withRetention(kept)
                        .withKeySerde(keys)
                        .withValueSerde(values));
    }

    /** How the DSL is to keep sessions. */
    <K, V> Materialized<K, V, SessionStore<Bytes, byte[]>> sessions(
            String name, Duration kept, Serde<K> keys, Serde<V> values) {
        return cached(Materialized.<K, V>as(
                        kind.equals(IN_MEMORY)
                                ? Stores.inMemorySessionStore(name, kept)
                                : Stores.persistentSessionStore(name, kept))
                .withRetention(kept) // of the changelog
                .withKeySerde(keys)
                .withValueSerde(values));
    }

    private <K, V, S extends StateStore> Materialized<K, V, S> cached(Materialized<K, V, S> materialized) {
        return caching ? materialized.withCachingEnabled() : materialized.withCachingDisabled();
    }

    private KeyValueBytesStoreSupplier timestamped(String name) {
        return kind.equals(IN_MEMORY)
                ? Stores.inMemoryKeyValueStore(name)
                : Stores.persistentTimestampedKeyValueStore(name);
    }

    private KeyValueBytesStoreSupplier supplier(String name) {
        return kind.equals(IN_MEMORY) ? Stores.inMemoryKeyValueStore(name) : Stores.persistentKeyValueStore(name);
    }
}
