package onceproof.streams;

import java.time.Duration;
import java.util.Optional;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Left-joins a stream with a table; if the table is versioned (KIP-889), with what it held at the time of the record
 * (KIP-914).
 *
 * <p>A record with a value below 0 puts a version of its key, 0 deletes the key, both from the time of the record on;
 * they are emitted as they are. Any other asks for the version of its own key. Output values are {@code value << 32 |
 * version}; 0 for the value of a version, or where nothing is found.
 *
 * <p>With a grace period (KIP-923) a record that asks waits in a buffer until the stream's time has advanced by that.
 * Changes are then records of the stream, too, so that they advance its time; nothing is emitted for them after the
 * wait.
 */
final class AsOfJoin {

    static final String VERSIONS = "versions";
    static final String WAITING = "waiting"; // the buffer's store is called `waiting-Buffer`
    private static final String INPUT = "input";

    private AsOfJoin() {}

    static Topology topology(Settings settings, Progress progress) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<Integer, Integer> input = builder.stream(
                settings.text("input.topic"), Consumed.with(Serdes.Integer(), Serdes.Integer()).withName(INPUT));
        KTable<Integer, Integer> versions = input.filter((key, value) -> value <= 0)
                .mapValues(value -> value == 0 ? null : (Integer) (-value))
                .toTable(StoreKind.ofTable(settings)
                        .table(VERSIONS, history(settings), Serdes.Integer(), Serdes.Integer()));
        // Before the changes: what one of them lets out comes before it.
        answers(input, versions, settings.optionalCount("grace.ms"))
                .merge(input.filter((key, value) -> value <= 0).mapValues(value -> Counting.pair(0, -value)))
                .to(settings.text("output.topic"), Produced.with(Serdes.Integer(), Serdes.Long(), KeyPartitioner.of()));
        return builder.build().addProcessor("progress", () -> new GlobalJoin.Count(progress), INPUT);
    }

    private static KStream<Integer, Long> answers(
            KStream<Integer, Integer> input, KTable<Integer, Integer> versions, Optional<Integer> grace) {
        if (grace.isEmpty()) {
            return input.filter((key, value) -> value > 0).leftJoin(versions, AsOfJoin::join);
        }
        return input.leftJoin(versions, AsOfJoin::join, waiting(Duration.ofMillis(grace.get())))
                .filter((key, answer) -> answer >> 32 > 0);
    }

    @SuppressWarnings("unchecked")
    private static Joined<Integer, Integer, Integer> waiting(Duration grace) {
        Joined<Integer, Integer, Integer> joined =
                Joined.with(Serdes.Integer(), Serdes.Integer(), Serdes.Integer(), WAITING);
        try {
            return (Joined<Integer, Integer, Integer>)
                    Joined.class.getMethod("withGracePeriod", Duration.class).invoke(joined, grace);
        } catch (ReflectiveOperationException e) {
            throw new IllegalArgumentException("This release's joins of a stream with a table do not wait; take 3.6.0 or later.", e);
        }
    }

    private static Duration history(Settings settings) {
        return Duration.ofMillis(settings.count("retention.ms"));
    }

    private static Long join(int value, Integer version) {
        return Counting.pair(value, version == null ? 0 : version);
    }
}
