package onceproof.streams;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;

/** The reports of the instance to its owner: one JSON object per line, in chronological order. */
final class Events {

    private final ObjectMapper json = new ObjectMapper();
    private final OutputStream out;

    Events(OutputStream out) {
        this.out = out;
    }

    /** Names and values in turn, kept in this order; a value may be null. */
    static Map<String, Object> fields(Object... namesAndValues) {
        Map<String, Object> fields = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            fields.put((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return fields;
    }

    synchronized void emit(String event, Map<String, Object> fields) {
        Map<String, Object> line = fields("t", System.currentTimeMillis(), "event", event);
        line.putAll(fields);
        try {
            out.write((json.writeValueAsString(line) + "\n").getBytes(StandardCharsets.UTF_8));
            out.flush();
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException("Event " + event + " is not JSON: " + e.getMessage(), e);
        } catch (IOException e) {
            Exit.ORPHANED.now(); // the output has no reader any more
        }
    }

    void error(String sentence) {
        emit("error", fields("message", sentence));
    }

    /** The last event. */
    synchronized void closed(boolean clean) {
        emit("closed", fields("clean", clean));
        Exit.CLOSED.now(); // while no other thread can say a word
    }
}
