package onceproof.streams;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.streams.StreamsConfig;

/**
 * A program that builds the topology of your own application, and reports what it consists of, without asking a
 * broker.
 *
 * <p>Stdin: the start line of an instance. Stdout: the event {@code topology}, or {@code error} with exit code 1.
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
            events.emit("topology", Described.fields(Loaded.topology(asked.app, asked.config), asked.config));
        } catch (RuntimeException | Error e) {
            events.error(Main.sentence(e));
            Exit.FAILED.now();
        }
        Exit.CLOSED.now();
    }
}
