package onceproof.streams;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.Options;

/**
 * Sets the size of RocksDB's write buffer (memtable) from the Kafka Streams configuration {@value #BYTES}.
 *
 * <p>A full write buffer is flushed to disk whatever transaction its writes belong to: with a small one, writes of a
 * transaction that is still open are on disk when the process is killed.
 */
public final class RocksDbMemory implements RocksDBConfigSetter {

    static final String BYTES = "onceproof.rocksdb.write.buffer.bytes";

    @Override
    public void setConfig(String store, Options options, Map<String, Object> config) {
        Object bytes = config.get(BYTES);
        if (bytes == null) {
            throw new IllegalArgumentException("The configuration " + BYTES + " is missing; it must be a whole number.");
        }
        options.setWriteBufferSize(Long.parseLong(String.valueOf(bytes)));
    }

    @Override
    public void close(String store, Options options) {
        // nothing was opened
    }
}
