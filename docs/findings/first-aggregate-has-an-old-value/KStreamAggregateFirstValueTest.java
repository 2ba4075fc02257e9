package org.apache.kafka.streams.kstream.internals;

import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

import org.junit.jupiter.api.Test;

import java.util.Collections;
import java.util.Map;
import java.util.Properties;

import static org.junit.jupiter.api.Assertions.assertEquals;

/** A key has no old value before its first record: what an aggregation is initialized with was never its value. */
public class KStreamAggregateFirstValueTest {

    private static final Consumed<String, String> STRINGS = Consumed.with(Serdes.String(), Serdes.String());

    @Test
    public void shouldCountKeysOfCountedStream() {
        final StreamsBuilder builder = new StreamsBuilder();
        to(counted(builder).groupBy((key, count) -> KeyValue.pair("keys", count), Grouped.with(Serdes.String(), Serdes.Long()))
            .count(Materialized.with(Serdes.String(), Serdes.Long())));
        assertEquals(Map.of("keys", 3L), output(builder, "a", "b", "c"));
    }

    @Test
    public void shouldSumWhatIsJoinedWithCountedStream() {
        final StreamsBuilder builder = new StreamsBuilder();
        final KTable<String, String> table = builder.table("table", STRINGS);
        to(table.leftJoin(counted(builder), (value, count) -> count == null ? 10L : 10L + count)
            .groupBy((key, sum) -> KeyValue.pair("sum", sum), Grouped.with(Serdes.String(), Serdes.Long()))
            .reduce((sum, value) -> sum + value, (sum, value) -> sum - value, Materialized.with(Serdes.String(), Serdes.Long())));
        assertEquals(Map.of("sum", 11L), output(builder, "a"));
    }

    @Test
    public void shouldSumValuesThatDifferFromZero() {
        final StreamsBuilder builder = new StreamsBuilder();
        final KTable<String, String> table = builder.table("table", STRINGS);
        to(table.leftJoin(counted(builder), (value, count) -> count == null ? -1L : count)
            .groupBy((key, sum) -> KeyValue.pair("sum", sum), Grouped.with(Serdes.String(), Serdes.Long()))
            .reduce((sum, value) -> sum + value, (sum, value) -> sum - value, Materialized.with(Serdes.String(), Serdes.Long())));
        assertEquals(Map.of("sum", 1L), output(builder, "a"));
    }

    @Test
    public void shouldDeleteRowThatFilterNoLongerAccepts() {
        final StreamsBuilder builder = new StreamsBuilder();
        final KTable<String, String> table = builder.table("table", STRINGS);
        to(table.leftJoin(counted(builder), (value, count) -> count == null ? 10L : count).filter((key, value) -> value >= 10L));
        assertEquals(Collections.singletonMap("a", null), output(builder, "a"));
    }

    private static KTable<String, Long> counted(final StreamsBuilder builder) {
        return builder.stream("stream", STRINGS)
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>with(Serdes.String(), Serdes.Long())
                .withCachingDisabled());
    }

    private static void to(final KTable<String, Long> table) {
        table.toStream().to("out", Produced.with(Serdes.String(), Serdes.Long()));
    }

    /** What comes out in the end, if each key has a row in the table, if there is one, and then one record in the stream. */
    private static Map<String, Long> output(final StreamsBuilder builder, final String... keys) {
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), new Properties())) {
            for (final String key : keys) {
                if (builder.build().describe().toString().contains("[table]")) {
                    driver.createInputTopic("table", new StringSerializer(), new StringSerializer()).pipeInput(key, "row");
                }
                final TestInputTopic<String, String> stream =
                    driver.createInputTopic("stream", new StringSerializer(), new StringSerializer());
                stream.pipeInput(key, "record");
            }
            return driver.createOutputTopic("out", new StringDeserializer(), new LongDeserializer()).readKeyValuesToMap();
        }
    }
}
