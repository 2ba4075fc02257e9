package onceproof.streams;

import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * KAFKA-7663: as {@link GlobalJoin}, with a global store in place of the table, whose own processor adds to each number
 * that it puts; so must whatever restores the store.
 */
final class GlobalStore implements Processor<Integer, Integer, Integer, Long> {

    private static final String ENTRIES = "entries";

    private final Progress progress;
    private ProcessorContext<Integer, Long> context;
    private KeyValueStore<Integer, Long> entries;
    private LongAdder processed;

    private GlobalStore(Progress progress) {
        this.progress = progress;
    }

    static Topology topology(Settings settings, Progress progress, int added) {
        String output = settings.text("output.topic");
        ProcessorSupplier<Integer, Long, Void, Void> update = () -> new Update(added);
        return new Topology()
                .addGlobalStore(
                        StoreKind.of(settings).builder(ENTRIES, Serdes.Integer(), Serdes.Long()).withLoggingDisabled(),
                        "put", new IntegerDeserializer(), new LongDeserializer(), output, "update", update)
                .addSource("input", new IntegerDeserializer(), new IntegerDeserializer(), settings.text("input.topic"))
                .addProcessor("join", () -> new GlobalStore(progress), "input")
                .addSink("output", output, new IntegerSerializer(), new LongSerializer(), KeyPartitioner.of(), "join");
    }

    @Override
    public void init(ProcessorContext<Integer, Long> context) {
        this.context = context;
        entries = context.getStateStore(ENTRIES);
        processed = progress.counter(context.taskId());
    }

    @Override
    public void process(Record<Integer, Integer> record) {
        int value = record.value();
        context.forward(record.withValue(
                value < 0 ? Counting.pair(0, -value) : GlobalJoin.join(value, value == 0 ? null : entries.get(value - 1))));
        processed.increment();
    }

    /** Puts each number that comes in into the store, with what is added to it. */
    private static final class Update implements Processor<Integer, Long, Void, Void> {

        private final int added;
        private KeyValueStore<Integer, Long> entries;

        Update(int added) {
            this.added = added;
        }

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            entries = context.getStateStore(ENTRIES);
        }

        @Override
        public void process(Record<Integer, Long> record) {
            entries.put(record.key(), record.value() + added);
        }
    }
}
