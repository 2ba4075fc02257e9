package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Joined;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class AsOfJoinTest {

    private static final int RETENTION = 50;

    @TempDir
    Path state;

    private Trial trial;

    @BeforeEach
    void prepare() {
        trial = new Trial(
                "as-of-join", state,
                Map.of(
                        "input.topic", "in", "output.topic", "out", "caching", false, "stores", "versioned",
                        "retention.ms", RETENTION));
    }

    /** Records {@code key, value, time}; results {@code key: value, version at time}. */
    private List<String> results(int... records) {
        try (TopologyTestDriver driver = trial.open()) {
            TestInputTopic<Integer, Integer> input = Trial.input(driver, "in");
            for (int i = 0; i < records.length; i += 3) {
                input.pipeInput(records[i], records[i + 1], records[i + 2]);
            }
            List<String> results = new ArrayList<>();
            driver.createOutputTopic("out", new IntegerDeserializer(), new LongDeserializer())
                    .readRecordsToList()
                    .forEach(result -> results.add(told(
                            result.key(), (int) (result.value() >> 32), result.value().intValue(), result.timestamp())));
            return results;
        }
    }

    private static String told(int key, int value, int version, long time) {
        return String.format("%d: %d, %d at %d", key, value, version, time);
    }

    /** The last version ends at 150, where the key is deleted; that of 120 is out of order. */
    private static final int[] RECORDS = {
        7, -10, 100, 7, -30, 140, 7, -20, 120, 7, 0, 150, 7, 1, 99, 7, 2, 100, 7, 3, 130, 7, 4, 145, 7, 5, 150
    };

    @Test
    void a_record_gets_what_its_key_was_at_its_time() {
        assumeTrue(VersionedStoreTest.thereAre());
        assertEquals(
                List.of(
                        "7: 0, 10 at 100", "7: 0, 30 at 140", "7: 0, 20 at 120", "7: 0, 0 at 150",
                        "7: 1, 0 at 99", "7: 2, 10 at 100", "7: 3, 20 at 130", "7: 4, 30 at 145", "7: 5, 0 at 150"),
                results(RECORDS));
        assertEquals(9L, trial.progress.processed().get(0).get("count"));
    }

    /** What asks at 105 and 110 waits until 115 and 120 of its stream; what changes the table advances its time, too. */
    @Test
    void who_waits_gets_a_version_that_came_meanwhile_and_changes_let_it_out() {
        assumeTrue(VersionedStoreTest.thereAre() && joinsWait());
        trial.with("grace.ms", 10);
        trial.config.put("default.key.serde", Serdes.IntegerSerde.class.getName());
        trial.config.put("default.value.serde", Serdes.IntegerSerde.class.getName());
        assertEquals(
                List.of(
                        "7: 0, 10 at 100", "7: 0, 20 at 104", "7: 1, 20 at 105", "8: 0, 80 at 115", "7: 2, 20 at 110",
                        "8: 0, 90 at 120"),
                results(7, -10, 100, 7, 1, 105, 7, -20, 104, 7, 2, 110, 8, -80, 115, 8, -90, 120));
    }

    private static boolean joinsWait() {
        return Arrays.stream(Joined.class.getMethods()).anyMatch(one -> one.getName().equals("withGracePeriod"));
    }

    @Test
    void the_store_tells_each_version_and_deletion(@TempDir Path folder) throws IOException {
        assumeTrue(VersionedStoreTest.thereAre());
        Path file = folder.resolve("versions.entries");
        try (TopologyTestDriver driver = trial.open()) {
            TestInputTopic<Integer, Integer> input = Trial.input(driver, "in");
            for (int i = 0; i < RECORDS.length; i += 3) {
                input.pipeInput(RECORDS[i], RECORDS[i + 1], RECORDS[i + 2]);
            }
            input.pipeInput(8, -40, 160);
            assertEquals(5, Entries.write(driver.getAllStateStores().get("versions"), file));
        }
        assertEquals(
                List.of(
                        "00000007,0000000a,100", "00000007,00000014,120", "00000007,0000001e,140", "00000007,,150",
                        "00000008,00000028,160"),
                Files.readAllLines(file));
    }

    @Test
    void what_is_too_old_changes_nothing_and_gets_the_last_version_only() {
        assumeTrue(VersionedStoreTest.thereAre());
        assertEquals(
                List.of(
                        "7: 0, 10 at 100", "7: 0, 20 at 120", "8: 0, 80 at 110", "9: 0, 90 at 200", "7: 0, 30 at 149",
                        "7: 1, 20 at 149", "7: 2, 0 at 119", "8: 3, 80 at 149", "8: 4, 0 at 109", "7: 5, 20 at 200"),
                results(
                        7, -10, 100, 7, -20, 120, 8, -80, 110, 9, -90, 200, 7, -30, 149, 7, 1, 149, 7, 2, 119, 8, 3, 149,
                        8, 4, 109, 7, 5, 200));
    }

    @ParameterizedTest
    @ValueSource(strings = {"rocksdb", "in-memory"})
    void of_a_table_without_versions_a_record_gets_what_was_put_last(String stores) {
        trial.with("stores", stores);
        assertEquals(
                List.of("7: 0, 10 at 100", "7: 0, 20 at 90", "7: 1, 20 at 50", "7: 0, 0 at 80", "7: 2, 0 at 200"),
                results(7, -10, 100, 7, -20, 90, 7, 1, 50, 7, 0, 80, 7, 2, 200));
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void what_is_drawn_gets_what_the_model_says(long seed) {
        assumeTrue(VersionedStoreTest.thereAre());
        Random random = new Random(seed);
        int[] records = new int[9_000];
        for (int number = 0; number < records.length / 3; number++) {
            boolean asks = random.nextBoolean();
            records[3 * number] = random.nextInt(12);
            records[3 * number + 1] = asks ? number + 1 : random.nextInt(8) == 0 ? 0 : -number - 1;
            records[3 * number + 2] = 10_000 + 3 * number - random.nextInt(2 * RETENTION);
        }
        assertEquals(expected(records), results(records));
    }

    private static List<String> expected(int... records) {
        Map<Integer, TreeMap<Integer, Integer>> versions = new HashMap<>();
        List<String> expected = new ArrayList<>();
        int latest = 0;
        for (int i = 0; i < records.length; i += 3) {
            int key = records[i], value = records[i + 1], time = records[i + 2];
            TreeMap<Integer, Integer> ofKey = versions.computeIfAbsent(key, any -> new TreeMap<>());
            boolean old = time < latest - RETENTION;
            if (value <= 0) {
                if (!old) {
                    ofKey.put(time, -value);
                    latest = Math.max(latest, time);
                }
                expected.add(told(key, 0, -value, time));
            } else {
                Map.Entry<Integer, Integer> found = old && !ofKey.isEmpty() && ofKey.lastKey() > time ? null : ofKey.floorEntry(time);
                expected.add(told(key, value, found == null ? 0 : found.getValue(), time));
            }
        }
        return expected;
    }

    @Test
    void a_release_without_versioned_stores_refuses_them() {
        assumeFalse(VersionedStoreTest.thereAre());
        assertEquals(
                "This Kafka Streams has no versioned stores; take 3.5.0 or later, or another kind of store.",
                trial.refusal());
    }
}
