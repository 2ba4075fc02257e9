package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class StreamJoinTest {

    @TempDir
    Path state;

    private Trial trial;

    @BeforeEach
    void prepare() {
        trial = new Trial(
                "stream-join", state,
                Map.of("input.topic", "in", "output.topic", "out", "caching", false, "window.ms", 10, "grace.ms", 5));
        trial.config.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", "0");
    }

    /** Left 1 and right 2 match; left 3 and right 4 are alone; the window of 5 does not close. */
    @ParameterizedTest
    @CsvSource({"outer,true,true", "left,true,false", "inner,false,false"})
    void worked_example(String join, boolean left, boolean right) {
        assumeFalse(waitsForNoWindow());
        try (TopologyTestDriver driver = trial.with("join", join).open()) {
            TestInputTopic<Integer, Integer> input = Trial.input(driver, "in");
            input.pipeInput(7, 1, 1_000);
            input.pipeInput(7, -2, 1_010);
            input.pipeInput(8, 3, 1_020);
            input.pipeInput(8, -4, 1_031);
            input.pipeInput(9, 5, 1_100);

            List<KeyValue<Integer, Long>> results = Trial.read(driver, "out", new LongDeserializer());
            assertEquals(KeyValue.pair(7, Counting.pair(1, 2)), results.get(0));
            assertEquals(left, results.contains(KeyValue.pair(8, Counting.pair(3, 0))));
            assertEquals(right, results.contains(KeyValue.pair(8, Counting.pair(0, 4))));
            assertEquals(1 + (left ? 1 : 0) + (right ? 1 : 0), results.size());
        }
        assertEquals(5L, trial.progress.processed().get(0).get("count"));
    }

    /** A right record may be younger than the left one by 10 ms, and older by 4 ms. */
    @Test
    void a_window_may_be_wider_behind_a_left_record_than_before_it() {
        assumeFalse(waitsForNoWindow());
        try (TopologyTestDriver driver = trial.with("join", "inner").with("before.ms", 4).open()) {
            TestInputTopic<Integer, Integer> input = Trial.input(driver, "in");
            input.pipeInput(7, -1, 1_000);
            input.pipeInput(7, 2, 1_004);
            input.pipeInput(7, 3, 1_005);
            input.pipeInput(7, -4, 1_015);

            assertEquals(
                    List.of(KeyValue.pair(7, Counting.pair(2, 1)), KeyValue.pair(7, Counting.pair(3, 4))),
                    Trial.read(driver, "out", new LongDeserializer()));
        }
    }

    /** Left 1 comes when its window has ended and its grace has not, so a match may follow (KAFKA-19536). */
    @Test
    void a_record_that_is_out_of_order_does_not_wait_for_its_match() {
        assumeFalse(waitsForNoWindow());
        try (TopologyTestDriver driver = trial.with("grace.ms", 50).open()) {
            TestInputTopic<Integer, Integer> input = Trial.input(driver, "in");
            input.pipeInput(9, 5, 1_100);
            input.pipeInput(7, 1, 1_080);
            input.pipeInput(7, -2, 1_075);

            assertEquals(
                    List.of(KeyValue.pair(7, Counting.pair(1, 0)), KeyValue.pair(7, Counting.pair(1, 2))),
                    Trial.read(driver, "out", new LongDeserializer()));
        }
    }

    @Test
    void a_release_that_waits_for_no_window_is_refused() {
        assumeTrue(waitsForNoWindow());
        assertEquals("This release does not wait for a window to close; take 3.1.0 or later.", trial.refusal());
    }

    private static boolean waitsForNoWindow() {
        return System.getProperty("kafka.version").startsWith("3.0.");
    }

    @Test
    void the_window_must_be_given() {
        trial.app.remove("window.ms");
        assertEquals("Setting window.ms is missing; it must be a whole number.", trial.refusal());
    }
}
