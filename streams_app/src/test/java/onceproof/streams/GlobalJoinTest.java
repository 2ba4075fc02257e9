package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TopologyTestDriver;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GlobalJoinTest {

    @TempDir
    Path state;

    private Trial trial;

    @BeforeEach
    void prepare() {
        trial = new Trial("global-join", state, Map.of("input.topic", "in", "output.topic", "out", "caching", false));
    }

    @ParameterizedTest
    @CsvSource({"true,rocksdb", "false,rocksdb", "true,in-memory", "false,in-memory"})
    void worked_example(boolean caching, String stores) {
        try (TopologyTestDriver driver = trial.with("caching", caching).with("stores", stores).open()) {
            Trial.pipe(driver, 1, -50, 2, -60, 1, -70); // entries
            Trial.pipe(driver, 11, 2, 12, 3, 13, 9); // for keys 1, 2 and 8, which does not exist

            assertEquals(
                    List.of(pair(1, 0, 50), pair(2, 0, 60), pair(1, 0, 70), pair(11, 2, 70), pair(12, 3, 60), pair(13, 9, 0)),
                    Trial.read(driver, "out", new LongDeserializer()));
        }
        assertEquals(6L, trial.progress.processed().get(0).get("count"));
    }

    /** KIP-962 promises it from 3.7.0 on; KAFKA-19208 broke the promise until 4.0.1. */
    @Test
    void who_asks_for_no_key_comes_out_as_well_where_that_is_promised_and_kept() {
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 1, -50, 11, 0, 12, 2);

            List<KeyValue<Integer, Long>> expected = new ArrayList<>(List.of(pair(1, 0, 50), pair(12, 2, 50)));
            if (System.getProperty("kafka.version").compareTo("4.0.1") >= 0) {
                expected.add(1, pair(11, 0, 0));
            }
            assertEquals(expected, Trial.read(driver, "out", new LongDeserializer()));
        }
    }

    @Test
    void settings_of_other_topologies_are_refused() {
        assertEquals(
                "Unknown setting delete; known are: added, caching, input.topic, output.topic, stores, table.",
                trial.with("delete", "at-once").refusal());
    }

    private static KeyValue<Integer, Long> pair(int key, int value, int entry) {
        return KeyValue.pair(key, (long) value << 32 | entry);
    }
}
