package onceproof.streams;

import java.nio.ByteBuffer;
import java.util.Random;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;

/**
 * Reproduction 003, KAFKA-17455: stores a large random value for each record, so that the changelog is what the
 * producer sends.
 *
 * <p>The values of the store {@code values} begin with the record's own value; the rest is random, so that nothing
 * can compress it.
 */
final class Values implements Processor<Integer, Integer, Void, Void> {

    static final String VALUES = "values";

    private final int bytes;
    private final Progress progress;
    private final Random random = new Random();
    private KeyValueStore<Integer, byte[]> values;
    private LongAdder processed;

    private Values(int bytes, Progress progress) {
        this.bytes = bytes;
        this.progress = progress;
    }

    static Topology topology(Settings settings, Progress progress) {
        int bytes = settings.count("value.bytes");
        if (bytes < Integer.BYTES) {
            throw new IllegalArgumentException("Setting value.bytes is " + bytes + ", but must be at least 4.");
        }
        StoreKind kind = StoreKind.of(settings);
        return new Topology()
                .addSource("input", new IntegerDeserializer(), new IntegerDeserializer(), settings.text("input.topic"))
                .addProcessor("values", () -> new Values(bytes, progress), "input")
                .addStateStore(kind.builder(VALUES, Serdes.Integer(), Serdes.ByteArray()), "values");
    }

    @Override
    public void init(ProcessorContext<Void, Void> context) {
        values = context.getStateStore(VALUES);
        processed = progress.counter(context.taskId());
    }

    @Override
    public void process(Record<Integer, Integer> record) {
        byte[] value = new byte[bytes];
        random.nextBytes(value);
        ByteBuffer.wrap(value).putInt(record.value());
        values.put(record.key(), value);
        processed.increment();
    }
}
