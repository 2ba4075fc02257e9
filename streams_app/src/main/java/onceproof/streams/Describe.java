package onceproof.streams;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;

/**
 * A program that builds the topology of your own application, and tells what it reads and writes, without asking a
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
            tell(Loaded.topology(asked.app, asked.config), events);
        } catch (RuntimeException | Error e) {
            events.error(Main.sentence(e));
            Exit.FAILED.now();
        }
        Exit.CLOSED.now();
    }

    private static void tell(Topology topology, Events events) {
        Set<String> sources = new TreeSet<>();
        Set<String> sinks = new TreeSet<>();
        Set<String> stores = new TreeSet<>();
        Set<String> globals = new TreeSet<>();
        Set<String> open = new TreeSet<>(); // nodes whose topics are only known while they run
        TopologyDescription told = topology.describe();
        told.globalStores().forEach(store -> globals.addAll(store.source().topicSet()));
        for (TopologyDescription.Subtopology part : told.subtopologies()) {
            for (TopologyDescription.Node node : part.nodes()) {
                if (node instanceof TopologyDescription.Source) {
                    Set<String> topics = ((TopologyDescription.Source) node).topicSet();
                    sources.addAll(topics == null ? Set.of() : topics); // null: by a pattern
                    open.addAll(topics == null ? Set.of(node.name()) : Set.of());
                } else if (node instanceof TopologyDescription.Sink) {
                    String topic = ((TopologyDescription.Sink) node).topic();
                    sinks.addAll(topic == null ? Set.of() : Set.of(topic)); // null: chosen record by record
                    open.addAll(topic == null ? Set.of(node.name()) : Set.of());
                } else if (node instanceof TopologyDescription.Processor) {
                    stores.addAll(((TopologyDescription.Processor) node).stores());
                }
            }
        }
        events.emit("topology", Events.fields(
                "sources", sources, "globals", globals, "sinks", sinks, "stores", stores, "open", open,
                "internal", internal(topology)));
    }

    /** The topics that Kafka Streams makes, and gives the application's id: by name, anybody's may look like these. */
    static Set<String> internal(Topology topology) {
        try {
            Field builder = Topology.class.getDeclaredField("internalTopologyBuilder");
            builder.setAccessible(true);
            Object built = builder.get(topology);
            Field topics = built.getClass().getDeclaredField("internalTopicNamesWithProperties");
            topics.setAccessible(true);
            Set<String> names = new TreeSet<>();
            ((Map<?, ?>) topics.get(built)).keySet().forEach(name -> names.add((String) name));
            return names;
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("This release does not tell its internal topics.", e);
        }
    }
}
