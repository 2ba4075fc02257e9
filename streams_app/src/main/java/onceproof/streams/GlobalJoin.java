package onceproof.streams;

import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;

/**
 * KAFKA-19208: left-joins each record with a global table, so that each is emitted, even one that asks for no key.
 *
 * <p>A record with a value below 0 is an entry of the table and is emitted as it is: the table is made of the output,
 * so that the input alone says what must be emitted. Any other is joined with the entry of the key before its value,
 * or, if its value is 0, asks for no key. Output values are {@code value << 32 | entry}; 0 for the value of an entry,
 * or where nothing is found.
 */
final class GlobalJoin {

    private static final String INPUT = "input";

    private GlobalJoin() {}

    static Topology topology(Settings settings, Progress progress) {
        int added = settings.optionalCount("added").orElse(0);
        if (settings.oneOf("table", "global-table", "global-store").equals("global-store")) {
            return GlobalStore.topology(settings, progress, added);
        }
        String output = settings.text("output.topic");
        StreamsBuilder builder = new StreamsBuilder();
        GlobalKTable<Integer, Long> entries = builder.globalTable(
                output,
                Consumed.with(Serdes.Integer(), Serdes.Long()),
                StoreKind.of(settings).materialized("entries", Serdes.Integer(), Serdes.Long()));
        KStream<Integer, Integer> input = builder.stream(
                settings.text("input.topic"), Consumed.with(Serdes.Integer(), Serdes.Integer()).withName(INPUT));
        KStream<Integer, Long> put =
                input.filter((key, value) -> value < 0).mapValues(value -> Counting.pair(0, -value));
        KStream<Integer, Long> joined = input.filter((key, value) -> value >= 0)
                .leftJoin(entries, (key, value) -> value == 0 ? null : value - 1, GlobalJoin::join);
        put.merge(joined).to(output, Produced.with(Serdes.Integer(), Serdes.Long(), KeyPartitioner.of()));
        return builder.build().addProcessor("progress", () -> new Count(progress), INPUT);
    }

    static Long join(int value, Long entry) {
        return Counting.pair(value, entry == null ? 0 : entry.intValue());
    }

    /** Counts what was processed: the DSL's own way to add a processor differs from release to release. */
    static final class Count implements Processor<Integer, Integer, Void, Void> {

        private final Progress progress;
        private LongAdder processed;

        Count(Progress progress) {
            this.progress = progress;
        }

        @Override
        public void init(ProcessorContext<Void, Void> context) {
            processed = progress.counter(context.taskId());
        }

        @Override
        public void process(Record<Integer, Integer> record) {
            processed.increment();
        }
    }
}
