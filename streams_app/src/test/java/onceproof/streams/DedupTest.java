package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.test.TestRecord;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DedupTest {

    @TempDir
    Path state;

    private Trial trial;

    @BeforeEach
    void prepare() {
        trial = new Trial("dedup", state, Map.of("input.topic", "in", "output.topic", "out", "caching", true));
    }

    @ParameterizedTest
    @CsvSource({"true,rocksdb", "false,rocksdb", "true,in-memory", "false,in-memory", "false,rocksdb-timestamped"})
    void worked_example(boolean caching, String stores) {
        try (TopologyTestDriver driver = trial.with("caching", caching).with("stores", stores).open()) {
            Trial.pipe(driver, 1, 10, 2, 20, 1, 11, 3, 30, 2, 20);

            assertEquals(Trial.pairs(1, 10, 2, 20, 3, 30), Trial.read(driver, "out"));
            assertEquals(Trial.pairs(1, 10, 2, 20, 3, 30), Trial.read(driver, "app-seen-changelog"));
        }
        assertEquals(5L, trial.progress.processed().get(0).get("count"), "dropped records count, too");
    }

    @ParameterizedTest
    @CsvSource({"true,window", "false,window", "true,session", "false,session", "false,versioned"})
    void a_store_with_times_remembers_a_key_at_the_time_of_the_record(boolean caching, String stores) throws IOException {
        assumeTrue(!stores.equals("versioned") || VersionedStoreTest.thereAre());
        Path folder = state.resolve("contents");
        Trial timed = trial.with("caching", caching).with("stores", stores).with("contents.folder", folder.toString());
        try (TopologyTestDriver driver = timed.open()) {
            Numbers seen = Numbers.of(driver.getAllStateStores().get(Dedup.SEEN));
            seen.put(7, 70, 1234L);
            Trial.input(driver, "in").pipeInput(7, 71, 1234L);
            Trial.input(driver, "in").pipeInput(1, 10, 5678L);
            Trial.input(driver, "in").pipeInput(1, 11, 5678L);
            assertEquals(Trial.pairs(1, 10), Trial.read(driver, "out"));
            assertEquals(10, seen.get(1, 5678L));
            assertEquals(List.of(KeyValue.pair(1, 10), KeyValue.pair(7, 70)), sorted(seen.entries()));
        }
        assertEquals(List.of("seen,0,0,7,70"), Files.readAllLines(folder.resolve("0_0.csv")));
    }

    private static List<KeyValue<Object, Object>> sorted(List<KeyValue<Object, Object>> entries) {
        entries.sort(Comparator.comparing(entry -> (Integer) entry.key));
        return entries;
    }

    @ParameterizedTest
    @CsvSource({"window,00000001000000000000162e00000000", "session,00000001000000000000162e000000000000162e"})
    void the_changelog_of_such_a_store_has_the_time_behind_the_key(String stores, String key) {
        try (TopologyTestDriver driver = trial.with("caching", false).with("stores", stores).open()) {
            Trial.input(driver, "in").pipeInput(1, 10, 5678L);
            TestRecord<byte[], Integer> record = driver.createOutputTopic(
                            "app-seen-changelog", new ByteArrayDeserializer(), new IntegerDeserializer())
                    .readRecord();
            assertEquals(key, String.format("%0" + 2 * record.key().length + "x", new BigInteger(1, record.key())));
            assertEquals(List.of(10, 5678L), List.of(record.value(), record.timestamp()));
        }
    }

    @Test
    void a_key_that_the_store_remembers_is_dropped() {
        try (TopologyTestDriver driver = trial.open()) {
            KeyValueStore<Integer, Integer> seen = driver.getKeyValueStore(Dedup.SEEN);
            seen.put(1, 9);
            Trial.pipe(driver, 1, 10, 2, 20);
            assertEquals(Trial.pairs(2, 20), Trial.read(driver, "out"));
            assertEquals(9, seen.get(1));
        }
    }

    @Test
    void a_timestamped_store_keeps_the_time_of_the_record_that_came_first() {
        try (TopologyTestDriver driver = trial.with("stores", "rocksdb-timestamped").open()) {
            Trial.input(driver, "in").pipeInput(1, 10, 1234L);
            Trial.input(driver, "in").pipeInput(1, 11, 5678L);
            assertEquals(
                    ValueAndTimestamp.make(10, 1234L),
                    driver.<Integer, Integer>getTimestampedKeyValueStore(Dedup.SEEN).get(1));
        }
    }

    @Test
    void a_punctuator_writes_by_the_clock_while_records_flow() {
        Instant start = Instant.ofEpochMilli(1_000_000);
        try (TopologyTestDriver driver =
                new TopologyTestDriver(trial.with("punctuate.ms", 10).topology(), trial.config, start)) {
            KeyValueStore<Integer, Integer> seen = driver.getKeyValueStore(Dedup.SEEN);
            Trial.pipe(driver, 1, 10, 2, 20, 1, 11);
            driver.advanceWallClockTime(Duration.ofMillis(10));
            assertEquals(3, seen.get(Dedup.tickKey(1_000_010)), "records, also those that were dropped");
            driver.advanceWallClockTime(Duration.ofMillis(10));
            assertNull(seen.get(Dedup.tickKey(1_000_020)), "idle");
            Trial.pipe(driver, 3, 30);
            driver.advanceWallClockTime(Duration.ofMillis(10));
            assertEquals(1, seen.get(Dedup.tickKey(1_000_030)));
            assertEquals(Trial.pairs(1, 10, 2, 20, 3, 30), Trial.read(driver, "out"));
        }
    }

    @Test
    void timestamp_and_headers_are_kept() {
        RecordHeaders headers = new RecordHeaders();
        headers.add("from", new byte[] {7});
        TestRecord<Integer, Integer> in = new TestRecord<>(5, 6, headers, Instant.ofEpochMilli(1234));
        try (TopologyTestDriver driver = trial.open()) {
            Trial.input(driver, "in").pipeInput(in);
            assertEquals(in, driver.createOutputTopic("out", new IntegerDeserializer(), new IntegerDeserializer()).readRecord());
        }
    }

    @Test
    void a_setting_that_nobody_knows_is_refused() {
        assertEquals(
                "Unknown setting delete; known are: caching, contents.folder, input.topic, output.topic, punctuate.ms, stores.",
                trial.with("delete", "at-once").refusal());
    }
}
