package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TopologyTestDriver;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ScansTest {

    private static final int DELETE = 0;

    @TempDir
    Path state;

    private Trial trial;

    @BeforeEach
    void prepare() {
        trial = new Trial(
                "scans", state,
                Map.of("input.topic", "in", "output.topic", "out", "caching", false, "reach", 2, "all.every", 10));
    }

    @ParameterizedTest
    @CsvSource({"true,rocksdb", "false,rocksdb", "true,in-memory", "false,in-memory"})
    void worked_example(boolean caching, String stores) {
        try (TopologyTestDriver driver = trial.with("caching", caching).with("stores", stores).open()) {
            for (int key : new int[] {1, 2, 3, 4, 5, 9, 10}) {
                Trial.pipe(driver, key, Scans.PUT);
            }
            Trial.pipe(driver, 3, DELETE, 1, DELETE, 10, DELETE, 7, DELETE);

            assertEquals(
                    List.of(found(3, 1, 2, 4, 5), found(1, 2), found(10, 2, 4, 5, 9), found(7, 5, 9)),
                    Trial.read(driver, "out", new LongDeserializer()));
            assertEquals(11L, trial.progress.processed().get(0).get("count"));
        }
    }

    /** KAFKA-18326, fixed in 3.9.1: a deleted key is found while a key before it is in the store and not in the cache. */
    @ParameterizedTest
    @ValueSource(ints = {3, 10})
    void a_deleted_key_is_a_ghost_on_the_oldest_release(int key) {
        trial.with("caching", true).config.put("cache.max.bytes.buffering", "500");
        trial.config.put("statestore.cache.max.bytes", "500"); // from 3.4 on
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 1, Scans.PUT, 2, Scans.PUT, key, Scans.PUT);
            for (int other = 100; other < 200; other++) { // these push them out of the cache
                Trial.pipe(driver, other, Scans.PUT);
            }
            Trial.pipe(driver, key, DELETE);

            boolean ghosts = System.getProperty("kafka.version").startsWith("3.0.");
            long there = found(key, key == 3 ? new int[] {1, 2} : everything()).value;
            long ghost = ghosts ? 1L << 32 | key : 0;
            assertEquals(List.of(KeyValue.pair(key, there + ghost)), Trial.read(driver, "out", new LongDeserializer()));
        }
    }

    @Test
    void reach_must_be_given() {
        trial.app.remove("reach");
        assertEquals("Setting reach is missing; it must be a whole number.", trial.refusal());
    }

    @Test
    void settings_of_other_topologies_are_refused() {
        assertEquals(
                "Unknown setting delete; known are: all.every, caching, input.topic, output.topic, reach, stores.",
                trial.with("delete", "at-once").refusal());
    }

    private static int[] everything() {
        return IntStream.concat(IntStream.of(1, 2), IntStream.range(100, 200)).toArray();
    }

    private static KeyValue<Integer, Long> found(int key, int... keys) {
        long sum = 0;
        for (int each : keys) {
            sum += each;
        }
        return KeyValue.pair(key, (long) keys.length << 32 | sum);
    }
}
