package onceproof.streams;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;

/**
 * A program that builds the topology of your own application, and reports what it consists of, without asking a
 * broker.
 *
 * <p>Stdin: the start line of an instance. Stdout: the event {@code topology}, with {@code set}, the properties that the
 * application has set or changed itself, or {@code error} with exit code 1.
 */
public final class Describe {

    private Describe() {}

    public static void main(String[] arguments) throws IOException {
        Events events = new Events(new FileOutputStream(FileDescriptor.out));
        System.setOut(System.err);
        BufferedReader owner = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try {
            StartLine asked = StartLine.parse(String.valueOf(owner.readLine()));
            new StreamsConfig(asked.config);
            Map<Object, Object> given = new HashMap<>(asked.config);
            Topology topology = Loaded.topology(asked.app, asked.config);
            Map<String, String> set = new TreeMap<>();
            asked.config.forEach((name, value) -> {
                if (!value.equals(given.get(name))) {
                    set.put(name.toString(), value instanceof Class ? ((Class<?>) value).getName() : value.toString());
                }
            });
            Map<String, Object> described = Described.fields(topology, asked.config);
            described.put("set", set);
            events.emit("topology", described);
        } catch (RuntimeException | Error e) {
            events.error(Main.sentence(e));
            Exit.FAILED.now();
        }
        Exit.CLOSED.now();
    }
}
