package onceproof.streams;

import java.time.Duration;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.ValueJoiner;

/**
 * KAFKA-14862: joins two streams within a window of time: inner, left, or outer.
 *
 * <p>A record with a value above 0 belongs to the left stream, any other to the right one. Output values are {@code
 * left << 32 | right}, the right one without its sign; 0 where a record found no match.
 */
final class StreamJoin {

    private static final String INPUT = "input";
    static final String STORES = "joined"; // what the names of the stores begin with

    private StreamJoin() {}

    static Topology topology(Settings settings, Progress progress) {
        String kind = settings.oneOf("join", "outer", "left", "inner");
        settings.flag("caching"); // the DSL does not cache the windows of a join
        Duration window = Duration.ofMillis(settings.count("window.ms"));
        JoinWindows symmetric = windows(window, Duration.ofMillis(settings.count("grace.ms")));
        JoinWindows windows = settings.optionalCount("before.ms")
                .map(before -> symmetric.before(Duration.ofMillis(before)))
                .orElse(symmetric);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<Integer, Integer> input = builder.stream(
                settings.text("input.topic"), Consumed.with(Serdes.Integer(), Serdes.Integer()).withName(INPUT));
        KStream<Integer, Integer> left = input.filter((key, value) -> value > 0);
        KStream<Integer, Integer> right = input.filter((key, value) -> value <= 0).mapValues(value -> -value);
        StreamJoined<Integer, Integer, Integer> stores =
                StreamJoined.with(Serdes.Integer(), Serdes.Integer(), Serdes.Integer()).withStoreName(STORES);
        join(kind, left, right, windows, stores)
                .to(settings.text("output.topic"), Produced.with(Serdes.Integer(), Serdes.Long(), KeyPartitioner.of()));
        return builder.build().addProcessor("progress", () -> new GlobalJoin.Count(progress), INPUT);
    }

    /** Since 3.1 (KIP-633), by a new method, an unmatched record is emitted only when its window has closed. */
    static JoinWindows windows(Duration window, Duration grace) {
        try {
            return (JoinWindows) JoinWindows.class
                    .getMethod("ofTimeDifferenceAndGrace", Duration.class, Duration.class)
                    .invoke(null, window, grace);
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException("This release does not wait for a window to close; take 3.1.0 or later.", e);
        }
    }

    private static KStream<Integer, Long> join(
            String kind,
            KStream<Integer, Integer> left,
            KStream<Integer, Integer> right,
            JoinWindows windows,
            StreamJoined<Integer, Integer, Integer> stores) {
        ValueJoiner<Integer, Integer, Long> joiner = StreamJoin::pair;
        switch (kind) {
            case "inner":
                return left.join(right, joiner, windows, stores);
            case "left":
                return left.leftJoin(right, joiner, windows, stores);
            default:
                return left.outerJoin(right, joiner, windows, stores);
        }
    }

    private static long pair(Integer left, Integer right) {
        return Counting.pair(left == null ? 0 : left, right == null ? 0 : right);
    }
}
