package onceproof.streams;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.processor.internals.InternalTopicConfig;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder.TopicsInfo;

/**
 * What a release makes of a topology, as far as state and members of a group hang on it: its nodes by subtopology, its
 * stores with their changelogs, and the topics that Kafka Streams creates with their configuration.
 *
 * <p>Names of internal topics are given without the application's id. Only Kafka Streams' own classes tell the topics.
 */
final class Shape {

    private Shape() {}

    /**
     * Describe a topology, which is not to be run afterwards.
     *
     * @return parts (by number: sources, sinks, and nodes with their kind, processor, stores and successors),
     *     global_stores (store to topic), stores (kinds, changelog and serdes of each), repartitions and changelogs (configuration by topic)
     * @throws IllegalStateException this release does not tell it.
     */
    static Map<String, Object> of(Topology topology, Properties config) {
        return of(topology, config, Described.fields(topology, config));
    }

    /** The same, of a topology that {@link Described} has described. */
    static Map<String, Object> of(Topology topology, Properties config, Map<String, Object> described) {
        try {
            return told(topology, config, described);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("This release does not tell which topics its topology needs.", e);
        }
    }

    private static Map<String, Object> told(Topology topology, Properties config, Map<String, Object> described)
            throws ReflectiveOperationException {
        TopologyDescription told = topology.describe();
        InternalTopologyBuilder builder = Described.builder(topology);
        String id = config.getProperty(StreamsConfig.APPLICATION_ID_CONFIG);
        Map<?, ?> changelogOf = (Map<?, ?>) Described.field(builder, "storeToChangelogTopic");
        Map<?, ?> kinds = (Map<?, ?>) described.get("kinds");
        Map<?, ?> processors = (Map<?, ?>) described.get("processors");
        Map<String, Object> stores = new TreeMap<>();
        for (Map.Entry<?, ?> store : kinds.entrySet()) {
            Object changelog = changelogOf.get(store.getKey());
            String topic = changelog == null ? null : bare(changelog.toString(), id);
            Object serdes = ((Map<?, ?>) described.get("serdes")).get(store.getKey());
            stores.put(store.getKey().toString(), Events.fields(
                    "layers", store.getValue(), "changelog", topic, "serdes", serdes));
        }
        Map<String, Map<String, String>> repartitions = new TreeMap<>();
        Map<String, Map<String, String>> changelogs = new TreeMap<>();
        for (TopicsInfo topics : topicsOf(builder)) {
            put(topics.repartitionSourceTopics, id, repartitions);
            put(topics.stateChangelogTopics, id, changelogs);
        }
        Map<String, String> globals = new TreeMap<>();
        told.globalStores().forEach(store -> store.processor().stores().forEach(name -> globals.put(
                name, String.join(",", new TreeSet<>(store.source().topicSet())))));
        Map<String, Object> parts = new TreeMap<>();
        told.subtopologies().forEach(part -> parts.put(String.valueOf(part.id()), part(part, processors)));
        return Events.fields("parts", parts, "global_stores", globals, "stores", stores, "repartitions", repartitions,
                "changelogs", changelogs);
    }

    /** The topics that a topology of this shape reads, internal ones among them. */
    static Set<String> read(Map<String, Object> shape) {
        Set<String> topics = new TreeSet<>();
        ((Map<?, ?>) shape.get("global_stores")).values().forEach(names -> topics.addAll(
                List.of(names.toString().split(","))));
        ((Map<?, ?>) shape.get("parts")).values().forEach(part ->
                ((Collection<?>) ((Map<?, ?>) part).get("sources")).forEach(topic -> topics.add(topic.toString())));
        return topics;
    }

    private static Map<String, Object> part(TopologyDescription.Subtopology part, Map<?, ?> processors) {
        Set<String> sources = new TreeSet<>();
        Set<String> sinks = new TreeSet<>();
        Map<String, Object> nodes = new TreeMap<>();
        for (TopologyDescription.Node node : part.nodes()) {
            Set<String> topics = new TreeSet<>();
            Collection<String> stores = List.of();
            String kind = "processor";
            if (node instanceof TopologyDescription.Source) {
                kind = "source";
                Set<String> read = ((TopologyDescription.Source) node).topicSet();
                topics.addAll(read == null
                        ? Set.of("pattern " + ((TopologyDescription.Source) node).topicPattern()) : read);
                sources.addAll(topics);
            } else if (node instanceof TopologyDescription.Sink) {
                kind = "sink";
                String topic = ((TopologyDescription.Sink) node).topic();
                topics.add(topic == null ? "chosen record by record" : topic);
                sinks.addAll(topics);
            } else if (node instanceof TopologyDescription.Processor) {
                stores = new TreeSet<>(((TopologyDescription.Processor) node).stores());
            }
            Set<String> next = new TreeSet<>();
            node.successors().forEach(successor -> next.add(successor.name()));
            nodes.put(node.name(), Events.fields("kind", kind, "processor", processors.get(node.name()), "stores", stores,
                    "topics", topics, "next", next));
        }
        return Events.fields("sources", sources, "sinks", sinks, "nodes", nodes);
    }

    /** Since 3.1 the method has another name. */
    private static Collection<TopicsInfo> topicsOf(InternalTopologyBuilder builder) throws ReflectiveOperationException {
        Collection<TopicsInfo> found = new ArrayList<>();
        Object topics = call(builder, List.of("subtopologyToTopicsInfo", "topicGroups"), List.of());
        ((Map<?, ?>) topics).values().forEach(info -> found.add((TopicsInfo) info));
        return found;
    }

    private static void put(
            Map<String, InternalTopicConfig> topics, String id, Map<String, Map<String, String>> into)
            throws ReflectiveOperationException {
        for (Map.Entry<String, InternalTopicConfig> topic : topics.entrySet()) {
            Map<String, String> config = new TreeMap<>();
            // Since 4.0 the method has another name. No configuration of the application's, and nothing more is kept.
            Object told = call(topic.getValue(), List.of("properties", "getProperties"), List.of(Map.of(), 0L));
            ((Map<?, ?>) told).forEach((name, value) -> config.put(name.toString(), String.valueOf(value)));
            topic.getValue().numberOfPartitions().ifPresent(number -> config.put("partitions", number.toString()));
            into.put(bare(topic.getKey(), id), config);
        }
    }

    /** The first public method of these names, called. */
    private static Object call(Object of, List<String> names, List<?> arguments) throws ReflectiveOperationException {
        for (String name : names) {
            for (Method method : of.getClass().getMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == arguments.size()) {
                    method.setAccessible(true);
                    try {
                        return method.invoke(of, arguments.toArray());
                    } catch (InvocationTargetException e) {
                        throw new IllegalStateException(e.getCause());
                    }
                }
            }
        }
        throw new NoSuchMethodException(String.join(" or ", names));
    }

    /** The name of an internal topic without the application's id. */
    static String bare(String topic, String id) {
        return topic.startsWith(id + "-") ? topic.substring(id.length() + 1) : topic;
    }
}
