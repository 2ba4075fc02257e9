package onceproof.streams;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/**
 * KAFKA-19479: emits each record as it is.
 *
 * <p>CVE-2026-111496: with the settings {@code punctuate.ms} and {@code forever.ms} it also punctuates by stream time,
 * and takes the latter for the time of a record that is valid forever. It reports how often it was called at each time.
 */
final class Copy implements Processor<Integer, Integer, Integer, Integer> {

    static final int FOREVER = Integer.MAX_VALUE; // the value of such a record
    private static final String INPUT = "input";

    private final Duration interval;
    private final Times times;
    private final Progress progress;
    private ProcessorContext<Integer, Integer> context;
    private LongAdder processed;
    private long punctuatedAt = -1;
    private long punctuations; // at that time
    private long toldAt; // of them

    private Copy(Duration interval, Times times, Progress progress) {
        this.interval = interval;
        this.times = times;
        this.progress = progress;
    }

    static Topology topology(Settings settings, Progress progress) {
        Duration interval = settings.optionalCount("punctuate.ms").map(Duration::ofMillis).orElse(null);
        Times times = new Times(settings.optional("forever.ms").map(Long::parseLong).orElse(null));
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(
                settings.text("input.topic"),
                Consumed.with(Serdes.Integer(), Serdes.Integer()).withTimestampExtractor(times).withName(INPUT));
        return builder.build()
                .addProcessor("copy", () -> new Copy(interval, times, progress), INPUT)
                .addSink(
                        "output", settings.text("output.topic"), new IntegerSerializer(), new IntegerSerializer(),
                        KeyPartitioner.of(), "copy");
    }

    @Override
    public void init(ProcessorContext<Integer, Integer> context) {
        this.context = context;
        processed = progress.counter(context.taskId());
        if (interval != null) {
            context.schedule(interval, PunctuationType.STREAM_TIME, this::punctuate);
        }
    }

    @Override
    public void process(Record<Integer, Integer> record) {
        context.forward(times.restore(record, context));
        processed.increment();
    }

    /** Tells of the first call at a time, and of the tenth, the hundredth and so on, as there may be no end of them. */
    private void punctuate(long time) {
        if (time != punctuatedAt) {
            punctuatedAt = time;
            punctuations = 0;
            toldAt = 1;
        }
        if (++punctuations == toldAt) {
            toldAt *= 10;
            progress.tell(
                    "punctuated",
                    Events.fields("task", context.taskId().toString(), "at", time, "times", punctuations));
        }
    }

    /** The time of a record: its own, unless it is valid forever. The output has its own in any case. */
    private static final class Times implements TimestampExtractor {

        private final Long forever;
        private final Map<String, Long> own = new ConcurrentHashMap<>(); // by partition and offset

        Times(Long forever) {
            this.forever = forever;
        }

        @Override
        public long extract(ConsumerRecord<Object, Object> record, long partitionTime) {
            if (forever == null || !record.value().equals(FOREVER)) {
                return record.timestamp();
            }
            own.put(record.partition() + "@" + record.offset(), record.timestamp());
            return forever;
        }

        Record<Integer, Integer> restore(Record<Integer, Integer> record, ProcessorContext<Integer, Integer> context) {
            Long time = context.recordMetadata()
                    .map(read -> own.remove(read.partition() + "@" + read.offset()))
                    .orElse(null);
            return time == null ? record : record.withTimestamp(time);
        }
    }
}
