package onceproof.streams;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/**
 * KAFKA-16407, KAFKA-16434 and KAFKA-18713: joins a table with another one by a foreign key, as an inner or left join;
 * the foreign key may also change from null or to null.
 *
 * <p>A record with a value below 0 belongs to the table {@code right}, any other to the table {@code left}. The value
 * of a left row is {@code attribute * 1,000,000 + asked}: its foreign key is the key before {@code asked}, or null if
 * that is 0. The value 999,999 deletes the row. The output is the changelog of the join: {@code left << 32 | right} (the
 * right one without its sign, 0 where there is none), or 0 where there is no longer a result. When the {@code
 * last.keys} keys from {@code last.key} on have their results, this is reported as an event {@code joined}:
 * subscriptions and responses go through their own topics, so what was processed of the input says little. The event
 * also says how many answers were {@code dropped}, because the row had changed meanwhile.
 */
final class ForeignKeyJoin {

    static final String LEFT = "left";
    static final String RIGHT = "right";
    static final int ATTRIBUTE = 1_000_000;
    static final int DELETED = ATTRIBUTE - 1;
    private static final String INPUT = "input";
    private static final String RESULTS = "results";
    private static final String JOINED = "joined"; // its store of subscriptions is called `joined-subscription-store`
    private static final String ANSWERS = JOINED + "-subscription-response";

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
                .mapValues(value -> value == DELETED ? null : value)
                .toTable(kind.materialized(LEFT, Serdes.Integer(), Serdes.Integer()));
        KTable<Integer, Integer> right = partitioned(RIGHT, input.filter((key, value) -> value < 0), partitions)
                .toTable(kind.materialized(RIGHT, Serdes.Integer(), Serdes.Integer()));
        KStream<Integer, Long> results = join(isLeft, left, right)
                .toStream()
                .mapValues(result -> result == null ? 0L : result, Named.as(RESULTS));
        results.to(settings.text("output.topic"), Produced.with(Serdes.Integer(), Serdes.Long(), KeyPartitioner.of()));
        Set<Integer> joined = ConcurrentHashMap.newKeySet(); // the last keys, of all tasks
        Answers answers = new Answers();
        Topology topology = builder.build();
        return topology
                .addProcessor("progress", () -> new GlobalJoin.Count(progress), INPUT)
                .addProcessor(
                        "last", () -> new Last(lastKey, lastKeys, joined, answers, progress, partitions > 1), RESULTS)
                .addProcessor("answered", () -> new Answered(answers), sourceOfAnswers(topology));
    }

    /** The node that reads the topic through which the right table's side answers the left one's. */
    private static String sourceOfAnswers(Topology topology) {
        return topology.describe().subtopologies().stream()
                .flatMap(part -> part.nodes().stream())
                .filter(TopologyDescription.Source.class::isInstance)
                .map(TopologyDescription.Source.class::cast)
                .filter(source -> source.topicSet().stream().anyMatch(topic -> topic.contains(ANSWERS)))
                .map(TopologyDescription.Node::name)
                .findFirst()
                .orElseThrow(() -> new IllegalStateException("The topology has no topic " + ANSWERS + "."));
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

    @SuppressWarnings("unchecked")
    private static KTable<Integer, Long> join(
            boolean isLeft, KTable<Integer, Integer> left, KTable<Integer, Integer> right) {
        ValueJoiner<Integer, Integer, Long> pair = (value, other) -> Counting.pair(value, other == null ? 0 : -other);
        Function<Integer, Integer> asked = ForeignKeyJoin::foreignKey;
        Class<?> naming = naming();
        return (KTable<Integer, Long>) Newer.call(
                left, KTable.class, isLeft ? "leftJoin" : "join",
                List.of(KTable.class, Function.class, ValueJoiner.class, naming), right, asked, pair,
                Newer.call(null, naming, "as", List.of(String.class), JOINED));
    }

    /** What names a join by a foreign key: since 3.1 a class of its own, and the other one no longer from 4.0 on. */
    private static Class<?> naming() {
        try {
            return Class.forName("org.apache.kafka.streams.kstream.TableJoined");
        } catch (ClassNotFoundException e) {
            return Named.class;
        }
    }

    private static Integer foreignKey(Integer value) {
        int asked = value % ATTRIBUTE;
        return asked == 0 ? null : asked - 1;
    }

    /** Which answers gave a result: one that gives none was dropped, as its row had changed since it asked. */
    private static final class Answers {

        private final Set<TaskId> resolved = ConcurrentHashMap.newKeySet();
        private final LongAdder dropped = new LongAdder();
    }

    /** Gets each answer after the join has: Kafka Streams passes a record to the children of a node in their order. */
    private static final class Answered implements Processor<Object, Object, Void, Void> {

        private final Answers answers;
        private TaskId task;

        Answered(Answers answers) {
            this.answers = answers;
        }

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            task = context.taskId();
        }

        @Override
        public void process(Record<Object, Object> answer) {
            if (!answers.resolved.remove(task)) {
                answers.dropped.increment();
            }
        }
    }

    /** Reports when the last keys have their results, and counts, in tasks that the input is not read in. */
    private static final class Last implements Processor<Integer, Long, Void, Void> {

        private final int lastKey;
        private final int lastKeys;
        private final Set<Integer> joined;
        private final Answers answers;
        private final Progress progress;
        private final boolean counts;
        private TaskId task;
        private LongAdder processed;

        Last(int lastKey, int lastKeys, Set<Integer> joined, Answers answers, Progress progress, boolean counts) {
            this.lastKey = lastKey;
            this.lastKeys = lastKeys;
            this.joined = joined;
            this.answers = answers;
            this.progress = progress;
            this.counts = counts;
        }

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            task = context.taskId();
            processed = counts ? progress.counter(task) : new LongAdder();
        }

        @Override
        public void process(Record<Integer, Long> result) {
            processed.increment();
            answers.resolved.add(task);
            boolean isLast = result.key() >= lastKey && result.key() < lastKey + lastKeys;
            if (isLast && joined.add(result.key()) && joined.size() == lastKeys) {
                progress.tell("joined", Events.fields("keys", lastKeys, "dropped", answers.dropped.sum()));
            }
        }
    }
}
