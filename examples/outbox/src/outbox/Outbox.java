package outbox;

import java.time.Duration;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;

/** Keeps messages, and sends no more of them at a time than their recipient bears. */
public final class Outbox implements Supplier<Topology> {

    private static final Serde<String> TEXT = Serdes.String();
    private static final Duration EVERY = Duration.ofMillis(200);
    private static final int AT_A_TIME = 60; // of each partition
    private static final String WAITING = "waiting";

    @Override
    public Topology get() {
        return new Topology()
                .addSource("messages", TEXT.deserializer(), TEXT.deserializer(), "messages")
                .addProcessor("outbox", new Sending(), "messages")
                .addSink("sent", "sent", TEXT.serializer(), TEXT.serializer(), "outbox");
    }

    private static final class Sending implements ProcessorSupplier<String, String, String, String> {

        @Override
        public Set<StoreBuilder<?>> stores() {
            return Set.of(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(WAITING), TEXT, TEXT));
        }

        @Override
        public Processor<String, String, String, String> get() {
            return new Processor<>() {
                private ProcessorContext<String, String> context;
                private KeyValueStore<String, String> waiting;

                @Override
                public void init(ProcessorContext<String, String> context) {
                    this.context = context;
                    waiting = context.getStateStore(WAITING);
                    context.schedule(EVERY, PunctuationType.WALL_CLOCK_TIME, this::send);
                }

                @Override
                public void process(Record<String, String> message) {
                    waiting.put(message.key(), message.value());
                }

                private void send(long now) {
                    try (KeyValueIterator<String, String> messages = waiting.all()) {
                        for (int sent = 0; sent < AT_A_TIME && messages.hasNext(); sent++) {
                            KeyValue<String, String> message = messages.next();
                            context.forward(new Record<>(message.key, message.value, now));
                            waiting.delete(message.key);
                        }
                    }
                }
            };
        }
    }
}
