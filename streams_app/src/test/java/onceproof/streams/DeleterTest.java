package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.state.KeyValueStore;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class DeleterTest {

    private static final int DELETE = 2;

    @TempDir
    Path state;

    private Trial trial;

    @BeforeEach
    void prepare() {
        trial = new Trial("deleter", state, Map.of("input.topic", "in", "output.topic", "out", "caching", true));
    }

    @ParameterizedTest
    @CsvSource({
        "at-once,true,rocksdb", "at-once,false,rocksdb", "at-once,true,in-memory", "at-once,false,in-memory",
        "downstream,true,rocksdb", "downstream,false,rocksdb", "downstream,true,in-memory", "downstream,false,in-memory"
    })
    void worked_example(String delete, boolean caching, String stores) {
        trial.with("delete", delete).with("caching", caching).with("stores", stores);
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 1, Deleter.PUT, 2, Deleter.PUT, 1, DELETE, 1, DELETE, 3, DELETE, 1, Deleter.PUT, 1, DELETE);

            assertEquals(
                    Trial.pairs(1, Deleter.TRUE, 1, Deleter.FALSE, 3, Deleter.FALSE, 1, Deleter.TRUE),
                    Trial.read(driver, "out"));
            assertEquals(
                    delete.equals("at-once")
                            ? List.of("1=1", "2=1", "1=null", "1=null", "3=null", "1=1", "1=null")
                            : List.of("1=1", "2=1", "1=null", "1=1", "1=null"),
                    changelog(driver));
            KeyValueStore<Integer, Integer> records = driver.getKeyValueStore(Deleter.RECORDS);
            assertNull(records.get(1));
            assertEquals(Deleter.PUT, records.get(2));
        }
        assertEquals(7L, trial.progress.processed().get(0).get("count"), "answers that come back do not count");
    }

    @Test
    void deletes_at_once_if_nothing_else_is_asked_for() {
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 1, Deleter.PUT, 1, DELETE, 1, DELETE);
            assertEquals(List.of("1=1", "1=null", "1=null"), changelog(driver));
        }
    }

    @Test
    void at_once_does_not_listen_to_answers() {
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 1, Deleter.PUT);
            assertThrows(IllegalArgumentException.class, () -> Trial.input(driver, "out").pipeInput(1, Deleter.TRUE));
            assertEquals(Deleter.PUT, driver.<Integer, Integer>getKeyValueStore(Deleter.RECORDS).get(1));
        }
    }

    /**
     * The driver pipes answers back by itself, but tasks take the smallest timestamp first and, with an idle time, take
     * nothing while one of their topics has no record: so the late answer lets both deletes go before the first answer.
     */
    @Test
    void downstream_deletes_only_when_the_answer_has_come_back() {
        trial.with("delete", "downstream").config.put("max.task.idle.ms", "1000");
        try (TopologyTestDriver driver = trial.open()) {
            KeyValueStore<Integer, Integer> records = driver.getKeyValueStore(Deleter.RECORDS);
            records.put(1, Deleter.PUT);
            Trial.input(driver, "in").pipeInput(1, DELETE, 1);
            Trial.input(driver, "in").pipeInput(1, DELETE, 2);
            Trial.input(driver, "out").pipeInput(99, Deleter.FALSE, 100);

            assertEquals(Trial.pairs(1, Deleter.TRUE, 1, Deleter.TRUE), Trial.read(driver, "out"));
            assertEquals(Deleter.PUT, records.get(1));

            driver.advanceWallClockTime(Duration.ofSeconds(2));
            assertNull(records.get(1));
        }
    }

    @Test
    void downstream_deletes_what_was_answered_to_be_there() {
        try (TopologyTestDriver driver = trial.with("delete", "downstream").open()) {
            Trial.pipe(driver, 1, Deleter.PUT, 2, Deleter.PUT);
            Trial.input(driver, "out").pipeKeyValueList(Trial.pairs(1, Deleter.FALSE, 2, Deleter.TRUE));
            assertEquals(List.of("1=1", "2=1", "2=null"), changelog(driver));
        }
    }

    @Test
    void settings_of_the_wrong_kind_are_refused() {
        assertEquals(
                "Setting delete is \"later\", but must be one of: at-once, downstream.", trial.with("delete", "later").refusal());
        assertEquals("Setting delete is true, but must be a text.", trial.with("delete", true).refusal());
    }

    @ParameterizedTest
    @ValueSource(strings = {"at-once", "downstream"})
    void a_setting_that_nobody_knows_is_refused(String delete) {
        assertEquals(
                "Unknown setting deletes; known are: caching, delete, input.topic, output.topic, stores.",
                trial.with("delete", delete).with("deletes", "later").refusal());
    }

    private static List<String> changelog(TopologyTestDriver driver) {
        return Trial.read(driver, "app-records-changelog").stream()
                .map(entry -> entry.key + "=" + entry.value)
                .collect(Collectors.toList());
    }
}
