package onceproof.streams;

import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Seed 002, KAFKA-20685: puts out the first record of each key and drops the others. The store {@code seen} remembers.
 *
 * <p>If the store remembers a key of a transaction that was aborted, the key's record is dropped when it is delivered
 * again: exactly once becomes zero times.
 */
final class Dedup implements Processor<Integer, Integer, Integer, Integer> {

    static final String SEEN = "seen";

    private final Progress progress;
    private final Contents contents;
    private ProcessorContext<Integer, Integer> context;
    private KeyValueStore<Integer, Integer> seen;
    private LongAdder processed;

    private Dedup(Progress progress, Contents contents) {
        this.progress = progress;
        this.contents = contents;
    }

    static Topology topology(Settings settings, Progress progress) {
        StoreKind kind = StoreKind.of(settings);
        Contents contents = Contents.of(settings, progress);
        return new Topology()
                .addSource("input", new IntegerDeserializer(), new IntegerDeserializer(), settings.text("input.topic"))
                .addProcessor("dedup", () -> new Dedup(progress, contents), "input")
                .addStateStore(kind.builder(SEEN, Serdes.Integer(), Serdes.Integer()), "dedup")
                .addSink(
                        "output", settings.text("output.topic"), new IntegerSerializer(), new IntegerSerializer(),
                        KeyPartitioner.of(), "dedup");
    }

    @Override
    public void init(ProcessorContext<Integer, Integer> context) {
        this.context = context;
        seen = context.getStateStore(SEEN);
        processed = progress.counter(context.taskId());
    }

    @Override
    public void process(Record<Integer, Integer> record) {
        contents.tellOnce(context.taskId(), List.of(seen));
        if (seen.putIfAbsent(record.key(), record.value()) == null) {
            context.forward(record);
        }
        processed.increment();
    }
}
