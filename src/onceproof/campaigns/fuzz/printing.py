"""A case as Java that stands alone: a test on TopologyTestDriver, which fails where it is red, and an application."""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from onceproof.campaigns.fuzz.grammar import (
    BEGIN,
    CLOCK,
    DSL,
    EVERY,
    MEMORY,
    VERSIONED,
    Case,
    InputRecord,
    Step,
    StepKind,
)
from onceproof.campaigns.fuzz.relational import Model
from onceproof.model.json_file import replacing

NAME = "DrawnTopologyTest"
APPLICATION = "DrawnTopology"
PACKAGE = "drawn"
IMPORTS = """
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.*;
"""
HELPERS = """
    static final Serde<String> TEXT = Serdes.String();

    static Duration ms(long millis) {
        return Duration.ofMillis(millis);
    }

    static List<String> parts(String value) {
        if (value == null) {
            return Collections.singletonList(null);
        }
        List<String> parts = new ArrayList<>();
        for (String part : value.split(";", -1)) {
            parts.add(part.isEmpty() ? null : part);
        }
        return parts;
    }

    static String head(String value) {
        String head = value == null ? "" : value.split("\\\\|", 2)[0];
        return head.isEmpty() ? null : head;
    }

    static String headOr(String value, String other) {
        return head(value) == null ? other : head(value);
    }

    static boolean isOdd(String value) {
        return value != null && !value.isEmpty() && value.charAt(value.length() - 1) % 2 == 1;
    }

    static String mapped(String value) {
        return value == null ? null : value + "0";
    }

    static long weight(String value) {
        return value.chars().sum();
    }

    static String pair(String one, String other) {
        return (one == null ? "-" : one) + "/" + (other == null ? "-" : other);
    }

    static String text(Object key) {
        if (!(key instanceof Windowed)) {
            return String.valueOf(key);
        }
        Windowed<?> windowed = (Windowed<?>) key;
        return windowed.key() + "@" + windowed.window().start() + "-" + windowed.window().end();
    }
"""
REMEMBER = f"""
    /** Passes on each value behind the one that it remembers of the key; by a clock also all that it remembers. */
    static class Remember implements Processor<String, String, String, String> {{
        private final String store;
        private final PunctuationType clock;
        private ProcessorContext<String, String> context;
        private KeyValueStore<String, String> remembered;

        Remember(String store, PunctuationType clock) {{
            this.store = store;
            this.clock = clock;
        }}

        @Override
        public void init(ProcessorContext<String, String> context) {{
            this.context = context;
            remembered = context.getStateStore(store);
            if (clock != null) {{
                context.schedule(ms({EVERY}), clock, this::report);
            }}
        }}

        @Override
        public void process(Record<String, String> record) {{
            String before = remembered.get(record.key());
            remembered.put(record.key(), record.value());
            context.forward(record.withValue(pair(before, record.value())));
        }}

        private void report(long now) {{
            List<KeyValue<String, String>> all = new ArrayList<>();
            try (KeyValueIterator<String, String> entries = remembered.all()) {{
                entries.forEachRemaining(all::add);
            }}
            all.forEach(entry -> context.forward(new Record<>(entry.key, entry.value + "!", now)));
        }}
    }}
"""
REKEY = """
    /** Makes the last character of a value the key. */
    static class Rekey implements Processor<String, String, String, String> {
        private ProcessorContext<String, String> context;

        @Override
        public void init(ProcessorContext<String, String> context) {
            this.context = context;
        }

        @Override
        public void process(Record<String, String> record) {
            String value = record.value();
            boolean has = value != null && !value.isEmpty();
            context.forward(has ? record.withKey(value.substring(value.length() - 1)) : record);
        }
    }
"""
PROCESSORS = {"remember": REMEMBER, "rekey": REKEY}  # by operation
PROCESSOR_IMPORTS = """
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
"""
CLOCKS = {"none": "null", "stream": "PunctuationType.STREAM_TIME", "wall": "PunctuationType.WALL_CLOCK_TIME"}
TEST = """
    private final List<TestRecord<String, String>> results = new ArrayList<>();

    private Properties config(Path state) {{
        Properties config = new Properties();
{config}
        config.put("state.dir", state.toString());
        return config;
    }}

    private void take(TopologyTestDriver driver) {{
        if (driver.producedTopicNames().contains("{output}")) {{
            results.addAll(driver.createOutputTopic("{output}", new StringDeserializer(), new StringDeserializer())
                    .readRecordsToList());
        }}
    }}

    private static void pipe(TopologyTestDriver driver, String topic, long timestamp, String key, String value) {{
        driver.createInputTopic(topic, new StringSerializer(), new StringSerializer()).pipeInput(key, value, timestamp);
    }}

    /** Has a driver delete the folder of another one when it is closed, so that its own stays. */
    private static void keep(TopologyTestDriver driver, Properties own, Path elsewhere) throws Exception {{
        Properties config = new Properties();
        config.putAll(own);
        config.put("state.dir", elsewhere.toString());
        Topology one = new Topology().addSource("source", "topic").addSink("sink", "other", "source");
        try (TopologyTestDriver other = new TopologyTestDriver(one, config)) {{
            java.lang.reflect.Field folder = TopologyTestDriver.class.getDeclaredField("stateDirectory");
            folder.setAccessible(true);
            folder.set(driver, folder.get(other));
        }}
    }}

    private static void copy(Path from, Path to) throws IOException {{ // the first driver still locks its files
        try (Stream<Path> files = Files.walk(from)) {{
            for (Path file : (Iterable<Path>) files::iterator) {{
                Files.copy(file, to.resolve(from.relativize(file)));
            }}
        }}
    }}
"""
TEST_IMPORTS = """
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
"""
# A driver does not restore: the state manager of its task does, by its own methods. In a package of Kafka's the
# reflection is not needed.
RESTORING = """
    private final Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> changelogs = new HashMap<>();
    private final List<ConsumerRecord<byte[], byte[]>> inputs = new ArrayList<>();

    private void keepChangelogs(TopologyTestDriver driver) throws ReflectiveOperationException {
        for (TopicPartition partition : partitions(manager(driver))) {
            List<ConsumerRecord<byte[], byte[]>> kept = changelogs.computeIfAbsent(partition, one -> new ArrayList<>());
            inputs.stream().filter(input -> input.topic().equals(partition.topic())).forEach(kept::add);
            if (driver.producedTopicNames().contains(partition.topic())) {
                driver.createOutputTopic(partition.topic(), new ByteArrayDeserializer(), new ByteArrayDeserializer())
                        .readRecordsToList()
                        .forEach(one -> kept.add(new ConsumerRecord<>(
                                partition.topic(), 0, kept.size(), one.timestamp() == null ? 0 : one.timestamp(),
                                TimestampType.CREATE_TIME, 0, 0,
                                one.key(), one.value(), one.headers(), Optional.empty())));
            }
        }
    }

    private void restore(TopologyTestDriver driver) throws ReflectiveOperationException {
        Object manager = manager(driver);
        for (TopicPartition partition : partitions(manager)) {
            List<ConsumerRecord<byte[], byte[]>> kept = changelogs.getOrDefault(partition, List.of());
            Object store = call(manager, "storeMetadata", partition);
            Object[] all = {store, kept, OptionalLong.of(kept.size())};
            int count = method(manager, "restore").getParameterCount();
            call(manager, "restore", Arrays.copyOf(all, count));
        }
    }

    private static Object manager(TopologyTestDriver driver) throws ReflectiveOperationException {
        Field task = TopologyTestDriver.class.getDeclaredField("task");
        task.setAccessible(true);
        Field manager = task.getType().getSuperclass().getDeclaredField("stateMgr");
        manager.setAccessible(true);
        return manager.get(task.get(driver));
    }

    @SuppressWarnings("unchecked")
    private static Collection<TopicPartition> partitions(Object manager) throws ReflectiveOperationException {
        return (Collection<TopicPartition>) call(manager, "changelogPartitions");
    }

    private static Method method(Object on, String name) {
        return Arrays.stream(on.getClass().getDeclaredMethods())
                .filter(one -> one.getName().equals(name))
                .findFirst()
                .get();
    }

    private static Object call(Object on, String name, Object... arguments) throws ReflectiveOperationException {
        Method method = method(on, name);
        method.setAccessible(true);
        return method.invoke(on, arguments);
    }

    private void pipeAndKeep(TopologyTestDriver driver, String topic, long timestamp, String key, String value) {
        byte[] bytes = value == null ? null : value.getBytes();
        inputs.add(new ConsumerRecord<>(
                topic, 0, inputs.size(), timestamp, TimestampType.CREATE_TIME, 0, 0, key.getBytes(), bytes,
                new RecordHeaders(), Optional.empty()));
        pipe(driver, topic, timestamp, key, value);
    }
"""
RESTORING_IMPORTS = """
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
"""
# Two tasks are two drivers. What one writes to an internal topic waits until the test has its task take it.
TASKS = """
    private final Map<String, Queue<TestRecord<byte[], byte[]>>> waiting = new HashMap<>();

    private TopologyTestDriver task(int task, Properties config, Instant start) throws ReflectiveOperationException {{
        TopologyTestDriver driver = new TopologyTestDriver(topology(config), config, start);
        Field field = TopologyTestDriver.class.getDeclaredField("producer");
        field.setAccessible(true);
        @SuppressWarnings("unchecked")
        MockProducer<byte[], byte[]> producer = (MockProducer<byte[], byte[]>) field.get(driver);
        field.set(driver, new MockProducer<byte[], byte[]>() {{
            @Override
            public synchronized List<ProducerRecord<byte[], byte[]>> history() {{
                List<ProducerRecord<byte[], byte[]>> rest = new ArrayList<>();
                for (ProducerRecord<byte[], byte[]> record : producer.history()) {{
                    if (record.topic().startsWith("fuzz-") && !record.topic().endsWith("-changelog")) {{
                        int to = Math.floorMod(Arrays.hashCode(record.key()), {partitions});
                        waiting.computeIfAbsent(record.topic() + " " + task + " " + to, way -> new ArrayDeque<>())
                                .add(new TestRecord<>(
                                        record.key(), record.value(), record.headers(), record.timestamp()));
                    }} else {{
                        rest.add(record);
                    }}
                }}
                return rest;
            }}

            @Override
            public synchronized void clear() {{
                producer.clear();
            }}

            @Override
            public void close() {{
                producer.close();
            }}
        }});
        return driver;
    }}

    /** Has a task take what waits longest in a topic, from one task and for this one; a fix may send less. */
    private boolean pass(TopologyTestDriver to, String way) {{
        TestRecord<byte[], byte[]> next = waiting.getOrDefault(way, new ArrayDeque<>()).poll();
        if (next != null) {{
            String topic = way.substring(0, way.indexOf(' '));
            to.createInputTopic(topic, new ByteArraySerializer(), new ByteArraySerializer()).pipeInput(next);
        }}
        return next != null;
    }}

    /** Has the tasks take all that still waits; a fix may send more. */
    private void passAll(TopologyTestDriver... tasks) {{
        boolean isDone = false;
        while (!isDone) {{
            isDone = new ArrayList<>(waiting.keySet())
                    .stream().noneMatch(way -> pass(tasks[way.charAt(way.length() - 1) - '0'], way));
        }}
    }}
"""
TASKS_IMPORTS = """
import java.lang.reflect.Field;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Queue;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
"""
SUPPLIERS = {
    (StepKind.TABLE, MEMORY): 'Stores.inMemoryKeyValueStore("{0}-store")',
    (StepKind.TABLE, "rocksdb"): 'Stores.persistentTimestampedKeyValueStore("{0}-store")',
    (StepKind.TABLE, VERSIONED): 'Stores.persistentVersionedKeyValueStore("{0}-store", ms({2}))',
    (StepKind.WINDOWED, MEMORY): 'Stores.inMemoryWindowStore("{0}-store", Duration.ofHours(1), ms({1}), false)',
    (
        StepKind.WINDOWED,
        "rocksdb",
    ): 'Stores.persistentTimestampedWindowStore("{0}-store", Duration.ofHours(1), ms({1}), false)',
}
SESSIONS = {
    MEMORY: 'Stores.inMemorySessionStore("{0}-store", Duration.ofHours(1))',
    "rocksdb": 'Stores.persistentSessionStore("{0}-store", Duration.ofHours(1))',
}
STORES = {StepKind.TABLE: "KeyValueStore", StepKind.WINDOWED: "WindowStore"}
REMEMBERED = {
    MEMORY: 'Stores.inMemoryKeyValueStore("{0}-store")',
    "rocksdb": 'Stores.persistentKeyValueStore("{0}-store")',
}
NOTHING = InputRecord("", BEGIN, "nothing", None)  # of an input that has no record, since an application needs one
JOINS = {"inner": "join", "left": "leftJoin", "outer": "outerJoin"}
PAIR = "(one, other) -> pair(one, other)"


def literal(text: str | None) -> str:
    """A text as Java."""
    return "null" if text is None else json.dumps(text)


# --- the topology ----------------------------------------------------------------------------------------------------


def topology(case: Case) -> str:
    """The body of a method that gives the topology; `config` is that of Kafka Streams, or there is no such variable."""
    lines = ["StreamsBuilder builder = new StreamsBuilder();"]
    for step in case.steps:
        lines += [_print_added(step)] if step.operation == "remember" else []
        lines.append(f"{_type(step)} {step.name} = {_expression(step)};")
    for leaf in case.leaves:
        stream = leaf.name if leaf.makes is StepKind.STREAM else f"{leaf.name}.toStream()"
        to_text = ".map((key, value) -> KeyValue.pair(text(key), value))"
        lines.append(f'{stream}{to_text}.to("{leaf.name}", Produced.with(TEXT, TEXT));')
    return "\n".join(f"        {line}" for line in lines)


def _processors(case: Case) -> str:
    """The classes of the processors of a case."""
    return "".join(text for operation, text in PROCESSORS.items() if operation in case.operations)


def _print_added(step: Step) -> str:
    supplier = REMEMBERED[step.options["store"]].format(step.name)
    cache = ".withCachingEnabled()" if step.options["cached"] else ""
    return f"builder.addStateStore(Stores.keyValueStoreBuilder({supplier}, TEXT, TEXT){cache});"


def _type(step: Step) -> str:
    return {
        StepKind.SUPPRESSED: "KTable<String, String>",
        StepKind.STREAM: "KStream<String, String>",
        StepKind.TABLE: "KTable<String, String>",
        StepKind.WINDOWED: "KTable<Windowed<String>, String>",
        StepKind.GLOBAL: "GlobalKTable<String, String>",
    }[step.makes]


def _expression(step: Step) -> str:  # noqa: C901 - a line for each operation
    one, two = (*step.operands, "")[:2]
    kept, numbers = _print_materialized(step, "String", "TEXT"), _print_materialized(step, "Long", "Serdes.Long()")
    also = f", {kept}" if kept else ""
    grouped = f"{one}.groupByKey(Grouped.with(TEXT, TEXT))"
    side = "leftJoin" if step.options.get("left") else "join"
    kind = JOINS.get(step.options.get("kind", ""), "")
    on_close = ".emitStrategy(EmitStrategy.onWindowClose())" if step.options.get("onClose") else ""
    millis = {name: f"ms({step.options[name]})" for name in ("size", "grace", "advance") if name in step.options}
    match step.operation:
        case "stream":
            return f'builder.stream("{one}", Consumed.with(TEXT, TEXT))'
        case "table":
            return f'builder.table("{one}", Consumed.with(TEXT, TEXT){also})'
        case "burst":
            source = f'builder.stream("{one}", Consumed.with(TEXT, TEXT))'
            return f"{source}.flatMapValues(value -> parts(value)).toTable({kept})"
        case "globalTable":
            return f'builder.globalTable("{one}", Consumed.with(TEXT, TEXT))'
        case "filter":
            return f"{one}.filter((key, value) -> isOdd(value))"
        case "mapValues":
            return f"{one}.mapValues(value -> mapped(value))"
        case "selectKey":
            return f"{one}.selectKey((key, value) -> headOr(value, key))"
        case "rekey":
            return f"{one}.process(Rekey::new)"
        case "merge":
            return f"{one}.merge({two})"
        case "repartition":
            return f"{one}.repartition(Repartitioned.with(TEXT, TEXT))"
        case "toTable":
            return f"{one}.toTable({kept})"
        case "count":
            return f"{grouped}.count({numbers}).mapValues(count -> String.valueOf(count))"
        case "latest":
            return f"{grouped}.reduce((all, value) -> value, {kept})"
        case "sum":
            summed = "aggregate(() -> 0L, (key, value, sum) -> sum + weight(value), "
            return f"{grouped}.{summed}{numbers}).mapValues(sum -> String.valueOf(sum))"
        case "windows":
            advance = f".advanceBy({millis['advance']})" if "advance" in millis else ""
            windows = f"TimeWindows.ofSizeAndGrace({millis['size']}, {millis['grace']}){advance}"
            last = ".suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))"
            windowed = f"{grouped}.windowedBy({windows}){on_close}"
            counted = f"{windowed}.count({numbers}){last if step.options.get('final') else ''}"
            return f"{counted}.mapValues(count -> String.valueOf(count))"
        case "sessions":
            windows = f"SessionWindows.ofInactivityGapAndGrace({millis['size']}, {millis['grace']})"
            return (
                f"{grouped}.windowedBy({windows}){on_close}.count({numbers}).mapValues(count -> String.valueOf(count))"
            )
        case "slides":
            windows = f"SlidingWindows.ofTimeDifferenceAndGrace({millis['size']}, {millis['grace']})"
            return (
                f"{grouped}.windowedBy({windows}){on_close}.count({numbers}).mapValues(count -> String.valueOf(count))"
            )
        case "cogroup":
            named = {side: f'.groupByKey(Grouped.with("{step.name}-{side}", TEXT, TEXT))' for side in ("one", "other")}
            first = f"{one}{named['one']}.<Long>cogroup((key, value, sum) -> sum + weight(value))"
            other = f"{two}{named['other']}, (key, value, sum) -> sum + 2 * weight(value)"
            return f"{first}.cogroup({other}).aggregate(() -> 0L, {numbers}).mapValues(sum -> String.valueOf(sum))"
        case "remember":
            store = f'"{step.name}-store"'
            return f"{one}.process(() -> new Remember({store}, {CLOCKS[step.options['clock']]}), {store})"
        case "suppress":
            return f"{one}.suppress(Suppressed.untilTimeLimit({millis['size']}, Suppressed.BufferConfig.unbounded()))"
        case "lookup":
            return f"{one}.{side}({two}, {PAIR}, Joined.with(TEXT, TEXT, TEXT))"
        case "globalLookup":
            return f"{one}.{side}({two}, (key, value) -> head(value), {PAIR})"
        case "streamJoin":
            windows = f"JoinWindows.ofTimeDifferenceAndGrace({millis['size']}, {millis['grace']})"
            return f"{one}.{kind}({two}, {PAIR}, {windows}, StreamJoined.with(TEXT, TEXT, TEXT))"
        case "filterTable":
            return f"{one}.filter((key, value) -> isOdd(value){also})"
        case "mapTable":
            return f"{one}.mapValues(value -> mapped(value){also})"
        case "group":
            key = '(key, value) -> KeyValue.pair(headOr(value, "-"), value)'
            sums = "(key, value, sum) -> sum + weight(value), (key, value, sum) -> sum - weight(value)"
            summed = f"{one}.groupBy({key}, Grouped.with(TEXT, TEXT)).aggregate(() -> 0L, {sums}, {numbers})"
            return f"{summed}.filter((key, sum) -> sum != 0).mapValues(sum -> String.valueOf(sum))"
        case "tableJoin":
            return f"{one}.{kind}({two}, {PAIR}{also})"
        case "foreignKeyJoin":
            return f"{one}.{side}({two}, value -> head(value), {PAIR}{also})"
    raise ValueError(step.operation)


def _print_materialized(step: Step, value: str, serde: str) -> str:
    if "store" not in step.options or step.operation == "remember":
        return ""
    store = step.options["store"]
    if store == DSL:
        kind = "SessionStore" if step.operation == "sessions" else STORES[step.makes]
        kept = ".withRetention(Duration.ofHours(1))" if step.makes is StepKind.WINDOWED else ""
        made = f'Materialized.<String, {value}, {kind}<Bytes, byte[]>>as("{step.name}-store"){kept}'
        cached = "Enabled" if step.options["cached"] else "Disabled"
        return f"{made}.withKeySerde(TEXT).withValueSerde({serde}).withCaching{cached}()"
    supplier = SESSIONS[store] if step.operation == "sessions" else SUPPLIERS[step.makes, store]
    cache = "" if store == VERSIONED else f".withCaching{'Enabled' if step.options['cached'] else 'Disabled'}()"
    made = supplier.format(step.name, step.options.get("size"), step.options.get("history"))
    return f"Materialized.<String, {value}>as({made}).withKeySerde(TEXT).withValueSerde({serde}){cache}"


# --- what is written -------------------------------------------------------------------------------------------------


def unit_test(case: Case, topic: str, origin: str, turns: Sequence[str] = ()) -> str:
    """A test on TopologyTestDriver that asserts what a topic must have.

    Args:
        case: that is red.
        topic: whose output is wrong: the name of a leaf.
        origin: a sentence that says where the case comes from.
        turns: of several tasks, as the lane took them: the last word is the task that takes the next record of the
            input, or what waits on the way that all the words name.
    """
    leaf = next(step for step in case.leaves if step.name == topic)
    is_of_tasks = case.partitions > 1
    throws = "Exception" if case.reopened or is_of_tasks else "IOException"
    processors = _processors(case)
    config = "\n".join(f"        config.put({literal(k)}, {literal(v)});" for k, v in case.config.items())
    return "\n".join(
        [
            IMPORTS.strip()
            + (PROCESSOR_IMPORTS if processors else "")
            + TEST_IMPORTS
            + (RESTORING_IMPORTS if case.restored else "")
            + (TASKS_IMPORTS if is_of_tasks else ""),
            f"/** {origin} */",
            f"class {NAME} {{",
            HELPERS + processors,
            "    private static Topology topology(Properties config) {",
            topology(case),
            "        return builder.build(config);",
            "    }",
            TEST.format(config=config, output=topic)
            + (RESTORING if case.restored else "")
            + (TASKS.format(partitions=case.partitions) if is_of_tasks else ""),
            "    @Test",
            f"    void {topic}_has_what_its_operations_mean(@TempDir Path folder) throws {throws} {{",
            *(_tasks(case, turns) if is_of_tasks else _drivers(case)),
            *_print_assertions(case, leaf),
            "    }",
            "}",
            "",
        ]
    )


def _drivers(case: Case) -> Iterator[str]:
    places = (0, *case.reopened, len(case.records))
    for part, (begin, end) in enumerate(pairwise(places)):
        state = f'folder.resolve("{part}")'
        yield f"        Properties config{part} = config({state});"
        start = f"Instant.ofEpochMilli({case.records[0].timestamp}L)"
        opened = f"new TopologyTestDriver(topology(config{part}), config{part}, {start})"
        yield f"        try (TopologyTestDriver driver = {opened}) {{"
        pipe = "pipeAndKeep" if case.restored else "pipe"
        if case.restored and part:
            yield "            restore(driver);"
        for record in case.records[begin:end]:
            if record.topic == CLOCK:
                yield f"            driver.advanceWallClockTime(ms({record.value}));"
                continue
            yield f"            {pipe}(driver, {_words(record)});"
        yield "            take(driver);"
        if end != len(case.records):
            kept = f'keep(driver, config{part}, folder.resolve("elsewhere"))'
            yield f"            {'keepChangelogs(driver)' if case.restored else kept};"
        yield "        }"
        if end != len(case.records) and not case.restored:
            yield f'        copy({state}, folder.resolve("{part + 1}"));'


def _words(record: InputRecord) -> str:
    return f"{literal(record.topic)}, {record.timestamp}L, {literal(record.key)}, {literal(record.value)}"


def _tasks(case: Case, turns: Sequence[str]) -> Iterator[str]:
    """The turns of several tasks, one by one."""
    numbers = range(case.partitions)
    yield f"        Instant start = Instant.ofEpochMilli({case.records[0].timestamp}L);"
    opened = [f'TopologyTestDriver task{n} = task({n}, config(folder.resolve("{n}")), start)' for n in numbers]
    yield f"        try ({'; '.join(opened)}) {{"
    inputs = iter(case.records)
    for turn in turns:
        topic, _, task = turn.rpartition(" ")
        called = f"pass(task{task}, {literal(turn)})" if topic else f"pipe(task{task}, {_words(next(inputs))})"
        yield f"            {called};"
    yield f"            passAll({', '.join(f'task{n}' for n in numbers)});"
    yield from (f"            take(task{n});" for n in numbers)
    yield "        }"


def _print_assertions(case: Case, leaf: Step) -> Iterator[str]:
    model = Model(case)
    if leaf.makes is StepKind.STREAM:
        events = sorted(f"{e.key} = {e.value} at {e.timestamp}" for e in model.stream(leaf.name).events)
        must = ", ".join(map(literal, events))
        shown = 'record.key() + " = " + record.value() + " at " + record.timestamp()'
        all_shown = f"results.stream().map(record -> {shown}).sorted().collect(Collectors.toList())"
        yield f"        List<String> all = {all_shown};"
        yield f"        assertEquals(List.of({must}), all);"
        return
    rows = sorted(model.table(leaf.name).rows(model.last).items())
    held_back = sorted(model.find_held_back(leaf)) if leaf.makes is StepKind.SUPPRESSED else []
    yield "        Map<String, String> rows = new TreeMap<>();"
    yield "        results.forEach(record -> rows.put(record.key(), record.value()));"
    yield "        rows.values().removeIf(value -> value == null);"
    if held_back:
        yield f"        rows.keySet().removeAll(List.of({', '.join(map(literal, held_back))})); // held back"
    yield "        Map<String, String> must = new TreeMap<>();"
    for key, value in rows:
        yield f"        must.put({literal(key)}, {literal(value)});"
    yield "        assertEquals(must, rows);"


def write_application(case: Case, folder: Path, topics: Sequence[str]) -> None:
    """Write a folder that `onceproof app run` takes: the topology, its records, and the promise of a replay.

    Args:
        case: that is red.
        folder: takes the files.
        topics: whose output is wrong.

    Raises:
        HarnessError: the disk is full or read-only.
    """
    processors = _processors(case)
    source = folder / "src" / PACKAGE / f"{APPLICATION}.java"
    java = [
        f"package {PACKAGE};",
        "",
        IMPORTS.strip() + (PROCESSOR_IMPORTS if processors else ""),
        "",
        "/** A topology that a search has drawn. */",
        f"public final class {APPLICATION} {{",
        HELPERS + processors,
        "    public static Topology topology(java.util.Properties config) {",
        topology(case),
        "        return builder.build(config);",
        "    }",
        "}",
        "",
    ]
    _write(source, "\n".join(java))
    _write(folder / "onceproof.toml", _toml(case, topics))
    for topic in {topic for step in case.steps if step.is_source for topic in step.operands}:
        records = [record for record in case.records if record.topic == topic] or [NOTHING]
        lines = [json.dumps({"key": r.key, "value": r.value, "timestamp": r.timestamp}) for r in records]
        _write(folder / f"{topic}.jsonl", "".join(f"{line}\n" for line in lines))


def _toml(case: Case, topics: Sequence[str]) -> str:
    config = {k: v for k, v in case.config.items() if k not in ("application.id", "bootstrap.servers")}
    lines = [
        f'class = "{PACKAGE}.{APPLICATION}#topology"',
        'sources = ["src"]',
        f"partitions = {case.partitions}",
        "instances = 1",
        "rate = 100",
        'fault = "none"',
        "",
        "[properties]",
        *(f"{literal(name)} = {literal(value)}" for name, value in config.items()),
    ]
    for step in case.steps:
        if step.is_source:
            lines += ["", "[[input]]", f'topic = "{step.operands[0]}"', f'file = "{step.operands[0]}.jsonl"']
            lines += ["global = true"] if step.makes is StepKind.GLOBAL else []
    for topic in topics:
        lines += ["", "[[output]]", f'topic = "{topic}"', 'promises = ["replay"]', 'compare = "final"']
    return "\n".join([*lines, ""])


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as draft:
        draft.write_text(text, encoding="utf-8")
