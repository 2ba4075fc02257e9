package onceproof.streams;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/**
 * A topology that a search has drawn: an array of steps, each {@code {as, do, of, ...}}. A step makes the stream or
 * table {@code as} by the operation {@code do} out of those, or the topic, that {@code of} names; further fields are
 * options of the operation. A stream or table that no step reads is written to a topic of its name. All values are
 * texts.
 *
 * <p>{@code onceproof.campaigns.fuzz.grammar} draws them, {@code relational} says what they are, {@code printing}
 * prints them as Java: the four have the same operations. It uses no more than the interfaces of 3.0.0 that later
 * releases kept.
 */
final class Drawn {

    private static final Serde<String> TEXT = Serdes.String();
    private static final Duration HISTORY = Duration.ofHours(1); // longer than any case
    private static final ValueJoiner<String, String, String> PAIR = (one, other) -> one + "/" + (other == null ? "-" : other);
    private static final ValueJoiner<String, String, String> OUTER = (one, other) -> (one == null ? "-" : one) + "/"
            + (other == null ? "-" : other);

    private final StreamsBuilder builder;
    private final Map<String, Object> made = new HashMap<>(); // streams and tables, by name
    private JsonNode step;

    private Drawn(StreamsBuilder builder) {
        this.builder = builder;
    }

    /** The topology, built with the configuration, so that it may be optimized. */
    static Topology topology(JsonNode steps, Properties config) {
        Drawn drawn = new Drawn(Dsl.builder(config));
        Map<String, Object> leaves = new LinkedHashMap<>();
        for (JsonNode step : steps) {
            drawn.step = step;
            Object result = drawn.operation();
            drawn.made.put(drawn.text("as"), result);
            step.get("of").forEach(operand -> leaves.remove(operand.textValue()));
            leaves.put(drawn.text("as"), result);
        }
        leaves.forEach((name, leaf) -> {
            if (!(leaf instanceof GlobalKTable)) {
                to(leaf, name);
            }
        });
        return drawn.builder.build(config);
    }

    private Object operation() {
        switch (text("do")) {
            case "stream":
                return builder.stream(operand(0), Consumed.with(TEXT, TEXT));
            case "table":
                return builder.table(operand(0), Consumed.with(TEXT, TEXT), kept());
            case "burst":
                return builder.stream(operand(0), Consumed.with(TEXT, TEXT)).flatMapValues(Drawn::parts).toTable(kept());
            case "globalTable":
                return builder.globalTable(operand(0), Consumed.with(TEXT, TEXT));
            case "filter":
                return stream(0).filter((key, value) -> isOdd(value));
            case "mapValues":
                return stream(0).mapValues(Drawn::mapped);
            case "selectKey":
                return stream(0).selectKey(Drawn::selected);
            case "rekey":
                return Rekey.applied(stream(0), Drawn::rekeyed);
            case "merge":
                return stream(0).merge(stream(1));
            case "repartition":
                return stream(0).repartition(Repartitioned.with(TEXT, TEXT));
            case "toTable":
                return stream(0).toTable(kept());
            case "count":
                return grouped().count(this.<Long>keptAs(Serdes.Long())).mapValues(String::valueOf);
            case "latest":
                return grouped().reduce((all, value) -> value, kept());
            case "sum":
                return grouped().aggregate(() -> 0L, (key, value, sum) -> sum + weight(value), this.<Long>keptAs(Serdes.Long()))
                        .mapValues(String::valueOf);
            case "windows":
                return windows();
            case "sessions":
                return onClose(
                                grouped().windowedBy(SessionWindows.ofInactivityGapAndGrace(millis("size"), millis("grace"))),
                                SessionWindowedKStream.class)
                        .count(sessions())
                        .mapValues(String::valueOf);
            case "slides":
                return onClose(
                                grouped().windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(millis("size"), millis("grace"))),
                                TimeWindowedKStream.class)
                        .count(windowed())
                        .mapValues(String::valueOf);
            case "cogroup":
                return grouped(0, Grouped.with(text("as") + "-one", TEXT, TEXT))
                        .<Long>cogroup((key, value, sum) -> sum + weight(value))
                        .cogroup(grouped(1, Grouped.with(text("as") + "-other", TEXT, TEXT)), (key, value, sum) -> sum + 2 * weight(value))
                        .aggregate(() -> 0L, this.<Long>keptAs(Serdes.Long()))
                        .mapValues(String::valueOf);
            case "remember":
                return Remember.applied(stream(0), builder, remembered(), text("clock"));
            case "suppress":
                return table(0).suppress(Suppressed.untilTimeLimit(millis("size"), BufferConfig.unbounded()));
            case "lookup":
                return is("left")
                        ? stream(0).leftJoin(table(1), PAIR, Joined.with(TEXT, TEXT, TEXT))
                        : stream(0).join(table(1), PAIR, Joined.with(TEXT, TEXT, TEXT));
            case "globalLookup":
                return is("left")
                        ? stream(0).leftJoin(global(1), (key, value) -> head(value), PAIR)
                        : stream(0).join(global(1), (key, value) -> head(value), PAIR);
            case "streamJoin":
                return streamJoin();
            case "filterTable":
                return isKept() ? table(0).filter((key, value) -> isOdd(value), kept())
                        : table(0).filter((key, value) -> isOdd(value));
            case "mapTable":
                return isKept() ? table(0).mapValues(Drawn::mapped, kept()) : table(0).mapValues(Drawn::mapped);
            case "group":
                return table(0)
                        .groupBy((key, value) -> KeyValue.pair(group(value), value), Grouped.with(TEXT, TEXT))
                        .aggregate(
                                () -> 0L, (key, value, sum) -> sum + weight(value), (key, value, sum) -> sum - weight(value),
                                this.<Long>keptAs(Serdes.Long()))
                        .filter((key, sum) -> sum != 0)
                        .mapValues(String::valueOf);
            case "tableJoin":
                return tableJoin();
            case "foreignKeyJoin":
                return is("left")
                        ? table(0).leftJoin(table(1), Drawn::head, PAIR, kept())
                        : table(0).join(table(1), Drawn::head, PAIR, kept());
            default:
                throw new IllegalArgumentException("There is no operation " + text("do") + " in this language.");
        }
    }

    private Object windows() {
        TimeWindows tumbling = TimeWindows.ofSizeAndGrace(millis("size"), millis("grace"));
        TimeWindows windows = step.has("advance") ? tumbling.advanceBy(millis("advance")) : tumbling;
        KTable<Windowed<String>, Long> counted =
                onClose(grouped().windowedBy(windows), TimeWindowedKStream.class).count(windowed());
        return (is("final") ? counted.suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded())) : counted)
                .mapValues(String::valueOf);
    }

    /** Where the step says so, its results are emitted when their windows have closed, and then only (KIP-825). */
    private <T> T onClose(T windowed, Class<? super T> type) {
        return is("onClose") ? Windows.emittedOnClose(windowed, type) : windowed;
    }

    private Object streamJoin() {
        StreamJoined<String, String, String> serdes = StreamJoined.with(TEXT, TEXT, TEXT);
        switch (text("kind")) {
            case "inner":
                return stream(0).join(stream(1), PAIR, StreamJoin.windows(millis("size"), millis("grace")), serdes);
            case "left":
                return stream(0).leftJoin(stream(1), PAIR, StreamJoin.windows(millis("size"), millis("grace")), serdes);
            default:
                return stream(0).outerJoin(stream(1), OUTER, StreamJoin.windows(millis("size"), millis("grace")), serdes);
        }
    }

    private Object tableJoin() {
        switch (text("kind")) {
            case "inner":
                return isKept() ? table(0).join(table(1), PAIR, kept()) : table(0).join(table(1), PAIR);
            case "left":
                return isKept() ? table(0).leftJoin(table(1), PAIR, kept()) : table(0).leftJoin(table(1), PAIR);
            default:
                return isKept() ? table(0).outerJoin(table(1), OUTER, kept()) : table(0).outerJoin(table(1), OUTER);
        }
    }

    private static void to(Object leaf, String topic) {
        KStream<Object, Object> stream = cast(leaf instanceof KTable ? ((KTable<?, ?>) leaf).toStream() : leaf);
        stream.map((key, value) -> KeyValue.pair(Dsl.text(key), value == null ? null : String.valueOf(value)))
                .to(topic, Produced.with(TEXT, TEXT));
    }

    // --- what is done to values: texts `foreign key|attribute`, and what joins make of them -------------------------------

    private static List<String> parts(String value) {
        if (value == null) {
            return Collections.singletonList(null);
        }
        List<String> parts = new ArrayList<>();
        for (String part : value.split(";", -1)) {
            parts.add(part.isEmpty() ? null : part);
        }
        return parts;
    }

    private static String head(String value) {
        if (value == null) {
            return null;
        }
        int end = value.indexOf('|');
        String head = end < 0 ? value : value.substring(0, end);
        return head.isEmpty() ? null : head;
    }

    private static boolean isOdd(String value) {
        return value != null && !value.isEmpty() && value.charAt(value.length() - 1) % 2 == 1;
    }

    private static String mapped(String value) {
        return value == null ? null : value + "0";
    }

    private static String selected(String key, String value) {
        String head = head(value);
        return head == null ? key : head;
    }

    private static String rekeyed(String key, String value) {
        return value == null || value.isEmpty() ? key : value.substring(value.length() - 1);
    }

    private static String group(String value) {
        String head = head(value);
        return head == null ? "-" : head;
    }

    private static long weight(String value) {
        return value.chars().sum();
    }

    // --- operands and options of the step ---------------------------------------------------------------------------------

    private String text(String field) {
        return step.get(field).textValue();
    }

    private boolean is(String option) {
        return step.path(option).booleanValue();
    }

    private Duration millis(String option) {
        return Duration.ofMillis(step.get(option).longValue());
    }

    private String operand(int place) {
        return step.get("of").get(place).textValue();
    }

    private KGroupedStream<String, String> grouped() {
        return grouped(0, Grouped.with(TEXT, TEXT));
    }

    private KGroupedStream<String, String> grouped(int place, Grouped<String, String> named) {
        return stream(place).groupByKey(named);
    }

    private KStream<String, String> stream(int place) {
        return cast(made.get(operand(place)));
    }

    private KTable<String, String> table(int place) {
        return cast(made.get(operand(place)));
    }

    private GlobalKTable<String, String> global(int place) {
        return cast(made.get(operand(place)));
    }

    private boolean isKept() {
        return step.has("store");
    }

    /** Whether the store is of the kind, and of the format, that the configuration says. */
    private boolean isOfDsl() {
        return text("store").equals("dsl");
    }

    private boolean isOnDisk() {
        return text("store").equals("rocksdb");
    }

    private Materialized<String, String, KeyValueStore<Bytes, byte[]>> kept() {
        return keptAs(TEXT);
    }

    private <V> Materialized<String, V, KeyValueStore<Bytes, byte[]>> keptAs(Serde<V> values) {
        String name = text("as") + "-store";
        Materialized<String, V, KeyValueStore<Bytes, byte[]>> materialized;
        switch (text("store")) {
            case "versioned":
                materialized = Materialized.as(VersionedStore.supplier(name, millis("history")));
                return materialized.withKeySerde(TEXT).withValueSerde(values); // it has no cache
            case "dsl":
                materialized = Materialized.as(name);
                break;
            case "rocksdb":
                materialized = Materialized.as(Stores.persistentTimestampedKeyValueStore(name));
                break;
            default:
                materialized = Materialized.as(Stores.inMemoryKeyValueStore(name));
        }
        materialized.withKeySerde(TEXT).withValueSerde(values);
        return is("cached") ? materialized.withCachingEnabled() : materialized.withCachingDisabled();
    }

    private StoreBuilder<KeyValueStore<String, String>> remembered() {
        String name = text("as") + "-store";
        StoreBuilder<KeyValueStore<String, String>> store = Stores.keyValueStoreBuilder(
                isOnDisk() ? Stores.persistentKeyValueStore(name) : Stores.inMemoryKeyValueStore(name), TEXT, TEXT);
        return is("cached") ? store.withCachingEnabled() : store;
    }

    private Materialized<String, Long, WindowStore<Bytes, byte[]>> windowed() {
        String name = text("as") + "-store";
        Duration size = millis("size");
        if (isOfDsl()) {
            return shaped(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as(name).withRetention(HISTORY));
        }
        return shaped(Materialized.<String, Long>as(
                isOnDisk() ? Stores.persistentTimestampedWindowStore(name, HISTORY, size, false)
                        : Stores.inMemoryWindowStore(name, HISTORY, size, false)));
    }

    private Materialized<String, Long, SessionStore<Bytes, byte[]>> sessions() {
        String name = text("as") + "-store";
        if (isOfDsl()) {
            return shaped(Materialized.<String, Long, SessionStore<Bytes, byte[]>>as(name).withRetention(HISTORY));
        }
        return shaped(Materialized.<String, Long>as(
                isOnDisk() ? Stores.persistentSessionStore(name, HISTORY) : Stores.inMemorySessionStore(name, HISTORY)));
    }

    private <S extends StateStore> Materialized<String, Long, S> shaped(Materialized<String, Long, S> materialized) {
        materialized.withKeySerde(TEXT).withValueSerde(Serdes.Long());
        return is("cached") ? materialized.withCachingEnabled() : materialized.withCachingDisabled();
    }

    @SuppressWarnings("unchecked")
    private static <T> T cast(Object found) {
        return (T) found;
    }
}
