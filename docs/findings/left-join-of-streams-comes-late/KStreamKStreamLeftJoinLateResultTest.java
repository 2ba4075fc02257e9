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

import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
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

    /** Results of records of the left side without a match, by the times of the record and of that which had it come out. */
    private static List<String> emitted(final int... times) {
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
                StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()))
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
