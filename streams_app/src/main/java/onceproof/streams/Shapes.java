package onceproof.streams;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedWriter;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.streams.Topology;

/**
 * A program that builds many topologies on one release, without a broker, and writes down what each of them is and
 * makes of some records.
 *
 * <p>Arguments: a file of the topologies, a file for what they are, and a folder for their state. A line of the first
 * is a start line of an instance with {@code name}, {@code input} (see {@link Tried}; records of topics that are not
 * read are left out; null: none is tried) and {@code classPath}, which may be empty; a line of the second has the name,
 * and {@code error} or the fields of {@link Shape}, and then {@code tried} with {@code failed} or those of {@link
 * Tried}.
 *
 * <p>Stdout: the event {@code error}, with exit code 1, if that fails.
 */
public final class Shapes {

    private static final ObjectMapper JSON = new ObjectMapper();

    private Shapes() {}

    public static void main(String[] arguments) {
        Events events = new Events(new FileOutputStream(FileDescriptor.out));
        System.setOut(System.err);
        try (BufferedWriter out = Files.newBufferedWriter(Path.of(arguments[1]))) {
            Map<String, Map<String, Object>> tried = new HashMap<>();
            int number = 0;
            for (String line : Files.readAllLines(Path.of(arguments[0]))) {
                out.write(JSON.writeValueAsString(told(line, Path.of(arguments[2], String.valueOf(number++)), tried)) + "\n");
            }
        } catch (IOException | RuntimeException e) {
            events.error(Main.sentence(e));
            Exit.FAILED.now();
        }
        Exit.CLOSED.now();
    }

    /** What a line asks for; {@code tried} has what was made of records before, since the same topology makes the same. */
    private static Map<String, Object> told(String line, Path state, Map<String, Map<String, Object>> tried)
            throws IOException {
        JsonNode asked = JSON.readTree(line);
        Map<String, Object> told = Events.fields("name", asked.get("name").textValue());
        ClassLoader ours = Thread.currentThread().getContextClassLoader();
        try (URLClassLoader own = new URLClassLoader(urls(asked.get("classPath")), ours)) {
            Thread.currentThread().setContextClassLoader(own);
            Map<String, Object> shape;
            try {
                StartLine start = StartLine.parse(line);
                shape = Shape.of(topology(start), start.config);
            } catch (RuntimeException | LinkageError e) { // of the release or of the application: that it does not build
                told.put("error", Main.sentence(e));
                return told;
            }
            told.putAll(shape);
            if (asked.get("input").isNull()) {
                return told;
            }
            Set<String> read = Shape.read(shape);
            List<JsonNode> records = new ArrayList<>();
            for (JsonNode record : asked.get("input")) {
                if (read.contains(record.get(0).textValue())) {
                    records.add(record);
                }
            }
            String same = JSON.writeValueAsString(List.of(asked.get("topology"), asked.get("app"), records, shape));
            if (!tried.containsKey(same)) {
                tried.put(same, tried(line, state, records));
            }
            told.putAll(tried.get(same));
            return told;
        } finally {
            Thread.currentThread().setContextClassLoader(ours);
        }
    }

    private static Map<String, Object> tried(String line, Path state, List<JsonNode> records) throws IOException {
        Map<String, Object> told = Events.fields("tried", true);
        try {
            StartLine asked = StartLine.parse(line);
            if (asked.topology.equals(Topologies.WRITTEN)) { // the driver has RocksDB write a file for each record
                asked.config.put("default.dsl.store", "in_memory");
            }
            told.putAll(Tried.of(topology(asked), asked.config, state, records));
        } catch (RuntimeException | LinkageError e) {
            told.put("failed", Main.sentence(e));
        }
        return told;
    }

    /** Built again for each use: one that is described is not to be run. */
    private static Topology topology(StartLine asked) {
        return Topologies.build(asked.topology, asked.app, asked.config, new Progress((event, fields) -> {}));
    }

    private static URL[] urls(JsonNode paths) throws MalformedURLException {
        URL[] urls = new URL[paths.size()];
        for (int i = 0; i < urls.length; i++) {
            urls[i] = Path.of(paths.get(i).textValue()).toUri().toURL();
        }
        return urls;
    }
}
