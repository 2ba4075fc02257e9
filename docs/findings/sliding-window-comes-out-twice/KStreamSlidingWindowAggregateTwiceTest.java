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
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.Windowed;
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
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Function;
import java.util.stream.Collectors;

import static org.junit.jupiter.api.Assertions.assertEquals;

/**
 * A sliding window that begins just after a record and ends with the next one is the right window of the first and the
 * left window of the second. It is one window, so the second record updates it once.
 */
public class KStreamSlidingWindowAggregateTwiceTest {

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
    /** The window from 101 to 111 is that of two records. */
    private static final long[] TIMES = {95, 100, 111};
    private static final List<String> UPDATES = List.of("85 to 95: 1", "96 to 106: 1", "90 to 100: 2", "101 to 111: 1");
    private static final Map<String, Long> COUNTS = Map.of("85 to 95", 1L, "96 to 106", 1L, "90 to 100", 2L, "101 to 111", 1L);
    private static final Map<String, Long> ONE_EACH = Map.of("85 to 95", 1L, "96 to 106", 1L, "90 to 100", 1L, "101 to 111", 1L);
    private static final long[] UNTIL_ALL_HAVE_CLOSED = {95, 100, 111, 1000};
    private static final List<String> FINAL = List.of("85 to 95: 1", "90 to 100: 2", "96 to 106: 1", "101 to 111: 1");

    private final StreamsBuilder builder = new StreamsBuilder();
    private final Properties config = new Properties();

    @ParameterizedTest
    @ValueSource(strings = {"RocksDB", "in memory", "in memory, without a reverse fetch"})
    public void shouldForwardWindowOfTwoRecordsOnce(final String store) {
        toOutput(windowed().count(in(store)));
        assertEquals(UPDATES, updates(TIMES));
    }

    @Test
    public void shouldForwardWindowOfTwoRecordsOnceIfTheSecondIsOutOfOrder() {
        toOutput(windowed().count(UNCACHED));
        assertEquals(
            List.of("85 to 95: 1", "96 to 106: 1", "90 to 100: 2", "105 to 115: 1", "105 to 115: 2", "101 to 111: 1", "112 to 122: 1"),
            updates(95, 100, 115, 111)
        );
    }

    @Test
    public void shouldForwardWindowOfTwoRecordsOnceIfTheFirstIsEarly() {
        toOutput(windowed().count(UNCACHED));
        assertEquals(List.of("0 to 10: 1", "6 to 16: 1"), updates(5, 16));
    }

    @Test
    public void shouldForwardWindowOfTwoRecordsOnceWithCacheOfNoBytes() {
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        toOutput(windowed().count(CACHED));
        assertEquals(UPDATES, updates(TIMES));
    }

    @Test
    public void shouldSumCountOfWindowOfTwoRecordsOnce() {
        toOutput(byWindow(windowed().count(UNCACHED)).reduce(Long::sum, (sum, count) -> sum - count));
        assertEquals(COUNTS, lastOfEach(TIMES));
    }

    @Test
    public void shouldAggregateCountOfWindowOfTwoRecordsOnce() {
        toOutput(byWindow(windowed().count(UNCACHED)).aggregate(
            () -> 0L,
            (window, count, sum) -> sum + count,
            (window, count, sum) -> sum - count,
            Materialized.with(Serdes.String(), Serdes.Long())
        ));
        assertEquals(COUNTS, lastOfEach(TIMES));
    }

    @Test
    public void shouldCountReducedWindowOfTwoRecordsOnce() {
        toOutput(byWindow(windowed().reduce(Long::sum, UNCACHED)).count());
        assertEquals(ONE_EACH, lastOfEach(TIMES));
    }

    @Test
    public void shouldCountUpdatesOfWindowOfTwoRecordsOnce() {
        toOutput(windowed().count(UNCACHED).toStream((window, count) -> name(window)).groupByKey(GROUPED).count());
        assertEquals(ONE_EACH, lastOfEach(TIMES));
    }

    @Test
    public void shouldLogWindowOfTwoRecordsOnceIfItIsEmittedOnClose() {
        toOutput(windowed().emitStrategy(EmitStrategy.onWindowClose()).count(UNCACHED));
        assertEquals(List.of(1L, 1L, 2L, 1L), output("-changelog", TestOutputTopic::readValuesToList, TIMES));
    }

    @Test
    public void shouldEmitWindowOfTwoRecordsOnceOnClose() {
        toOutput(windowed().emitStrategy(EmitStrategy.onWindowClose()).count(UNCACHED));
        assertEquals(FINAL, updates(UNTIL_ALL_HAVE_CLOSED));
    }

    @Test
    public void shouldForwardSuppressedWindowOfTwoRecordsOnce() {
        toOutput(suppressed(windowed().count(UNCACHED)));
        assertEquals(FINAL, updates(UNTIL_ALL_HAVE_CLOSED));
    }

    @Test
    public void shouldSumSuppressedCountOfWindowOfTwoRecordsOnce() {
        toOutput(byWindow(suppressed(windowed().count(UNCACHED))).reduce(Long::sum, (sum, count) -> sum - count));
        assertEquals(COUNTS, lastOfEach(UNTIL_ALL_HAVE_CLOSED));
    }

    @Test
    public void shouldForwardWindowOfTwoRecordsOnceWithCache() {
        toOutput(windowed().count(CACHED));
        assertEquals(sorted(UPDATES), sorted(updates(TIMES)));
    }

    @Test
    public void shouldSumCountOfWindowOfTwoRecordsOnceWithCache() {
        toOutput(byWindow(windowed().count(CACHED)).reduce(Long::sum, (sum, count) -> sum - count));
        assertEquals(COUNTS, lastOfEach(TIMES));
    }

    @Test
    public void shouldCountCountedWindowOfTwoRecordsOnce() {
        toOutput(byWindow(windowed().count(UNCACHED)).count());
        assertEquals(ONE_EACH, lastOfEach(TIMES));
    }

    @Test
    public void shouldForwardWindowOfTwoRecordsOnceIfNoneIsBeforeThem() {
        toOutput(windowed().count(UNCACHED));
        assertEquals(List.of("90 to 100: 1", "101 to 111: 1"), updates(100, 111));
    }

    @Test
    public void shouldForwardEachWindowOnceWithShorterGap() {
        toOutput(windowed().count(UNCACHED));
        assertEquals(
            List.of("85 to 95: 1", "96 to 106: 1", "90 to 100: 2", "101 to 111: 1", "100 to 110: 2"),
            updates(95, 100, 110)
        );
    }

    @Test
    public void shouldForwardEachWindowOnceWithLongerGap() {
        toOutput(windowed().count(UNCACHED));
        assertEquals(List.of("85 to 95: 1", "96 to 106: 1", "90 to 100: 2", "102 to 112: 1"), updates(95, 100, 112));
    }

    @Test
    public void shouldForwardEachWindowOnceIfAllRecordsAreEarly() {
        toOutput(windowed().count(UNCACHED));
        assertEquals(List.of("0 to 10: 1", "1 to 11: 1", "0 to 10: 2"), updates(0, 9));
    }

    private TimeWindowedKStream<String, Long> windowed() {
        return builder.stream("input", Consumed.with(Serdes.String(), Serdes.Long()))
            .groupByKey(GROUPED)
            .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(DIFFERENCE, GRACE));
    }

    private static KTable<Windowed<String>, Long> suppressed(final KTable<Windowed<String>, Long> table) {
        return table.suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()));
    }

    /** A group for each window, so that a group holds one value. */
    private static KGroupedTable<String, Long> byWindow(final KTable<Windowed<String>, Long> table) {
        return table.groupBy((window, value) -> KeyValue.pair(name(window), value), GROUPED);
    }

    private static String name(final Windowed<String> window) {
        return window.window().start() + " to " + window.window().end();
    }

    private static void toOutput(final KTable<?, Long> table) {
        table.toStream((key, value) -> key instanceof Windowed ? name(new Windowed<>("", ((Windowed<?>) key).window())) : key.toString())
            .to("output", Produced.with(Serdes.String(), Serdes.Long()));
    }

    private static List<String> sorted(final List<String> updates) {
        return updates.stream().sorted().collect(Collectors.toList());
    }

    private List<String> updates(final long... times) {
        return output("output", output -> output.readKeyValuesToList().stream()
            .map(update -> update.key + ": " + update.value).collect(Collectors.toList()), times);
    }

    private Map<String, Long> lastOfEach(final long... times) {
        return output("output", TestOutputTopic::readKeyValuesToMap, times);
    }

    /** What the topic with that ending has after records of one key. */
    private <T> T output(final String ending, final Function<TestOutputTopic<String, Long>, T> read, final long... times) {
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), config)) {
            final TestInputTopic<String, Long> input =
                driver.createInputTopic("input", new StringSerializer(), new LongSerializer());
            for (final long time : times) {
                input.pipeInput("k", 1L, time);
            }
            final String topic = driver.producedTopicNames().stream().filter(name -> name.endsWith(ending)).findFirst().orElseThrow();
            return read.apply(driver.createOutputTopic(topic, new StringDeserializer(), new LongDeserializer()));
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
