package org.apache.kafka.streams.kstream.internals;

import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.LongSerializer;
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
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.WindowStore;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.time.Duration;
import java.util.Map;
import java.util.Properties;

import static org.junit.jupiter.api.Assertions.assertEquals;

/** A window has no old value before its first record: what an aggregation is initialized with was never its value. */
public class KStreamWindowAggregateOldValueTest {

    private static final Duration SIZE = Duration.ofMillis(10);
    private static final TimeWindows TUMBLING = TimeWindows.ofSizeWithNoGrace(SIZE);
    private static final TimeWindows HOPPING = TUMBLING.advanceBy(Duration.ofMillis(5));
    private static final Grouped<String, Long> GROUPED = Grouped.with(Serdes.String(), Serdes.Long());
    private static final long[] FOUR_WINDOWS = {0, 1, 10, 20, 30};

    private final StreamsBuilder builder = new StreamsBuilder();

    @Test
    public void shouldCountTumblingWindows() {
        toOutput(all(counted(TUMBLING, false)).count());
        assertEquals(Map.of("all", 4L), output(FOUR_WINDOWS));
    }

    @Test
    public void shouldCountHoppingWindows() {
        toOutput(all(counted(HOPPING, false)).count());
        // from 0, 5, 10, 15, 20, 25 and 30 on
        assertEquals(Map.of("all", 7L), output(FOUR_WINDOWS));
    }

    @Test
    public void shouldCountWindowsOfCogroupedStream() {
        toOutput(all(grouped().<Long>cogroup((key, value, sum) -> sum + value)
            .windowedBy(TUMBLING).aggregate(() -> 0L, materialized(false))).count());
        assertEquals(Map.of("all", 4L), output(FOUR_WINDOWS));
    }

    @Test
    public void shouldSumWindowsWithInitialValue() {
        toOutput(all(grouped().windowedBy(TUMBLING).aggregate(() -> 7L, (key, value, sum) -> sum + value, materialized(false)))
            .reduce(Long::sum, (sum, value) -> sum - value));
        // 9 of the first one, and 8 of each of the others
        assertEquals(Map.of("all", 33L), output(FOUR_WINDOWS));
    }

    @Test
    public void shouldTakeOffWindowThatFilterNoLongerAccepts() {
        final KTable<Windowed<String>, Long> other = builder.table("other",
            Consumed.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, SIZE.toMillis()), Serdes.Long()));
        toOutput(all(other.leftJoin(counted(TUMBLING, false), (row, count) -> count == null ? row : count)
            .filter((window, value) -> value >= 10L)).count());
        assertEquals(Map.of("all", 0L), output(0));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    public void shouldSumWindowsWithInitialValueOfZero(final boolean cached) {
        toOutput(all(counted(TUMBLING, cached)).reduce(Long::sum, (sum, value) -> sum - value));
        assertEquals(Map.of("all", 5L), output(FOUR_WINDOWS));
    }

    @Test
    public void shouldCountWindowsWithCache() {
        toOutput(all(counted(TUMBLING, true)).count());
        assertEquals(Map.of("all", 4L), output(FOUR_WINDOWS));
    }

    @Test
    public void shouldCountReducedWindows() {
        toOutput(all(grouped().windowedBy(TUMBLING).reduce(Long::sum, materialized(false))).count());
        assertEquals(Map.of("all", 4L), output(FOUR_WINDOWS));
    }

    private KGroupedStream<String, Long> grouped() {
        return builder.stream("input", Consumed.with(Serdes.String(), Serdes.Long())).groupByKey(GROUPED);
    }

    private KTable<Windowed<String>, Long> counted(final TimeWindows windows, final boolean cached) {
        return grouped().windowedBy(windows).count(materialized(cached));
    }

    private static Materialized<String, Long, WindowStore<Bytes, byte[]>> materialized(final boolean cached) {
        final Materialized<String, Long, WindowStore<Bytes, byte[]>> materialized =
            Materialized.with(Serdes.String(), Serdes.Long());
        return cached ? materialized.withCachingEnabled() : materialized.withCachingDisabled();
    }

    /** One group of all windows. */
    private static KGroupedTable<String, Long> all(final KTable<Windowed<String>, Long> table) {
        return table.groupBy((window, value) -> KeyValue.pair("all", value), GROUPED);
    }

    private static void toOutput(final KTable<String, Long> table) {
        table.toStream().to("output", Produced.with(Serdes.String(), Serdes.Long()));
    }

    /** What comes out in the end, after a record of 1 at each time; a row of 10 of the first window is there before, if there is a table. */
    private Map<String, Long> output(final long... times) {
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), new Properties())) {
            if (builder.build().describe().toString().contains("[other]")) {
                driver.createInputTopic("other",
                        WindowedSerdes.timeWindowedSerdeFrom(String.class, SIZE.toMillis()).serializer(), new LongSerializer())
                    .pipeInput(new Windowed<>("k", new TimeWindow(0, 10)), 10L, 0);
            }
            final TestInputTopic<String, Long> input =
                driver.createInputTopic("input", new StringSerializer(), new LongSerializer());
            for (final long time : times) {
                input.pipeInput("k", 1L, time);
            }
            return driver.createOutputTopic("output", new StringDeserializer(), new LongDeserializer()).readKeyValuesToMap();
        }
    }
}
