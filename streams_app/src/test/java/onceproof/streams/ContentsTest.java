package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.state.KeyValueStore;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ContentsTest {

    @TempDir
    Path state;

    @TempDir
    Path parent;

    private Path folder;
    private Trial dedup;

    @BeforeEach
    void prepare() {
        folder = parent.resolve("not/yet/there");
        dedup = new Trial("dedup", state, Map.of(
                "input.topic", "in", "output.topic", "out", "caching", true, "contents.folder", folder.toString()));
    }

    @ParameterizedTest
    @CsvSource({"true,rocksdb", "false,rocksdb", "true,in-memory", "false,in-memory"})
    void what_was_there_before_the_first_record_is_written(boolean caching, String stores) throws IOException {
        try (TopologyTestDriver driver = dedup.with("caching", caching).with("stores", stores).open()) {
            KeyValueStore<Integer, Integer> seen = driver.getKeyValueStore(Dedup.SEEN);
            seen.put(2, 20);
            seen.put(1, 10);
            assertFalse(Files.exists(folder), "no record, no contents");

            Trial.pipe(driver, 3, 30, 4, 40);
        }
        assertEquals(List.of("seen,0,0,1,10", "seen,0,1,2,20"), Files.readAllLines(folder.resolve("0_0.csv")));
        assertEquals(List.of(told("0_0", "seen", 2)), dedup.told);
    }

    @Test
    void empty_stores_make_an_empty_file() throws IOException {
        try (TopologyTestDriver driver = dedup.open()) {
            Trial.pipe(driver, 1, 10);
        }
        assertEquals(List.of("0_0.csv"), files());
        assertEquals("", Files.readString(folder.resolve("0_0.csv")));
        assertEquals(List.of(told("0_0", "seen", 0)), dedup.told);
    }

    @Test
    void every_store_of_the_enumerator_is_written_and_numbered_on_its_own() throws IOException {
        Trial enumerator = new Trial("enumerator", state, dedup.app).with("partitions", 2);
        try (TopologyTestDriver driver = enumerator.open()) {
            driver.<Integer, Integer>getKeyValueStore(Enumerator.COUNTER).put(0, 1);
            driver.<Integer, Integer>getKeyValueStore(Enumerator.IDS).put(7, 0);
            driver.<Integer, Integer>getKeyValueStore(Enumerator.IDS).put(8, 2);
            Trial.pipe(driver, 9, 9, 7, 7);
            assertEquals(Trial.pairs(9, 4, 7, 0), Trial.read(driver, "out"));
        }
        assertEquals(
                List.of("counter,0,0,0,1", "ids,0,0,7,0", "ids,0,1,8,2"), Files.readAllLines(folder.resolve("0_0.csv")));
        assertEquals(List.of(told("0_0", "counter", 1, "ids", 2)), enumerator.told);
    }

    @Test
    void each_task_is_written_once() throws IOException {
        Contents contents = Contents.of(new Settings(dedup.app), dedup.progress);
        try (TopologyTestDriver driver = dedup.open()) {
            KeyValueStore<Integer, Integer> seen = driver.getKeyValueStore(Dedup.SEEN);
            seen.put(1, 10);
            contents.tellOnce(new TaskId(0, 1), List.of(seen));
            seen.put(2, 20);
            contents.tellOnce(new TaskId(0, 0), List.of(seen));
            contents.tellOnce(new TaskId(0, 1), List.of(seen));
        }
        assertEquals(List.of("0_0.csv", "0_1.csv"), files());
        assertEquals(List.of("seen,1,0,1,10"), Files.readAllLines(folder.resolve("0_1.csv")));
        assertEquals(List.of("seen,0,0,1,10", "seen,0,1,2,20"), Files.readAllLines(folder.resolve("0_0.csv")));
        assertEquals(List.of(told("0_1", "seen", 1), told("0_0", "seen", 2)), dedup.told);
    }

    @Test
    void the_file_of_a_process_before_is_replaced() throws IOException {
        Files.createDirectories(folder);
        Files.writeString(folder.resolve("0_0.csv"), "seen,0,0,5,50\nseen,0,1,6,60\n");
        Files.writeString(folder.resolve("0_0.draft"), "seen,0,0,5");
        try (TopologyTestDriver driver = dedup.open()) {
            driver.<Integer, Integer>getKeyValueStore(Dedup.SEEN).put(1, 10);
            Trial.pipe(driver, 2, 20);
        }
        assertEquals(List.of("0_0.csv"), files());
        assertEquals(List.of("seen,0,0,1,10"), Files.readAllLines(folder.resolve("0_0.csv")));
    }

    @Test
    void nothing_is_written_or_told_if_no_folder_is_named() throws IOException {
        dedup.app.remove("contents.folder");
        try (TopologyTestDriver driver = dedup.open()) {
            Trial.pipe(driver, 1, 10);
        }
        assertEquals(List.of(), dedup.told);
        assertFalse(Files.exists(folder));
    }

    @Test
    void a_folder_that_is_no_text_is_refused() {
        assertEquals("Setting contents.folder is 7, but must be a text.", dedup.with("contents.folder", 7).refusal());
    }

    private List<String> files() throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).sorted().collect(Collectors.toList());
        }
    }

    private static Map<String, Object> told(String task, String store, long entries) {
        return Events.fields("event", "contents", "task", task, "stores", List.of(stored(store, entries)));
    }

    private static Map<String, Object> told(String task, String store, long entries, String other, long others) {
        return Events.fields(
                "event", "contents", "task", task, "stores", List.of(stored(store, entries), stored(other, others)));
    }

    private static Map<String, Object> stored(String store, long entries) {
        return Events.fields("store", store, "entries", entries);
    }
}
