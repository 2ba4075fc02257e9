package onceproof.streams;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder;
import org.apache.kafka.streams.processor.internals.ProcessorNode;
import org.apache.kafka.streams.processor.internals.ProcessorTopology;
import org.apache.kafka.streams.state.internals.WrappedStateStore;

/**
 * What the topology of your own application consists of, without a broker: the fields of the event {@code topology}.
 *
 * <p>{@code TopologyDescription} has topics and stores by name; which processors and stores they are, only Kafka
 * Streams' own classes say. A topology that is described is not to be run: it has built its processors.
 */
final class Described {

    private Described() {}

    /**
     * Describe a topology.
     *
     * @return sources, globals, sinks, stores, open, internal (names), parts (subtopologies: their sources, and
     *     their nodes with the stores of each), processors (class by node, the innermost one), kinds (classes by store,
     * from the outside in) and serdes (by store the classes that read its keys and its values)
     * @throws IllegalStateException this release does not tell it.
     */
    static Map<String, Object> fields(Topology topology, Properties config) {
        Set<String> sources = new TreeSet<>();
        Set<String> sinks = new TreeSet<>();
        Set<String> stores = new TreeSet<>();
        Set<String> globals = new TreeSet<>();
        Set<String> open = new TreeSet<>(); // nodes whose topics are only known while they run
        List<Map<String, Object>> parts = new ArrayList<>();
        TopologyDescription told = topology.describe();
        told.globalStores().forEach(store -> globals.addAll(store.source().topicSet()));
        for (TopologyDescription.Subtopology part : told.subtopologies()) {
            Set<String> read = new TreeSet<>();
            Map<String, Collection<String>> nodes = new TreeMap<>(); // their stores
            for (TopologyDescription.Node node : part.nodes()) {
                if (node instanceof TopologyDescription.Source) {
                    Set<String> topics = ((TopologyDescription.Source) node).topicSet();
                    read.addAll(topics == null ? Set.of() : topics); // null: by a pattern
                    open.addAll(topics == null ? Set.of(node.name()) : Set.of());
                } else if (node instanceof TopologyDescription.Sink) {
                    String topic = ((TopologyDescription.Sink) node).topic();
                    sinks.addAll(topic == null ? Set.of() : Set.of(topic)); // null: chosen record by record
                    open.addAll(topic == null ? Set.of(node.name()) : Set.of());
                } else if (node instanceof TopologyDescription.Processor) {
                    stores.addAll(((TopologyDescription.Processor) node).stores());
                    nodes.put(node.name(), ((TopologyDescription.Processor) node).stores());
                }
            }
            sources.addAll(read);
            parts.add(Events.fields("sources", read, "nodes", nodes));
        }
        Map<String, Object> fields = Events.fields(
                "sources", sources, "globals", globals, "sinks", sinks, "stores", stores, "open", open, "parts", parts);
        try {
            fields.putAll(built(topology, config));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("This release does not tell what its topology consists of.", e);
        }
        return fields;
    }

    /** The topics that Kafka Streams makes, and gives the application's id: topics of others may have such names. */
    static Set<String> internal(Topology topology) {
        try {
            Set<String> names = new TreeSet<>();
            Object topics = field(builder(topology), "internalTopicNamesWithProperties");
            ((Map<?, ?>) topics).keySet().forEach(name -> names.add((String) name));
            return names;
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("This release does not tell its internal topics.", e);
        }
    }

    static InternalTopologyBuilder builder(Topology topology) throws ReflectiveOperationException {
        return (InternalTopologyBuilder) field(topology, "internalTopologyBuilder");
    }

    /** Its processors and stores, which are not to be run. */
    static ProcessorTopology processors(Topology topology, Properties config) {
        try {
            return builder(topology).rewriteTopology(new StreamsConfig(config)).buildTopology();
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("This release does not tell what its topology consists of.", e);
        }
    }

    private static Map<String, Object> built(Topology topology, Properties config) throws ReflectiveOperationException {
        Set<String> internal = internal(topology);
        ProcessorTopology all = processors(topology, config);
        Map<String, String> processors = new TreeMap<>();
        for (ProcessorNode<?, ?, ?, ?> node : all.processors()) {
            Object processor = processor(node);
            if (processor != null) { // sources and sinks have none
                processors.put(node.name(), processor.getClass().getName());
            }
        }
        Map<String, Collection<String>> kinds = new TreeMap<>();
        Map<String, List<String>> serdes = new TreeMap<>();
        StreamsConfig streams = new StreamsConfig(config);
        for (List<StateStore> stores : List.of(all.stateStores(), all.globalStateStores())) {
            for (StateStore store : stores) {
                kinds.put(store.name(), layers(store));
                serdes.put(store.name(), Arrays.asList(
                        reader(store, List.of("keySerde"), streams::defaultKeySerde),
                        reader(store, List.of("plainValueSerde", "valueSerde", "aggSerde"), streams::defaultValueSerde)));
            }
        }
        return Events.fields("internal", internal, "processors", processors, "kinds", kinds, "serdes", serdes);
    }

    /**
     * The class by which a store reads its keys or its values, where one of these fields has the serde; null if it has
     * none. Where no serde was given, it is the default one.
     */
    private static String reader(StateStore store, List<String> fields, Supplier<Serde<?>> byDefault) {
        for (String name : fields) {
            try {
                Serde<?> serde = (Serde<?>) inherited(store, name);
                Object reader = (serde == null ? byDefault.get() : serde).deserializer();
                return innermost(reader).getClass().getName().replaceFirst("\\$\\$Lambda.*", "\\$\\$Lambda");
            } catch (NoSuchFieldException e) {
                continue; // another kind of store
            } catch (ReflectiveOperationException | RuntimeException e) {
                return null; // there is no default one
            }
        }
        return null;
    }

    /** What reads the value itself, where Kafka Streams keeps a time or more with it. */
    private static Object innermost(Object reader) throws ReflectiveOperationException {
        Object found = reader;
        while (found.getClass().getName().startsWith("org.apache.kafka.streams.state.")) {
            Field inner = declared(found.getClass(), "valueDeserializer");
            if (inner == null) {
                return found;
            }
            found = inner.get(found);
        }
        return found;
    }

    /** Since 3.4 a node has one of two; until then one that has the older interface is in an adapter. */
    private static Object processor(ProcessorNode<?, ?, ?, ?> node) throws ReflectiveOperationException {
        for (String name : List.of("processor", "fixedKeyProcessor")) {
            Field field = declared(ProcessorNode.class, name);
            Object found = field == null ? null : field.get(node);
            if (found != null) {
                Field adapted = declared(found.getClass(), "delegate");
                boolean isAdapter = found.getClass().getSimpleName().equals("ProcessorAdapter");
                return isAdapter && adapted != null ? adapted.get(found) : found;
            }
        }
        return null;
    }

    /** The classes of a store and those that it wraps, and whether it outlives its process. */
    static Collection<String> layers(StateStore store) {
        Collection<String> names = new LinkedHashSet<>();
        StateStore layer = store;
        while (layer instanceof WrappedStateStore) {
            names.add(layer.getClass().getSimpleName());
            layer = ((WrappedStateStore<?, ?, ?>) layer).wrapped();
        }
        names.add(layer.getClass().getSimpleName());
        names.add(store.persistent() ? "persistent" : "in memory");
        return names;
    }

    static Object field(Object of, String name) throws ReflectiveOperationException {
        Field field = declared(of instanceof Topology ? Topology.class : of.getClass(), name);
        if (field == null) {
            throw new NoSuchFieldException(name);
        }
        return field.get(of);
    }

    /** The value of a field that the class of an object, or one that it extends, declares. */
    static Object inherited(Object of, String name) throws ReflectiveOperationException {
        for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
            Field field = declared(type, name);
            if (field != null) {
                return field.get(of);
            }
        }
        throw new NoSuchFieldException(name);
    }

    private static Field declared(Class<?> type, String name) {
        try {
            Field field = type.getDeclaredField(name);
            field.setAccessible(true);
            return field;
        } catch (NoSuchFieldException e) {
            return null;
        }
    }
}
