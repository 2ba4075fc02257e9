package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.streams.TopologyTestDriver;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ForeignKeyJoinTest {

    @TempDir
    Path state;

    private Trial trial;

    @BeforeEach
    void prepare() {
        trial = new Trial(
                "foreign-key-join", state,
                Map.of(
                        "input.topic", "in", "output.topic", "out", "caching", false, "join", "inner",
                        "partitions", 1, "last.key", 13, "last.keys", 1));
    }

    @ParameterizedTest
    @CsvSource({"true,rocksdb", "false,rocksdb", "true,in-memory", "false,in-memory"})
    void worked_example(boolean caching, String stores) {
        try (TopologyTestDriver driver = trial.with("caching", caching).with("stores", stores).open()) {
            Trial.pipe(driver, 1, -50, 2, -60); // the right table
            Trial.pipe(driver, 11, 2, 12, 3, 13, 9, 14, 2); // for keys 1, 2, 8 (which does not exist) and 1
            Trial.pipe(driver, 1, -70, 12, 2);

            assertEquals(Map.of(11, pair(2, 70), 12, pair(2, 70), 14, pair(2, 70)), table(driver));
            assertEquals(List.of(), trial.told);

            Trial.pipe(driver, 8, -80);
            assertEquals(List.of(Events.fields("event", "joined", "keys", 1, "dropped", 0L)), trial.told);
        }
        assertEquals(9L, trial.progress.processed().get(0).get("count"));
    }

    /** KAFKA-16407 and KAFKA-16434, fixed in 3.9.1, 4.0.1 and 4.1.0. */
    @Test
    void a_foreign_key_that_comes_from_null_or_becomes_null_is_followed_where_that_is_fixed() {
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 1, -50, 11, 0, 11, 2, 12, 2, 12, 0);

            boolean isFixed = ForeignKeyRaceTest.hasTheFixOfKafka16407();
            assertEquals(isFixed ? Map.of(11, pair(2, 50), 12, 0L) : Map.of(12, pair(2, 50)), table(driver));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void a_row_has_another_attribute_beside_its_foreign_key_and_may_be_deleted(int partitions) {
        try (TopologyTestDriver driver = trial.with("partitions", partitions).open()) {
            Trial.pipe(driver, 1, -50, 11, 2, 11, 3_000_002, 12, 2, 12, ForeignKeyJoin.DELETED, 14, 2, 14, 2_000_009);

            assertEquals(Map.of(11, pair(3_000_002, 50), 12, 0L, 14, 0L), table(driver));
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void to_the_left_what_has_no_right_side_comes_out_too(int partitions) {
        trial.with("join", "left").with("partitions", partitions).with("last.keys", 2);
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 1, -50, 11, 2, 12, 3, 11, 3, 12, 2);
            assertEquals(Map.of(11, pair(3, 0), 12, pair(2, 50)), table(driver));

            Trial.pipe(driver, 13, 2);
            assertEquals(List.of(), trial.told);
            Trial.pipe(driver, 13, 2, 14, 9);
            assertEquals(List.of(Events.fields("event", "joined", "keys", 2, "dropped", 0L)), trial.told);
        }
    }

    @Test
    void the_last_key_must_be_given() {
        trial.app.remove("last.key");
        assertEquals("Setting last.key is missing; it must be a whole number.", trial.refusal());
    }

    private static Map<Integer, Long> table(TopologyTestDriver driver) {
        Map<Integer, Long> table = new TreeMap<>();
        Trial.read(driver, "out", new LongDeserializer()).forEach(entry -> table.put(entry.key, entry.value));
        return table;
    }

    private static long pair(int value, int other) {
        return (long) value << 32 | other;
    }
}
