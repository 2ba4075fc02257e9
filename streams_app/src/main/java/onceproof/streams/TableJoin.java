package onceproof.streams;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.ValueJoiner;

/**
 * Joins two tables by their key (inner, left or outer), and sums what the join gives in two stages, each behind a
 * repartition topic: by the remainder of the key by 5,000, and of that by 10. So the topology has three sub-topologies.
 * Only the last three digits of a sum are passed on, so that a wrong one shows even where all that is added to it is
 * right.
 *
 * <p>A record with a value above 0 belongs to the table {@code left}, one below 0 to {@code right}; 1 and -1 delete.
 * The output has the changelog of the join, {@code left << 32 | right} (the right one without its sign, 0 for none, so
 * that 0 is no result), and that of the last sums, under the keys from {@code first.total} on. These few are always
 * kept in memory.
 */
final class TableJoin {

    static final String LEFT = "left";
    static final String RIGHT = "right";
    static final String GROUPS = "groups";
    static final String TOTALS = "totals";
    private static final String INPUT = "input";
    private static final String CHANGED_GROUPS = "changed-groups";
    private static final String CHANGED_TOTALS = "changed-totals";
    private static final int OF_GROUPS = 5_000;
    private static final int OF_TOTALS = 10;
    private static final int LAST_DIGITS = 1_000;

    private TableJoin() {}

    static Topology topology(Settings settings, Progress progress) {
        String kindOfJoin = settings.oneOf("join", "inner", "left", "outer");
        int firstTotal = settings.count("first.total");
        String output = settings.text("output.topic");
        StoreKind kind = StoreKind.of(settings);
        Produced<Integer, Long> produced = Produced.with(Serdes.Integer(), Serdes.Long(), KeyPartitioner.of());
        StreamsBuilder builder = new StreamsBuilder();
        KStream<Integer, Integer> input = builder.stream(
                settings.text("input.topic"), Consumed.with(Serdes.Integer(), Serdes.Integer()).withName(INPUT));
        KTable<Integer, Integer> left = input.filter((key, value) -> value > 0)
                .mapValues(TableJoin::put)
                .toTable(kind.materialized(LEFT, Serdes.Integer(), Serdes.Integer()));
        KTable<Integer, Integer> right = input.filter((key, value) -> value < 0)
                .mapValues(value -> put(-value))
                .toTable(kind.materialized(RIGHT, Serdes.Integer(), Serdes.Integer()));
        KTable<Integer, Long> joined = join(kindOfJoin, left, right);
        joined.toStream().mapValues(result -> result == null ? 0L : result).to(output, produced);
        KTable<Integer, Integer> groups = summed(
                joined.groupBy((key, pair) -> KeyValue.pair(key % OF_GROUPS, left(pair) + right(pair)), by(GROUPS)),
                kind, GROUPS);
        KTable<Integer, Integer> totals = summed(
                groups.groupBy((group, sum) -> KeyValue.pair(group % OF_TOTALS, sum % LAST_DIGITS), by(TOTALS)),
                StoreKind.inMemory(), TOTALS);
        groups.toStream(Named.as(CHANGED_GROUPS)); // a node with a name, below which groups are counted
        totals.toStream(Named.as(CHANGED_TOTALS))
                .map((total, sum) -> KeyValue.pair(firstTotal + total, (long) sum))
                .to(output, produced);
        return builder.build()
                .addProcessor("progress", () -> new GlobalJoin.Count(progress), INPUT)
                .addProcessor("progress-groups", () -> new GlobalJoin.Count(progress), CHANGED_GROUPS)
                .addProcessor("progress-totals", () -> new GlobalJoin.Count(progress), CHANGED_TOTALS);
    }

    /** Null deletes. */
    private static Integer put(int value) {
        return value == 1 ? null : value;
    }

    private static KTable<Integer, Long> join(
            String kind, KTable<Integer, Integer> left, KTable<Integer, Integer> right) {
        ValueJoiner<Integer, Integer, Long> pair = (one, other) -> Counting.pair(one == null ? 0 : one, other == null ? 0 : other);
        switch (kind) {
            case "inner":
                return left.join(right, pair);
            case "left":
                return left.leftJoin(right, pair);
            default:
                return left.outerJoin(right, pair);
        }
    }

    private static KTable<Integer, Integer> summed(
            KGroupedTable<Integer, Integer> grouped, StoreKind kind, String store) {
        return grouped.aggregate(
                () -> 0,
                (key, value, sum) -> sum + value,
                (key, value, sum) -> sum - value,
                kind.materialized(store, Serdes.Integer(), Serdes.Integer()));
    }

    private static Grouped<Integer, Integer> by(String name) {
        return Grouped.with(name, Serdes.Integer(), Serdes.Integer());
    }

    private static int left(long pair) {
        return (int) (pair >> Integer.SIZE);
    }

    private static int right(long pair) {
        return (int) pair;
    }
}
