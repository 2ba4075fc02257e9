package org.apache.kafka.streams.kstream.internals;

import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.SessionStore;

import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.List;

import static org.junit.jupiter.api.Assertions.assertEquals;

/** The result of a session that has closed is final: no later record may be added to it, whatever the retention. */
public class KStreamSessionWindowAggregateClosedSessionTest {

    private static final Duration GAP = Duration.ofMillis(10);
    private static final Duration GRACE = Duration.ofMillis(5);
    private static final List<String> FINAL = List.of("100 to 100: 1", "108 to 116: 2");

    @Test
    public void shouldNotMergeClosedSessionWithDefaultRetention() {
        assertEquals(FINAL, finals(GAP.plus(GRACE)));
    }

    @Test
    public void shouldNotMergeClosedSessionWithLongerRetention() {
        assertEquals(FINAL, finals(Duration.ofDays(1)));
    }

    /** Sessions that came out, with the number of their records: at 116 that of 100 closes, then a record of 108 comes. */
    private static List<String> finals(final Duration retention) {
        final Materialized<String, Long, SessionStore<Bytes, byte[]>> store =
            Materialized.<String, Long, SessionStore<Bytes, byte[]>>as("store")
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()).withRetention(retention);
        final StreamsBuilder builder = new StreamsBuilder();
        final KTable<Windowed<String>, Long> counts =
            builder.stream("input", Consumed.with(Serdes.String(), Serdes.Integer()))
                .groupByKey(Grouped.with(Serdes.String(), Serdes.Integer()))
                .windowedBy(SessionWindows.ofInactivityGapAndGrace(GAP, GRACE))
                .emitStrategy(EmitStrategy.onWindowClose()).count(store);
        counts.toStream((key, count) -> key.window().start() + " to " + key.window().end() + ": " + count)
            .mapValues(count -> "")
            .to("output", Produced.with(Serdes.String(), Serdes.String()));
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build())) {
            final TestInputTopic<String, Integer> input =
                driver.createInputTopic("input", new StringSerializer(), new IntegerSerializer());
            for (final long time : new long[] {100, 116, 108}) {
                input.pipeInput("k", 1, time);
            }
            input.pipeInput("other", 1, 132);
            return driver.createOutputTopic("output", new StringDeserializer(), new StringDeserializer())
                .readKeyValuesToList().stream().map(result -> result.key).toList();
        }
    }
}
