package onceproof.streams;

import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/** KAFKA-19479: puts out each record as it is. */
final class Copy implements Processor<Integer, Integer, Integer, Integer> {

    private final Progress progress;
    private ProcessorContext<Integer, Integer> context;
    private LongAdder processed;

    private Copy(Progress progress) {
        this.progress = progress;
    }

    static Topology topology(Settings settings, Progress progress) {
        return new Topology()
                .addSource("input", new IntegerDeserializer(), new IntegerDeserializer(), settings.text("input.topic"))
                .addProcessor("copy", () -> new Copy(progress), "input")
                .addSink(
                        "output", settings.text("output.topic"), new IntegerSerializer(), new IntegerSerializer(),
                        KeyPartitioner.of(), "copy");
    }

    @Override
    public void init(ProcessorContext<Integer, Integer> context) {
        this.context = context;
        processed = progress.counter(context.taskId());
    }

    @Override
    public void process(Record<Integer, Integer> record) {
        context.forward(record);
        processed.increment();
    }
}
