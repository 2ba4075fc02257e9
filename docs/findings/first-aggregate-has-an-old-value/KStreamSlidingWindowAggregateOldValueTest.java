package org.apache.kafka.streams.kstream.internals;

import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;
import org.apache.kafka.streams.state.internals.InMemoryWindowBytesStoreSupplier;
import org.apache.kafka.streams.state.internals.InMemoryWindowStore;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.time.Duration;
import java.util.Map;
import java.util.Properties;

import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * A sliding window that is new has no old value: the value that it begins with is that of another window or of the
 * initializer, and was never its own. So a table behind it has nothing to take off.
 */
public class KStreamSlidingWindowAggregateOldValueTest {

    private static final Duration DIFFERENCE = Duration.ofMillis(10);
    private static final Duration GRACE = Duration.ofMillis(50);
    private static final Duration RETENTION = Duration.ofMinutes(1);
    private static final Grouped<String, Long> GROUPED = Grouped.with(Serdes.String(), Serdes.Long());
    private static final Materialized<String, Long, WindowStore<Bytes, byte[]>> UNCACHED =
        Materialized.<String, Long, WindowStore<Bytes, byte[]>>with(Serdes.String(), Serdes.Long())
            .withRetention(RETENTION).withCachingDisabled();
    private static final Materialized<String, Long, WindowStore<Bytes, byte[]>> CACHED =
        Materialized.<String, Long, WindowStore<Bytes, byte[]>>with(Serdes.String(), Serdes.Long())
            .withRetention(RETENTION).withCachingEnabled();
    /** Counted, the windows are 85 to 95: 1, 96 to 106: 1, and 90 to 100: 2, which begins with the 1 of 85 to 95. */
    private static final long[] TIMES = {95, 100};
    private static final long[] UNTIL_ALL_HAVE_CLOSED = {95, 100, 1000};

    private final StreamsBuilder builder = new StreamsBuilder();
    private final Properties config = new Properties();

    @ParameterizedTest
    @ValueSource(strings = {"RocksDB", "in memory", "in memory, without a reverse fetch"})
    public void shouldSumWindows(final String store) {
        toOutput(sum(windowed().count(in(store))));
        assertEquals(Map.of("all", 4L), output(TIMES));
    }

    @Test
    public void shouldSumWindowsWithCacheOfNoBytes() {
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        toOutput(sum(windowed().count(CACHED)));
        assertEquals(Map.of("all", 4L), output(TIMES));
    }

    @Test
    public void shouldSumWindowsOfRecordOutOfOrder() {
        toOutput(sum(windowed().count(UNCACHED)));
        assertEquals(Map.of("all", 7L), output(95, 110, 100));
    }

    @Test
    public void shouldSumReducedWindows() {
        toOutput(sum(windowed().reduce(Long::sum, UNCACHED)));
        assertEquals(Map.of("all", 4L), output(TIMES));
    }

    @Test
    public void shouldSumCogroupedWindows() {
        final KGroupedStream<String, Long> grouped = grouped();
        toOutput(sum(grouped.<Long>cogroup((key, value, sum) -> sum + value)
            .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(DIFFERENCE, GRACE))
            .aggregate(() -> 0L, UNCACHED)));
        assertEquals(Map.of("all", 4L), output(TIMES));
    }

    @Test
    public void shouldSumJoinedWindows() {
        final KTable<Windowed<String>, Long> empty =
            builder.table("empty", Consumed.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, DIFFERENCE.toMillis()), Serdes.Long()));
        toOutput(sum(windowed().count(UNCACHED).leftJoin(empty, (count, none) -> count)));
        assertEquals(Map.of("all", 4L), output(TIMES));
    }

    @Test
    public void shouldSumWindowsThatPassFilter() {
        toOutput(sum(windowed().count(UNCACHED).filter((window, count) -> count < 2)));
        assertEquals(Map.of("all", 2L), output(TIMES));
    }

    @Test
    public void shouldSumSuppressedWindows() {
        toOutput(sum(windowed().count(UNCACHED).suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))));
        assertEquals(Map.of("all", 4L), output(UNTIL_ALL_HAVE_CLOSED));
    }

    @Test
    public void shouldAggregateWindows() {
        toOutput(all(windowed().count(UNCACHED)).aggregate(
            () -> 0L,
            (all, count, sum) -> sum + count,
            (all, count, sum) -> sum - count,
            Materialized.with(Serdes.String(), Serdes.Long())
        ));
        assertEquals(Map.of("all", 4L), output(TIMES));
    }

    @Test
    public void shouldCountReducedWindows() {
        toOutput(all(windowed().reduce(Long::sum, UNCACHED)).count());
        assertEquals(Map.of("all", 3L), output(TIMES));
    }

    @Test
    public void shouldCountReducedWindowsByTheirValue() {
        toOutput(windowed().reduce(Long::sum, UNCACHED)
            .groupBy((window, value) -> KeyValue.pair(value.toString(), value), GROUPED).count());
        assertEquals(Map.of("1", 2L, "2", 1L), output(TIMES));
    }

    @Test
    public void shouldCountWindowsThatBeginWithInitialValue() {
        toOutput(all(windowed().count(UNCACHED)).count());
        assertEquals(Map.of("all", 2L), output(100, 200));
    }

    @Test
    public void shouldCountRightWindowOfPreviousRecord() {
        toOutput(all(windowed().count(UNCACHED)).count());
        assertEquals(Map.of("all", 2L), output(0, 9));
    }

    @Test
    public void shouldCountWindowsOfEarlyRecords() {
        toOutput(all(windowed().count(UNCACHED)).count());
        assertEquals(Map.of("all", 2L), output(new String[] {"k", "l"}, 5));
    }

    @Test
    public void shouldSumWindowsThatBeginWithInitialValueOfZero() {
        toOutput(sum(windowed().count(UNCACHED)));
        assertEquals(Map.of("all", 2L), output(100, 200));
    }

    @Test
    public void shouldCountReducedWindowsThatBeginWithoutValue() {
        toOutput(all(windowed().reduce(Long::sum, UNCACHED)).count());
        assertEquals(Map.of("all", 2L), output(100, 200));
    }

    @Test
    public void shouldCountRightWindowOfRecordOutOfOrder() {
        toOutput(all(windowed().reduce(Long::sum, UNCACHED)).count());
        assertEquals(Map.of("all", 3L), output(100, 95));
    }

    @Test
    public void shouldSumWindowsWithCache() {
        toOutput(sum(windowed().count(CACHED)));
        assertEquals(Map.of("all", 4L), output(TIMES));
    }

    @Test
    public void shouldCountWindowsWithCache() {
        toOutput(all(windowed().count(CACHED)).count());
        assertEquals(Map.of("all", 3L), output(TIMES));
    }

    @Test
    public void shouldSumWindowsThatAreMappedIntoStoreOfTheirOwn() {
        toOutput(sum(windowed().count(UNCACHED).mapValues(
            count -> count,
            Materialized.<Windowed<String>, Long, KeyValueStore<Bytes, byte[]>>as("mapped")
                .withKeySerde(WindowedSerdes.timeWindowedSerdeFrom(String.class, DIFFERENCE.toMillis()))
                .withValueSerde(Serdes.Long())
                .withCachingDisabled()
        )));
        assertEquals(Map.of("all", 4L), output(TIMES));
    }

    @Test
    public void shouldSumWindowsThatAreEmittedOnClose() {
        toOutput(sum(windowed().emitStrategy(EmitStrategy.onWindowClose()).count(UNCACHED)));
        assertEquals(Map.of("all", 4L), output(UNTIL_ALL_HAVE_CLOSED));
    }

    private KGroupedStream<String, Long> grouped() {
        return builder.stream("input", Consumed.with(Serdes.String(), Serdes.Long())).groupByKey(GROUPED);
    }

    private TimeWindowedKStream<String, Long> windowed() {
        return grouped().windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(DIFFERENCE, GRACE));
    }

    /** One group of all windows. */
    private static KGroupedTable<String, Long> all(final KTable<Windowed<String>, Long> table) {
        return table.groupBy((window, value) -> KeyValue.pair("all", value), GROUPED);
    }

    private static KTable<String, Long> sum(final KTable<Windowed<String>, Long> table) {
        return all(table).reduce(Long::sum, (sum, value) -> sum - value);
    }

    private static void toOutput(final KTable<String, Long> table) {
        table.toStream().to("output", Produced.with(Serdes.String(), Serdes.Long()));
    }

    private Map<String, Long> output(final long... times) {
        return output(new String[] {"k"}, times);
    }

    /** What comes out in the end, after a record of 1 of each key at each time. */
    private Map<String, Long> output(final String[] keys, final long... times) {
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), config)) {
            final TestInputTopic<String, Long> input =
                driver.createInputTopic("input", new StringSerializer(), new LongSerializer());
            for (final long time : times) {
                for (final String key : keys) {
                    input.pipeInput(key, 1L, time);
                }
            }
            return driver.createOutputTopic("output", new StringDeserializer(), new LongDeserializer()).readKeyValuesToMap();
        }
    }

    private static Materialized<String, Long, WindowStore<Bytes, byte[]>> in(final String store) {
        if (store.equals("RocksDB")) {
            return UNCACHED;
        }
        final WindowBytesStoreSupplier supplier = store.equals("in memory")
            ? Stores.inMemoryWindowStore("store", RETENTION, DIFFERENCE, false)
            : new WithoutReverseFetch();
        return Materialized.<String, Long>as(supplier)
            .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()).withCachingDisabled();
    }

    private static class WithoutReverseFetch extends InMemoryWindowBytesStoreSupplier {
        WithoutReverseFetch() {
            super("store", RETENTION.toMillis(), DIFFERENCE.toMillis(), false);
        }

        @Override
        public WindowStore<Bytes, byte[]> get() {
            return new InMemoryWindowStore(name(), retentionPeriod(), windowSize(), retainDuplicates(), metricsScope()) {
                @Override
                public WindowStoreIterator<byte[]> backwardFetch(final Bytes key, final long timeFrom, final long timeTo) {
                    throw new UnsupportedOperationException();
                }
            };
        }
    }
}
