package org.apache.kafka.streams.kstream.internals;

import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

import org.junit.jupiter.api.Test;

import java.util.HashMap;
import java.util.Map;
import java.util.Properties;

import static org.junit.jupiter.api.Assertions.assertEquals;

/** With optimization a stream has one repartition topic behind a new key, however often it is grouped or joined. */
public class InternalStreamsBuilderSharedFilterTest {

    private static final Serde<String> TEXT = Serdes.String();

    private final StreamsBuilder builder = new StreamsBuilder();
    private final KStream<String, String> selected =
        builder.stream("stream", Consumed.with(TEXT, TEXT)).selectKey((key, value) -> value.substring(0, 1));

    @Test
    public void shouldBuildIfFilteredStreamIsGroupedTwice() {
        final KStream<String, String> filtered = filtered();
        count(filtered, "counts");
        count(filtered, "others");
        assertEquals(Map.of("counts", Map.of("a", 2L, "b", 1L), "others", Map.of("a", 2L, "b", 1L)), output("counts", "others"));
    }

    @Test
    public void shouldBuildIfFilteredStreamIsGroupedAndJoined() {
        final KStream<String, String> filtered = filtered();
        count(filtered, "counts");
        filtered.leftJoin(builder.table("table", Consumed.with(TEXT, TEXT)), (value, row) -> 7L, Joined.with(TEXT, TEXT, TEXT))
            .to("joined", Produced.with(TEXT, Serdes.Long()));
        assertEquals(Map.of("counts", Map.of("a", 2L, "b", 1L), "joined", Map.of("a", 7L, "b", 7L)), output("counts", "joined"));
    }

    @Test
    public void shouldBuildIfEachUseHasItsOwnFilter() {
        count(filtered(), "counts");
        count(filtered(), "others");
        assertEquals(Map.of("counts", Map.of("a", 2L, "b", 1L), "others", Map.of("a", 2L, "b", 1L)), output("counts", "others"));
    }

    @Test
    public void shouldBuildIfStreamIsGroupedTwice() {
        count(selected, "counts");
        count(selected, "others");
        final Map<String, Long> all = Map.of("a", 2L, "b", 1L, "c", 1L);
        assertEquals(Map.of("counts", all, "others", all), output("counts", "others"));
    }

    private KStream<String, String> filtered() {
        return selected.filter((key, value) -> value.length() > 1);
    }

    private static void count(final KStream<String, String> stream, final String topic) {
        stream.groupByKey(Grouped.with(TEXT, TEXT)).count(Materialized.with(TEXT, Serdes.Long()))
            .toStream().to(topic, Produced.with(TEXT, Serdes.Long()));
    }

    /** What comes out of each topic in the end, by one repartition topic. */
    private Map<String, Map<String, Long>> output(final String... topics) {
        final Properties config = new Properties();
        config.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        final Topology topology = builder.build(config);
        assertEquals(1, topology.describe().toString().lines()
            .filter(line -> line.contains("Sink:") && line.contains("-repartition")).count());
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, config)) {
            for (final String value : new String[] {"a1", "b1", "c", "a2"}) {
                driver.createInputTopic("stream", new StringSerializer(), new StringSerializer()).pipeInput("key", value);
            }
            final Map<String, Map<String, Long>> results = new HashMap<>();
            for (final String topic : topics) {
                results.put(topic, driver.createOutputTopic(topic, new StringDeserializer(), new LongDeserializer()).readKeyValuesToMap());
            }
            return results;
        }
    }
}
