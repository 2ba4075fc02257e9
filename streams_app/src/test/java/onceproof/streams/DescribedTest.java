package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.Stores;
import org.junit.jupiter.api.Test;

/** What model/topology.py knows processors and stores by, on each release on which these tests run. */
class DescribedTest {

    private static Consumed<String, String> texts() {
        return Consumed.with(Serdes.String(), Serdes.String());
    }

    private static Topology everything() {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> stream = builder.stream("stream", texts());
        KTable<String, String> table = builder.table("table", texts(), Materialized.as("cached"));
        KTable<String, String> other = builder.table(
                "other", texts(), Materialized.<String, String>as(Stores.inMemoryKeyValueStore("in-memory")).withCachingDisabled());
        GlobalKTable<String, String> global = builder.globalTable("global", texts());
        stream.join(table, (one, two) -> one).to("out", Produced.with(Serdes.String(), Serdes.String()));
        stream.join(global, (key, value) -> key, (one, two) -> one).foreach((key, value) -> {});
        stream.join(builder.stream("second", texts()), (one, two) -> one, window())
                .foreach((key, value) -> {});
        table.join(other, (one, two) -> one).toStream().foreach((key, value) -> {});
        table.join(other, value -> value, (one, two) -> one).toStream().foreach((key, value) -> {});
        stream.groupByKey().windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(1))).count(Materialized.as("windowed"));
        table.groupBy(org.apache.kafka.streams.KeyValue::pair, Grouped.with(Serdes.String(), Serdes.String())).count();
        // Not by KStream.process, of which 3.3 changed the type that it returns.
        return builder.build().addProcessor("own", Own::new, "KSTREAM-SOURCE-0000000000");
    }

    /** 3.0.0 has {@code of} alone, and 4.0 has it no more. */
    private static JoinWindows window() {
        for (String name : List.of("ofTimeDifferenceWithNoGrace", "of")) {
            try {
                return (JoinWindows) JoinWindows.class.getMethod(name, Duration.class).invoke(null, Duration.ofSeconds(1));
            } catch (NoSuchMethodException e) {
                continue;
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException(e);
            }
        }
        throw new IllegalStateException("This release makes windows of joins by another method.");
    }

    private static final class Own implements Processor<String, String, Void, Void> {
        @Override
        public void process(Record<String, String> record) {}
    }

    private static Properties config() {
        Properties config = new Properties();
        config.put("application.id", "described");
        config.put("bootstrap.servers", "localhost:1");
        return config;
    }

    private static Map<String, Object> described() {
        return Described.fields(everything(), config());
    }

    @SuppressWarnings("unchecked")
    private static <T> T field(String name) {
        return (T) described().get(name);
    }

    @Test
    void processors_are_known_by_their_classes() {
        String classes = String.join("\n", DescribedTest.<Map<String, String>>field("processors").values());
        for (String known : List.of("KStreamKTableJoinProcessor", "foreignkeyjoin.", "KStreamWindowAggregate", "KTableRepartitionMap",
                "KTableSource$", DescribedTest.class.getName() + "$Own")) {
            assertTrue(classes.contains(known), known + " is not among\n" + classes);
        }
        assertTrue(classes.matches("(?s).*KStreamKStream\\w*Join.*"), classes);
        assertTrue(classes.matches("(?s).*internals\\.KTableKTable\\w*Join.*"), classes);
    }

    @Test
    void stores_are_known_by_their_classes() {
        Map<String, Collection<String>> kinds = field("kinds");
        assertTrue(kinds.get("cached").stream().anyMatch(name -> name.startsWith("Caching")), kinds.toString());
        assertTrue(kinds.get("cached").contains("persistent"));
        assertTrue(kinds.get("in-memory").stream().noneMatch(name -> name.startsWith("Caching")), kinds.toString());
        assertTrue(kinds.get("in-memory").contains("in memory"));
        assertTrue(kinds.keySet().stream().anyMatch(name -> name.startsWith("global-STATE-STORE")), kinds.toString());
        assertTrue(kinds.get("windowed").stream().anyMatch(name -> name.contains("Window")), kinds.toString());
    }

    @Test
    void stores_tell_what_reads_them_also_where_a_time_is_kept_or_the_default_reads() {
        Map<String, List<String>> serdes = field("serdes");
        String texts = "org.apache.kafka.common.serialization.StringDeserializer";
        assertEquals(Arrays.asList(texts, texts), serdes.get("cached"));
        assertEquals(Arrays.asList(texts, "org.apache.kafka.common.serialization.LongDeserializer"), serdes.get("windowed"));
        assertEquals(Arrays.asList(texts, texts), serdes.get("in-memory"));
    }

    @Test
    void a_store_without_a_serde_is_read_by_the_default_one() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.table("table", Materialized.as("by-default"));
        Properties config = config();
        assertEquals(Arrays.asList(null, null), serdesOf(builder.build(), config).get("by-default"));
        config.put("default.key.serde", Serdes.StringSerde.class.getName());
        config.put("default.value.serde", Serdes.LongSerde.class.getName());
        builder = new StreamsBuilder();
        builder.table("table", Materialized.as("by-default"));
        assertEquals("org.apache.kafka.common.serialization.LongDeserializer",
                serdesOf(builder.build(), config).get("by-default").get(1));
    }

    @SuppressWarnings("unchecked")
    private static Map<String, List<String>> serdesOf(Topology topology, Properties config) {
        return (Map<String, List<String>>) Described.fields(topology, config).get("serdes");
    }

    @Test
    @SuppressWarnings("unchecked")
    void a_join_with_a_table_has_its_store_and_one_with_a_global_table_has_none() {
        Map<String, String> processors = field("processors");
        List<Map<String, Object>> parts = field("parts");
        Set<Boolean> stored = parts.stream()
                .flatMap(part -> ((Map<String, Collection<String>>) part.get("nodes")).entrySet().stream())
                .filter(node -> processors.getOrDefault(node.getKey(), "").contains("KStreamKTableJoinProcessor"))
                .map(node -> !node.getValue().isEmpty())
                .collect(Collectors.toSet());
        assertEquals(Set.of(true, false), stored);
    }

    @Test
    void topics_are_told_with_what_reads_and_writes_them() {
        Map<String, Object> told = described();
        assertEquals(Set.of("global"), told.get("globals"));
        assertTrue(((Set<?>) told.get("sinks")).contains("out"));
        assertTrue(((Set<?>) told.get("sources")).containsAll(Set.of("stream", "second", "table", "other")));
        assertTrue(((Set<?>) told.get("internal")).stream().anyMatch(name -> ((String) name).endsWith("-repartition")));
    }
}
