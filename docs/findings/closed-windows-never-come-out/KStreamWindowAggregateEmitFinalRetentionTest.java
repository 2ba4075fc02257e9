package org.apache.kafka.streams.kstream.internals;

import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

import org.junit.jupiter.api.Test;

import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** A window that has closed must come out however far stream time goes on at once, with the retention that the DSL sets. */
public class KStreamWindowAggregateEmitFinalRetentionTest {

    private static final Duration SIZE = Duration.ofHours(1);
    private static final Duration GRACE = Duration.ofMinutes(5);
    private static final Duration DIFFERENCE = Duration.ofMillis(100);

    @Test
    public void shouldEmitWindowThatClosesWithinTheNextOne() {
        assertEquals(List.of("0: 1"), emitted(0L, 10, 70));
    }

    @Test
    public void shouldEmitWindowIfStreamTimeSkipsTheNextOne() {
        assertEquals(List.of("0: 1", "180: 3"), emitted(0L, 10, 180, 190, 200, 400));
    }

    @Test
    public void shouldEmitAllWindowsThatClosedWithinTheEmitInterval() {
        assertEquals(List.of("0: 1", "60: 1", "120: 1"), emitted(1_000L, 10, 70, 130, 190));
    }

    @Test
    public void shouldEmitAllSlidingWindowsThatClosedWithinTheEmitInterval() {
        assertEquals(slid(Duration.ofDays(1), new AtomicInteger()), slid(DIFFERENCE.multipliedBy(2), new AtomicInteger()));
    }

    @Test
    public void shouldNotFetchWindowsForEachRecord() {
        final AtomicInteger fetches = new AtomicInteger();
        slid(DIFFERENCE.multipliedBy(2), fetches);
        assertTrue(fetches.get() <= 12, fetches + " fetches for 1,000 records in 10 times the difference");
    }

    /** Sliding windows that came out, by their start, after 1,000 records in a second of stream time, and at once. */
    private static List<Long> slid(final Duration retention, final AtomicInteger fetches) {
        final StreamsBuilder builder = new StreamsBuilder();
        builder.stream("input", Consumed.with(Serdes.String(), Serdes.Integer()))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.Integer()))
            .windowedBy(SlidingWindows.ofTimeDifferenceWithNoGrace(DIFFERENCE))
            .emitStrategy(EmitStrategy.onWindowClose())
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("store")
                .withStoreType(counting(fetches)).withRetention(retention).withCachingDisabled()
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream((key, count) -> key.window().start())
            .mapValues(count -> "")
            .to("output", Produced.with(Serdes.Long(), Serdes.String()));
        final Properties config = new Properties();
        config.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, 1_000L);
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), config)) {
            final TestInputTopic<String, Integer> input =
                driver.createInputTopic("input", new StringSerializer(), new IntegerSerializer());
            for (int time = 1_000; time < 2_000; time++) {
                input.pipeInput("k", 1, time);
            }
            driver.advanceWallClockTime(Duration.ofMillis(1_000));
            input.pipeInput("k", 1, 2_000);
            return driver.createOutputTopic("output", new LongDeserializer(), new StringDeserializer())
                .readKeyValuesToList().stream().map(result -> result.key).sorted().toList();
        }
    }

    /** Window stores that count how often a range of them is fetched. */
    private static DslStoreSuppliers counting(final AtomicInteger fetches) {
        return new BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers() {
            @Override
            public WindowBytesStoreSupplier windowStore(final DslWindowParams params) {
                final WindowBytesStoreSupplier supplier = super.windowStore(params);
                return intercepted(WindowBytesStoreSupplier.class, supplier, "get", store ->
                    intercepted(WindowStore.class, (WindowStore<?, ?>) store, "fetchAll", windows -> {
                        fetches.incrementAndGet();
                        return windows;
                    }));
            }
        };
    }

    /** The same object, but what a method of it returns goes through a function. */
    private static <T> T intercepted(final Class<T> type, final T object, final String method, final UnaryOperator<Object> then) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, called, arguments) -> {
            final Object answer = called.invoke(object, arguments);
            return called.getName().equals(method) ? then.apply(answer) : answer;
        }));
    }

    /** Windows that came out, by their start in minutes and the number of their records, which come at these minutes. */
    private static List<String> emitted(final long emitInterval, final int... minutes) {
        final Properties config = new Properties();
        config.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_WINDOWED_AGGREGATION, emitInterval);
        final StreamsBuilder builder = new StreamsBuilder();
        builder.stream("input", Consumed.with(Serdes.String(), Serdes.Integer()))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.Integer()))
            .windowedBy(TimeWindows.ofSizeAndGrace(SIZE, GRACE))
            .emitStrategy(EmitStrategy.onWindowClose())
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>with(Serdes.String(), Serdes.Long())
                .withCachingDisabled())
            .toStream((key, count) -> key.window().start() / 60_000 + ": " + count)
            .mapValues(count -> "")
            .to("output", Produced.with(Serdes.String(), Serdes.String()));
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), config)) {
            final TestInputTopic<String, Integer> input =
                driver.createInputTopic("input", new StringSerializer(), new IntegerSerializer());
            for (final int minute : minutes) {
                driver.advanceWallClockTime(Duration.ofMillis(400));
                input.pipeInput("k", 1, minute * 60_000L);
            }
            return driver.createOutputTopic("output", new StringDeserializer(), new StringDeserializer())
                .readKeyValuesToList().stream().map(result -> result.key).toList();
        }
    }
}
