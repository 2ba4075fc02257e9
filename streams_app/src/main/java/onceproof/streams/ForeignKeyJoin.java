package onceproof.streams;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/**
 * KAFKA-16407, KAFKA-16434 and KAFKA-18713: joins a table with another one by a foreign key, as an inner or left join;
 * the foreign key may also change from null or to null.
 *
 * <p>A record with a value below 0 belongs to the table {@code right}, any other to the table {@code left}: its foreign
 * key is the key before its value, or null if its value is 0. The output is the changelog of the join: {@code left <<
 * 32 | right} (the right one without its sign, 0 where there is none), or 0 where there is no longer a result. When the
 * {@code last.keys} keys from {@code last.key} on have their results, this is reported as an event {@code joined}:
 * subscriptions and responses go through their own topics, so what was processed of the input says little.
 */
final class ForeignKeyJoin {

    static final String LEFT = "left";
    static final String RIGHT = "right";
    private static final String INPUT = "input";
    private static final String RESULTS = "results";

    private ForeignKeyJoin() {}

    static Topology topology(Settings settings, Progress progress) {
        boolean isLeft = settings.oneOf("join", "inner", "left").equals("left");
        int partitions = settings.count("partitions");
        int lastKey = settings.count("last.key");
        int lastKeys = settings.count("last.keys");
        StoreKind kind = StoreKind.of(settings);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<Integer, Integer> input = builder.stream(
                settings.text("input.topic"), Consumed.with(Serdes.Integer(), Serdes.Integer()).withName(INPUT));
        KTable<Integer, Integer> left = partitioned(LEFT, input.filter((key, value) -> value >= 0), partitions)
                .toTable(kind.materialized(LEFT, Serdes.Integer(), Serdes.Integer()));
        KTable<Integer, Integer> right = partitioned(RIGHT, input.filter((key, value) -> value < 0), partitions)
                .toTable(kind.materialized(RIGHT, Serdes.Integer(), Serdes.Integer()));
        KStream<Integer, Long> results = join(isLeft, left, right)
                .toStream()
                .mapValues(result -> result == null ? 0L : result, Named.as(RESULTS));
        results.to(settings.text("output.topic"), Produced.with(Serdes.Integer(), Serdes.Long(), KeyPartitioner.of()));
        Set<Integer> joined = ConcurrentHashMap.newKeySet(); // the last keys, of all tasks
        return builder.build()
                .addProcessor("progress", () -> new GlobalJoin.Count(progress), INPUT)
                .addProcessor("last", () -> new Last(lastKey, lastKeys, joined, progress, partitions > 1), RESULTS);
    }

    /** A table's records where the join asks for them and answers: by Kafka's partitioner, not by the input's. */
    private static KStream<Integer, Integer> partitioned(
            String table, KStream<Integer, Integer> records, int partitions) {
        if (partitions == 1) {
            return records;
        }
        return records.repartition(Repartitioned.<Integer, Integer>as(table)
                .withKeySerde(Serdes.Integer())
                .withValueSerde(Serdes.Integer())
                .withNumberOfPartitions(partitions));
    }

    private static KTable<Integer, Long> join(
            boolean isLeft, KTable<Integer, Integer> left, KTable<Integer, Integer> right) {
        ValueJoiner<Integer, Integer, Long> pair = (value, other) -> Counting.pair(value, other == null ? 0 : -other);
        return isLeft
                ? left.leftJoin(right, ForeignKeyJoin::foreignKey, pair)
                : left.join(right, ForeignKeyJoin::foreignKey, pair);
    }

    private static Integer foreignKey(Integer value) {
        return value == 0 ? null : value - 1;
    }

    /** Reports when the last keys have their results, and counts, in tasks that the input is not read in. */
    private static final class Last implements Processor<Integer, Long, Void, Void> {

        private final int lastKey;
        private final int lastKeys;
        private final Set<Integer> joined;
        private final Progress progress;
        private final boolean counts;
        private LongAdder processed;

        Last(int lastKey, int lastKeys, Set<Integer> joined, Progress progress, boolean counts) {
            this.lastKey = lastKey;
            this.lastKeys = lastKeys;
            this.joined = joined;
            this.progress = progress;
            this.counts = counts;
        }

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            processed = counts ? progress.counter(context.taskId()) : new LongAdder();
        }

        @Override
        public void process(Record<Integer, Long> result) {
            processed.increment();
            boolean isLast = result.key() >= lastKey && result.key() < lastKey + lastKeys;
            if (isLast && joined.add(result.key()) && joined.size() == lastKeys) {
                progress.tell("joined", Events.fields("keys", lastKeys));
            }
        }
    }
}
