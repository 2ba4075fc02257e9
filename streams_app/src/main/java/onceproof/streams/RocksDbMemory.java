package onceproof.streams;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.Options;

/**
 * Sets the size of RocksDB's write buffer (memtable) from the Kafka Streams configuration {@value #BYTES}.
 *
 * <p>A full write buffer is flushed to disk whatever transaction its writes belong to: with a small one, writes of a
 * transaction that is still open are on disk when the process is killed. Files are not compacted, so that each one of a
 * table is one such flush, and its age says when it was written.
 *
 * <p>A setter of the application's own, which {@value #OWN} names, is asked first.
 */
public final class RocksDbMemory implements RocksDBConfigSetter {

    static final String BYTES = "onceproof.rocksdb.write.buffer.bytes";
    static final String OWN = "onceproof.rocksdb.config.setter";
    private static final int FILES = 10_000; // more than there are in any trial

    private RocksDBConfigSetter own;

    @Override
    public void setConfig(String store, Options options, Map<String, Object> config) {
        Object name = config.get(OWN);
        if (name != null) {
            own = ownSetter(String.valueOf(name));
            own.setConfig(store, options, config);
        }
        Object bytes = config.get(BYTES);
        if (bytes == null) {
            throw new IllegalArgumentException("The configuration " + BYTES + " is missing; it must be a whole number.");
        }
        options.setWriteBufferSize(Long.parseLong(String.valueOf(bytes)));
        options.setLevel0FileNumCompactionTrigger(FILES);
        options.setLevel0SlowdownWritesTrigger(FILES);
        options.setLevel0StopWritesTrigger(FILES);
    }

    @Override
    public void close(String store, Options options) {
        if (own != null) {
            own.close(store, options);
        }
    }

    private static RocksDBConfigSetter ownSetter(String name) {
        try {
            ClassLoader loader = Thread.currentThread().getContextClassLoader();
            return (RocksDBConfigSetter)
                    Class.forName(name, true, loader).getDeclaredConstructor().newInstance();
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException(name + " of rocksdb.config.setter cannot be made", e);
        }
    }
}
