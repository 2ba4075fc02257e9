package readings;

import java.time.Duration;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

/** Lets a reading pass if none of its meter came within the hour before. */
public final class Readings implements Supplier<Topology> {

    private static final Serde<String> TEXT = Serdes.String();
    private static final Duration HOUR = Duration.ofHours(1);
    private static final String SEEN = "seen";

    @Override
    public Topology get() {
        return new Topology()
                .addSource("readings", TEXT.deserializer(), TEXT.deserializer(), "readings")
                .addProcessor("first", new First(), "readings")
                .addSink("first-readings", "first-readings", TEXT.serializer(), TEXT.serializer(), "first");
    }

    private static final class First implements ProcessorSupplier<String, String, String, String> {

        @Override
        public Set<StoreBuilder<?>> stores() {
            return Set.of(Stores.windowStoreBuilder(
                    Stores.persistentWindowStore(SEEN, HOUR.multipliedBy(2), HOUR, false), TEXT, TEXT));
        }

        @Override
        public Processor<String, String, String, String> get() {
            return new Processor<>() {
                private ProcessorContext<String, String> context;
                private WindowStore<String, String> seen;

                @Override
                public void init(ProcessorContext<String, String> context) {
                    this.context = context;
                    seen = context.getStateStore(SEEN);
                }

                @Override
                public void process(Record<String, String> reading) {
                    if (!wasSeen(reading.key(), reading.timestamp())) {
                        seen.put(reading.key(), reading.value(), reading.timestamp());
                        context.forward(reading);
                    }
                }

                private boolean wasSeen(String meter, long time) {
                    try (WindowStoreIterator<String> before = seen.fetch(meter, time - HOUR.toMillis(), time)) {
                        return before.hasNext();
                    }
                }
            };
        }
    }
}
