package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.streams.TopologyTestDriver;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TableJoinTest {

    private static final int FIRST = 1_000;

    @TempDir
    Path state;

    private Trial trial;

    @BeforeEach
    void prepare() {
        trial = new Trial(
                "table-join", state, Map.of("input.topic", "in", "output.topic", "out", "first.total", FIRST, "caching", false));
    }

    /** Of the key 5 the right record came first, of 7 there is none, of 9 only the right one; 15 is in the total of 5. */
    @ParameterizedTest
    @CsvSource({"inner,rocksdb,0,0,22", "left,rocksdb,1,0,22", "outer,rocksdb,1,1,22", "outer,in-memory,1,1,22"})
    void results_and_sums_are_those_of_the_last_values(String join, String stores, int alone, int right, int total) {
        try (TopologyTestDriver driver = trial.with("join", join).with("stores", stores).open()) {
            Trial.pipe(driver, 5, -3, 5, 2, 5, 4, 7, 30, 9, -40, 15, 8, 15, -7);

            Map<Integer, Long> table = table(driver);
            assertEquals(Counting.pair(4, 3), table.get(5));
            assertEquals(Counting.pair(8, 7), table.get(15));
            assertEquals(alone == 1 ? Counting.pair(30, 0) : null, table.get(7));
            assertEquals(right == 1 ? Counting.pair(0, 40) : null, table.get(9));
            assertEquals((long) total, table.get(FIRST + 5));
            assertEquals(alone == 1 ? 30L : null, table.get(FIRST + 7));
            assertEquals(right == 1 ? 40L : null, table.get(FIRST + 9));
        }
    }

    /** 5 and 5,005 are a group, whose sum is 1,600; 15 is another one of the same total. */
    @Test
    void of_a_sum_the_last_three_digits_go_on() {
        try (TopologyTestDriver driver = trial.with("join", "inner").open()) {
            Trial.pipe(driver, 5, 300, 5, -400, 5005, 400, 5005, -500, 15, 8, 15, -7);

            assertEquals(615L, table(driver).get(FIRST + 5));
        }
    }

    @Test
    void what_is_deleted_is_subtracted() {
        try (TopologyTestDriver driver = trial.with("join", "inner").open()) {
            Trial.pipe(driver, 5, 2, 5, -3, 15, 8, 15, -7, 5, -1);

            Map<Integer, Long> table = table(driver);
            assertEquals(0L, table.get(5));
            assertEquals(15L, table.get(FIRST + 5));
        }
    }

    /** What goes through the repartition topics is counted in addition to the input; here there is one task for all. */
    @Test
    void each_sub_topology_tells_what_it_processed() {
        try (TopologyTestDriver driver = trial.with("join", "inner").open()) {
            Trial.pipe(driver, 5, 2, 5, -3);
        }
        assertEquals(4L, trial.progress.processed().get(0).get("count"));
    }

    private static Map<Integer, Long> table(TopologyTestDriver driver) {
        Map<Integer, Long> table = new TreeMap<>();
        Trial.read(driver, "out", new LongDeserializer()).forEach(entry -> table.put(entry.key, entry.value));
        return table;
    }
}
