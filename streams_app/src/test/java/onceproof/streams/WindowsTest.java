package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class WindowsTest {

    @TempDir
    Path state;

    private Trial trial;

    @BeforeEach
    void prepare() {
        trial = new Trial(
                "windows", state,
                Map.of(
                        "input.topic", "in", "output.topic", "out", "caching", false, "suppressed", true,
                        "size.ms", 10, "grace.ms", 5));
    }

    /** Records {@code key, value, time}; results {@code key: sum from start at time}. */
    private List<String> results(int... records) {
        try (TopologyTestDriver driver = trial.open()) {
            TestInputTopic<Integer, Integer> input = Trial.input(driver, "in");
            for (int i = 0; i < records.length; i += 3) {
                input.pipeInput(records[i], records[i + 1], records[i + 2]);
            }
            List<String> results = new ArrayList<>();
            driver.createOutputTopic("out", new IntegerDeserializer(), new LongDeserializer())
                    .readRecordsToList()
                    .forEach(result -> results.add(String.format(
                            "%d: %d from %d at %d",
                            result.key(),
                            result.value() & (1 << Windows.SUM_BITS) - 1,
                            result.value() >> Windows.SUM_BITS,
                            result.timestamp())));
            return results;
        }
    }

    /** The record of 103 is out of order, that of 108 just within the grace, and that of 109 too late. */
    private static final int[] RECORDS = {7, 1, 105, 7, 2, 103, 8, 3, 114, 7, 4, 108, 8, 5, 115, 7, 6, 109, 9, 7, 150};

    @ParameterizedTest
    @CsvSource({"rocksdb,false", "in-memory,false", "rocksdb,true"})
    void a_window_comes_out_once_when_it_has_closed(String stores, boolean caching) {
        trial.with("stores", stores).with("caching", caching);
        assertEquals(List.of("7: 7 from 100 at 108", "8: 8 from 110 at 115"), results(RECORDS));
        assertEquals(7L, trial.progress.processed().get(0).get("count"));
    }

    @Test
    void every_update_comes_out() {
        trial.with("suppressed", false);
        assertEquals(
                List.of(
                        "7: 1 from 100 at 105", "7: 3 from 100 at 105", "8: 3 from 110 at 114",
                        "7: 7 from 100 at 108", "8: 8 from 110 at 115", "9: 7 from 150 at 150"),
                results(RECORDS));
    }

    @Test
    void a_hopping_window_begins_half_a_window_after_the_one_before() {
        trial.with("kind", "hopping");
        assertEquals(
                List.of("7: 5 from 95 at 104", "7: 6 from 100 at 106", "7: 1 from 105 at 106"),
                results(7, 3, 103, 7, 1, 106, 7, 2, 104, 7, 1, 160));
    }

    @ParameterizedTest
    @ValueSource(strings = {"rocksdb", "in-memory"})
    void sessions_grow_together(String stores) {
        trial.with("kind", "session").with("stores", stores);
        assertEquals(
                List.of("8: 8 from 100 at 100", "7: 7 from 100 at 114"),
                results(7, 1, 100, 8, 8, 100, 7, 2, 114, 7, 4, 107, 9, 9, 132));
    }

    /** A record that is out of order by more than the grace, but not by grace and gap: the session of 116 takes it. */
    @ParameterizedTest
    @CsvSource({"rocksdb", "in-memory"})
    void a_session_that_has_come_out_is_taken_in_by_none(String stores) {
        assumeFalse(stores.equals("rocksdb") && System.getProperty("kafka.version").startsWith("3.0."));
        trial.with("kind", "session").with("stores", stores);
        assertEquals(
                List.of("7: 1 from 100 at 100", "7: 6 from 108 at 116"),
                results(7, 1, 100, 7, 2, 116, 7, 4, 108, 9, 9, 132));
    }

    @Test
    void an_old_release_has_a_session_taken_in_that_has_come_out() {
        assumeTrue(System.getProperty("kafka.version").startsWith("3.0."));
        trial.with("kind", "session");
        assertEquals(
                List.of("7: 1 from 100 at 100", "7: 7 from 100 at 116"),
                results(7, 1, 100, 7, 2, 116, 7, 4, 108, 9, 9, 132));
    }

    @Test
    void a_session_that_another_has_taken_in_comes_out_as_none() {
        trial.with("kind", "session").with("suppressed", false);
        assertEquals(
                List.of(
                        "7: 1 from 100 at 100", "7: 2 from 111 at 111", "7: 0 from 100 at 100", "7: 0 from 111 at 111",
                        "7: 7 from 100 at 111", "7: 0 from 100 at 111", "7: 12 from 100 at 111"),
                results(7, 1, 100, 7, 2, 111, 7, 4, 105, 7, 5, 111));
    }

    @Test
    void a_sum_must_have_room_beside_its_window() {
        assertEquals(100L << 22 | 4_194_303, Windows.result(100, 4_194_303));
        assertEquals(
                "The window from 100 has the sum 4194304, but it must be from 1 to 4194303; take smaller values, or "
                        + "shorter windows.",
                assertThrows(IllegalStateException.class, () -> Windows.result(100, 4_194_304)).getMessage());
    }
}
