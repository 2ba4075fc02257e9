package org.apache.kafka.streams.state.internals;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertFalse;

/**
 * A process is killed while it deletes a database of RocksDB: an expired segment, or the store of a task that is wiped.
 * {@code Utils.delete} goes through the files in the order of the file system. No broker is needed: the stores are opened
 * before the threads start.
 */
public class KafkaStreamsHalfDeletedStoreTest {

    private static final String STORE = "store";
    private static final Duration RETENTION = Duration.ofMinutes(10);
    private static final Bytes KEY = Bytes.wrap(new byte[] {1});
    private static final byte[] VALUE = {2};

    @TempDir
    File stateDir;
    private Properties config;
    private File taskDir;

    @BeforeEach
    public void setUp() throws IOException {
        config = new Properties();
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:1");
        config.put(StreamsConfig.STATE_DIR_CONFIG, stateDir.getPath());
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        taskDir = new File(stateDir, "app/0_0");
        Files.createDirectories(taskDir.toPath());
    }

    @ParameterizedTest
    @ValueSource(strings = {"CURRENT", "MANIFEST-", ".sst"})
    public void shouldStartIfExpiredSegmentIsHalfDeleted(final String deleted) throws IOException {
        delete(writtenSegments().get(0), deleted);

        assertDoesNotThrow(() -> start(windows()));
    }

    @Test
    public void shouldStartIfStoreOfWipedTaskIsHalfDeleted() throws IOException {
        delete(writtenStore(), "MANIFEST-");

        assertDoesNotThrow(() -> start(keys()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"IDENTITY", "OPTIONS-", ".log", "LOG"})
    public void shouldStartIfExpiredSegmentHasLostWhatItCanDoWithout(final String deleted) throws IOException {
        delete(writtenSegments().get(0), deleted);

        assertDoesNotThrow(() -> start(windows()));
    }

    @Test
    public void shouldStartOverWholeSegments() {
        writtenSegments();

        assertDoesNotThrow(() -> start(windows()));
    }

    private void start(final StoreBuilder<?> store) {
        final Topology topology = new Topology()
            .addSource("source", Serdes.Bytes().deserializer(), Serdes.Bytes().deserializer(), "input")
            .addProcessor("processor", Idle::new, "source")
            .addStateStore(store, "processor");
        try (KafkaStreams streams = new KafkaStreams(topology, config)) {
            streams.start();
        }
    }

    private static class Idle implements Processor<Bytes, Bytes, Void, Void> {
        @Override
        public void process(final Record<Bytes, Bytes> record) { }
    }

    private static StoreBuilder<?> windows() {
        return Stores.windowStoreBuilder(
            Stores.persistentWindowStore(STORE, RETENTION, Duration.ofMinutes(1), false), Serdes.Bytes(), Serdes.ByteArray());
    }

    private static StoreBuilder<?> keys() {
        return Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(STORE), Serdes.Bytes(), Serdes.ByteArray());
    }

    /** The directories of two segments, which were closed cleanly, oldest first. */
    private List<Path> writtenSegments() {
        final long interval = RETENTION.toMillis() / 2;
        final KeyValueSegments segments = new KeyValueSegments(STORE, "scope", RETENTION.toMillis(), interval);
        segments.openExisting(context(), -1L);
        for (final long id : new long[] {0, 1}) {
            segments.getOrCreateSegment(id, context()).put(KEY, VALUE);
        }
        segments.close();
        return Stream.of("0", String.valueOf(interval))
            .map(time -> taskDir.toPath().resolve(STORE).resolve(STORE + "." + time))
            .collect(Collectors.toList());
    }

    /** The directory of a store that was closed cleanly. */
    private Path writtenStore() {
        final RocksDBStore store = new RocksDBStore(STORE, "scope");
        store.init(context(), store);
        store.put(KEY, VALUE);
        store.close();
        return taskDir.toPath().resolve("rocksdb").resolve(STORE);
    }

    private static void delete(final Path database, final String name) throws IOException {
        try (Stream<Path> files = Files.list(database)) {
            final List<Path> found = files
                .filter(file -> file.getFileName().toString().startsWith(name) || file.toString().endsWith(name))
                .collect(Collectors.toList());
            assertFalse(found.isEmpty(), "there is no " + name);
            for (final Path file : found) {
                Files.delete(file);
            }
        }
    }

    private StateStoreContext context() {
        return new MockProcessorContext<>(config, new TaskId(0, 0), taskDir).getStateStoreContext();
    }
}
