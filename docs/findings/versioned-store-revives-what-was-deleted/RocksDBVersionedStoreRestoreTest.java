package org.apache.kafka.streams.state.internals;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.state.VersionedRecord;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

/** A store must have after a restoration what it had before. */
public class RocksDBVersionedStoreRestoreTest {

    private static final long HISTORY_RETENTION = 20_000L;
    private static final long SEGMENT_INTERVAL = 5_000L;

    private static final int KEYS = 250;

    @TempDir
    File stateDir;

    private final List<RocksDBVersionedStore> open = new ArrayList<>();

    @AfterEach
    public void close() {
        open.forEach(RocksDBVersionedStore::close);
    }

    @Test
    public void shouldNotReviveDeletedKeyWhenRestoredRecordByRecord() {
        final RocksDBVersionedStore store = open();
        for (final ConsumerRecord<byte[], byte[]> record : lateVersionOfDeletedKey()) {
            store.restoreBatch(List.of(record));
        }
        assertNull(get(store, "k", 60_000L));
    }

    @Test
    public void shouldNotReviveDeletedKeyWhenRestoredInOneBatch() {
        final RocksDBVersionedStore store = open();
        store.restoreBatch(lateVersionOfDeletedKey());
        assertNull(get(store, "k", 60_000L), "deleted at 2,000, before the version of 1,500 came");
    }

    /** The batch that brings the late version makes the segment of the deletion expire, which the store has already. */
    @Test
    public void shouldNotReviveKeyThatWasDeletedInAnEarlierBatch() {
        final RocksDBVersionedStore store = open();
        store.restoreBatch(List.of(changed(0, "k", "v1", 1_000L), changed(1, "k", null, 2_000L)));
        assertNull(get(store, "k", 2_000L));

        store.restoreBatch(List.of(
            changed(2, "other", "v1", 6_000L),
            changed(3, "other", "v2", 7_000L),
            changed(4, "k", "late", 1_500L),
            changed(5, "other", "v3", 26_000L)));

        assertNull(get(store, "k", 26_000L), "deleted at 2,000");
    }

    /** In what is within the retention, against the store that was written by {@code put}. */
    @Test
    public void shouldHaveAfterRestoreWhatItHadBefore() {
        for (int seed = 0; seed < 3; seed++) {
            final Random random = new Random(seed);
            final RocksDBVersionedStore written = open();
            final List<ConsumerRecord<byte[], byte[]>> changelog = new ArrayList<>();
            long streamTime = 0L;
            for (int offset = 0; offset < 4_000; offset++) {
                streamTime += random.nextInt(45);
                final String key = "k" + random.nextInt(KEYS);
                final String value = random.nextBoolean() ? "v" + offset : null;
                final long timestamp = Math.max(0L, streamTime - random.nextInt(12_000));
                written.put(bytes(key), value(value), timestamp);
                changelog.add(changed(offset, key, value, timestamp));
            }

            final RocksDBVersionedStore restored = open();
            restored.restoreBatch(changelog.subList(0, 3_000));
            restored.restoreBatch(changelog.subList(3_000, 4_000));

            for (int key = 0; key < KEYS; key++) {
                for (long asOf = streamTime - HISTORY_RETENTION; asOf <= streamTime; asOf += 500L) {
                    assertEquals(
                        get(written, "k" + key, asOf), get(restored, "k" + key, asOf),
                        "key k" + key + " as of " + asOf + ", seed " + seed);
                }
            }
        }
    }

    private static List<ConsumerRecord<byte[], byte[]>> lateVersionOfDeletedKey() {
        return List.of(
            changed(0, "k", "v1", 1_000L),
            changed(1, "k", null, 2_000L),
            changed(2, "k", "late", 1_500L),
            changed(3, "other", "v", 60_000L)); // by now the deletion is older than the history retention
    }

    private RocksDBVersionedStore open() {
        final RocksDBVersionedStore store =
            new RocksDBVersionedStore("versions" + open.size(), "scope", HISTORY_RETENTION, SEGMENT_INTERVAL);
        store.init(new MockProcessorContext<>(new Properties(), new TaskId(0, 0), stateDir).getStateStoreContext(), store);
        open.add(store);
        return store;
    }

    private static ConsumerRecord<byte[], byte[]> changed(
            final long offset, final String key, final String value, final long timestamp) {
        return new ConsumerRecord<>(
            "changelog", 0, offset, timestamp, TimestampType.CREATE_TIME, 0, 0,
            bytes(key).get(), value(value), new RecordHeaders(), Optional.empty());
    }

    private static String get(final RocksDBVersionedStore store, final String key, final long asOfTimestamp) {
        final VersionedRecord<byte[]> version = store.get(bytes(key), asOfTimestamp);
        return version == null ? null : new StringDeserializer().deserialize(null, version.value());
    }

    private static Bytes bytes(final String key) {
        return Bytes.wrap(value(key));
    }

    private static byte[] value(final String value) {
        return value == null ? null : new StringSerializer().serialize(null, value);
    }
}
