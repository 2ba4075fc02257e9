package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The protocol, spoken with real processes. There is no broker: Kafka Streams starts all the same and waits for one. */
@Timeout(60)
class MainTest {

    private static final ObjectMapper JSON = new ObjectMapper();

    @TempDir
    Path folder;

    private Process process;

    @AfterEach
    void end() {
        if (process != null) {
            process.destroyForcibly();
        }
    }

    @Test
    void says_hello_obeys_and_closes() throws Exception {
        start();
        say(startLine("enumerator"));
        JsonNode hello = next("hello");
        assertEquals(process.pid(), hello.get("pid").asLong());
        assertEquals("enumerator", hello.get("topology").asText());
        assertEquals("app", hello.get("application_id").asText());
        for (String jar : List.of("streams", "clients")) {
            assertEquals(System.getProperty("kafka.version"), hello.get(jar + "_version").asText());
            assertEquals("kafka-" + jar + "-" + System.getProperty("kafka.version") + ".jar", hello.get(jar + "_jar").asText());
        }
        assertTrue(hello.get("clients_commit").asText().matches("[0-9a-f]{16}"), hello.toString());
        JsonNode built = next("built");
        assertEquals(Map.of("caching", true, "input.topic", "in", "on.uncaught", "SHUTDOWN_CLIENT", "output.topic", "out",
                "partitions", 2, "stores", "rocksdb"), JSON.convertValue(built.get("settings"), Map.class));
        assertEquals("at_least_once", built.get("config").get("processing.guarantee").asText(), "a default");
        assertTrue(built.get("stores").get("ids").toString().contains("CachingKeyValueStore"), built.toString());
        assertTrue(built.get("processors").toString().contains(Enumerator.class.getName()), built.toString());
        assertEquals("REBALANCING", next("state").get("to").asText());
        JsonNode thread = next("assignment").get("threads").get(0);
        assertTrue(thread.get("thread").asText().endsWith("-StreamThread-1"), thread.toString());
        assertEquals(0, thread.get("active").size() + thread.get("standby").size());

        say("dance");
        assertTrue(next("error").get("message").asText().startsWith("Unknown command dance; known are: add-thread,"));
        say("dump instance-1");
        String refused = next("error").get("message").asText();
        assertTrue(refused.contains("Write dump, the name of the instance, the stores to be written as bytes"), refused);
        say("dump instance-1 - " + folder.resolve("dumps"));
        JsonNode dump = next("dump");
        assertEquals(0, dump.get("stores").size(), "it holds no task");
        assertEquals(0, next("command").get("result").asInt());
        say("add-thread");
        assertTrue(next("command").get("result").asText().endsWith("-StreamThread-2"));
        say("remove-thread");
        assertTrue(next("command").get("result").asText().endsWith("-StreamThread-1"), "the oldest goes first");
        say("close");
        JsonNode close = next("command");
        assertEquals("close", close.get("command").asText());
        assertEquals(close.get("result"), next("closed").get("clean"));
        assertEquals(-1, process.getInputStream().read(), "closed is the last line");
        assertEquals(0, process.waitFor());
    }

    @Test
    void ends_at_once_when_the_owner_is_gone() throws Exception {
        start();
        say(startLine("enumerator"));
        next("state");
        process.getOutputStream().close();
        assertTrue(process.waitFor(3, TimeUnit.SECONDS));
        assertEquals(3, process.exitValue());
    }

    @Test
    void ends_at_once_when_the_owner_is_gone_before_the_first_line() throws Exception {
        start();
        process.getOutputStream().close();
        assertEquals(3, process.waitFor());
    }

    @Test
    void closes_on_sigterm() throws Exception {
        start();
        say(startLine("enumerator"));
        next("state");
        process.toHandle().destroy(); // Process.destroy() would close our end of its stdout, too
        next("closed");
        assertEquals(0, process.waitFor());
    }

    @Test
    void a_bad_start_is_one_sentence_without_the_line_itself() throws Exception {
        String said = failure("{\"config\": {\"sasl.jaas.config\": \"secret\"");
        assertEquals("The first line must be a JSON object with topology, app (an object) and config (an object).", said);
        assertEquals(said, failure("[1]"));
        assertEquals(said, failure("{\"topology\": \"enumerator\"}"));
        assertFalse(Files.readString(folder.resolve("stderr")).contains("secret"));
    }

    @Test
    void an_unknown_topology_is_one_sentence() throws Exception {
        assertEquals("Unknown topology abacus; known are: as-of-join, copy, counting, dead-letters, dedup, deleter, enumerator, foreign-key-join, global-join, grouped-table, interactive-queries, outbox, scans, stream-join, table-join, two-topics, values, windows.", failure(startLine("abacus")));
    }

    @Test
    void a_config_that_kafka_refuses_is_one_sentence() throws Exception {
        String said = failure(startLine("enumerator").replace("application.id", "no.id"));
        assertTrue(said.contains("ConfigException: Missing required configuration \"application.id\""), said);
        said = failure(startLine("enumerator").replace("SHUTDOWN_CLIENT", "PRAY"));
        assertEquals("Setting on.uncaught is \"PRAY\", but must be one of: SHUTDOWN_CLIENT, REPLACE_THREAD, SHUTDOWN_APPLICATION.", said);
    }

    private String failure(String startLine) throws Exception {
        start();
        say(startLine);
        String said = next("error").get("message").asText();
        assertEquals(-1, process.getInputStream().read(), "error is the last line");
        assertEquals(1, process.waitFor());
        return said;
    }

    private String startLine(String topology) throws IOException {
        return "{'topology': '" .replace('\'', '"') + topology + ("', 'app': {'input.topic': 'in', 'output.topic': 'out', 'partitions': 2,"
                + " 'caching': true, 'on.uncaught': 'SHUTDOWN_CLIENT'}, 'config': {'application.id': 'app',"
                + " 'bootstrap.servers': '127.0.0.1:1', 'state.dir': ").replace('\'', '"')
                + JSON.writeValueAsString(folder.resolve("state").toString()) + "}}";
    }

    private void start() throws IOException {
        end();
        String classPath = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
        process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", classPath, Main.class.getName())
                .redirectError(ProcessBuilder.Redirect.appendTo(folder.resolve("stderr").toFile()))
                .start();
    }

    private void say(String line) throws IOException {
        process.getOutputStream().write((line + "\n").getBytes(StandardCharsets.UTF_8));
        process.getOutputStream().flush();
    }

    /** The next event of the name. */
    private JsonNode next(String event) throws IOException {
        List<String> seen = new ArrayList<>();
        for (String line = line(); line != null; line = line()) {
            seen.add(line);
            JsonNode json = JSON.readTree(line);
            if (json.get("event").asText().equals(event)) {
                return json;
            }
        }
        throw new AssertionError("No " + event + " came, but:\n" + seen.stream().collect(Collectors.joining("\n")));
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = process.getInputStream().read(); c != '\n'; c = process.getInputStream().read()) {
            if (c < 0) {
                return null;
            }
            line.append((char) c);
        }
        return line.toString();
    }
}
