package onceproof.streams;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Groups a table (KIP-904), or a stream (KAFKA-19668), and sums the values of each group; the output is the changelog
 * of the sums.
 *
 * <p>The group of a key is its remainder by 100, so it stays when the value changes: from 3.5 on such a change of a
 * table goes through the repartition topic as one record, before as two.
 *
 * <p>How the table is read ({@code read.as}) is what a later deployment can change; the stores and the repartition topic
 * keep their names. It is made of a stream, or of one with an operator more, so that operators without a name get other
 * numbers; or of a topic, whose changelog is a topic of its own or, optimized, that topic itself.
 *
 * <p>The key of a stream is changed twice: by {@code selectKey} to the next number, then to the group, by
 * {@code selectKey} or by a processor.
 */
final class GroupedTable {

    static final String NAME = "grouped-table";
    static final String TABLE = "table";
    static final String SUMS = "sums";
    private static final String INPUT = "input";
    private static final String ADDED = "added";
    private static final String STREAM = "stream";
    private static final String LONGER_STREAM = "longer-stream";
    private static final String SOURCE = "source";
    private static final String OPTIMIZED_SOURCE = "optimized-source";
    // The DSL calls the source of a table so.
    private static final Map<String, String> COUNTED_BEHIND = Map.of(
            STREAM, INPUT, LONGER_STREAM, ADDED, SOURCE, INPUT + "-source", OPTIMIZED_SOURCE, INPUT + "-source");
    private static final int GROUPS = 100;

    private GroupedTable() {}

    static Topology topology(Settings settings, Properties config, Progress progress) {
        String by = settings.oneOf("grouped.by", "groupBy", "selectKey", "process");
        return by.equals("groupBy")
                ? ofTable(settings, progress)
                : ofStream(settings, config, progress, by.equals("process"));
    }

    private static Topology ofStream(Settings settings, Properties config, Progress progress, boolean processed) {
        StreamsBuilder builder = Dsl.builder(config);
        KStream<Integer, Integer> next = builder.stream(
                        settings.text("input.topic"), Consumed.with(Serdes.Integer(), Serdes.Integer()).withName(INPUT))
                .selectKey((key, value) -> key + 1);
        KStream<Integer, Integer> grouped =
                processed ? Rekey.applied(next, (key, value) -> group(key)) : next.selectKey((key, value) -> group(key));
        grouped.groupByKey(Grouped.with("groups", Serdes.Integer(), Serdes.Integer()))
                .aggregate(
                        () -> 0,
                        (group, value, sum) -> sum + value,
                        StoreKind.of(settings).materialized(SUMS, Serdes.Integer(), Serdes.Integer()))
                .toStream()
                .to(settings.text("output.topic"), Produced.with(Serdes.Integer(), Serdes.Integer(), KeyPartitioner.of()));
        return builder.build(config).addProcessor("progress", () -> new GlobalJoin.Count(progress), INPUT);
    }

    private static Topology ofTable(Settings settings, Progress progress) {
        StoreKind kind = StoreKind.of(settings);
        String readAs = settings.oneOf("read.as", STREAM, LONGER_STREAM, SOURCE, OPTIMIZED_SOURCE);
        StreamsBuilder builder = new StreamsBuilder();
        table(builder, settings.text("input.topic"), readAs, kind.materialized(TABLE, Serdes.Integer(), Serdes.Integer()))
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
        Properties optimization = new Properties();
        if (readAs.equals(OPTIMIZED_SOURCE)) {
            optimization.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        }
        return builder.build(optimization)
                .addProcessor("progress", () -> new GlobalJoin.Count(progress), COUNTED_BEHIND.get(readAs));
    }

    private static KTable<Integer, Integer> table(
            StreamsBuilder builder,
            String topic,
            String readAs,
            Materialized<Integer, Integer, KeyValueStore<Bytes, byte[]>> store) {
        Consumed<Integer, Integer> consumed = Consumed.with(Serdes.Integer(), Serdes.Integer()).withName(INPUT);
        switch (readAs) {
            case STREAM:
                return builder.stream(topic, consumed).toTable(store);
            case LONGER_STREAM:
                return builder.stream(topic, consumed)
                        .filter((key, value) -> true, Named.as(ADDED))
                        .toTable(store);
            default:
                return builder.table(topic, consumed, store);
        }
    }

    private static int group(Integer next) {
        return (next - 1) % GROUPS;
    }

    /** Integers as many people write such a serde: what follows the first four bytes is not looked at. */
    private static Serde<Integer> leading() {
        return Serdes.serdeFrom(
                new IntegerSerializer(), (topic, data) -> data == null ? null : ByteBuffer.wrap(data).getInt());
    }
}
