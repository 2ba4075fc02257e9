package onceproof.streams;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.WindowStore;

/**
 * Sums the values of a key by windows of time: tumbling, hopping (each begins half a window after the one before),
 * sliding, or sessions. Every update is emitted; or, suppressed or emitted on close, what a window holds when it has
 * closed; or, with {@code limit.ms}, what it holds so long after the first update that is held back.
 *
 * <p>The topic {@code idle.topic}, if there is one, is merged into the input.
 *
 * <p>Cogrouped, odd values are a stream of their own: its aggregator adds what is lacking to 101.
 *
 * <p>Output values are {@code start << 22 | sum}; a sum of 0 says that a session is no more, as another has taken it
 * in. Timestamps are those of the results: the youngest record of a window, the end of a session.
 */
final class Windows {

    static final String SUMS = "windowed-sums";
    static final String HELD = "windowed-sums-held"; // by suppress, which calls its store so
    static final int SUM_BITS = 22;
    static final int MORE = 101; // than any value
    private static final String STRATEGY = "org.apache.kafka.streams.kstream.EmitStrategy";
    private static final String INPUT = "input";
    private static final String RESULTS = "results";

    private Windows() {}

    static Topology topology(Settings settings, Progress progress) {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<Integer, Integer> input = stream(builder, settings.text("input.topic"), INPUT);
        Optional<String> idle = settings.optional("idle.topic");
        if (idle.isPresent()) {
            input = input.merge(stream(builder, idle.get(), "idle"), Named.as("merged"));
        }
        KTable<Windowed<Integer>, Integer> sums =
                settings.flag("cogrouped") ? cogrouped(input, settings) : sums(grouped(input), settings);
        if (settings.flag("suppressed")) {
            sums = sums.suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()).withName(HELD));
        }
        Optional<Integer> limit = settings.optionalCount("limit.ms");
        if (limit.isPresent()) {
            sums = sums.suppress(Suppressed.<Windowed<Integer>>untilTimeLimit(
                            Duration.ofMillis(limit.get()), BufferConfig.unbounded())
                    .withName(HELD));
        }
        sums.toStream(Named.as(RESULTS));
        return builder.build()
                .addProcessor("progress", () -> new GlobalJoin.Count(progress), INPUT)
                .addProcessor("told", Tell::new, RESULTS)
                .addSink(
                        "output", settings.text("output.topic"), new IntegerSerializer(), new LongSerializer(),
                        KeyPartitioner.of(), "told");
    }

    private static KStream<Integer, Integer> stream(StreamsBuilder builder, String topic, String name) {
        return builder.stream(topic, Consumed.with(Serdes.Integer(), Serdes.Integer()).withName(name));
    }

    private static KGroupedStream<Integer, Integer> grouped(KStream<Integer, Integer> stream) {
        return stream.groupByKey(Grouped.with(Serdes.Integer(), Serdes.Integer()));
    }

    private static KTable<Windowed<Integer>, Integer> cogrouped(KStream<Integer, Integer> input, Settings settings) {
        settings.oneOf("kind", "tumbling");
        return grouped(input.filter((key, value) -> value % 2 == 0))
                .<Integer>cogroup((key, value, sum) -> sum + value)
                .cogroup(grouped(input.filter((key, value) -> value % 2 != 0)), (key, value, sum) -> sum + MORE - value)
                .windowedBy(TimeWindows.ofSizeAndGrace(size(settings), grace(settings)))
                .aggregate(() -> 0, store(settings));
    }

    private static KTable<Windowed<Integer>, Integer> sums(
            KGroupedStream<Integer, Integer> input, Settings settings) {
        Duration size = size(settings);
        Duration grace = grace(settings);
        boolean onClose = settings.flag("on.close");
        String kind = settings.oneOf("kind", "tumbling", "hopping", "session", "sliding");
        if (kind.equals("session")) {
            settings.flag("supplied"); // of windows
            StoreKind stores = StoreKind.of(settings);
            SessionWindowedKStream<Integer, Integer> sessions =
                    input.windowedBy(SessionWindows.ofInactivityGapAndGrace(size, grace));
            return (onClose ? emittedOnClose(sessions, SessionWindowedKStream.class) : sessions)
                    .aggregate(
                            () -> 0,
                            (key, value, sum) -> sum + value,
                            (key, one, other) -> one + other,
                            onClose
                                    ? stores.sessionsOfDsl(SUMS, kept(settings), Serdes.Integer(), Serdes.Integer())
                                    : stores.sessions(SUMS, kept(settings), Serdes.Integer(), Serdes.Integer()));
        }
        TimeWindows windows = TimeWindows.ofSizeAndGrace(size, grace);
        TimeWindowedKStream<Integer, Integer> windowed = kind.equals("sliding")
                ? input.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(size, grace))
                : input.windowedBy(kind.equals("hopping") ? windows.advanceBy(size.dividedBy(2)) : windows);
        return (onClose ? emittedOnClose(windowed, TimeWindowedKStream.class) : windowed)
                .aggregate(() -> 0, (key, value, sum) -> sum + value, store(settings));
    }

    private static Materialized<Integer, Integer, WindowStore<Bytes, byte[]>> store(Settings settings) {
        StoreKind stores = StoreKind.of(settings);
        Duration kept = kept(settings);
        Duration size = size(settings);
        boolean supplied = settings.flag("supplied");
        if (settings.flag("on.close")) {
            return stores.windowsOfDsl(SUMS, kept, size, Serdes.Integer(), Serdes.Integer());
        }
        return supplied
                ? stores.suppliedWindows(SUMS, kept, size, Serdes.Integer(), Serdes.Integer())
                : stores.windows(SUMS, kept, size, Serdes.Integer(), Serdes.Integer());
    }

    private static Duration size(Settings settings) {
        return Duration.ofMillis(settings.count("size.ms"));
    }

    private static Duration grace(Settings settings) {
        return Duration.ofMillis(settings.count("grace.ms"));
    }

    private static Duration kept(Settings settings) {
        return Duration.ofMillis(settings.count("retention.ms"));
    }

    /** The aggregation emits only what a window holds when it has closed (KIP-825, from 3.3 on). */
    static <T> T emittedOnClose(T windowed, Class<? super T> type) {
        Class<?> strategy = Newer.type(STRATEGY, "EmitStrategy; take 3.3.0 or later, or on.close=false");
        Object onClose = Newer.call(null, strategy, "onWindowClose", List.of());
        @SuppressWarnings("unchecked")
        T emitted = (T) Newer.call(windowed, type, "emitStrategy", List.of(strategy), onClose);
        return emitted;
    }

    static long result(long start, Integer sum) {
        if (sum != null && (sum < 1 || sum >> SUM_BITS != 0)) {
            throw new IllegalStateException(
                    "The window from " + start + " has the sum " + sum + ", but it must be from 1 to "
                            + ((1 << SUM_BITS) - 1) + "; take smaller values, or shorter windows.");
        }
        return start << SUM_BITS | (sum == null ? 0 : sum);
    }

    /** Makes a result an integer and a long, by which scenario and readers know it. */
    private static final class Tell implements Processor<Windowed<Integer>, Integer, Integer, Long> {

        private ProcessorContext<Integer, Long> context;

        @Override
        public void init(ProcessorContext<Integer, Long> context) {
            this.context = context;
        }

        @Override
        public void process(Record<Windowed<Integer>, Integer> record) {
            context.forward(record.withKey(record.key().key())
                    .withValue(result(record.key().window().start(), record.value())));
        }
    }
}
