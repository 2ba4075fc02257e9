package onceproof.streams;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;

/**
 * A program that has the brokers do one thing through the Admin API, and ends.
 *
 * <p>Stdin: one JSON object with {@code config} (of an Admin client) and what is asked for. Stdout: the event that the
 * program reports, or {@code error} with exit code 1.
 */
final class AdminProgram {

    private static final long PATIENCE_MILLIS = 20_000;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final TypeReference<Map<String, Object>> OBJECT = new TypeReference<>() {};

    private AdminProgram() {}

    /** What a program does. */
    interface Work {

        /** Do what is asked for, and report it. */
        void carryOut(Admin admin, Map<String, Object> asked, Events events)
                throws ExecutionException, InterruptedException;
    }

    /** Something that the brokers report sooner or later. */
    interface Condition {

        boolean holds() throws ExecutionException, InterruptedException;
    }

    /** Run it, and end the process. */
    static void run(Work work) {
        Events events = new Events(new FileOutputStream(FileDescriptor.out));
        System.setOut(System.err);
        BufferedReader owner = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try {
            Map<String, Object> asked = parse(owner.readLine());
            try (Admin admin = Admin.create(config(asked))) {
                work.carryOut(admin, asked, events);
            }
        } catch (IllegalArgumentException e) {
            events.error(e.getMessage());
            Exit.FAILED.now();
        } catch (ExecutionException | InterruptedException | IOException | RuntimeException e) {
            events.error(e.getClass().getSimpleName() + ": " + e.getMessage());
            Exit.FAILED.now();
        }
        Exit.CLOSED.now();
    }

    /** Wait until the brokers report what they accepted. */
    static void await(String what, Condition condition) throws ExecutionException, InterruptedException {
        long deadline = System.currentTimeMillis() + PATIENCE_MILLIS;
        while (!condition.holds()) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("the brokers do not tell of the " + what + " that they accepted");
            }
            Thread.sleep(20);
        }
    }

    /** Parse. No message quotes the line: it may carry credentials. */
    static Map<String, Object> parse(String line) {
        try {
            Map<String, Object> asked = JSON.readValue(line == null ? "" : line, OBJECT);
            if (asked.get("config") instanceof Map) {
                return asked;
            }
        } catch (JsonProcessingException e) {
            // said below
        }
        throw new IllegalArgumentException("The first line must be a JSON object with config (an object).");
    }

    private static Map<String, Object> config(Map<String, Object> asked) {
        return JSON.convertValue(asked.get("config"), OBJECT);
    }
}
