package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
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
                        "input.topic", "in", "output.topic", "out", "caching", false, "suppressed", true, "on.close", false,
                        "supplied", false, "cogrouped", false,
                        "size.ms", 10, "grace.ms", 5, "retention.ms", 15));
    }

    /** Records {@code key, value, time}; results {@code key: sum from start at time}. */
    private List<String> results(int... records) {
        return results(0, records);
    }

    /** The same, when the clock advances by so many ms before each record. */
    private List<String> results(int step, int[] records) {
        try (TopologyTestDriver driver = trial.open()) {
            TestInputTopic<Integer, Integer> input = Trial.input(driver, "in");
            for (int i = 0; i < records.length; i += 3) {
                driver.advanceWallClockTime(Duration.ofMillis(step));
                input.pipeInput(records[i], records[i + 1], records[i + 2]);
            }
            return results(driver);
        }
    }

    private static List<String> results(TopologyTestDriver driver) {
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
    void a_topic_that_stays_empty_changes_nothing() {
        trial.with("idle.topic", "idle");
        assertEquals(List.of("7: 7 from 100 at 108", "8: 8 from 110 at 115"), results(RECORDS));
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

    private static final String INTERVAL = "__emit.interval.ms.kstreams.windowed.aggregation__";

    /** Results of windows that are emitted on close, once a second, if records come every 400 ms of the clock. */
    private List<String> onClose(int... records) {
        assumeFalse(System.getProperty("kafka.version").matches("3[.][012][.].*"));
        trial.with("suppressed", false).with("on.close", true);
        trial.config.put(INTERVAL, 1_000L); // as outside of the test driver, which waits for none from 3.5 on
        return results(400, records);
    }

    /** Windows of 100 and 110 wait for a second to pass: that of 100 is too old for the store then. */
    private static final int[] CATCHING_UP = {7, 1, 105, 7, 2, 115, 7, 3, 125, 7, 4, 135};

    @Test
    void windows_that_close_come_out_once_a_second_if_they_are_kept_so_long() {
        trial.with("retention.ms", 1_000);
        assertEquals(
                List.of("7: 1 from 100 at 105", "7: 2 from 110 at 115", "7: 3 from 120 at 125"), onClose(CATCHING_UP));
    }

    /** A finding: windows that have closed are lost. */
    @Test
    void windows_that_are_kept_no_longer_than_needed_do_not_come_out() {
        assertEquals(List.of("7: 3 from 120 at 125"), onClose(CATCHING_UP));
    }

    @Test
    void sessions_that_close_come_out_once_a_second() {
        trial.with("kind", "session");
        assertEquals(
                List.of("7: 1 from 105 at 105", "7: 2 from 125 at 125"),
                onClose(7, 1, 105, 7, 2, 125, 8, 3, 130, 7, 4, 145));
    }

    @ParameterizedTest
    @CsvSource({"true,false", "false,true"})
    void what_comes_out_on_close_is_what_suppress_holds_back(boolean suppressed, boolean onClose) {
        assumeFalse(onClose && System.getProperty("kafka.version").matches("3[.][0-8][.].*")); // their driver waits
        trial.with("suppressed", suppressed).with("on.close", onClose).with("retention.ms", 1_000);
        assertEquals(List.of("7: 7 from 100 at 108", "8: 8 from 110 at 115"), results(RECORDS));
    }

    @Test
    void a_release_without_the_strategy_is_named() {
        assumeTrue(System.getProperty("kafka.version").startsWith("3.0."));
        trial.with("suppressed", false).with("on.close", true);
        assertEquals(
                "This Kafka Streams has no EmitStrategy; take 3.3.0 or later, or on.close=false.", trial.refusal());
    }

    /** A finding: a session that has been emitted is emitted again, grown, where the store keeps it for longer. */
    @Test
    void a_session_that_is_kept_is_taken_in_although_it_has_come_out() {
        trial.with("kind", "session").with("retention.ms", 1_000);
        assertEquals(
                List.of("7: 1 from 100 at 100", "7: 7 from 100 at 116"),
                results(7, 1, 100, 7, 2, 116, 7, 4, 108, 9, 9, 132));
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

    /** A window ends with a record, or begins just behind one, and has both of its ends. */
    @ParameterizedTest
    @ValueSource(strings = {"rocksdb", "in-memory"})
    void windows_slide_with_the_records(String stores) {
        trial.with("kind", "sliding").with("stores", stores).with("suppressed", false).with("retention.ms", 25);
        List<String> updates = new ArrayList<>(results(7, 1, 100, 7, 2, 104, 7, 4, 102, 7, 8, 104));
        Collections.sort(updates); // those of one record come in any order
        assertEquals(
                List.of(
                        "7: 1 from 90 at 100", "7: 10 from 103 at 104", "7: 14 from 101 at 104", "7: 15 from 94 at 104",
                        "7: 2 from 101 at 104", "7: 2 from 103 at 104", "7: 3 from 94 at 104", "7: 5 from 92 at 102",
                        "7: 6 from 101 at 104", "7: 7 from 94 at 104"),
                updates);
    }

    @Test
    void a_sliding_window_comes_out_when_it_has_closed() {
        trial.with("kind", "sliding").with("retention.ms", 25);
        assertEquals(
                List.of("7: 1 from 90 at 100", "7: 3 from 94 at 104", "7: 2 from 101 at 104"),
                results(7, 1, 100, 7, 2, 104, 9, 9, 150));
    }

    @Test
    void each_of_two_streams_has_an_aggregator_of_its_own() {
        trial.with("cogrouped", true);
        assertEquals(List.of("7: 102 from 100 at 105"), results(7, 1, 105, 7, 2, 103, 9, 9, 150, 9, 2, 150));
    }

    /** What is held back keeps its time when another update takes its place. */
    @Test
    void an_update_comes_out_when_its_time_is_up() {
        trial.with("suppressed", false).with("limit.ms", 4);
        assertEquals(
                List.of("7: 3 from 100 at 103", "7: 15 from 100 at 106", "8: 9 from 100 at 105"),
                results(7, 1, 101, 7, 2, 103, 8, 9, 105, 7, 4, 105, 7, 8, 106, 9, 1, 109));
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
