package onceproof.streams;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.Record;

/**
 * KAFKA-16407 and KAFKA-16434: joins a table with another one by a foreign key, also one that comes from null or
 * becomes null.
 *
 * <p>A record with a value below 0 belongs to the table {@code right}, any other to the table {@code left}: its foreign
 * key is the key before its value, or null if its value is 0. The output is the changelog of the join: {@code left <<
 * 32 | right} (without its sign), or 0 where there is no result any more. That the record of the key {@code last.key}
 * has got its result is told as an event {@code joined}: subscriptions and responses go through topics of their own, so
 * that what was processed of the input says little.
 */
final class ForeignKeyJoin {

    static final String LEFT = "left";
    static final String RIGHT = "right";
    private static final String INPUT = "input";
    private static final String RESULTS = "results";

    private ForeignKeyJoin() {}

    static Topology topology(Settings settings, Progress progress) {
        int lastKey = settings.count("last.key");
        StoreKind kind = StoreKind.of(settings);
        StreamsBuilder builder = new StreamsBuilder();
        KStream<Integer, Integer> input = builder.stream(
                settings.text("input.topic"), Consumed.with(Serdes.Integer(), Serdes.Integer()).withName(INPUT));
        KTable<Integer, Integer> left = input.filter((key, value) -> value >= 0)
                .toTable(kind.materialized(LEFT, Serdes.Integer(), Serdes.Integer()));
        KTable<Integer, Integer> right = input.filter((key, value) -> value < 0)
                .toTable(kind.materialized(RIGHT, Serdes.Integer(), Serdes.Integer()));
        KStream<Integer, Long> results = left.join(
                        right, value -> value == 0 ? null : value - 1, (value, other) -> Counting.pair(value, -other))
                .toStream()
                .mapValues(result -> result == null ? 0L : result, Named.as(RESULTS));
        results.to(settings.text("output.topic"), Produced.with(Serdes.Integer(), Serdes.Long(), KeyPartitioner.of()));
        return builder.build()
                .addProcessor("progress", () -> new GlobalJoin.Count(progress), INPUT)
                .addProcessor("last", () -> new Last(lastKey, progress), RESULTS);
    }

    /** Tells of the result of one key. */
    private static final class Last implements Processor<Integer, Long, Void, Void> {

        private final int lastKey;
        private final Progress progress;

        Last(int lastKey, Progress progress) {
            this.lastKey = lastKey;
            this.progress = progress;
        }

        @Override
        public void process(Record<Integer, Long> result) {
            if (result.key() == lastKey) {
                progress.tell("joined", Events.fields("key", lastKey));
            }
        }
    }
}
