package orders;

import java.time.Duration;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/** Orders and their payments: the first order of each id is accepted, joined with its payments, and summed up. */
public final class Orders {

    private static final Serde<String> TEXT = Serdes.String();

    private Orders() {}

    public static Topology topology(Properties config) {
        JoinWindows window = JoinWindows.ofTimeDifferenceWithNoGrace(
                Duration.ofMinutes(Long.parseLong(config.getProperty("orders.join.minutes"))));
        String prefix = config.getProperty("orders.topics.prefix");
        boolean inMemory = config.getProperty("orders.join.stores").equals("in-memory");
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> accepted =
                builder.stream(prefix + "orders", Consumed.with(TEXT, TEXT)).process(new AcceptOnce());
        accepted.to(prefix + "accepted-orders", Produced.with(TEXT, TEXT));
        KStream<String, String> paid = accepted.join(
                builder.stream(prefix + "payments", Consumed.with(TEXT, TEXT)),
                (order, payment) -> order + " by " + payment,
                window,
                StreamJoined.with(TEXT, TEXT, TEXT)
                        .withThisStoreSupplier(store("join-orders", window, inMemory))
                        .withOtherStoreSupplier(store("join-payments", window, inMemory)));
        paid.to(prefix + "paid-orders", Produced.with(TEXT, TEXT));
        paid.map((id, order) -> KeyValue.pair(order.split(" ")[0], Long.valueOf(order.split(" ")[1])))
                .groupByKey(Grouped.with(TEXT, Serdes.Long()))
                .reduce(Long::sum)
                .toStream()
                .to(prefix + "revenue", Produced.with(TEXT, Serdes.Long()));
        return builder.build();
    }

    private static WindowBytesStoreSupplier store(String name, JoinWindows window, boolean inMemory) {
        Duration size = Duration.ofMillis(window.size());
        return inMemory
                ? Stores.inMemoryWindowStore(name, size, size, true)
                : Stores.persistentWindowStore(name, size, size, true);
    }

    /** Lets the first order of each id pass, and drops those that come again. */
    private static final class AcceptOnce implements ProcessorSupplier<String, String, String, String> {

        @Override
        public Set<StoreBuilder<?>> stores() {
            return Set.of(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("seen"), TEXT, TEXT));
        }

        @Override
        public Processor<String, String, String, String> get() {
            return new Processor<>() {
                private ProcessorContext<String, String> context;
                private KeyValueStore<String, String> seen;

                @Override
                public void init(ProcessorContext<String, String> context) {
                    this.context = context;
                    seen = context.getStateStore("seen");
                }

                @Override
                public void process(Record<String, String> order) {
                    if (seen.putIfAbsent(order.key(), order.value()) == null) {
                        context.forward(order);
                    }
                }
            };
        }
    }
}
