package onceproof.streams;

import java.nio.ByteBuffer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Produced;

/**
 * KIP-904: groups a table and sums the values of each group; the output is the changelog of the sums.
 *
 * <p>The group of a key is its remainder by 100, so it stays when the value changes: from 3.5 on such a change goes
 * through the repartition topic as one record, before as two.
 */
final class GroupedTable {

    static final String TABLE = "table";
    static final String SUMS = "sums";
    private static final String INPUT = "input";
    private static final int GROUPS = 100;

    private GroupedTable() {}

    static Topology topology(Settings settings, Progress progress) {
        StoreKind kind = StoreKind.of(settings);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(settings.text("input.topic"), Consumed.with(Serdes.Integer(), Serdes.Integer()).withName(INPUT))
                .toTable(kind.materialized(TABLE, Serdes.Integer(), Serdes.Integer()))
                .groupBy(
                        (key, value) -> KeyValue.pair(key % GROUPS, value),
                        Grouped.with("groups", Serdes.Integer(), leading()))
                .aggregate(
                        () -> 0,
                        (group, value, sum) -> sum + value,
                        (group, value, sum) -> sum - value,
                        kind.materialized(SUMS, Serdes.Integer(), Serdes.Integer()))
                .toStream()
                .to(settings.text("output.topic"), Produced.with(Serdes.Integer(), Serdes.Integer(), KeyPartitioner.of()));
        return builder.build().addProcessor("progress", () -> new GlobalJoin.Count(progress), INPUT);
    }

    /** Integers as many people write such a serde: what follows the first four bytes is not looked at. */
    private static Serde<Integer> leading() {
        return Serdes.serdeFrom(
                new IntegerSerializer(), (topic, data) -> data == null ? null : ByteBuffer.wrap(data).getInt());
    }
}
