package onceproof.streams;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Reproduction 002, KAFKA-20685: emits the first record of each key and drops the others. The store {@code seen},
 * which may be of any kind, remembers the keys; where the kind has times, at the time of the record.
 *
 * <p>With {@code punctuate.ms} a wall-clock punctuator writes, too, while records flow: each time it is called, it puts
 * a new key (negative, derived from the clock) with the number of records since the last one. Nothing ever writes these
 * keys again, whatever is redelivered.
 *
 * <p>If the store remembers a key of a transaction that was aborted, the key's record is dropped when it is delivered
 * again: exactly once becomes zero times.
 */
final class Dedup implements Processor<Integer, Integer, Integer, Integer> {

    static final String SEEN = "seen";

    private final Progress progress;
    private final Contents contents;
    private final Optional<Integer> punctuateMillis;
    private ProcessorContext<Integer, Integer> context;
    private StateStore store;
    private Numbers seen;
    private LongAdder processed;
    private int sinceTick;

    private Dedup(Progress progress, Contents contents, Optional<Integer> punctuateMillis) {
        this.progress = progress;
        this.contents = contents;
        this.punctuateMillis = punctuateMillis;
    }

    static Topology topology(Settings settings, Progress progress) {
        StoreKind kind = StoreKind.ofAny(settings);
        Optional<Integer> punctuateMillis = settings.optionalCount("punctuate.ms");
        Contents contents = Contents.of(settings, progress);
        return new Topology()
                .addSource("input", new IntegerDeserializer(), new IntegerDeserializer(), settings.text("input.topic"))
                .addProcessor("dedup", () -> new Dedup(progress, contents, punctuateMillis), "input")
                .addStateStore(kind.builder(SEEN, Serdes.Integer(), Serdes.Integer()), "dedup")
                .addSink(
                        "output", settings.text("output.topic"), new IntegerSerializer(), new IntegerSerializer(),
                        KeyPartitioner.of(), "dedup");
    }

    @Override
    public void init(ProcessorContext<Integer, Integer> context) {
        this.context = context;
        store = context.getStateStore(SEEN);
        seen = Numbers.of(store);
        processed = progress.counter(context.taskId());
        punctuateMillis.ifPresent(millis ->
                context.schedule(Duration.ofMillis(millis), PunctuationType.WALL_CLOCK_TIME, this::tick));
    }

    private void tick(long now) {
        if (sinceTick > 0) { // an idle task comes to rest
            seen.put(tickKey(now), sinceTick, now);
            sinceTick = 0;
        }
    }

    /** Below 0, where no record has its key; it repeats only after 24 days. */
    static int tickKey(long now) {
        return (int) now | Integer.MIN_VALUE;
    }

    @Override
    public void process(Record<Integer, Integer> record) {
        contents.tellOnce(context.taskId(), List.of(store));
        if (seen.get(record.key(), record.timestamp()) == null) {
            seen.put(record.key(), record.value(), record.timestamp());
            context.forward(record);
        }
        sinceTick++;
        processed.increment();
    }
}
