package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class OutboxTest {

    @TempDir
    Path state;

    private Trial trial;

    @BeforeEach
    void prepare() {
        trial = new Trial(
                "outbox", state,
                Map.of("input.topic", "in", "output.topic", "out", "caching", false, "punctuate.ms", 100));
    }

    /** Results since the last ones: {@code key: value made at, waited}. */
    private static List<String> results(TopologyTestDriver driver) {
        List<String> results = new ArrayList<>();
        driver.createOutputTopic("out", new IntegerDeserializer(), new LongDeserializer())
                .readRecordsToList()
                .forEach(result -> results.add(String.format(
                        "%d: %d made at %d, waited %d",
                        result.key(), result.value() >> Integer.SIZE, result.timestamp(), result.value().intValue())));
        return results;
    }

    private static boolean isEmpty(TopologyTestDriver driver) {
        try (KeyValueIterator<Object, ValueAndTimestamp<Object>> held =
                driver.getTimestampedKeyValueStore(Outbox.BUFFER).all()) {
            return !held.hasNext();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"rocksdb", "in-memory"})
    void a_punctuation_releases_what_is_due_and_none_overtakes_another(String stores) {
        trial.with("stores", stores);
        try (TopologyTestDriver driver = trial.open()) {
            TestInputTopic<Integer, Integer> input = Trial.input(driver, "in");
            input.pipeInput(1, 150, 1_000);
            input.pipeInput(2, 20, 1_090); // behind the one before, though it is due earlier
            input.pipeInput(3, 400, 1_050);
            input.pipeInput(4, 0, 1_149);
            assertEquals(List.of(), results(driver));
            input.pipeInput(5, 0, 1_160); // the first one is due, and no punctuation is
            assertEquals(List.of(), results(driver));
            input.pipeInput(6, 0, 1_230);
            assertEquals(List.of("1: 150 made at 1000, waited 230", "2: 20 made at 1090, waited 140"), results(driver));
            assertFalse(isEmpty(driver));
            assertEquals(List.of(), trial.told);
            input.pipeInput(7, 0, 1_450);
            assertEquals(
                    List.of(
                            "3: 400 made at 1050, waited 400", "4: 0 made at 1149, waited 301",
                            "5: 0 made at 1160, waited 290", "6: 0 made at 1230, waited 220",
                            "7: 0 made at 1450, waited 0"),
                    results(driver));
            assertTrue(isEmpty(driver));
        }
        assertEquals(List.of(Map.of("event", "emptied", "task", "0_0", "last", 7)), trial.told);
        assertEquals(7L, trial.progress.processed().get(0).get("count"));
    }

    @Test
    void by_the_wall_clock_records_come_out_whether_others_follow_or_not() {
        trial.with("clock", "wall-clock");
        try (TopologyTestDriver driver = trial.open()) {
            TestInputTopic<Integer, Integer> input = Trial.input(driver, "in");
            long now = System.currentTimeMillis(); // the driver's clock begins about then
            input.pipeInput(1, 10, now);
            input.pipeInput(2, 60_000, now);
            driver.advanceWallClockTime(Duration.ofSeconds(5));
            assertEquals(1, results(driver).size());
            driver.advanceWallClockTime(Duration.ofSeconds(100));
            assertEquals(1, results(driver).size());
            assertTrue(isEmpty(driver));
        }
        assertEquals(List.of(Map.of("event", "emptied", "task", "0_0", "last", 2)), trial.told);
    }
}
