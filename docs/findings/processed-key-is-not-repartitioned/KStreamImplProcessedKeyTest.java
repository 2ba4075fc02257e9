package org.apache.kafka.streams.kstream.internals;

import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyConfig;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.File;
import java.util.HashSet;
import java.util.Properties;
import java.util.Set;

import static org.junit.jupiter.api.Assertions.assertEquals;

/** Records are repartitioned by the key that they are aggregated by: without that each task has an aggregate of its own. */
public class KStreamImplProcessedKeyTest {

    private static final String APPLICATION = "application";
    private static final Grouped<String, String> GROUPED = Grouped.with("grouped", Serdes.String(), Serdes.String());
    private static final ProcessorSupplier<String, String, String, String> BY_VALUE = () -> new ContextualProcessor<>() {
        @Override
        public void process(final Record<String, String> record) {
            context().forward(record.withKey(record.value()));
        }
    };

    @TempDir
    File stateDir;

    private final Properties config = new Properties();

    @ParameterizedTest
    @ValueSource(strings = {StreamsConfig.OPTIMIZE, StreamsConfig.MERGE_REPARTITION_TOPICS, StreamsConfig.NO_OPTIMIZATION})
    public void shouldRepartitionByKeyOfProcessorBehindSelectKey(final String optimization) {
        config.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, optimization);
        final StreamsBuilder builder = new StreamsBuilder();
        count(input(builder).selectKey((key, value) -> "selected").process(BY_VALUE));
        assertEquals(Set.of("a", "b"), keysOf(builder, "grouped-repartition"));
    }

    @Test
    public void shouldRepartitionByKeyOfProcessorBehindMap() {
        config.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        final StreamsBuilder builder = new StreamsBuilder();
        count(input(builder).map((key, value) -> KeyValue.pair("mapped", value)).filter((key, value) -> true).process(BY_VALUE));
        assertEquals(Set.of("a", "b"), keysOf(builder, "grouped-repartition"));
    }

    @Test
    public void shouldRepartitionByKeyOfProcessor() {
        config.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        final StreamsBuilder builder = new StreamsBuilder();
        count(input(builder).process(BY_VALUE));
        assertEquals(Set.of("a", "b"), keysOf(builder, "grouped-repartition"));
    }

    @Test
    public void shouldRepartitionByKeyOfSelectKeyBehindProcessor() {
        config.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        final StreamsBuilder builder = new StreamsBuilder();
        count(input(builder).process(BY_VALUE).selectKey((key, value) -> value + "!"));
        assertEquals(Set.of("a!", "b!"), keysOf(builder, "grouped-repartition"));
    }

    @Test
    public void shouldRepartitionByKeyOfProcessorIfThatIsRepartitioned() {
        config.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        final StreamsBuilder builder = new StreamsBuilder();
        count(input(builder).selectKey((key, value) -> "selected").process(BY_VALUE)
            .repartition(Repartitioned.with(Serdes.String(), Serdes.String()).withName("own")));
        assertEquals(Set.of("a", "b"), keysOf(builder, "own-repartition"));
    }

    @Test
    public void shouldRepartitionByKeyOfProcessorIfThatIsSwitchedOn() {
        config.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, APPLICATION);
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:1");
        config.put(TopologyConfig.InternalConfig.ENABLE_PROCESS_PROCESSVALUE_FIX, true);
        final StreamsBuilder builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(config)));
        count(input(builder).selectKey((key, value) -> "selected").process(BY_VALUE));
        assertEquals(Set.of("a", "b"), keysOf(builder, "grouped-repartition"));
    }

    private static KStream<String, String> input(final StreamsBuilder builder) {
        return builder.stream("input", Consumed.with(Serdes.String(), Serdes.String()));
    }

    private static void count(final KStream<String, String> stream) {
        stream.groupByKey(GROUPED)
            .count(Materialized.with(Serdes.String(), Serdes.Long()))
            .toStream().to("output", Produced.with(Serdes.String(), Serdes.Long()));
    }

    /** The keys in a topic after two records of the values a and b; the aggregates always have these. */
    private Set<String> keysOf(final StreamsBuilder builder, final String topic) {
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, APPLICATION);
        config.put(StreamsConfig.STATE_DIR_CONFIG, stateDir.getPath());
        final Topology topology = builder.build(config);
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, config)) {
            final TestInputTopic<String, String> input =
                driver.createInputTopic("input", new StringSerializer(), new StringSerializer());
            input.pipeInput("k", "a");
            input.pipeInput("k", "b");
            assertEquals(2, driver.createOutputTopic("output", new StringDeserializer(), new LongDeserializer()).readKeyValuesToMap().size());
            final Set<String> keys = new HashSet<>();
            driver.createOutputTopic(APPLICATION + "-" + topic, new StringDeserializer(), new StringDeserializer())
                .readKeyValuesToList().forEach(record -> keys.add(record.key));
            return keys;
        }
    }
}
