package onceproof.streams;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.Map;
import java.util.Properties;

/** The first line on stdin: which topology, its settings, and the Kafka Streams configuration. */
final class StartLine {

    private static final TypeReference<Map<String, Object>> OBJECT = new TypeReference<>() {};
    private static final ObjectMapper JSON = new ObjectMapper();

    final String topology;
    final Settings app;
    final Properties config;

    private StartLine(String topology, Settings app, Properties config) {
        this.topology = topology;
        this.app = app;
        this.config = config;
    }

    /** Parse. No message quotes the line: it may carry credentials. */
    static StartLine parse(String line) {
        try {
            Map<String, Object> parts = JSON.readValue(line, OBJECT);
            Properties config = new Properties();
            object(parts, "config").forEach((name, value) -> config.put(name, String.valueOf(value)));
            return new StartLine(
                    String.valueOf(parts.get("topology")), new Settings(object(parts, "app")), config);
        } catch (JsonProcessingException | IllegalArgumentException e) {
            throw new IllegalArgumentException(
                    "The first line must be a JSON object with topology, app (an object) and config (an object).");
        }
    }

    private static Map<String, Object> object(Map<String, Object> parts, String name) {
        Map<String, Object> part = JSON.convertValue(parts.get(name), OBJECT);
        if (part == null) {
            throw new IllegalArgumentException(name);
        }
        return part;
    }
}
