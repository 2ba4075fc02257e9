package onceproof.streams;

import java.time.Duration;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;

/**
 * Holds each record back in the store {@code buffer} until a punctuation at or after its time plus its value, in ms.
 * None overtakes another: a punctuation releases records by their keys, which must grow, up to the first that is not
 * due yet.
 *
 * <p>Output values are {@code value << 32 | waited}: the ms from the time of the record to that of the punctuation.
 * Records keep their timestamps. An event {@code emptied} reports that a buffer has been emptied, with the last key.
 */
final class Outbox implements Processor<Integer, Integer, Integer, Long> {

    static final String BUFFER = "buffer";

    private final Duration interval;
    private final PunctuationType clock;
    private final Progress progress;
    private ProcessorContext<Integer, Long> context;
    private TimestampedKeyValueStore<Integer, Integer> buffer;
    private LongAdder processed;

    private Outbox(Duration interval, PunctuationType clock, Progress progress) {
        this.interval = interval;
        this.clock = clock;
        this.progress = progress;
    }

    static Topology topology(Settings settings, Progress progress) {
        Duration interval = Duration.ofMillis(settings.count("punctuate.ms"));
        PunctuationType clock = settings.oneOf("clock", "stream-time", "wall-clock").equals("wall-clock")
                ? PunctuationType.WALL_CLOCK_TIME
                : PunctuationType.STREAM_TIME;
        return new Topology()
                .addSource("input", new IntegerDeserializer(), new IntegerDeserializer(), settings.text("input.topic"))
                .addProcessor("outbox", () -> new Outbox(interval, clock, progress), "input")
                .addStateStore(
                        StoreKind.of(settings).timestamped(BUFFER, Serdes.Integer(), Serdes.Integer()), "outbox")
                .addSink(
                        "output", settings.text("output.topic"), new IntegerSerializer(), new LongSerializer(),
                        KeyPartitioner.of(), "outbox");
    }

    @Override
    public void init(ProcessorContext<Integer, Long> context) {
        this.context = context;
        buffer = context.getStateStore(BUFFER);
        processed = progress.counter(context.taskId());
        context.schedule(interval, clock, this::release);
    }

    @Override
    public void process(Record<Integer, Integer> record) {
        buffer.put(record.key(), ValueAndTimestamp.make(record.value(), record.timestamp()));
        processed.increment();
    }

    private void release(long time) {
        Integer last = null;
        try (KeyValueIterator<Integer, ValueAndTimestamp<Integer>> held = buffer.all()) {
            while (held.hasNext()) {
                KeyValue<Integer, ValueAndTimestamp<Integer>> first = held.next();
                long made = first.value.timestamp();
                int wait = first.value.value();
                if (made + wait > time) {
                    return;
                }
                context.forward(new Record<>(first.key, Counting.pair(wait, Math.toIntExact(time - made)), made));
                buffer.delete(first.key);
                last = first.key;
            }
        }
        if (last != null) {
            progress.tell("emptied", Events.fields("task", context.taskId().toString(), "last", last));
        }
    }
}
