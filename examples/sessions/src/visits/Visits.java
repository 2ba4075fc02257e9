package visits;

import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.state.SessionStore;

/** Gathers the clicks of each visitor into visits, and puts each visit out when it is over. */
public final class Visits {

    private static final Serde<String> TEXT = Serdes.String();

    private Visits() {}

    public static Topology topology(Properties config) {
        Duration gap = Duration.ofMillis(Long.parseLong(config.getProperty("visits.gap.ms")));
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("clicks", Consumed.with(TEXT, TEXT))
                .groupByKey(Grouped.with(TEXT, TEXT))
                .windowedBy(SessionWindows.ofInactivityGapWithNoGrace(gap))
                .aggregate(
                        () -> "",
                        (visitor, click, visit) -> visit + click + "\n",
                        (visitor, earlier, later) -> earlier + later,
                        store("open-visits"))
                .suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()).withName("until-over"))
                .toStream()
                .map((visit, clicks) -> KeyValue.pair(visit.key() + " at " + visit.window().start(), told(clicks)))
                .to("visits", Produced.with(TEXT, TEXT));
        return builder.build();
    }

    private static String told(String clicks) {
        return clicks.lines().count() + " clicks: " + clicks;
    }

    private static Materialized<String, String, SessionStore<Bytes, byte[]>> store(String name) {
        return Materialized.<String, String, SessionStore<Bytes, byte[]>>as(name)
                .withKeySerde(TEXT)
                .withValueSerde(TEXT)
                .withCachingDisabled();
    }
}
