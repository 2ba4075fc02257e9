package onceproof.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;

/**
 * A program that runs the cases of a search, one a line, without brokers: for as long as its stdin lasts.
 *
 * <p>Argument: a folder for state. A case is {@code {topology, config, records, reopened, restored, partitions, schedule,
 * settled, outputs}}: the steps of {@link Drawn}; Kafka Streams' configuration; {@code [topic, timestamp, key, value]} each,
 * or, for the topic {@code clock}, by how many milliseconds (its value) the clock of the machine advances; before which
 * records (their places) the driver is closed and another one opened: over the same state, or ({@code restored}) over none,
 * whose stores are restored from what the changelogs have; by how many {@link Tasks}, by which schedule of theirs, and
 * whether no record of the input is taken before the last one is done; and the topics that are read in the end. Stdout: a
 * line for each case, {@code {outputs}}, of each topic {@code [timestamp, key, value, place]} in their order, with the place
 * of the record whose header it carries, and {@code turns} of tasks; or {@code {failed}}: that a topology does not build, or
 * that a processor throws.
 */
public final class Lane {

    private static final ObjectMapper JSON = new ObjectMapper();

    private static final String CLOCK = "clock"; // the topic of what is no record, but advances the clock of the machine
    private static final String PLACE = "place";

    private final JsonNode asked;
    private final Path state;
    private final Map<String, List<List<Object>>> outputs = new TreeMap<>();
    private final Changelogs changelogs = new Changelogs();
    private List<String> turns = List.of();
    private int place; // of the next record

    private Lane(JsonNode asked, Path state) {
        this.asked = asked;
        this.state = state;
    }

    public static void main(String[] arguments) throws IOException {
        Events events = new Events(new FileOutputStream(FileDescriptor.out));
        System.setOut(System.err);
        BufferedReader owner = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        events.emit("ready", Versions.loaded());
        Path folder = Path.of(arguments[0]);
        int number = 0;
        for (String line = owner.readLine(); line != null; line = owner.readLine()) {
            Path state = folder.resolve(String.valueOf(number++));
            try {
                Lane lane = new Lane(JSON.readTree(line), state);
                lane.run();
                events.emit("case", Events.fields("outputs", lane.outputs, "turns", lane.turns));
            } catch (RuntimeException | LinkageError e) {
                events.emit("case", Events.fields("failed", Main.sentence(e)));
            } finally {
                delete(state);
            }
        }
        Exit.CLOSED.now();
    }

    private void run() throws IOException {
        List<JsonNode> records = new ArrayList<>();
        asked.get("records").forEach(records::add);
        if (asked.get("partitions").intValue() > 1) {
            process(records);
            return;
        }
        List<Integer> ends = new ArrayList<>();
        asked.get("reopened").forEach(place -> ends.add(place.intValue()));
        ends.add(records.size());
        int begin = 0;
        for (int part = 0; part < ends.size(); part++) {
            process(part, records.subList(begin, ends.get(part)), part + 1 < ends.size());
            begin = ends.get(part);
        }
    }

    /** Process the records by a task for each partition. */
    private void process(List<JsonNode> records) {
        int partitions = asked.get("partitions").intValue();
        long schedule = asked.get("schedule").longValue();
        try (Tasks tasks = new Tasks(partitions, schedule, config(0), one -> opened(config(one)))) {
            turns = tasks.process(records, asked.get("settled").booleanValue(), record -> {
                TestRecord<String, String> input = input(record);
                return new TestRecord<>(bytes(input.key()), bytes(input.value()), input.headers(), input.timestamp());
            });
            tasks.drivers().forEach(this::read);
        }
    }

    private static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    private Properties config(int part) {
        Properties config = new Properties();
        asked.get("config").fields().forEachRemaining(one -> config.put(one.getKey(), one.getValue().textValue()));
        config.put(StreamsConfig.STATE_DIR_CONFIG, state.resolve(String.valueOf(part)).toString());
        return config;
    }

    private TopologyTestDriver opened(Properties config) {
        Instant begin = Instant.ofEpochMilli(asked.get("records").get(0).get(1).longValue());
        return new TopologyTestDriver(Drawn.topology(asked.get("topology"), config), config, begin);
    }

    private void read(TopologyTestDriver driver) {
        for (JsonNode topic : asked.get("outputs")) {
            List<List<Object>> taken = outputs.computeIfAbsent(topic.textValue(), name -> new ArrayList<>());
            if (driver.producedTopicNames().contains(topic.textValue())) {
                driver.createOutputTopic(topic.textValue(), new StringDeserializer(), new StringDeserializer())
                        .readRecordsToList()
                        .forEach(record -> taken.add(told(record)));
            }
        }
    }

    private void process(int part, List<JsonNode> records, boolean isToGoOn) throws IOException {
        Properties config = config(part);
        Path own = state.resolve(String.valueOf(part));
        try (TopologyTestDriver driver = opened(config)) {
            if (part > 0 && isRestored()) {
                changelogs.restore(driver);
            }
            Map<String, TestInputTopic<String, String>> inputs = new HashMap<>();
            for (JsonNode record : records) {
                if (record.get(0).textValue().equals(CLOCK)) {
                    place++;
                    driver.advanceWallClockTime(Duration.ofMillis(Long.parseLong(record.get(3).textValue())));
                    continue;
                }
                inputs.computeIfAbsent(
                                record.get(0).textValue(),
                                topic -> driver.createInputTopic(topic, new StringSerializer(), new StringSerializer()))
                        .pipeInput(input(record));
            }
            read(driver);
            if (isToGoOn && isRestored()) {
                changelogs.take(driver, records);
            } else if (isToGoOn) {
                keep(driver, config, state.resolve("elsewhere"));
            }
        }
        if (isToGoOn && !isRestored() && Files.exists(own)) { // the folder of the first driver stays locked
            copy(own, state.resolve(String.valueOf(part + 1)));
        }
    }

    private boolean isRestored() {
        return asked.get("restored").booleanValue();
    }

    /** The record, with its place among all of the case as a header. */
    private TestRecord<String, String> input(JsonNode record) {
        Headers headers = new RecordHeaders().add(PLACE, String.valueOf(place++).getBytes(StandardCharsets.UTF_8));
        return new TestRecord<>(
                record.get(2).textValue(), record.get(3).textValue(), headers, record.get(1).longValue());
    }

    private static List<Object> told(TestRecord<String, String> record) {
        Header place = record.getHeaders().lastHeader(PLACE);
        Integer from = place == null ? null : Integer.valueOf(new String(place.value(), StandardCharsets.UTF_8));
        return Arrays.asList(record.timestamp(), record.getKey(), record.getValue(), from);
    }

    /** Has a driver delete the folder of another one when it is closed, so that its own stays. */
    private static void keep(TopologyTestDriver driver, Properties own, Path elsewhere) {
        Properties config = new Properties();
        config.putAll(own);
        config.put(StreamsConfig.STATE_DIR_CONFIG, elsewhere.toString());
        Topology one = new Topology().addSource("source", "topic").addSink("sink", "other", "source");
        try (TopologyTestDriver other = new TopologyTestDriver(one, config)) {
            Field folder = TopologyTestDriver.class.getDeclaredField("stateDirectory");
            folder.setAccessible(true);
            folder.set(driver, folder.get(other));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("The driver of this release cannot be closed without deleting its state.", e);
        }
    }

    private static void copy(Path from, Path to) throws IOException {
        try (Stream<Path> files = Files.walk(from)) {
            files.forEach(file -> {
                try {
                    Files.copy(file, to.resolve(from.relativize(file)));
                } catch (IOException e) {
                    throw new UncheckedIOException(e);
                }
            });
        }
    }

    private static void delete(Path folder) throws IOException {
        if (!Files.exists(folder)) {
            return;
        }
        try (Stream<Path> files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        }
    }
}
