package onceproof.streams;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One instance of the application under test. The protocol with its owner is in README.md.
 *
 * <p>This thread does nothing but listen, so that it notices at once when the owner is gone, whatever the instance is
 * busy with; everything else happens in order on the worker thread.
 */
public final class Main {

    private static final Logger LOG = LoggerFactory.getLogger(Main.class);
    private static final Duration SIGTERM_PATIENCE = Duration.ofSeconds(5);

    private final Events events = new Events(new FileOutputStream(FileDescriptor.out));
    private final ExecutorService worker = Executors.newSingleThreadExecutor(work -> new Thread(work, "commands"));
    private volatile Instance instance;

    private Main() {}

    public static void main(String[] arguments) {
        System.setOut(System.err); // stdout is for events only
        new Main().listen(new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)));
    }

    private void listen(BufferedReader owner) {
        try {
            String first = owner.readLine();
            if (first != null) {
                Runtime.getRuntime().addShutdownHook(new Thread(this::terminate, "terminate"));
                worker.execute(() -> start(first));
            }
            for (String line = owner.readLine(); line != null; line = owner.readLine()) {
                String command = line.strip();
                worker.execute(() -> obey(command));
            }
        } catch (IOException e) {
            events.error("The owner cannot be heard: " + e.getMessage());
        }
        Exit.ORPHANED.now();
    }

    private void start(String line) {
        try {
            StartLine asked = StartLine.parse(line);
            hello(asked);
            StreamThreadExceptionResponse onUncaught = StreamThreadExceptionResponse.valueOf(
                    asked.app.oneOf("on.uncaught", "SHUTDOWN_CLIENT", "REPLACE_THREAD", "SHUTDOWN_APPLICATION"));
            Restorations restorations = new Restorations(events, asked.app.optionalCount("restore.pause.ms").orElse(0));
            Progress progress = new Progress(events::emit);
            Topology topology = Topologies.build(asked.topology, asked.app, asked.config, progress);
            describe(asked);
            List<QueryClient> clients = storesAsked(asked).stream()
                    .map(store -> new QueryClient(store, asked.config, events))
                    .collect(Collectors.toList());
            instance = new Instance(topology, asked.config, onUncaught, restorations, progress, clients, events);
            instance.start();
        } catch (RuntimeException | Error e) {
            LOG.error("The instance does not start", e);
            events.error(sentence(e));
            Exit.FAILED.now();
        }
    }

    /** Built a second time: a topology that is described is not to be run. */
    private void describe(StartLine asked) {
        Progress unseen = new Progress((event, fields) -> {});
        Topology again = Topologies.build(asked.topology, asked.app, asked.config, unseen);
        Map<String, Object> described = Described.fields(again, asked.config);
        if (asked.topology.equals(Topologies.OF_PEOPLE)) {
            Map<String, Object> told = new HashMap<>(described);
            told.put("shape", Shape.of(again, asked.config, described));
            events.emit("topology", told);
        }
        events.emit("built", Events.fields(
                "settings", asked.app.taken(),
                "config", Effective.of(asked.config),
                "stores", described.get("kinds"),
                "processors", described.get("processors")));
    }

    /** The stores that clients ask, one each. */
    private static List<AskedStore> storesAsked(StartLine asked) {
        switch (asked.topology) {
            case InteractiveQueries.NAME:
                return List.of(CountedStore.of(asked.app));
            case Topologies.OF_PEOPLE:
                return OwnStore.all(asked.app, asked.config);
            default:
                return List.of();
        }
    }

    private void hello(StartLine asked) {
        Map<String, Object> fields = Events.fields(
                "pid", ProcessHandle.current().pid(),
                "topology", asked.topology,
                "application_id", asked.config.getProperty("application.id"),
                "java", System.getProperty("java.version"));
        fields.putAll(Versions.loaded());
        Planted.tell(events); // before the greeting: one that has read it knows whether something is planted
        events.emit("hello", fields);
    }

    private void obey(String command) {
        try {
            instance.obey(command);
        } catch (RuntimeException | Error e) {
            LOG.error("{} failed", command, e);
            events.error("Command " + command + " failed: " + sentence(e));
        }
    }

    /** On SIGTERM. */
    private void terminate() {
        events.closed(instance == null || instance.close(SIGTERM_PATIENCE));
    }

    /** What went wrong, and its first cause. */
    static String sentence(Throwable e) {
        Throwable first = e;
        while (first.getCause() != null) {
            first = first.getCause();
        }
        String said = e instanceof IllegalArgumentException ? e.getMessage() : said(e);
        return first == e ? said : said + " (" + said(first) + ")";
    }

    private static String said(Throwable e) {
        return e.getClass().getSimpleName() + ": " + e.getMessage();
    }
}
