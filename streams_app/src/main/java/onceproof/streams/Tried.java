package onceproof.streams;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.apache.kafka.streams.test.TestRecord;

/** What Kafka's {@code TopologyTestDriver} makes of some records: all that is emitted, and what is kept. */
final class Tried {

    private Tried() {}

    /**
     * Have a driver process records, {@code [topic, timestamp, key, value]} each, keys and values in Base64 or null.
     *
     * @return outputs: of each topic that was written to, internal ones among them, {@code [timestamp, key, value]};
     *     kept: of each store whose entries can be listed, {@code [key, value]} as texts
     */
    static Map<String, Object> of(Topology topology, Properties config, Path state, List<JsonNode> records)
            throws IOException {
        Properties own = new Properties();
        own.putAll(config);
        own.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        String id = own.getProperty(StreamsConfig.APPLICATION_ID_CONFIG);
        Map<String, List<List<Object>>> outputs = new TreeMap<>();
        Map<String, List<List<String>>> kept = new TreeMap<>();
        Instant begin = records.isEmpty() ? Instant.EPOCH : Instant.ofEpochMilli(records.get(0).get(1).longValue());
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, own, begin)) {
            Map<String, TestInputTopic<byte[], byte[]>> inputs = new TreeMap<>();
            for (JsonNode record : records) {
                inputs.computeIfAbsent(record.get(0).textValue(), topic -> driver.createInputTopic(
                                topic, new ByteArraySerializer(), new ByteArraySerializer()))
                        .pipeInput(Replay.bytes(record.get(2)), Replay.bytes(record.get(3)), record.get(1).longValue());
            }
            for (String topic : driver.producedTopicNames()) {
                outputs.put(Shape.bare(topic, id), records(driver, topic));
            }
            for (Map.Entry<String, StateStore> store : driver.getAllStateStores().entrySet()) {
                if (store.getValue() instanceof ReadOnlyKeyValueStore) {
                    kept.put(store.getKey(), entries((ReadOnlyKeyValueStore<?, ?>) store.getValue()));
                }
            }
        }
        return Events.fields("outputs", outputs, "kept", kept);
    }

    private static List<List<Object>> records(TopologyTestDriver driver, String topic) {
        List<List<Object>> records = new ArrayList<>();
        for (TestRecord<byte[], byte[]> record :
                driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer())
                        .readRecordsToList()) {
            records.add(Arrays.asList(record.timestamp(), record.getKey(), record.getValue()));
        }
        return records;
    }

    private static List<List<String>> entries(ReadOnlyKeyValueStore<?, ?> store) {
        List<List<String>> entries = new ArrayList<>();
        try (KeyValueIterator<?, ?> all = store.all()) {
            while (all.hasNext()) {
                KeyValue<?, ?> entry = all.next();
                entries.add(List.of(text(entry.key), text(entry.value)));
            }
        }
        return entries;
    }

    /** A value with its time as one text, whatever class a release has for the two. */
    private static String text(Object value) {
        if (value instanceof byte[]) {
            return Base64.getEncoder().encodeToString((byte[]) value);
        }
        try {
            Class<?> type = value.getClass();
            return text(type.getMethod("value").invoke(value)) + " at " + type.getMethod("timestamp").invoke(value);
        } catch (ReflectiveOperationException e) {
            return String.valueOf(value); // it is no such pair
        }
    }
}
