package onceproof.streams;

import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Reproduction 004: deletes records of the store {@code records} and answers whether there was one.
 *
 * <p>An input record with the value {@value #PUT} puts its key into the store; any other deletes it and emits
 * {@value #TRUE} if it was there, else {@value #FALSE}. With {@code delete} = {@code downstream} the first processor
 * only looks and answers, and the record is deleted by a second one, when the answer comes back from the output topic:
 * the remedy that the reproduction discusses.
 */
final class Deleter implements Processor<Integer, Integer, Integer, Integer> {

    static final String RECORDS = "records";
    static final int PUT = 1;
    static final int TRUE = 1;
    static final int FALSE = 0;

    private final boolean atOnce;
    private final Progress progress;
    private ProcessorContext<Integer, Integer> context;
    private KeyValueStore<Integer, Integer> records;
    private LongAdder processed;

    private Deleter(boolean atOnce, Progress progress) {
        this.atOnce = atOnce;
        this.progress = progress;
    }

    static Topology topology(Settings settings, Progress progress) {
        String output = settings.text("output.topic");
        boolean atOnce = settings.oneOf("delete", "at-once", "downstream").equals("at-once");
        StoreKind kind = StoreKind.of(settings);
        Serde<Integer> integers = Serdes.Integer();
        Topology topology = new Topology()
                .addSource("input", new IntegerDeserializer(), new IntegerDeserializer(), settings.text("input.topic"))
                .addProcessor("deleter", () -> new Deleter(atOnce, progress), "input")
                .addStateStore(kind.builder(RECORDS, integers, integers), "deleter")
                .addSink(
                        "output", output, new IntegerSerializer(), new IntegerSerializer(), KeyPartitioner.of(),
                        "deleter");
        if (!atOnce) {
            topology.addSource("answers", new IntegerDeserializer(), new IntegerDeserializer(), output)
                    .addProcessor("downstream", Downstream::new, "answers")
                    .connectProcessorAndStateStores("downstream", RECORDS);
        }
        return topology;
    }

    @Override
    public void init(ProcessorContext<Integer, Integer> context) {
        this.context = context;
        records = context.getStateStore(RECORDS);
        processed = progress.counter(context.taskId());
    }

    @Override
    public void process(Record<Integer, Integer> record) {
        if (record.value() == PUT) {
            records.put(record.key(), record.value());
        } else {
            boolean was = (atOnce ? records.delete(record.key()) : records.get(record.key())) != null;
            context.forward(record.withValue(was ? TRUE : FALSE));
        }
        processed.increment();
    }

    /** Deletes what the answer said was there. */
    private static final class Downstream implements Processor<Integer, Integer, Void, Void> {

        private KeyValueStore<Integer, Integer> records;

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            records = context.getStateStore(RECORDS);
        }

        @Override
        public void process(Record<Integer, Integer> answer) {
            if (answer.value() == TRUE) {
                records.delete(answer.key());
            }
        }
    }
}
