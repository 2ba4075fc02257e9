package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.internals.Change;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * The finding of docs/findings/foreign-key-join-stale-result.md, by the public API alone and then by the processors. A
 * release that fixes it fails here.
 *
 * <p>A row of the left table is its foreign key and another attribute, as in {@code A 0}; the right table has A, and no
 * B. {@code - 0} has no foreign key, and {@code gone} deletes the row.
 */
class ForeignKeyRaceTest {

    private static final String INTERNALS = "org.apache.kafka.streams.kstream.internals.";
    private static final String PACKAGE = INTERNALS + "foreignkeyjoin.";
    private static final String NONE = "nothing";

    @TempDir
    Path state;

    /** With it came this: of a row whose foreign key stays the join asks for no null any more. */
    static boolean hasTheFixOfKafka16407() {
        return !System.getProperty("kafka.version").matches("3\\.[0-8]\\..*|3\\.9\\.0|4\\.0\\.0");
    }

    /**
     * TopologyTestDriver passes on all that a record of the input gives before it answers anything. So if two updates
     * come as one record, the second overtakes the answer to the first, as it does on brokers.
     */
    @ParameterizedTest
    @CsvSource({"false, B 1, nothing", "false, B 1;B 1, nothing", "true, B 1;B 2, B 2 + null"})
    void a_row_that_comes_to_ask_for_a_key_that_is_not_there_loses_its_result(
            boolean isLeft, String updates, String expected) {
        assertEquals(expected, resultAfter(isLeft, updates));
    }

    @Test
    void updates_that_come_one_by_one_are_answered_one_by_one_so_this_driver_sees_nothing() {
        assertEquals(NONE, resultAfter(false, "B 1", "B 2"));
        assertEquals(NONE, resultAfter(false, "gone", "B 2"));
    }

    @Test
    void a_row_that_changes_again_with_the_same_absent_key_keeps_its_result() {
        assertEquals(hasTheFixOfKafka16407() ? "A 0 + a" : NONE, resultAfter(false, "B 1;B 2"));
    }

    @ParameterizedTest
    @CsvSource({"gone;B 1", "- 0;B 1"})
    void a_row_that_was_deleted_or_had_no_key_in_between_keeps_its_result(String updates) {
        assertEquals("A 0 + a", resultAfter(false, updates));
    }

    /** As SubscriptionSendProcessorSupplierTest of Kafka: the instruction for a row whose foreign key stays. */
    @ParameterizedTest
    @CsvSource({
        "A 0, B 1, DELETE_KEY_NO_PROPAGATE PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE",
        "B 1, B 2, since",
        "gone, B 1, PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE",
        "A 0, gone, DELETE_KEY_AND_PROPAGATE",
    })
    void the_join_asks(String before, String after, String instructions) throws Exception {
        String expected = instructions.equals("since")
                ? "PROPAGATE_" + (hasTheFixOfKafka16407() ? "ONLY_IF" : "NULL_IF_NO") + "_FK_VAL_AVAILABLE"
                : instructions;
        List<String> asked = new ArrayList<>();
        for (Object subscription : subscriptions(before, after)) {
            asked.add(field(subscription, "instruction").toString());
        }
        assertEquals(expected, String.join(" ", asked));
    }

    /** As ResponseJoinProcessorSupplierTest of Kafka: an answer to a row that has changed since is dropped. */
    @ParameterizedTest
    @CsvSource({"B 1, 1", "B 2, 0"})
    void an_answer_counts_for_the_row_that_asked_only(String row, int results) throws Exception {
        List<Object> asked = subscriptions("A 0", "B 1");
        long[] hash = (long[]) field(asked.get(asked.size() - 1), "hash");
        Object getter = proxy("KTableValueGetter", Map.of("get", stored(row), "isVersioned", false));
        Processor<String, Object, Object, Object> join = processor(
                "ResponseJoinProcessorSupplier", proxy("KTableValueGetterSupplier", Map.of("get", getter)),
                new StringSerializer(), (Supplier<String>) () -> "rows", pair(), false);
        MockProcessorContext<Object, Object> context = new MockProcessorContext<>(config());
        context.setRecordMetadata("answers", 0, 0);
        join.init(internal(context));
        join.process(new Record<>("k", answer(hash), 0));
        assertEquals(results, context.forwarded().size());
    }

    // --- by the public API ------------------------------------------------------------------------------------

    /** The result of row k, which was {@code A 0 + a}, after these records, each of one or several updates. */
    private String resultAfter(boolean isLeft, String... records) {
        StreamsBuilder builder = new StreamsBuilder();
        Materialized<String, String, KeyValueStore<Bytes, byte[]>> rows =
                Materialized.with(Serdes.String(), Serdes.String());
        rows.withCachingDisabled(); // in a cache, two updates would be one
        Consumed<String, String> texts = Consumed.with(Serdes.String(), Serdes.String());
        KTable<String, String> right = builder.table("right", texts);
        KTable<String, String> left = builder.stream("left", texts)
                .flatMapValues(value -> Arrays.stream(value.split(";")).map(ForeignKeyRaceTest::row)
                        .collect(Collectors.toList()))
                .toTable(rows);
        Function<String, String> foreignKey = ForeignKeyRaceTest::foreignKey;
        (isLeft ? left.leftJoin(right, foreignKey, pair()) : left.join(right, foreignKey, pair()))
                .toStream().to("out", Produced.with(Serdes.String(), Serdes.String()));
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), config())) {
            input(driver, "right").pipeInput("A", "a");
            TestInputTopic<String, String> changes = input(driver, "left");
            changes.pipeInput("k", "A 0");
            for (String record : records) {
                changes.pipeInput("k", record);
            }
            String result = driver.createOutputTopic("out", new StringDeserializer(), new StringDeserializer())
                    .readKeyValuesToMap().get("k");
            return result == null ? NONE : result;
        }
    }

    private static TestInputTopic<String, String> input(TopologyTestDriver driver, String topic) {
        return driver.createInputTopic(topic, new StringSerializer(), new StringSerializer());
    }

    private Properties config() {
        Properties config = new Properties();
        config.put("application.id", "app");
        config.put("bootstrap.servers", "unused:1");
        config.put("state.dir", state.toString());
        return config;
    }

    private static String row(String update) {
        return update.equals("gone") ? null : update;
    }

    private static String foreignKey(String row) {
        return row.startsWith("-") ? null : row.substring(0, 1);
    }

    private static ValueJoiner<String, String, String> pair() {
        return (row, other) -> row + " + " + other;
    }

    // --- by the processors, which are not public and differ among releases ---------------------------------------

    /** What an inner join sends to the right table's side when a row changes. */
    private List<Object> subscriptions(String before, String after) throws Exception {
        Processor<String, Change<String>, Object, Object> send = processor(
                "SubscriptionSendProcessorSupplier", (Function<String, String>) ForeignKeyRaceTest::foreignKey,
                (Supplier<String>) () -> "keys", (Supplier<String>) () -> "rows", Serdes.String(),
                new StringSerializer(), false);
        MockProcessorContext<Object, Object> context = new MockProcessorContext<>(config());
        context.setRecordMetadata("left", 0, 0);
        send.init(context);
        send.process(new Record<>("k", new Change<>(row(after), row(before)), 0));
        return context.forwarded().stream().map(one -> one.record().value()).collect(Collectors.toList());
    }

    @SuppressWarnings("unchecked")
    private static <V> Processor<String, V, Object, Object> processor(String supplier, Object... arguments)
            throws Exception {
        assumeFalse(System.getProperty("kafka.version").matches("3[.][0-3][.].*")); // it has them under other names
        Constructor<?> constructor = Class.forName(PACKAGE + supplier).getConstructors()[0];
        if (arguments[0] instanceof Function && constructor.getParameterTypes()[0] != Function.class) {
            arguments[0] = Class.forName(PACKAGE + "ForeignKeyExtractor").getMethod("fromFunction", Function.class)
                    .invoke(null, arguments[0]);
        }
        return ((ProcessorSupplier<String, V, Object, Object>) constructor.newInstance(arguments)).get();
    }

    /** The same context as one of the kind that only Kafka Streams itself makes. */
    @SuppressWarnings("unchecked")
    private static ProcessorContext<Object, Object> internal(MockProcessorContext<Object, Object> context)
            throws Exception {
        Class<?> wanted = Class.forName("org.apache.kafka.streams.processor.internals.InternalProcessorContext");
        return (ProcessorContext<Object, Object>) Proxy.newProxyInstance(
                wanted.getClassLoader(), new Class<?>[] {wanted},
                (self, method, arguments) -> MockProcessorContext.class
                        .getMethod(method.getName(), method.getParameterTypes()).invoke(context, arguments));
    }

    /** A row as a table's store has it: with a timestamp, in newer releases also with headers. */
    private static Object stored(String row) throws Exception {
        Class<?> type = Class.forName(INTERNALS + "KTableValueGetter").getMethod("get", Object.class).getReturnType();
        return type == ValueAndTimestamp.class
                ? ValueAndTimestamp.make(row, 0)
                : type.getMethod("make", Object.class, long.class, Headers.class)
                        .invoke(null, row, 0L, new RecordHeaders());
    }

    private static Object answer(long[] hash) throws Exception {
        return Class.forName(PACKAGE + "SubscriptionResponseWrapper")
                .getConstructor(long[].class, Object.class, Integer.class).newInstance(hash, null, 0);
    }

    private static Object field(Object of, String name) throws Exception {
        Field field = of.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(of);
    }

    /** An implementation that answers these methods, and null to others. */
    private static Object proxy(String type, Map<String, Object> answers) throws Exception {
        Class<?> wanted = Class.forName(INTERNALS + type);
        return Proxy.newProxyInstance(
                wanted.getClassLoader(), new Class<?>[] {wanted},
                (self, method, arguments) -> answers.get(method.getName()));
    }
}
