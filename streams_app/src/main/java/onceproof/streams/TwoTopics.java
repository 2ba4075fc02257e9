package onceproof.streams;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Produced;

/**
 * KIP-695: left-joins each record of one topic with the table that another topic makes, so that each is emitted.
 *
 * <p>Output values are {@code value << 32 | entry}; 0 for the entry where the key has none yet.
 */
final class TwoTopics {

    static final String TABLE = "table";
    private static final String INPUT = "input";

    private TwoTopics() {}

    static Topology topology(Settings settings, Progress progress) {
        StreamsBuilder builder = new StreamsBuilder();
        KTable<Integer, Integer> entries = builder.table(
                settings.text("entries.topic"),
                Consumed.with(Serdes.Integer(), Serdes.Integer()),
                StoreKind.of(settings).materialized(TABLE, Serdes.Integer(), Serdes.Integer()));
        builder.stream(
                        settings.text("input.topic"),
                        Consumed.with(Serdes.Integer(), Serdes.Integer()).withName(INPUT))
                .leftJoin(entries, (value, entry) -> Counting.pair(value, entry == null ? 0 : entry))
                .to(settings.text("output.topic"), Produced.with(Serdes.Integer(), Serdes.Long(), KeyPartitioner.of()));
        return builder.build().addProcessor("progress", () -> new GlobalJoin.Count(progress), INPUT);
    }
}
