package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class CountingTest {

    @TempDir
    Path state;

    private Trial trial;

    @BeforeEach
    void prepare() {
        trial = new Trial("counting", state, Map.of("input.topic", "in", "output.topic", "out", "caching", true));
    }

    @ParameterizedTest
    @CsvSource({"true,rocksdb", "false,rocksdb", "true,in-memory", "false,in-memory"})
    void worked_example(boolean caching, String stores) {
        try (TopologyTestDriver driver = trial.with("caching", caching).with("stores", stores).open()) {
            Trial.pipe(driver, 1, 1, 2, 1, 1, 2, 1, 3);

            assertEquals(
                    List.of(
                            KeyValue.pair(1, 1L << 32),
                            KeyValue.pair(2, 1L << 32),
                            KeyValue.pair(1, 2L << 32 | 1),
                            KeyValue.pair(1, 3L << 32 | 2)),
                    Trial.read(driver, "out", new LongDeserializer()));
            assertEquals(Trial.pairs(1, 1, 2, 1, 1, 2, 1, 3), Trial.read(driver, "app-last-changelog"));
        }
        assertEquals(List.of(), trial.told);
    }

    @Test
    void a_number_that_skips_ahead_tells_of_a_stale_read() {
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 7, 1, 7, 3);

            assertEquals(
                    List.of(Events.fields(
                            "event", "stale-read",
                            "task", "0_0",
                            "thread", Thread.currentThread().getName(),
                            "partition", 0,
                            "offset", 1L,
                            "key", 7,
                            "expected", 2,
                            "found", 1)),
                    trial.told);
            assertEquals(
                    List.of(KeyValue.pair(7, 1L << 32), KeyValue.pair(7, 3L << 32 | 1)),
                    Trial.read(driver, "out", new LongDeserializer()));
            assertEquals(Trial.pairs(7, 1, 7, 3), Trial.read(driver, "app-last-changelog"));
        }
    }

    @Test
    void a_key_that_the_store_does_not_hold_has_the_number_0() {
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 7, 2);
        }
        assertEquals(1, trial.told.size());
        assertEquals(1, trial.told.get(0).get("expected"));
        assertEquals(0, trial.told.get(0).get("found"));
    }

    @Test
    void a_number_that_comes_again_is_no_stale_read() {
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 7, 1, 7, 2, 7, 2, 7, 1);
            assertEquals(
                    List.of(
                            KeyValue.pair(7, 1L << 32),
                            KeyValue.pair(7, 2L << 32 | 1),
                            KeyValue.pair(7, 2L << 32 | 2),
                            KeyValue.pair(7, 1L << 32 | 2)),
                    Trial.read(driver, "out", new LongDeserializer()));
        }
        assertEquals(List.of(), trial.told);
    }

    @Test
    void its_task_is_declared_corrupted_after_so_many_records() {
        try (TopologyTestDriver driver = trial.with("corrupt.after", 2).open()) {
            Trial.pipe(driver, 7, 1, 7, 2);
            TaskCorruptedException corrupted =
                    assertThrows(TaskCorruptedException.class, () -> Trial.pipe(driver, 7, 3));
            assertEquals("[0_0]", corrupted.corruptedTasks().toString());
        }
        assertEquals(2L, trial.progress.processed().get(0).get("count"));
    }

    @Test
    void each_record_is_counted() {
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 1, 1, 1, 3);
        }
        assertEquals(2L, trial.progress.processed().get(0).get("count"));
    }

    @Test
    void the_greatest_number_and_what_was_found_do_not_mix() {
        long pair = Counting.pair(Integer.MAX_VALUE, Integer.MAX_VALUE - 1);
        assertEquals(Integer.MAX_VALUE, (int) (pair >> 32));
        assertEquals(Integer.MAX_VALUE - 1, (int) pair);
    }

    @ParameterizedTest
    @ValueSource(strings = {"input.topic", "output.topic"})
    void a_missing_setting_is_one_sentence(String name) {
        trial.app.remove(name);
        assertEquals("Setting " + name + " is missing; it must be a text.", trial.refusal());
    }

    @Test
    void settings_of_the_wrong_kind_are_refused() {
        assertEquals("Setting caching is no, but must be true or false.", trial.with("caching", "no").refusal());
        assertEquals(
                "Setting stores is \"paper\", but must be one of: rocksdb, in-memory.",
                trial.with("caching", true).with("stores", "paper").refusal());
    }

    @Test
    void a_setting_that_nobody_knows_is_refused() {
        assertEquals(
                "Unknown setting partitions; known are: caching, corrupt.after, fail.after, input.topic, output.topic, stores.",
                trial.with("partitions", 2).refusal());
    }
}
