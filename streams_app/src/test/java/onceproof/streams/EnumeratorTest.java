package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class EnumeratorTest {

    /** Everything that one partition emitted, in order. */
    private static final class Outcome {
        final List<TestRecord<Integer, Integer>> output = new ArrayList<>();
        final List<KeyValue<Integer, Integer>> counterChangelog = new ArrayList<>();
        final List<KeyValue<Integer, Integer>> idsChangelog = new ArrayList<>();

        List<KeyValue<Integer, Integer>> ids() {
            return output.stream().map(r -> KeyValue.pair(r.key(), r.value())).collect(Collectors.toList());
        }
    }

    @TempDir
    Path state;

    private final Progress progress = new Progress((event, fields) -> {});
    private int partitions = 2;
    private boolean caching = true;
    private String stores = "rocksdb";

    @Test
    void worked_example_of_the_reproduction_partition_0() {
        Outcome outcome = run(0, 1, 1);
        assertEquals(pairs(1, 0, 1, 0), outcome.ids());
        assertEquals(pairs(0, 0), outcome.counterChangelog);
        assertEquals(pairs(1, 0), outcome.idsChangelog);
    }

    @Test
    void worked_example_of_the_reproduction_partition_1() {
        Outcome outcome = run(1, 0, 2);
        assertEquals(pairs(0, 1, 2, 3), outcome.ids());
        assertEquals(pairs(0, 0, 0, 1), outcome.counterChangelog);
        assertEquals(pairs(0, 1, 2, 3), outcome.idsChangelog);
    }

    @Test
    void worked_example_of_the_reproduction_is_split_by_the_partitioner() {
        int[] input = {0, 1, 2, 1};
        for (int partition : new int[] {0, 1}) {
            int[] own = IntStream.of(input).filter(k -> KeyPartitioner.partition(k, 2) == partition).toArray();
            assertEquals(partition == 0 ? List.of(1, 1) : List.of(0, 2), IntStream.of(own).boxed().collect(Collectors.toList()));
        }
    }

    @ParameterizedTest
    @CsvSource({"true,rocksdb,0", "true,rocksdb,1", "true,in-memory,1", "false,rocksdb,1", "false,in-memory,0"})
    void output_and_changelogs_replay_the_input(boolean caching, String stores, int partition) {
        this.caching = caching;
        this.stores = stores;
        int[] keys = new Random(7).ints(200, -40, 40).toArray();

        Outcome outcome = run(partition, keys);

        List<KeyValue<Integer, Integer>> output = new ArrayList<>();
        List<KeyValue<Integer, Integer>> given = new ArrayList<>();
        List<KeyValue<Integer, Integer>> counted = new ArrayList<>();
        Map<Integer, Integer> ids = new HashMap<>();
        for (int key : keys) {
            if (!ids.containsKey(key)) {
                counted.add(KeyValue.pair(0, ids.size()));
                ids.put(key, ids.size() * partitions + partition);
                given.add(KeyValue.pair(key, ids.get(key)));
            }
            output.add(KeyValue.pair(key, ids.get(key)));
        }
        assertEquals(output, outcome.ids());
        assertEquals(counted, outcome.counterChangelog);
        assertEquals(given, outcome.idsChangelog);
        assertEquals(ids.size(), ids.values().stream().distinct().count());
    }

    @Test
    void ids_of_six_partitions_never_meet() {
        partitions = 6;
        List<Integer> ids = new ArrayList<>();
        for (int p = 0; p < 6; p++) {
            run(p, 1, 2, 3, 2).output.forEach(r -> ids.add(r.value()));
        }
        assertEquals(24, ids.size());
        assertEquals(IntStream.range(0, 18).boxed().collect(Collectors.toList()),
                ids.stream().distinct().sorted().collect(Collectors.toList()));
    }

    @Test
    void timestamp_and_headers_are_kept() {
        RecordHeaders headers = new RecordHeaders();
        headers.add("from", new byte[] {7});
        TestRecord<Integer, Integer> in = new TestRecord<>(5, 5, headers, Instant.ofEpochMilli(1234));

        TestRecord<Integer, Integer> out = drive(topology(0), List.of(in)).output.get(0);

        assertEquals(1234, out.timestamp());
        assertEquals(headers, out.headers());
    }

    @Test
    void each_record_is_counted_for_its_task_and_thread() {
        run(0, 1, 1, 3);
        assertEquals(
                List.of(Map.of("task", "0_0", "thread", Thread.currentThread().getName(), "count", 3L)),
                progress.processed());
    }

    @Test
    void stores_are_cached_as_asked() {
        for (boolean cached : new boolean[] {true, false}) {
            caching = cached;
            try (TopologyTestDriver driver = driver(topology(0))) {
                for (String name : List.of(Enumerator.COUNTER, Enumerator.IDS)) {
                    assertEquals(cached, layers(driver.getKeyValueStore(name)).contains("CachingKeyValueStore"), name);
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"input.topic", "output.topic", "partitions", "caching"})
    void a_missing_setting_is_one_sentence(String name) {
        Map<String, Object> app = app();
        app.remove(name);
        Exception e = assertThrows(IllegalArgumentException.class, () -> build(app));
        assertTrue(e.getMessage().startsWith("Setting " + name + " is missing"), e.getMessage());
    }

    @Test
    void settings_of_the_wrong_kind_are_refused() {
        assertEquals("Setting partitions is 0, but must be at least 1.", refused("partitions", 0));
        assertEquals("Setting partitions is two, but must be a whole number.", refused("partitions", "two"));
        assertEquals("Setting caching is no, but must be true or false.", refused("caching", "no"));
        assertEquals("Setting stores is \"paper\", but must be one of: rocksdb, in-memory.", refused("stores", "paper"));
    }

    @Test
    void a_setting_that_nobody_knows_is_refused() {
        assertEquals(
                "Unknown setting cache; known are: caching, contents.folder, input.topic, output.topic, partitions, stores.",
                refused("cache", true));
    }

    private String refused(String name, Object value) {
        Map<String, Object> app = app();
        app.put(name, value);
        return assertThrows(IllegalArgumentException.class, () -> build(app)).getMessage();
    }

    private Topology build(Map<String, Object> app) {
        return Topologies.build("enumerator", new Settings(app), new Properties(), progress);
    }

    private Map<String, Object> app() {
        return new HashMap<>(Map.of(
                "input.topic", "in", "output.topic", "out", "partitions", partitions, "caching", caching, "stores", stores));
    }

    private Topology topology(int partition) {
        return Enumerator.topology(new Settings(app()), progress, task -> partition);
    }

    private Outcome run(int partition, int... keys) {
        List<TestRecord<Integer, Integer>> input =
                IntStream.of(keys).mapToObj(k -> new TestRecord<>(k, k)).collect(Collectors.toList());
        return drive(topology(partition), input);
    }

    private Outcome drive(Topology topology, List<TestRecord<Integer, Integer>> input) {
        try (TopologyTestDriver driver = driver(topology)) {
            driver.createInputTopic("in", new IntegerSerializer(), new IntegerSerializer()).pipeRecordList(input);
            Outcome outcome = new Outcome();
            outcome.output.addAll(read(driver, "out"));
            read(driver, "app-counter-changelog").forEach(r -> outcome.counterChangelog.add(KeyValue.pair(r.key(), r.value())));
            read(driver, "app-ids-changelog").forEach(r -> outcome.idsChangelog.add(KeyValue.pair(r.key(), r.value())));
            return outcome;
        }
    }

    private static List<TestRecord<Integer, Integer>> read(TopologyTestDriver driver, String topic) {
        return driver.createOutputTopic(topic, new IntegerDeserializer(), new IntegerDeserializer()).readRecordsToList();
    }

    private TopologyTestDriver driver(Topology topology) {
        Properties config = new Properties();
        config.put("application.id", "app");
        config.put("bootstrap.servers", "unused:1");
        config.put("state.dir", state.resolve(String.valueOf(System.nanoTime())).toString());
        return new TopologyTestDriver(topology, config);
    }

    /** Simple names of the store's classes, from the outermost layer in. */
    private static List<String> layers(Object store) {
        List<String> names = new ArrayList<>();
        for (Object layer = store;
                layer instanceof org.apache.kafka.streams.state.internals.WrappedStateStore;
                layer = ((org.apache.kafka.streams.state.internals.WrappedStateStore<?, ?, ?>) layer).wrapped()) {
            names.add(layer.getClass().getSimpleName());
        }
        return names;
    }

    private static List<KeyValue<Integer, Integer>> pairs(int... keysAndValues) {
        List<KeyValue<Integer, Integer>> pairs = new ArrayList<>();
        for (int i = 0; i < keysAndValues.length; i += 2) {
            pairs.add(KeyValue.pair(keysAndValues[i], keysAndValues[i + 1]));
        }
        return pairs;
    }
}
