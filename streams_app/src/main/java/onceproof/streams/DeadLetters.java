package onceproof.streams;

import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/**
 * Emits each record as it is, except poison: records with a value below 0. Those fail where the setting {@code
 * failing} says, in the {@code deserialization} or in the {@code processing}, and an exception handler skips them. With
 * the setting {@code commits} it requests a commit with each record that comes to it.
 */
final class DeadLetters implements Processor<Integer, Integer, Integer, Integer> {

    private static final String INPUT = "input";
    private static final String DESERIALIZATION = "deserialization";

    private final Progress progress;
    private final boolean commits;
    private ProcessorContext<Integer, Integer> context;
    private LongAdder processed;

    DeadLetters(Progress progress, boolean commits) {
        this.progress = progress;
        this.commits = commits;
    }

    static Topology topology(Settings settings, Progress progress) {
        boolean early = settings.text("failing").equals(DESERIALIZATION);
        Deserializer<Integer> values = early ? new Failing() : new IntegerDeserializer();
        boolean commits = settings.flag("commits");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(
                settings.text("input.topic"),
                Consumed.with(Serdes.Integer(), Serdes.serdeFrom(new IntegerSerializer(), values)).withName(INPUT));
        return builder.build()
                .addProcessor("copy", () -> new DeadLetters(progress, commits), INPUT)
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
        if (commits) {
            context.commit();
        }
        if (record.value() < 0) {
            throw new IllegalStateException("The value " + record.value() + " cannot be processed.");
        }
        context.forward(record);
        processed.increment();
    }

    /** Takes no number below 0. */
    private static final class Failing extends IntegerDeserializer {

        @Override
        public Integer deserialize(String topic, byte[] data) {
            Integer value = super.deserialize(topic, data);
            if (value != null && value < 0) {
                throw new SerializationException("The value " + value + " cannot be read.");
            }
            return value;
        }
    }
}
