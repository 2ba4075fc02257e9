package org.apache.kafka.streams.kstream.internals.suppress;

import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serde;
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
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Properties;

import static org.apache.kafka.streams.kstream.Suppressed.BufferConfig.maxRecords;
import static org.apache.kafka.streams.kstream.Suppressed.BufferConfig.unbounded;
import static org.apache.kafka.streams.kstream.Suppressed.untilTimeLimit;
import static org.apache.kafka.streams.kstream.Suppressed.untilWindowCloses;
import static org.junit.jupiter.api.Assertions.assertEquals;

/** The old value of what suppress emits is what it emitted last for that key, and not an update that it held back. */
public class KTableSuppressOldValueTest {

    private static final Duration SIZE = Duration.ofMillis(10);
    private static final Serde<String> STRING = Serdes.String();
    private static final Grouped<String, Long> GROUPED = Grouped.with(STRING, Serdes.Long());
    private static final String[] FOUR_WINDOWS_OF_THREE =
        {"k@0", "k@1", "k@2", "k@100", "k@101", "k@102", "k@200", "k@201", "k@202", "k@300", "k@301", "k@302"};

    private final StreamsBuilder builder = new StreamsBuilder();

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    public void shouldSumFinalCounts(final boolean cached) {
        sum(tumbling(cached).suppress(untilWindowCloses(unbounded())));
        assertEquals(Map.of("k", 12L), output(until(1000)));
    }

    @Test
    public void shouldCountFinalWindows() {
        toOutput(tumbling(true).suppress(untilWindowCloses(unbounded()))
            .groupBy((window, count) -> KeyValue.pair(window.key(), count), GROUPED)
            .count());
        assertEquals(Map.of("k", 4L), output(until(1000)));
    }

    @Test
    public void shouldCountFinalWindowsByTheirValue() {
        toOutput(tumbling(true).suppress(untilWindowCloses(unbounded()))
            .groupBy((window, count) -> KeyValue.pair(count.toString(), count), GROUPED)
            .count());
        assertEquals(Map.of("2", 1L, "3", 1L), output("k@0", "k@1", "k@100", "k@101", "k@102", "k@1000"));
    }

    @Test
    public void shouldSumFinalCountsOfSlidingWindows() {
        sum(grouped().windowedBy(SlidingWindows.ofTimeDifferenceWithNoGrace(SIZE))
            .count(Materialized.with(STRING, Serdes.Long()))
            .suppress(untilWindowCloses(unbounded())));
        // 85 to 95: 1, 90 to 100: 3, 96 to 106: 2, and 990 to 1000: 1
        assertEquals(Map.of("k", 7L), output("k@95", "k@100", "k@100", "k@1000"));
    }

    @Test
    public void shouldSumFinalCountsOfSessions() {
        sum(grouped().windowedBy(SessionWindows.ofInactivityGapWithNoGrace(SIZE))
            .count(Materialized.with(STRING, Serdes.Long()))
            .suppress(untilWindowCloses(unbounded())));
        assertEquals(Map.of("k", 6L), output("k@0", "k@0", "k@0", "k@100", "k@100", "k@100", "k@1000"));
    }

    @Test
    public void shouldCountRowOnceInGroupThatItIsEmittedIn() {
        toOutput(rows().suppress(untilTimeLimit(SIZE, unbounded()))
            .groupBy((key, value) -> KeyValue.pair(value, key), Grouped.with(STRING, STRING))
            .count());
        // it is emitted as x, held as y, and emitted as z
        assertEquals(Map.of("x", 0L, "z", 1L, "0", 1L), output("a=x@0", "clock=0@20", "a=y@21", "a=z@22", "clock=0@32"));
    }

    @Test
    public void shouldCountRowOnceInGroupIfBufferIsFull() {
        toOutput(rows().suppress(untilTimeLimit(Duration.ofDays(1), maxRecords(1).emitEarlyWhenFull()))
            .groupBy((key, value) -> KeyValue.pair(value, key), Grouped.with(STRING, STRING))
            .count());
        // of two that are held the older one is emitted: a, b, a and c
        assertEquals(Map.of("x", 0L, "b", 1L, "z", 1L), output("a=x@0", "b=b@1", "a=y@2", "a=z@3", "c=c@4"));
    }

    @Test
    public void shouldTakeRowOffThatFilterNoLongerAccepts() {
        toOutput(rows().suppress(untilTimeLimit(SIZE, unbounded()))
            .filter((key, value) -> value.equals("good"))
            .groupBy((key, value) -> KeyValue.pair(value, key), Grouped.with(STRING, STRING))
            .count());
        assertEquals(Map.of("good", 0L), output("a=good@0", "clock=bad@20", "a=bad@21", "a=worse@22", "clock=bad@32"));
    }

    @Test
    public void shouldSumFinalCountsOfOneUpdateEach() {
        sum(tumbling(true).suppress(untilWindowCloses(unbounded())));
        assertEquals(Map.of("k", 3L), output("k@0", "k@100", "k@200", "k@1000"));
    }

    @Test
    public void shouldSumCountsThatAreNotSuppressed() {
        sum(tumbling(true));
        assertEquals(Map.of("k", 13L), output(until(1000)));
    }

    @Test
    public void shouldSumStreamOfFinalCounts() {
        toOutput(tumbling(true).suppress(untilWindowCloses(unbounded()))
            .toStream((window, count) -> window.key())
            .groupByKey(GROUPED)
            .reduce(Long::sum));
        assertEquals(Map.of("k", 12L), output(until(1000)));
    }

    @Test
    public void shouldSumTableOfFinalCounts() {
        sum(tumbling(true).suppress(untilWindowCloses(unbounded()))
            .toStream()
            .toTable(Materialized.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, SIZE.toMillis()), Serdes.Long())));
        assertEquals(Map.of("k", 12L), output(until(1000)));
    }

    @Test
    public void shouldSumFinalCountsThatAreMappedIntoStoreOfTheirOwn() {
        sum(tumbling(true).suppress(untilWindowCloses(unbounded())).mapValues(
            count -> count,
            Materialized.<Windowed<String>, Long, KeyValueStore<Bytes, byte[]>>as("mapped")
                .withKeySerde(WindowedSerdes.timeWindowedSerdeFrom(String.class, SIZE.toMillis()))
                .withValueSerde(Serdes.Long())));
        assertEquals(Map.of("k", 12L), output(until(1000)));
    }

    private KGroupedStream<String, String> grouped() {
        return builder.stream("input", Consumed.with(STRING, STRING)).groupByKey(Grouped.with(STRING, STRING));
    }

    private KTable<String, String> rows() {
        return builder.table("input", Consumed.with(STRING, STRING), Materialized.with(STRING, STRING));
    }

    private KTable<Windowed<String>, Long> tumbling(final boolean cached) {
        final Materialized<String, Long, WindowStore<Bytes, byte[]>> counts = Materialized.with(STRING, Serdes.Long());
        return grouped().windowedBy(TimeWindows.ofSizeWithNoGrace(SIZE))
            .count(cached ? counts.withCachingEnabled() : counts.withCachingDisabled());
    }

    private static void sum(final KTable<Windowed<String>, Long> table) {
        toOutput(table
            .groupBy((window, count) -> KeyValue.pair(window.key(), count), GROUPED)
            .reduce(Long::sum, (sum, count) -> sum - count));
    }

    private static void toOutput(final KTable<String, Long> table) {
        table.toStream().to("output", Produced.with(STRING, Serdes.Long()));
    }

    /** The records of four windows, and one that closes them. */
    private static String[] until(final long time) {
        final String[] records = Arrays.copyOf(FOUR_WINDOWS_OF_THREE, FOUR_WINDOWS_OF_THREE.length + 1);
        records[FOUR_WINDOWS_OF_THREE.length] = "k@" + time;
        return records;
    }

    /** What comes out in the end after these records, each `key@time` or `key=value@time`. */
    private Map<String, Long> output(final String... records) {
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), new Properties())) {
            final TestInputTopic<String, String> input =
                driver.createInputTopic("input", new StringSerializer(), new StringSerializer());
            for (final String record : records) {
                final String[] parts = record.split("[=@]");
                input.pipeInput(parts[0], parts.length == 3 ? parts[1] : "", Long.parseLong(parts[parts.length - 1]));
            }
            return driver.createOutputTopic("output", new StringDeserializer(), new LongDeserializer()).readKeyValuesToMap();
        }
    }
}
