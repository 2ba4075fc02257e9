package onceproof.streams;

import java.time.Duration;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Left-joins a stream with a table; if the table is versioned (KIP-889), with what it held at the time of the record
 * (KIP-914).
 *
 * <p>A record with a value below 0 puts a version of its key, 0 deletes the key, both from the time of the record on;
 * they come out as they are. Any other asks for the version of its own key. Output values are {@code value << 32 |
 * version}; 0 for the value of a version, or where nothing is found.
 */
final class AsOfJoin {

    static final String VERSIONS = "versions";
    private static final String INPUT = "input";

    private AsOfJoin() {}

    static Topology topology(Settings settings, Progress progress) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<Integer, Integer> input = builder.stream(
                settings.text("input.topic"), Consumed.with(Serdes.Integer(), Serdes.Integer()).withName(INPUT));
        KStream<Integer, Integer> changes = input.filter((key, value) -> value <= 0);
        KTable<Integer, Integer> versions = changes.mapValues(value -> value == 0 ? null : (Integer) (-value))
                .toTable(StoreKind.ofTable(settings)
                        .table(VERSIONS, history(settings), Serdes.Integer(), Serdes.Integer()));
        changes.mapValues(value -> Counting.pair(0, -value))
                .merge(input.filter((key, value) -> value > 0).leftJoin(versions, AsOfJoin::join))
                .to(settings.text("output.topic"), Produced.with(Serdes.Integer(), Serdes.Long(), KeyPartitioner.of()));
        return builder.build().addProcessor("progress", () -> new GlobalJoin.Count(progress), INPUT);
    }

    private static Duration history(Settings settings) {
        return Duration.ofMillis(settings.count("retention.ms"));
    }

    private static Long join(int value, Integer version) {
        return Counting.pair(value, version == null ? 0 : version);
    }
}
