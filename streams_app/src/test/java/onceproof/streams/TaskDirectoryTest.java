package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.streams.TopologyTestDriver;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Directories as a killed process leaves them: copied while the stores are open. */
class TaskDirectoryTest {

    @TempDir
    Path state;

    @TempDir
    Path parent;

    private Path copy;
    private Path out;
    private Trial trial;

    @BeforeEach
    void prepare() {
        copy = parent.resolve("0_0");
        out = parent.resolve("out");
        trial = new Trial("enumerator", state, Map.of(
                "input.topic", "in", "output.topic", "out", "partitions", 2, "caching", false));
    }

    @Test
    void what_rocksdb_has_flushed_is_written() throws Exception {
        trial.config.put("rocksdb.config.setter", RocksDbMemory.class.getName());
        trial.config.put(RocksDbMemory.BYTES, "65536");
        int[] records = IntStream.range(0, 20_000).flatMap(key -> IntStream.of(key, key)).toArray();
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, records);
            copy();
        }
        List<Map<String, Object>> stores = TaskDirectory.dump(copy, out);
        assertEquals(List.of("counter", "ids"), stores.stream().map(s -> s.get("store")).collect(Collectors.toList()));
        List<String> ids = Files.readAllLines(out.resolve("ids.csv"));
        assertEquals((long) ids.size(), stores.get(1).get("entries"));
        assertTrue(ids.size() > 1_000, "so much does not fit into its write buffer");
        assertEquals(IntStream.range(0, ids.size()).mapToObj(n -> n + "," + 2 * n).collect(Collectors.toList()), ids);
        assertEquals(stores, TaskDirectory.dump(copy, out), "it stays as it is");
    }

    @Test
    void the_checkpoint_tells_the_last_offset_that_a_store_claims_and_minus_four_that_it_knows_none() throws Exception {
        try (TopologyTestDriver driver = trial.open()) {
            assertEquals(2, driver.getAllStateStores().size());
            copy();
        }
        Files.writeString(copy.resolve(".checkpoint"), "0\n2\napp-counter-changelog 0 17\napp-ids-changelog 0 -4\n");
        assertEquals(List.of(told("counter", 0, 18L), told("ids", 0, null)), TaskDirectory.dump(copy, out));
        assertEquals("", Files.readString(out.resolve("ids.csv")));
    }

    @Test
    void a_directory_without_stores_has_none() throws Exception {
        Files.createDirectories(copy);
        assertEquals(List.of(), TaskDirectory.dump(copy, out));
    }

    @Test
    void a_damaged_store_is_not_read_as_an_empty_one() throws Exception {
        try (TopologyTestDriver driver = trial.open()) {
            assertEquals(2, driver.getAllStateStores().size());
            copy();
        }
        Files.writeString(copy.resolve("rocksdb/ids/CURRENT"), "MANIFEST-999999\n");
        assertThrows(Exception.class, () -> TaskDirectory.dump(copy, out));
    }

    private void copy() throws IOException {
        Path task = state.resolve("app/0_0");
        try (Stream<Path> files = Files.walk(task)) {
            files.forEach(file -> {
                try {
                    Files.copy(file, copy.resolve(task.relativize(file)));
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
        }
    }

    private static Map<String, Object> told(String store, long entries, Long position) {
        return Events.fields("store", store, "entries", entries, "position", position);
    }
}
