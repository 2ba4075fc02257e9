package onceproof.streams;

import static onceproof.streams.TaskDirectory.Form.BYTES;
import static onceproof.streams.TaskDirectory.Form.INTEGERS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.WindowStore;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Directories as the release's own stores write them. */
class TaskDirectoryTest {

    @TempDir
    Path parent;

    private Path task;
    private Path out;
    private MockProcessorContext<Void, Void> context;

    @BeforeEach
    void prepare() {
        task = parent.resolve("0_0");
        out = parent.resolve("out");
        Properties config = new Properties();
        config.put("application.id", "app");
        config.put("bootstrap.servers", "unused:1");
        context = new MockProcessorContext<>(config, new TaskId(0, 0), task.toFile());
    }

    @Test
    void every_store_is_written_with_or_without_timestamps() throws Exception {
        KeyValueStore<Integer, Integer> plain = Stores.keyValueStoreBuilder(
                        Stores.persistentKeyValueStore("plain"), Serdes.Integer(), Serdes.Integer())
                .withLoggingDisabled().build();
        plain.init(context.getStateStoreContext(), plain);
        plain.put(7, 70);
        plain.put(-3, -30);
        plain.put(8, 80);
        plain.delete(8);
        plain.close();
        TimestampedKeyValueStore<Integer, Integer> timed = Stores.timestampedKeyValueStoreBuilder(
                        Stores.persistentTimestampedKeyValueStore("timed"), Serdes.Integer(), Serdes.Integer())
                .withLoggingDisabled().build();
        timed.init(context.getStateStoreContext(), timed);
        timed.put(9, ValueAndTimestamp.make(90, 1234L));
        timed.close();

        List<Map<String, Object>> told = List.of(told("plain", 2, null), told("timed", 1, null));
        assertEquals(told, TaskDirectory.dump(INTEGERS, task, out));
        assertEquals(List.of("7,70", "-3,-30"), Files.readAllLines(out.resolve("plain.csv")), "as RocksDB sorts bytes");
        assertEquals(List.of("9,90"), Files.readAllLines(out.resolve("timed.csv")));
        TaskDirectory.dump(BYTES, task, out);
        assertEquals(List.of("AAAACQ==,AAAAWg=="), Files.readAllLines(out.resolve("timed.csv")), "without the timestamp");
        assertEquals(told, TaskDirectory.dump(INTEGERS, task, out), "it stays as it is");
    }

    @Test
    void the_segments_of_a_store_with_times_are_written_together() throws Exception {
        Files.createDirectories(task);
        WindowStore<Integer, Integer> windows = Stores.windowStoreBuilder(
                        Stores.persistentWindowStore("windows", Duration.ofHours(1), Duration.ofMillis(1), false),
                        Serdes.Integer(), Serdes.Integer())
                .withLoggingDisabled().build();
        windows.init(context.getStateStoreContext(), windows);
        windows.put(7, 70, 1_000L);
        windows.put(8, 80, Duration.ofMinutes(40).toMillis());
        windows.close();
        Files.createDirectories(task.resolve("rocksdb/nothing-yet"));

        assertEquals(List.of(told("windows", 2, null, true)), TaskDirectory.dump(INTEGERS, task, out));
        assertEquals(List.of("7,70", "8,80"), Files.readAllLines(out.resolve("windows.csv")));
    }

    @Test
    void the_checkpoint_tells_the_last_offset_that_a_store_claims_or_that_it_knows_none() throws Exception {
        empty("counter");
        empty("daily-counter");
        empty("ids");
        Files.writeString(task.resolve(".checkpoint"), "0\n3\napp-counter-changelog 0 17\n"
                + "app-daily-counter-changelog 0 3\napp-ids-changelog 0 -4\n");
        List<Map<String, Object>> told =
                List.of(told("counter", 0, 18L), told("daily-counter", 0, 4L), told("ids", 0, null));
        assertEquals(told, TaskDirectory.dump(INTEGERS, task, out));
        assertEquals("", Files.readString(out.resolve("ids.csv")));
    }

    @Test
    void a_checkpoint_of_another_form_is_an_error() throws Exception {
        empty("ids");
        for (String text : List.of("", "1\n1\napp-ids-changelog 0 4\n", "0\n2\napp-ids-changelog 0 4\n",
                "0\n1\napp-ids-changelog 0 4 clean\n")) {
            Files.writeString(task.resolve(".checkpoint"), text);
            assertThrows(IOException.class, () -> TaskDirectory.dump(INTEGERS, task, out), text);
        }
    }

    @Test
    void a_directory_without_stores_has_none() throws Exception {
        Files.createDirectories(task);
        assertEquals(List.of(), TaskDirectory.dump(INTEGERS, task, out));
    }

    @Test
    void a_damaged_store_is_not_read_as_an_empty_one() throws Exception {
        empty("ids");
        Files.writeString(task.resolve("rocksdb/ids/CURRENT"), "MANIFEST-999999\n");
        assertThrows(Exception.class, () -> TaskDirectory.dump(INTEGERS, task, out));
    }

    private void empty(String name) throws IOException {
        KeyValueStore<Integer, Integer> store = Stores.keyValueStoreBuilder(
                        Stores.persistentKeyValueStore(name), Serdes.Integer(), Serdes.Integer())
                .withLoggingDisabled().build();
        store.init(context.getStateStoreContext(), store);
        store.close();
    }

    private static Map<String, Object> told(String store, int entries, Long position) {
        return told(store, entries, position, false);
    }

    private static Map<String, Object> told(String store, int entries, Long position, boolean segments) {
        return Events.fields(
                "store", store, "entries", entries, "position", position, "segments", segments, "unknown", Set.of());
    }
}
