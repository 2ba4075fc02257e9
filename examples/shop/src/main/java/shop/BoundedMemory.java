package shop;

import java.util.Map;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.Options;

/** Bounds what each store keeps in memory before it writes it to the disk. */
public final class BoundedMemory implements RocksDBConfigSetter {

    private static final long WRITE_BUFFER_BYTES = 256 * 1024;

    @Override
    public void setConfig(String storeName, Options options, Map<String, Object> configs) {
        options.setWriteBufferSize(WRITE_BUFFER_BYTES);
    }

    @Override
    public void close(String storeName, Options options) {
        // Nothing of ours is in the options.
    }
}
