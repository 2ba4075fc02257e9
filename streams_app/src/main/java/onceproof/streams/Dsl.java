package onceproof.streams;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Initializer;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * A topology of the DSL that is written down as a program: a line is {@code name = operation operand...}, an operand
 * the name of an earlier line, of a topic, or what a store or a repartition topic is to be called. The last line may
 * be {@code to operand topic}. All keys and values are texts.
 *
 * <p>It uses no more than the interfaces of 3.0.0 that later releases kept.
 */
final class Dsl {

    private static final Serde<String> TEXT = Serdes.String();
    private static final Duration SIZE = Duration.ofSeconds(1);
    private static final Duration GRACE = Duration.ofMillis(500);
    private static final Initializer<String> NOTHING = () -> "";
    private static final Aggregator<String, String, String> APPENDED = (key, value, all) -> all + value;
    private static final ValueJoiner<String, String, String> PAIR = (one, other) -> one + "/" + other;

    private final StreamsBuilder builder;
    private final Map<String, Object> made = new HashMap<>(); // streams and tables, by name

    private Dsl(StreamsBuilder builder) {
        this.builder = builder;
    }

    /** The program of the setting {@code program}, built with the configuration, so that it may be optimized. */
    static Topology topology(Settings settings, Properties config) {
        Dsl dsl = new Dsl(builder(config));
        settings.text("program").lines().forEach(dsl::line);
        return dsl.builder.build(config);
    }

    /** Since 3.2 (KIP-591) a builder that knows the configuration takes the kind of its stores from it. */
    static StreamsBuilder builder(Properties config) {
        Class<?> type;
        try {
            type = Class.forName("org.apache.kafka.streams.TopologyConfig");
        } catch (ClassNotFoundException e) {
            return new StreamsBuilder();
        }
        try {
            Object known = type.getConstructor(StreamsConfig.class).newInstance(new StreamsConfig(config));
            return StreamsBuilder.class.getConstructor(type).newInstance(known);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("This release has no builder that knows its configuration.", e);
        }
    }

    private void line(String line) {
        String[] words = line.trim().split("\\s+");
        if (words[0].equals("to")) {
            to(made(words[1]), words[2]);
            return;
        }
        made.put(words[0], operation(words[2], List.of(words).subList(3, words.length)));
    }

    private Object operation(String name, List<String> operands) {
        String first = operands.get(0);
        String second = operands.size() > 1 ? operands.get(1) : null;
        switch (name) {
            case "stream":
                return builder.stream(first, Consumed.with(TEXT, TEXT));
            case "table":
                return builder.table(first, Consumed.with(TEXT, TEXT));
            case "globalTable":
                return builder.globalTable(first, Consumed.with(TEXT, TEXT));
            case "merge":
                return stream(first).merge(stream(second));
            case "filter":
                return stream(first).filter((key, value) -> value != null);
            case "selectKey":
                return stream(first).selectKey((key, value) -> value == null ? key : value.substring(0, 1));
            case "map":
                return stream(first).map((key, value) -> KeyValue.pair(value.substring(0, 1), value));
            case "mapValues":
                return stream(first).mapValues(value -> value + "'");
            case "flatMapValues":
                return stream(first).flatMapValues(value -> List.of(value, value));
            case "repartition":
                return stream(first).repartition(repartitioned(second));
            case "toTable":
                return stream(first).toTable(kept(second));
            case "toStream":
                return table(first).toStream();
            case "filterTable":
                return table(first).filter((key, value) -> !value.endsWith("0"), kept(second));
            case "mapTable":
                return table(first).mapValues(value -> value + "'", kept(second));
            case "groupTable":
                return table(first)
                        .groupBy((key, value) -> KeyValue.pair(value.substring(0, 1), value), Grouped.with(TEXT, TEXT))
                        .reduce((all, value) -> all + "+" + value, (all, value) -> all + "-" + value, kept(second));
            case "count":
                return grouped(first, null).count();
            case "countGrouped": // by a group that has a name
                return grouped(first, second).count();
            case "reduce":
                return grouped(first, null).reduce((all, value) -> all + value, kept(second));
            case "aggregate":
                return grouped(first, null).aggregate(NOTHING, APPENDED, kept(second));
            case "cogroup":
                return grouped(first, null).cogroup(APPENDED).cogroup(grouped(second, null), APPENDED)
                        .aggregate(NOTHING, kept(null));
            case "tumbling":
                return windowed(first, TimeWindows.ofSizeAndGrace(SIZE, GRACE)).count();
            case "hopping":
                return windowed(first, TimeWindows.ofSizeAndGrace(SIZE, GRACE).advanceBy(GRACE)).count();
            case "sliding":
                return grouped(first, null).windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(SIZE, GRACE)).count();
            case "session":
                return grouped(first, null).windowedBy(SessionWindows.ofInactivityGapAndGrace(SIZE, GRACE)).count();
            case "suppressed":
                return windowed(first, TimeWindows.ofSizeAndGrace(SIZE, GRACE)).count()
                        .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()));
            case "join":
            case "leftJoin":
            case "outerJoin":
                return joined(name, made(first), made(second));
            case "foreignKeyJoin":
                return table(first).join(table(second), value -> value.substring(0, 1), PAIR, kept(null));
            default:
                throw new IllegalArgumentException("There is no operation " + name + " in this language.");
        }
    }

    private Object joined(String kind, Object one, Object other) {
        if (one instanceof KTable) {
            KTable<String, String> left = cast(one);
            KTable<String, String> right = cast(other);
            return kind.equals("join")
                    ? left.join(right, PAIR)
                    : kind.equals("leftJoin") ? left.leftJoin(right, PAIR) : left.outerJoin(right, PAIR);
        }
        KStream<String, String> left = cast(one);
        if (other instanceof GlobalKTable) {
            GlobalKTable<String, String> right = cast(other);
            return kind.equals("join")
                    ? left.join(right, (key, value) -> key, PAIR)
                    : left.leftJoin(right, (key, value) -> key, PAIR);
        }
        if (other instanceof KTable) {
            KTable<String, String> right = cast(other);
            Joined<String, String, String> serdes = Joined.with(TEXT, TEXT, TEXT);
            return kind.equals("join") ? left.join(right, PAIR, serdes) : left.leftJoin(right, PAIR, serdes);
        }
        KStream<String, String> right = cast(other);
        JoinWindows windows = StreamJoin.windows(SIZE, GRACE);
        StreamJoined<String, String, String> serdes = StreamJoined.with(TEXT, TEXT, TEXT);
        return kind.equals("join")
                ? left.join(right, PAIR, windows, serdes)
                : kind.equals("leftJoin")
                        ? left.leftJoin(right, PAIR, windows, serdes)
                        : left.outerJoin(right, PAIR, windows, serdes);
    }

    private void to(Object from, String topic) {
        KStream<Object, Object> stream = cast(from instanceof KTable ? ((KTable<?, ?>) from).toStream() : from);
        stream.map((key, value) -> KeyValue.pair(text(key), value == null ? null : String.valueOf(value)))
                .to(topic, Produced.with(TEXT, TEXT));
    }

    static String text(Object key) {
        if (!(key instanceof Windowed)) {
            return String.valueOf(key);
        }
        Windowed<?> windowed = (Windowed<?>) key;
        return windowed.key() + "@" + windowed.window().start() + "-" + windowed.window().end();
    }

    private KGroupedStream<String, String> grouped(String name, String called) {
        Grouped<String, String> serdes = Grouped.with(TEXT, TEXT);
        return stream(name).groupByKey(called == null ? serdes : serdes.withName(called));
    }

    private TimeWindowedKStream<String, String> windowed(String name, TimeWindows windows) {
        return grouped(name, null).windowedBy(windows);
    }

    private static Repartitioned<String, String> repartitioned(String called) {
        Repartitioned<String, String> serdes = Repartitioned.with(TEXT, TEXT);
        return called == null ? serdes : serdes.withName(called);
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept(String called) {
        return called == null
                ? Materialized.with(TEXT, TEXT)
                : Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(called)
                        .withKeySerde(TEXT)
                        .withValueSerde(TEXT);
    }

    private Object made(String name) {
        Object found = made.get(name);
        if (found == null) {
            throw new IllegalArgumentException("Nothing before is called " + name + ".");
        }
        return found;
    }

    private KStream<String, String> stream(String name) {
        return cast(made(name));
    }

    private KTable<String, String> table(String name) {
        return cast(made(name));
    }

    @SuppressWarnings("unchecked")
    private static <T> T cast(Object found) {
        return (T) found;
    }
}
