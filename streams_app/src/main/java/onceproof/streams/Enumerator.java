package onceproof.streams;

import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.ToIntFunction;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Reproduction 000, KAFKA-14172: gives each key an ID that no other key has, and the same one whenever the key comes
 * again.
 *
 * <p>Two stores, both with a changelog: {@code ids} (key to ID) and {@code counter} (at key 0, the counter of the ID
 * given last). A new key gets {@code counter * partitions + partition}.
 */
final class Enumerator implements Processor<Integer, Integer, Integer, Integer> {

    static final String COUNTER = "counter";
    static final String IDS = "ids";

    private final int partitions;
    private final ToIntFunction<TaskId> partitionOf;
    private final Progress progress;
    private final Contents contents;

    private ProcessorContext<Integer, Integer> context;
    private KeyValueStore<Integer, Integer> counter;
    private KeyValueStore<Integer, Integer> ids;
    private LongAdder processed;

    private Enumerator(int partitions, ToIntFunction<TaskId> partitionOf, Progress progress, Contents contents) {
        this.partitions = partitions;
        this.partitionOf = partitionOf;
        this.progress = progress;
        this.contents = contents;
    }

    static Topology topology(Settings settings, Progress progress) {
        return topology(settings, progress, TaskId::partition);
    }

    /** With another source of the partition: TopologyTestDriver knows only partition 0. */
    static Topology topology(Settings settings, Progress progress, ToIntFunction<TaskId> partitionOf) {
        String input = settings.text("input.topic");
        String output = settings.text("output.topic");
        int partitions = settings.count("partitions");
        StoreKind kind = StoreKind.of(settings);
        Contents contents = Contents.of(settings, progress);

        return new Topology()
                .addSource("input", new IntegerDeserializer(), new IntegerDeserializer(), input)
                .addProcessor("enumerator", () -> new Enumerator(partitions, partitionOf, progress, contents), "input")
                .addStateStore(kind.builder(COUNTER, Serdes.Integer(), Serdes.Integer()), "enumerator")
                .addStateStore(kind.builder(IDS, Serdes.Integer(), Serdes.Integer()), "enumerator")
                .addSink("output", output, new IntegerSerializer(), new IntegerSerializer(), KeyPartitioner.of(), "enumerator");
    }

    @Override
    public void init(ProcessorContext<Integer, Integer> context) {
        this.context = context;
        counter = context.getStateStore(COUNTER);
        ids = context.getStateStore(IDS);
        processed = progress.counter(context.taskId());
    }

    @Override
    public void process(Record<Integer, Integer> record) {
        contents.tellOnce(context.taskId(), List.of(counter, ids));
        Integer id = ids.get(record.key());
        if (id == null) {
            id = nextId();
            ids.put(record.key(), id);
        }
        context.forward(record.withValue(id));
        processed.increment();
    }

    private int nextId() {
        Integer last = counter.get(0);
        int next = last == null ? 0 : last + 1;
        counter.put(0, next);
        return next * partitions + partitionOf.applyAsInt(context.taskId());
    }
}
