package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.state.KeyValueStore;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ValuesTest {

    private static final String CHANGELOG = "app-values-changelog";

    @TempDir
    Path state;

    private Trial trial;

    @BeforeEach
    void prepare() {
        trial = new Trial("values", state, Map.of("input.topic", "in", "value.bytes", 1000, "caching", true));
    }

    @ParameterizedTest
    @CsvSource({"true,rocksdb", "false,rocksdb", "true,in-memory", "false,in-memory"})
    void worked_example(boolean caching, String stores) {
        try (TopologyTestDriver driver = trial.with("caching", caching).with("stores", stores).open()) {
            Trial.pipe(driver, 1, 10, 2, -20, 1, 11);

            List<KeyValue<Integer, byte[]>> changelog = Trial.read(driver, CHANGELOG, new ByteArrayDeserializer());
            assertEquals(Trial.pairs(1, 10, 2, -20, 1, 11), beginnings(changelog));
            changelog.forEach(entry -> assertEquals(1000, entry.value.length));
            KeyValueStore<Integer, byte[]> values = driver.getKeyValueStore(Values.VALUES);
            assertArrayEquals(changelog.get(2).value, values.get(1));
            assertArrayEquals(changelog.get(1).value, values.get(2));
        }
        assertEquals(3L, trial.progress.processed().get(0).get("count"));
    }

    @Test
    void nothing_but_the_changelog_is_sent() {
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 1, 10);
            assertEquals(1, driver.producedTopicNames().size());
        }
    }

    @Test
    void equal_records_have_different_values() {
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 1, 10, 1, 10);
            List<KeyValue<Integer, byte[]>> changelog = Trial.read(driver, CHANGELOG, new ByteArrayDeserializer());
            assertFalse(Arrays.equals(changelog.get(0).value, changelog.get(1).value));
        }
    }

    @Test
    void the_smallest_value_is_the_integer_of_the_record() {
        try (TopologyTestDriver driver = trial.with("value.bytes", 4).open()) {
            Trial.pipe(driver, 1, 0x01020304);
            assertArrayEquals(
                    new byte[] {1, 2, 3, 4}, Trial.read(driver, CHANGELOG, new ByteArrayDeserializer()).get(0).value);
        }
    }

    @ParameterizedTest
    @CsvSource({"3,4", "1,4", "0,1", "-4,1"})
    void too_few_bytes_are_refused(int bytes, int least) {
        assertEquals(
                "Setting value.bytes is " + bytes + ", but must be at least " + least + ".",
                trial.with("value.bytes", bytes).refusal());
    }

    @Test
    void bytes_that_are_no_number_are_refused() {
        assertEquals("Setting value.bytes is many, but must be a whole number.", trial.with("value.bytes", "many").refusal());
    }

    @ParameterizedTest
    @ValueSource(strings = {"input.topic", "value.bytes", "caching"})
    void a_missing_setting_is_one_sentence(String name) {
        trial.app.remove(name);
        String said = trial.refusal();
        assertEquals("Setting " + name + " is missing; it must be ", said.substring(0, said.indexOf("be ") + 3));
    }

    @Test
    void a_setting_that_nobody_knows_is_refused() {
        assertEquals(
                "Unknown setting output.topic; known are: caching, input.topic, stores, value.bytes.",
                trial.with("output.topic", "out").refusal());
    }

    private static List<KeyValue<Integer, Integer>> beginnings(List<KeyValue<Integer, byte[]>> entries) {
        return entries.stream()
                .map(entry -> KeyValue.pair(entry.key, ByteBuffer.wrap(entry.value).getInt()))
                .collect(Collectors.toList());
    }
}
