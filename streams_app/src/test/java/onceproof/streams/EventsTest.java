package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;

class EventsTest {

    private final ByteArrayOutputStream out = new ByteArrayOutputStream();
    private final Events events = new Events(out);

    @Test
    void an_event_is_one_line_of_json_whatever_it_says() throws Exception {
        events.error("two\nlines, a \"quote\" and ä");
        String line = out.toString(StandardCharsets.UTF_8);
        assertEquals(line.length() - 1, line.indexOf('\n'));
        JsonNode json = new ObjectMapper().readTree(line);
        assertEquals("two\nlines, a \"quote\" and ä", json.get("message").asText());
    }

    @Test
    void time_and_name_come_first_and_fields_keep_their_order() {
        long before = System.currentTimeMillis();
        events.emit("command", Events.fields("command", "remove-thread", "result", null, "a", List.of(1)));
        String line = out.toString(StandardCharsets.UTF_8);
        assertTrue(line.matches(
                "\\{\"t\":\\d+,\"event\":\"command\",\"command\":\"remove-thread\",\"result\":null,\"a\":\\[1]}\n"), line);
        assertTrue(Long.parseLong(line.replaceAll("\\D*(\\d+).*\n", "$1")) >= before);
    }

    @Test
    void threads_do_not_mix_their_lines() throws Exception {
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                for (int n = 0; n < 200; n++) {
                    events.emit("state", Events.fields("to", "x".repeat(n)));
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        long last = 0;
        String[] lines = out.toString(StandardCharsets.UTF_8).split("\n");
        assertEquals(800, lines.length);
        for (String line : lines) {
            long t = new ObjectMapper().readTree(line).get("t").asLong();
            assertTrue(t >= last, "events are in the order of their times");
            last = t;
        }
    }
}
