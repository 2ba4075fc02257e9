package subscribers;

import java.util.function.Supplier;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

/** Gives each subscriber the plan that the row names, with its price: rows are {@code plan|rhythm of payment}. */
public final class Subscribers implements Supplier<Topology> {

    private static final Serde<String> TEXT = Serdes.String();

    @Override
    public Topology get() {
        StreamsBuilder builder = new StreamsBuilder();
        KTable<String, String> plans = builder.table("plans", Consumed.with(TEXT, TEXT), store("plans-store"));
        KTable<String, String> subscribers =
                builder.table("subscribers", Consumed.with(TEXT, TEXT), store("subscribers-store"));
        subscribers
                .join(plans, Subscribers::plan, (row, price) -> row + " for " + price, store("subscribed-store"))
                .toStream()
                .to("subscribed", Produced.with(TEXT, TEXT));
        return builder.build();
    }

    private static String plan(String row) {
        return row.substring(0, row.indexOf('|'));
    }

    private static Materialized<String, String, KeyValueStore<Bytes, byte[]>> store(String name) {
        return Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as(name)
                .withKeySerde(TEXT)
                .withValueSerde(TEXT)
                .withCachingDisabled();
    }
}
