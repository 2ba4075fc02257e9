package finals;

import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;

/** Counts the orders of each shop by windows, and adds the final counts up: as a table, and as a stream. */
public final class Finals {

    private static final Serde<String> TEXT = Serdes.String();
    private static final Serde<Long> NUMBER = Serdes.Long();
    private static final Grouped<String, Long> BY_SHOP = Grouped.with(TEXT, NUMBER);

    private Finals() {}

    public static Topology topology(Properties config) {
        StreamsBuilder builder = new StreamsBuilder();
        KTable<Windowed<String>, Long> counts = builder.stream("orders", Consumed.with(TEXT, TEXT))
                .groupByKey(Grouped.with(TEXT, TEXT))
                .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofMillis(500)))
                .count(Materialized.with(TEXT, NUMBER))
                .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()));
        counts.groupBy((window, count) -> KeyValue.pair(window.key(), count), BY_SHOP)
                .reduce(Long::sum, (sum, count) -> sum - count)
                .toStream()
                .mapValues(String::valueOf)
                .to("sums", Produced.with(TEXT, TEXT));
        counts.toStream((window, count) -> window.key())
                .groupByKey(BY_SHOP)
                .reduce(Long::sum)
                .toStream()
                .mapValues(String::valueOf)
                .to("sums-of-stream", Produced.with(TEXT, TEXT));
        return builder.build();
    }
}
