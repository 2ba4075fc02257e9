package onceproof.streams;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/** A running KafkaStreams that reports its states and obeys commands. */
final class Instance {

    private static final Duration PATIENCE = Duration.ofSeconds(20);

    private final KafkaStreams streams;
    private final boolean hasGlobalThread;
    private final Sampler sampler;
    private final Restorations restorations;
    private final List<QueryClient> clients;
    private final Events events;

    Instance(
            Topology topology,
            Properties config,
            StreamThreadExceptionResponse onUncaught,
            Restorations restorations,
            Progress progress,
            List<QueryClient> clients,
            Events events) {
        this.events = events;
        this.clients = clients;
        this.restorations = restorations;
        this.streams = new KafkaStreams(topology, config);
        this.hasGlobalThread = !topology.describe().globalStores().isEmpty();
        this.sampler = new Sampler(streams, progress, events);
        streams.setStateListener((to, from) -> {
            events.emit("state", Events.fields("from", from.name(), "to", to.name()));
            sampler.wake();
            clients.forEach(QueryClient::moved);
        });
        streams.setGlobalStateRestoreListener(restorations);
        streams.setUncaughtExceptionHandler(exception -> {
            events.emit("uncaught", describe(Thread.currentThread().getName(), exception, onUncaught));
            return onUncaught;
        });
    }

    void start() {
        Ticker.start(events);
        try {
            streams.start();
        } catch (RuntimeException exception) {
            // The global thread reports its own end to the thread that starts it, not to a handler, if it ends before it runs.
            // That thread also opens the stores that are there, from 4.3.0 on.
            if (!hasGlobalThread && !(exception instanceof ProcessorStateException)) {
                throw exception;
            }
            String thread = hasGlobalThread ? "GlobalStreamThread" : "KafkaStreams.start";
            events.emit("uncaught", describe(thread, exception, StreamThreadExceptionResponse.SHUTDOWN_CLIENT));
        }
        sampler.start();
        clients.forEach(one -> one.start(streams));
    }

    /** Carry out a command of the owner: a word, which {@code dump} follows by its three arguments. */
    void obey(String line) {
        String[] words = line.split(" ", 4);
        String command = words[0];
        switch (command) {
            case "add-thread":
                done(command, streams.addStreamThread().orElse(null));
                break;
            case "remove-thread":
                done(command, streams.removeStreamThread().orElse(null));
                break;
            case "pause":
            case "resume":
                call(command);
                break;
            case "dump":
                dump(words);
                break;
            case "leave":
            case "stay":
                boolean ended = Closing.close(streams, command.equals("leave"), PATIENCE);
                tellEnd();
                done(command, ended);
                break;
            case "clean-up":
                done(command, cleanUp());
                break;
            case "resources":
                events.emit("resources", Events.fields("held", Resources.held(streams)));
                done(command, true);
                break;
            case "close":
                closeFor(command);
                break;
            case "close-and-leave-group":
                leaveGroup();
                closeFor(command);
                break;
            default:
                events.error("Unknown command " + command
                        + "; known are: add-thread, remove-thread, pause, resume, dump, resources, leave, stay, clean-up, close, "
                        + "close-and-leave-group.");
        }
    }

    /** Close, and tell what was processed until the end; true if all threads ended in time. */
    boolean close(Duration patience) {
        boolean clean = streams.close(patience);
        tellEnd();
        return clean;
    }

    private void tellEnd() {
        sampler.finish();
        clients.forEach(QueryClient::finish);
        restorations.finish();
        Planted.tell(events);
    }

    /** {@code cleaned}, or the exception with which it was refused. */
    private String cleanUp() {
        try {
            streams.cleanUp();
            return "cleaned";
        } catch (RuntimeException e) {
            return e.getClass().getName() + ": " + e.getMessage();
        }
    }

    private void dump(String[] words) {
        if (words.length != 4) {
            throw new IllegalArgumentException(
                    "Write dump, the name of the instance, the stores to be written as bytes (with commas, or -), and the "
                            + "folder to write to.");
        }
        Map<String, Object> written = new Dumps(streams, Set.of(words[2].split(","))).write(Path.of(words[3]), words[1]);
        events.emit("dump", written);
        done(words[0], ((List<?>) written.get("stores")).size());
    }

    /** {@code KafkaStreams.pause} and {@code resume} came with 3.3 (KIP-834), so this cannot be compiled against them. */
    private void call(String command) {
        try {
            KafkaStreams.class.getMethod(command).invoke(streams);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("Kafka Streams did not " + command, e);
        }
        done(command, true);
    }

    private void closeFor(String command) {
        boolean clean = close(PATIENCE);
        done(command, clean);
        events.closed(clean);
    }

    /**
     * A thread that is removed leaves the group at once, on every release. {@code CloseOptions.leaveGroup(true)} is no
     * substitute: it came with 3.3, and until 4.1 it does nothing for members without a {@code group.instance.id}.
     */
    private void leaveGroup() {
        while (streams.removeStreamThread(PATIENCE).isPresent()) {
            // and the next one
        }
    }

    private void done(String command, Object result) {
        events.emit("command", Events.fields("command", command, "result", result));
    }

    private static Map<String, Object> describe(String thread, Throwable exception, StreamThreadExceptionResponse response) {
        List<String> causes = new ArrayList<>();
        Throwable first = exception;
        for (Throwable cause = exception.getCause(); cause != null && causes.size() < 20; cause = cause.getCause()) {
            causes.add(cause.getClass().getName() + ": " + cause.getMessage());
            first = cause;
        }
        StackTraceElement[] frames = first.getStackTrace();
        return Events.fields(
                "thread", thread,
                "exception", exception.getClass().getName(),
                "message", exception.getMessage(),
                "causes", causes,
                "frame", frames.length > 0 ? frames[0].toString() : null,
                "response", response.name());
    }
}
