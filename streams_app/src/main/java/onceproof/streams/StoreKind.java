package onceproof.streams;

import java.nio.ByteBuffer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.ValueAndTimestamp;

/** The settings {@code stores} and {@code caching}, which every topology has, and the key-value stores they make. */
final class StoreKind {

    private static final String IN_MEMORY = "in-memory";
    private static final String TIMESTAMPED = "rocksdb-timestamped";

    private final String kind;
    private final boolean caching;

    private StoreKind(String kind, boolean caching) {
        this.kind = kind;
        this.caching = caching;
    }

    static StoreKind of(Settings settings) {
        return of(settings, "rocksdb", IN_MEMORY);
    }

    /** Of a topology that makes its values with {@link #value}, so that they may carry a timestamp. */
    static StoreKind orTimestamped(Settings settings) {
        return of(settings, "rocksdb", IN_MEMORY, TIMESTAMPED);
    }

    private static StoreKind of(Settings settings, String... kinds) {
        return new StoreKind(settings.oneOf("stores", kinds), settings.flag("caching"));
    }

    <K, V> StoreBuilder<?> builder(String name, Serde<K> keys, Serde<V> values) {
        StoreBuilder<?> builder = kind.equals(TIMESTAMPED)
                ? Stores.timestampedKeyValueStoreBuilder(Stores.persistentTimestampedKeyValueStore(name), keys, values)
                : Stores.keyValueStoreBuilder(supplier(name), keys, values);
        return caching ? builder.withCachingEnabled() : builder.withCachingDisabled();
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

    /** What a store of this kind takes for a value: with a timestamp, or as it is. */
    Object value(int value, long timestamp) {
        return kind.equals(TIMESTAMPED) ? ValueAndTimestamp.make(value, timestamp) : (Object) value;
    }

    /** The number that a store of any kind gave: as it is, or what a longer value or one with a timestamp begins with. */
    static int number(Object value) {
        Object plain = value instanceof ValueAndTimestamp ? ((ValueAndTimestamp<?>) value).value() : value;
        return plain instanceof byte[] ? ByteBuffer.wrap((byte[]) plain).getInt() : (Integer) plain;
    }
}
