package onceproof.streams;

import java.nio.ByteBuffer;
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
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Groups a table (KIP-904), or a stream (KAFKA-19668), and sums the values of each group; the output is the changelog
 * of the sums.
 *
 * <p>The group of a key is its remainder by 100, so it stays when the value changes: from 3.5 on such a change of a
 * table goes through the repartition topic as one record, before as two. Optimized, the input is the changelog of the
 * table.
 *
 * <p>The key of a stream is changed twice: by {@code selectKey} to the next number, then to the group, by
 * {@code selectKey} or by a processor.
 */
final class GroupedTable {

    static final String NAME = "grouped-table";
    static final String TABLE = "table";
    static final String SUMS = "sums";
    private static final String INPUT = "input";
    private static final String SOURCE = "input-source"; // of a table the DSL calls it so
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
        boolean optimized = settings.flag("optimized");
        StreamsBuilder builder = new StreamsBuilder();
        table(builder, settings.text("input.topic"), optimized, kind.materialized(TABLE, Serdes.Integer(), Serdes.Integer()))
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
        if (optimized) {
            optimization.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.OPTIMIZE);
        }
        return builder.build(optimization).addProcessor("progress", () -> new GlobalJoin.Count(progress), optimized ? SOURCE : INPUT);
    }

    /** The input as a table; optimized, the input itself is its changelog. */
    private static KTable<Integer, Integer> table(
            StreamsBuilder builder,
            String topic,
            boolean optimized,
            Materialized<Integer, Integer, KeyValueStore<Bytes, byte[]>> store) {
        Consumed<Integer, Integer> consumed = Consumed.with(Serdes.Integer(), Serdes.Integer()).withName(INPUT);
        return optimized ? builder.table(topic, consumed, store) : builder.stream(topic, consumed).toTable(store);
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
