package org.apache.kafka.streams.state.internals;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.rocksdb.FlushOptions;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

/**
 * Segments are opened twice after a kill under exactly-once: before the threads start
 * ({@code StateDirectory.initializeStartupStores}), and by the stream thread.
 */
public class KeyValueSegmentsAfterKillTest {

    private static final long SEGMENT_INTERVAL = 100L;
    private static final long RETENTION_PERIOD = 4 * SEGMENT_INTERVAL;
    private static final Bytes KEY = Bytes.wrap(new byte[] {1});
    private static final byte[] VALUE = {2};

    @TempDir
    File running;
    @TempDir
    File killed;

    /** The process was started again cleanly within the retention, and wrote to a new segment only. */
    @Test
    public void shouldNotLockOlderSegmentWhenNewerOneIsCorrupted() throws Exception {
        final KeyValueSegments before = opened(running);
        before.getOrCreateSegment(0, context(running)).put(KEY, VALUE);
        before.close();

        kill(opened(running), 1);

        assertThrows(TaskCorruptedException.class, () -> opened(killed), "before the threads start");
        assertThrows(TaskCorruptedException.class, () -> opened(killed), "in the stream thread");
    }

    @Test
    public void shouldFindOnlySegmentCorruptedEachTime() throws Exception {
        kill(opened(running), 1);

        assertThrows(TaskCorruptedException.class, () -> opened(killed), "before the threads start");
        assertThrows(TaskCorruptedException.class, () -> opened(killed), "in the stream thread");
    }

    @Test
    public void shouldOpenSegmentsThatWereClosed() {
        final KeyValueSegments before = opened(running);
        before.getOrCreateSegment(0, context(running)).put(KEY, VALUE);
        before.getOrCreateSegment(1, context(running)).put(KEY, VALUE);
        before.close();

        final KeyValueSegments again = opened(running);
        assertEquals(List.of(0L, 1L), again.allSegments(true).stream().map(s -> s.id()).collect(Collectors.toList()));
        again.close();
    }

    /** Writes to a segment; RocksDB flushes it; the process is killed. Copies what is on the disk then. */
    private void kill(final KeyValueSegments segments, final long written) throws Exception {
        final KeyValueSegment segment = segments.getOrCreateSegment(written, context(running));
        segment.put(KEY, VALUE);
        try (FlushOptions options = new FlushOptions().setWaitForFlush(true)) {
            segment.db.flush(options, List.of(
                segment.db.getDefaultColumnFamily(),
                ((AbstractColumnFamilyAccessor) segment.cfAccessor).offsetColumnFamilyHandle()));
        }
        copy(running.toPath(), killed.toPath());
        segments.close();
    }

    private static KeyValueSegments opened(final File stateDir) {
        final KeyValueSegments segments = new KeyValueSegments("store", "scope", RETENTION_PERIOD, SEGMENT_INTERVAL);
        segments.openExisting(context(stateDir), -1L);
        return segments;
    }

    private static StateStoreContext context(final File stateDir) {
        final Properties config = new Properties();
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        return new MockProcessorContext<>(config, new TaskId(0, 0), stateDir).getStateStoreContext();
    }

    private static void copy(final Path from, final Path to) throws IOException {
        try (Stream<Path> files = Files.walk(from)) {
            for (final Path file : files.filter(Files::isRegularFile).collect(Collectors.toList())) {
                final Path copied = to.resolve(from.relativize(file));
                Files.createDirectories(copied.getParent());
                Files.copy(file, copied);
            }
        }
    }
}
