package org.apache.kafka.streams.state.internals;

import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.state.VersionedRecord;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.File;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

/** The last one of two changes of a key with the same timestamp counts, also if it is a deletion. */
public class RocksDBVersionedStoreSameTimestampTest {

    @TempDir
    File stateDir;

    private RocksDBVersionedStore store;

    @BeforeEach
    public void open() {
        store = new RocksDBVersionedStore("versions", "scope", 20_000L, 5_000L);
        store.init(new MockProcessorContext<>(new Properties(), new TaskId(0, 0), stateDir).getStateStoreContext(), store);
    }

    @AfterEach
    public void close() {
        store.close();
    }

    @Test
    public void shouldNotReviveKeyThatWasDeletedAtTheTimestampOfItsValue() {
        put("k", "v", 2_000L);
        put("k", null, 2_000L);
        put("k", "late", 1_000L);
        assertEquals("late", get("k", 1_500L));
        assertNull(get("k", 2_500L), "deleted at 2,000");
    }

    @Test
    public void shouldNotReviveKeyThatWasDeletedLaterThanItsValue() {
        put("k", "v", 1_900L);
        put("k", null, 2_000L);
        put("k", "late", 1_000L);
        assertEquals("late", get("k", 1_500L));
        assertNull(get("k", 2_500L), "deleted at 2,000");
    }

    /** Changes in any order, many with the timestamp of another one, against a map. */
    @Test
    public void shouldHaveTheLastChangeOfEachTimestamp() {
        final Random random = new Random(1);
        for (int key = 0; key < 300; key++) {
            final TreeMap<Long, String> versions = new TreeMap<>();
            for (int change = 0; change < 6; change++) {
                final long timestamp = 1_000L * (1 + random.nextInt(8));
                final String value = random.nextInt(3) == 0 ? null : "v" + change;
                put("k" + key, value, timestamp);
                versions.put(timestamp, value);
            }
            for (long asOf = 1_500L; asOf < 10_000L; asOf += 1_000L) {
                final Map.Entry<Long, String> valid = versions.floorEntry(asOf);
                assertEquals(valid == null ? null : valid.getValue(), get("k" + key, asOf), "k" + key + " as of " + asOf);
            }
        }
    }

    private void put(final String key, final String value, final long timestamp) {
        store.put(Bytes.wrap(bytes(key)), bytes(value), timestamp);
    }

    private String get(final String key, final long asOfTimestamp) {
        final VersionedRecord<byte[]> version = store.get(Bytes.wrap(bytes(key)), asOfTimestamp);
        return version == null ? null : new StringDeserializer().deserialize(null, version.value());
    }

    private static byte[] bytes(final String text) {
        return text == null ? null : new StringSerializer().serialize(null, text);
    }
}
