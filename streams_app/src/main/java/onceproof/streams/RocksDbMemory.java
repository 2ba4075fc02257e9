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
 */
public final class RocksDbMemory implements RocksDBConfigSetter {

    static final String BYTES = "onceproof.rocksdb.write.buffer.bytes";
    private static final int FILES = 10_000; // more than there are in any trial

    @Override
    public void setConfig(String store, Options options, Map<String, Object> config) {
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
        // nothing was opened
    }
}
