package onceproof.streams;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;

/**
 * A processor of the Processor API that a search has drawn: it passes on each value behind the one that it remembers of
 * the key, and forgets a key by a null. If it has a clock, it passes on all that it remembers every so often, as
 * {@code value!} each, with the time of the punctuation.
 */
final class Remember implements Processor<String, String, String, String> {

    private static final Duration EVERY = Duration.ofMillis(100);

    private final String store;
    private final String clock;
    private ProcessorContext<String, String> context;
    private KeyValueStore<String, String> remembered;

    private Remember(String store, String clock) {
        this.store = store;
        this.clock = clock;
    }

    /**
     * The stream that it makes of a stream, from 3.3.0 on.
     *
     * @param store of the builder, of texts
     * @param clock {@code stream}, {@code wall} or {@code none}
     */
    static Object applied(KStream<String, String> stream, StreamsBuilder builder, StoreBuilder<?> store, String clock) {
        builder.addStateStore(store);
        ProcessorSupplier<String, String, String, String> supplier = () -> new Remember(store.name(), clock);
        List<Class<?>> types = List.of(ProcessorSupplier.class, String[].class);
        return Newer.call(stream, KStream.class, "process", types, supplier, new String[] {store.name()});
    }

    @Override
    public void init(ProcessorContext<String, String> context) {
        this.context = context;
        remembered = context.getStateStore(store);
        if (!clock.equals("none")) {
            context.schedule(
                    EVERY, clock.equals("stream") ? PunctuationType.STREAM_TIME : PunctuationType.WALL_CLOCK_TIME, this::report);
        }
    }

    @Override
    public void process(Record<String, String> record) {
        String before = remembered.get(record.key());
        remembered.put(record.key(), record.value());
        context.forward(record.withValue((before == null ? "-" : before) + "/" + (record.value() == null ? "-" : record.value())));
    }

    private void report(long now) {
        List<KeyValue<String, String>> all = new ArrayList<>();
        try (KeyValueIterator<String, String> entries = remembered.all()) {
            entries.forEachRemaining(all::add);
        }
        all.forEach(entry -> context.forward(new Record<>(entry.key, entry.value + "!", now)));
    }
}
