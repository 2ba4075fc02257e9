package onceproof.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;

/**
 * A program that has Kafka's {@code TopologyTestDriver} process the input of a trial, record by record and without
 * brokers, and writes down its output.
 *
 * <p>Arguments: a file of the input in its order, a file for the output, the output's topics. A line of the input is
 * {@code [topic, partition, timestamp, key, value, headers]}, one of the output {@code [topic, key, value, timestamp,
 * headers]}, keys and values in Base64 or null, headers as {@code name=hex} one after the other. Records of partition
 * -1 are for global tables.
 *
 * <p>Each partition has a driver of its own, as it has tasks of its own; unless the topology repartitions, or makes a
 * global table of its output, which a driver does within itself.
 *
 * <p>Stdin: the start line of an instance. Stdout: the event {@code error}, with exit code 1, if that fails; the event
 * {@code threw}, with the message, if the topology or the driver threw for a record.
 */
public final class Replay {

    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int GLOBAL = -1;
    private static final int DRAINED_EVERY = 1_000; // records, of which the driver keeps the output

    private final StartLine asked;
    private final Path state;
    private final List<String> outputs;
    private final BufferedWriter out;

    private Replay(StartLine asked, Path state, List<String> outputs, BufferedWriter out) {
        this.asked = asked;
        this.state = state;
        this.outputs = outputs;
        this.out = out;
    }

    public static void main(String[] arguments) throws IOException {
        Events events = new Events(new FileOutputStream(FileDescriptor.out));
        System.setOut(System.err);
        BufferedReader owner = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Path input = Path.of(arguments[0]);
        Path output = Path.of(arguments[1]);
        List<String> topics = Arrays.asList(arguments).subList(2, arguments.length);
        try (BufferedWriter out = Files.newBufferedWriter(output)) {
            StartLine asked = StartLine.parse(String.valueOf(owner.readLine()));
            new Replay(asked, output.resolveSibling("replayed"), topics, out).replay(input);
        } catch (ThrownException e) {
            events.emit("threw", Events.fields("message", Main.sentence(e.getCause())));
        } catch (RuntimeException | Error e) {
            events.error(Main.sentence(e));
            Exit.FAILED.now();
        }
        Exit.CLOSED.now();
    }

    private void replay(Path input) throws IOException {
        boolean isOne = !Described.internal(topology()).isEmpty() || feedsItself(topology());
        Map<Integer, List<JsonNode>> records = new TreeMap<>(); // by driver
        for (String line : Files.readAllLines(input)) {
            JsonNode record = JSON.readTree(line);
            int partition = record.get(1).intValue();
            records.computeIfAbsent(isOne && partition != GLOBAL ? 0 : partition, driver -> new ArrayList<>()).add(record);
        }
        List<JsonNode> globals = records.getOrDefault(GLOBAL, List.of());
        records.remove(GLOBAL);
        for (Map.Entry<Integer, List<JsonNode>> part : records.entrySet()) {
            asked.config.put(StreamsConfig.STATE_DIR_CONFIG, state.resolve(part.getKey().toString()).toString());
            try {
                replay(globals, part.getValue());
            } catch (RuntimeException e) {
                throw new ThrownException(e);
            }
        }
    }

    private boolean feedsItself(Topology topology) {
        return topology.describe().globalStores().stream()
                .anyMatch(store -> outputs.stream().anyMatch(store.source().topicSet()::contains));
    }

    private Topology topology() {
        return Topologies.build(asked.topology, asked.app, asked.config, new Progress((event, fields) -> {}));
    }

    private void replay(List<JsonNode> globals, List<JsonNode> records) throws IOException {
        Instant begin = Instant.ofEpochMilli(records.get(0).get(2).longValue());
        try (TopologyTestDriver driver = new TopologyTestDriver(topology(), asked.config, begin)) {
            Map<String, TestInputTopic<byte[], byte[]>> inputs = new TreeMap<>();
            int piped = 0;
            for (List<JsonNode> part : List.of(globals, records)) {
                for (JsonNode record : part) {
                    inputs.computeIfAbsent(record.get(0).textValue(), topic -> input(driver, topic))
                            .pipeInput(new TestRecord<>(bytes(record.get(3)), bytes(record.get(4)),
                                    headers(record.get(5).textValue()), record.get(2).longValue()));
                    if (++piped % DRAINED_EVERY == 0) {
                        drain(driver);
                    }
                }
            }
            drain(driver);
        }
    }

    private static TestInputTopic<byte[], byte[]> input(TopologyTestDriver driver, String topic) {
        return driver.createInputTopic(topic, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private void drain(TopologyTestDriver driver) throws IOException {
        Set<String> produced = driver.producedTopicNames();
        for (String topic : outputs) {
            if (produced.contains(topic)) {
                for (TestRecord<byte[], byte[]> record :
                        driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer())
                                .readRecordsToList()) {
                    out.write(JSON.writeValueAsString(Arrays.asList(topic, record.getKey(), record.getValue(),
                            record.timestamp(), Entries.text(record.headers()))));
                    out.newLine();
                }
            }
        }
    }

    /** Of a header without a value there is the name alone. */
    private static Headers headers(String text) {
        Headers headers = new RecordHeaders();
        for (String header : text.split(" ")) {
            int end = header.lastIndexOf('=');
            if (end >= 0) {
                headers.add(header.substring(0, end), hex(header.substring(end + 1)));
            } else if (!header.isEmpty()) {
                headers.add(header, null);
            }
        }
        return headers;
    }

    private static byte[] hex(String digits) {
        byte[] bytes = new byte[digits.length() / 2];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = (byte) Integer.parseInt(digits.substring(2 * i, 2 * i + 2), 16);
        }
        return bytes;
    }

    /** What the topology or the driver threw for a record. */
    private static final class ThrownException extends RuntimeException {

        private static final long serialVersionUID = 1L;

        ThrownException(RuntimeException cause) {
            super(cause);
        }
    }

    static byte[] bytes(JsonNode text) throws IOException {
        return text.isNull() ? null : text.binaryValue();
    }
}
