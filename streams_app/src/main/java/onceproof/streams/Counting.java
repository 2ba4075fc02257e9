package onceproof.streams;

import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.api.RecordMetadata;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Reproduction 001, KAFKA-14624: each record of a key carries the number that follows the previous record's, which the
 * store must hold.
 *
 * <p>The store {@code last} keeps the last number of each key; a key that it does not hold has the number 0. Each
 * record emits its own number and the one that it found: {@code number << 32 | found}. A number that is too small
 * is reported as an event {@code stale-read}.
 *
 * <p>KAFKA-16017: with {@code corrupt.after} the task is declared to be corrupted, once, after so many records. With
 * {@code fail.after} the processor throws, once, after so many.
 */
final class Counting implements Processor<Integer, Integer, Integer, Long> {

    static final String LAST = "last";
    private static final int NEVER = -1;

    private final Progress progress;
    private final AtomicInteger left;
    private final AtomicInteger untilFailure;
    private ProcessorContext<Integer, Long> context;
    private KeyValueStore<Integer, Integer> last;
    private LongAdder processed;

    private Counting(Progress progress, AtomicInteger left, AtomicInteger untilFailure) {
        this.progress = progress;
        this.left = left;
        this.untilFailure = untilFailure;
    }

    static Topology topology(Settings settings, Progress progress) {
        StoreKind kind = StoreKind.of(settings);
        AtomicInteger left = new AtomicInteger(settings.optionalCount("corrupt.after").orElse(NEVER));
        AtomicInteger untilFailure = new AtomicInteger(settings.optionalCount("fail.after").orElse(NEVER));
        return new Topology()
                .addSource("input", new IntegerDeserializer(), new IntegerDeserializer(), settings.text("input.topic"))
                .addProcessor("counting", () -> new Counting(progress, left, untilFailure), "input")
                .addStateStore(kind.builder(LAST, Serdes.Integer(), Serdes.Integer()), "counting")
                .addSink(
                        "output", settings.text("output.topic"), new IntegerSerializer(), new LongSerializer(),
                        KeyPartitioner.of(), "counting");
    }

    static long pair(int number, int found) {
        return (long) number << Integer.SIZE | found;
    }

    @Override
    public void init(ProcessorContext<Integer, Long> context) {
        this.context = context;
        last = context.getStateStore(LAST);
        processed = progress.counter(context.taskId());
    }

    @Override
    public void process(Record<Integer, Integer> record) {
        corruptInTime();
        failInTime();
        int number = record.value();
        Integer held = last.get(record.key());
        int found = held == null ? 0 : held;
        if (found < number - 1) {
            tell(record.key(), number - 1, found);
        }
        last.put(record.key(), number);
        context.forward(record.withValue(pair(number, found)));
        processed.increment();
    }

    /** Once in a process: its task is closed, its store wiped and restored, and this record comes again. */
    private void corruptInTime() {
        if (left.get() != NEVER && left.getAndDecrement() == 0) {
            throw new TaskCorruptedException(Set.of(context.taskId()));
        }
    }

    /** Once in a process, also if another thread continues with the task. */
    private void failInTime() {
        if (untilFailure.get() != NEVER && untilFailure.getAndDecrement() == 0) {
            throw new IllegalStateException("The processor fails, as fail.after asks for.");
        }
    }

    private void tell(int key, int expected, int found) {
        progress.tell("stale-read", Events.fields(
                "task", context.taskId().toString(),
                "thread", Thread.currentThread().getName(),
                "partition", context.taskId().partition(),
                "offset", context.recordMetadata().map(RecordMetadata::offset).orElse(null),
                "key", key,
                "expected", expected,
                "found", found));
    }
}
