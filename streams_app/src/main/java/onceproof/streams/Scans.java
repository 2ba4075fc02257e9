package onceproof.streams;

import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * KAFKA-18326: deletes keys of the store {@code records}, and scans it at once: what is deleted must not be found.
 *
 * <p>An input record with the value {@value #PUT} puts its key into the store; any other deletes it and emits what a
 * scan then finds: {@code number of keys << 32 | their sum}. It scans the keys that are at most {@code reach} away,
 * or, for every {@code all.every}-th key, the whole store.
 */
final class Scans implements Processor<Integer, Integer, Integer, Long> {

    static final String RECORDS = "records";
    static final int PUT = 1;

    private final int reach;
    private final int allEvery;
    private final Progress progress;
    private ProcessorContext<Integer, Long> context;
    private KeyValueStore<Integer, Integer> records;
    private LongAdder processed;

    private Scans(int reach, int allEvery, Progress progress) {
        this.reach = reach;
        this.allEvery = allEvery;
        this.progress = progress;
    }

    static Topology topology(Settings settings, Progress progress) {
        int reach = settings.count("reach");
        int allEvery = settings.count("all.every");
        StoreKind kind = StoreKind.of(settings);
        return new Topology()
                .addSource("input", new IntegerDeserializer(), new IntegerDeserializer(), settings.text("input.topic"))
                .addProcessor("scans", () -> new Scans(reach, allEvery, progress), "input")
                .addStateStore(kind.builder(RECORDS, Serdes.Integer(), Serdes.Integer()), "scans")
                .addSink(
                        "output", settings.text("output.topic"), new IntegerSerializer(), new LongSerializer(),
                        KeyPartitioner.of(), "scans");
    }

    @Override
    public void init(ProcessorContext<Integer, Long> context) {
        this.context = context;
        records = context.getStateStore(RECORDS);
        processed = progress.counter(context.taskId());
    }

    @Override
    public void process(Record<Integer, Integer> record) {
        int key = record.key();
        if (record.value() == PUT) {
            records.put(key, record.value());
        } else {
            records.delete(key);
            try (KeyValueIterator<Integer, Integer> found = scan(key)) {
                context.forward(record.withValue(told(found)));
            }
        }
        processed.increment();
    }

    private KeyValueIterator<Integer, Integer> scan(int key) {
        // In serialized form, a number below 0 comes after the others.
        return key % allEvery == 0 ? records.all() : records.range(Math.max(0, key - reach), key + reach);
    }

    private static long told(KeyValueIterator<Integer, Integer> found) {
        long number = 0;
        long sum = 0;
        while (found.hasNext()) {
            number++;
            sum += found.next().key;
        }
        return number << 32 | sum;
    }
}
