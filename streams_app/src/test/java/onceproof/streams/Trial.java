package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;

/** A topology by name, with settings to change, on a TopologyTestDriver; and what its processors reported. */
final class Trial {

    final Map<String, Object> app;
    final Properties config = new Properties();
    final List<Map<String, Object>> told = new ArrayList<>();
    final Progress progress = new Progress((event, fields) -> {
        Map<String, Object> line = Events.fields("event", event);
        line.putAll(fields);
        told.add(line);
    });

    private final String name;

    Trial(String name, Path state, Map<String, Object> app) {
        this.name = name;
        this.app = new HashMap<>(app);
        config.put("application.id", "app");
        config.put("bootstrap.servers", "unused:1");
        config.put("state.dir", state.toString());
    }

    Trial with(String setting, Object value) {
        app.put(setting, value);
        return this;
    }

    Topology topology() {
        return Topologies.build(name, new Settings(app), config, progress);
    }

    TopologyTestDriver open() {
        return new TopologyTestDriver(topology(), config);
    }

    String refusal() {
        return assertThrows(IllegalArgumentException.class, this::topology).getMessage();
    }

    static TestInputTopic<Integer, Integer> input(TopologyTestDriver driver, String topic) {
        return driver.createInputTopic(topic, new IntegerSerializer(), new IntegerSerializer());
    }

    static void pipe(TopologyTestDriver driver, int... keysAndValues) {
        input(driver, "in").pipeKeyValueList(pairs(keysAndValues));
    }

    static List<KeyValue<Integer, Integer>> read(TopologyTestDriver driver, String topic) {
        return read(driver, topic, new IntegerDeserializer());
    }

    static <V> List<KeyValue<Integer, V>> read(TopologyTestDriver driver, String topic, Deserializer<V> values) {
        return driver.createOutputTopic(topic, new IntegerDeserializer(), values).readKeyValuesToList();
    }

    static List<KeyValue<Integer, Integer>> pairs(int... keysAndValues) {
        List<KeyValue<Integer, Integer>> pairs = new ArrayList<>();
        for (int i = 0; i < keysAndValues.length; i += 2) {
            pairs.add(KeyValue.pair(keysAndValues[i], keysAndValues[i + 1]));
        }
        return pairs;
    }
}
