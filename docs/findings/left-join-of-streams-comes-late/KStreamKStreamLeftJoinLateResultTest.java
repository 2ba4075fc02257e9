package org.apache.kafka.streams.kstream.internals;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

import org.junit.jupiter.api.Test;

import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;

import static org.junit.jupiter.api.Assertions.assertEquals;

/** A record of a left join that has no match must come out when stream time has passed the end of its window. */
public class KStreamKStreamLeftJoinLateResultTest {

    private static final long WINDOW = 50;

    @Test
    public void shouldEmitNonJoinedRecordOnceItsWindowHasClosed() {
        assertEquals(List.of("385 by 440", "425 by 480"), emitted(385, 425, 430, 440, 480));
    }

    @Test
    public void shouldEmitNonJoinedRecordsOfSteadyStreamOnceTheirWindowsHaveClosed() {
        final int[] times = IntStream.range(0, 100).map(i -> 10 * i).toArray();
        final List<String> expected = new ArrayList<>();
        for (final int time : times) { // the first one that is later than the end of the window
            if (time + WINDOW + 10 < 1_000) {
                expected.add(time + " by " + (time + WINDOW + 10));
            }
        }
        assertEquals(expected, emitted(times));
    }

    @Test
    public void shouldEmitAllNonJoinedRecordsIfAllWindowsHaveClosed() {
        assertEquals(List.of("0 by 200", "10 by 200"), emitted(0, 10, 200));
    }

    @Test
    public void shouldNotReadRecordsWhoseWindowsAreOpen() {
        final AtomicInteger read = new AtomicInteger();
        final int[] times = IntStream.rangeClosed(0, (int) WINDOW + 1).toArray(); // the last one closes the window of the first one
        emitted(counting(read), times);
        assertEquals(2, read.get(), "the one that comes out, and the first one that stays");
    }

    /** Stores of a join whose iterators over all records count what they give out. */
    private static DslStoreSuppliers counting(final AtomicInteger read) {
        return new BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers() {
            @Override
            public KeyValueBytesStoreSupplier keyValueStore(final DslKeyValueParams params) {
                final KeyValueBytesStoreSupplier supplier = super.keyValueStore(params);
                return intercepted(KeyValueBytesStoreSupplier.class, supplier, "get", store ->
                    intercepted(KeyValueStore.class, (KeyValueStore<?, ?>) store, "all", iterator ->
                        intercepted(KeyValueIterator.class, (KeyValueIterator<?, ?>) iterator, "next", next -> {
                            read.incrementAndGet();
                            return next;
                        })));
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

    /** Results of records of the left side without a match, by the times of the record and of that which had it come out. */
    private static List<String> emitted(final int... times) {
        return emitted(new BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers(), times);
    }

    private static List<String> emitted(final DslStoreSuppliers stores, final int... times) {
        final Properties config = new Properties();
        config.put(StreamsConfig.InternalConfig.EMIT_INTERVAL_MS_KSTREAMS_OUTER_JOIN_SPURIOUS_RESULTS_FIX, 0L);
        final StreamsBuilder builder = new StreamsBuilder();
        final Consumed<String, String> strings = Consumed.with(Serdes.String(), Serdes.String());
        final KStream<String, String> right = builder.stream("right", strings);
        builder.stream("left", strings)
            .leftJoin(
                right,
                (value, other) -> value,
                JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(WINDOW)),
                StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()).withDslStoreSuppliers(stores))
            .to("out", Produced.with(Serdes.String(), Serdes.String()));
        final List<String> emitted = new ArrayList<>();
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), config)) {
            final TestInputTopic<String, String> left =
                driver.createInputTopic("left", new StringSerializer(), new StringSerializer());
            final TestOutputTopic<String, String> out =
                driver.createOutputTopic("out", new StringDeserializer(), new StringDeserializer());
            for (final int time : times) {
                left.pipeInput("k", String.valueOf(time), time);
                out.readValuesToList().forEach(value -> emitted.add(value + " by " + time));
            }
        }
        return emitted;
    }
}
