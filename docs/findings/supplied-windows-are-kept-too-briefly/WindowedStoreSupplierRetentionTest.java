package org.apache.kafka.streams;

import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.function.Consumer;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;

/** A changelog must keep windows for as long as their store does, whether the supplier or Materialized says it. */
public class WindowedStoreSupplierRetentionTest {

    private static final Duration SIZE = Duration.ofHours(1);
    private static final Duration KEPT = Duration.ofDays(7);
    private static final long ADDITIONAL_MS = Duration.ofDays(1).toMillis();

    @Test
    public void shouldKeepChangelogAsLongAsSuppliedWindowStore() {
        assertKept(grouped -> grouped.windowedBy(TimeWindows.ofSizeWithNoGrace(SIZE))
            .count(Materialized.as(Stores.persistentWindowStore("store", KEPT, SIZE, false))));
    }

    @Test
    public void shouldKeepChangelogAsLongAsSuppliedStoreOfSlidingWindows() {
        assertKept(grouped -> grouped.windowedBy(SlidingWindows.ofTimeDifferenceWithNoGrace(SIZE))
            .count(Materialized.as(Stores.persistentWindowStore("store", KEPT, SIZE, false))));
    }

    @Test
    public void shouldKeepChangelogAsLongAsSuppliedSessionStore() {
        assertKept(grouped -> grouped.windowedBy(SessionWindows.ofInactivityGapWithNoGrace(SIZE))
            .count(Materialized.as(Stores.persistentSessionStore("store", KEPT))));
    }

    @Test
    public void shouldKeepChangelogAsLongAsRetentionOfMaterialized() {
        assertKept(grouped -> grouped.windowedBy(TimeWindows.ofSizeWithNoGrace(SIZE))
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("store").withRetention(KEPT)));
    }

    @Test
    public void shouldBuildWithSuppliedStoreThatKeepsLessThanSizeAndGrace() {
        final StreamsBuilder builder = new StreamsBuilder();
        builder.stream("input", Consumed.with(Serdes.String(), Serdes.String()))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String()))
            .windowedBy(TimeWindows.ofSizeAndGrace(SIZE, KEPT))
            .count(Materialized.as(Stores.persistentWindowStore("store", SIZE, SIZE, false)));
        assertDoesNotThrow(() -> builder.build(), "it builds since 2.0");
    }

    private static void assertKept(final Consumer<KGroupedStream<String, String>> counted) {
        final StreamsBuilder builder = new StreamsBuilder();
        counted.accept(builder.stream("input", Consumed.with(Serdes.String(), Serdes.String()))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String())));
        builder.build();
        final Properties config = new Properties();
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "localhost:1");
        final InternalTopologyBuilder topology = builder.internalTopologyBuilder;
        topology.rewriteTopology(new StreamsConfig(config)).buildTopology();
        final Map<String, String> changelog = topology.subtopologyToTopicsInfo().values().iterator().next()
            .stateChangelogTopics.get("app-store-changelog").properties(Map.of(), ADDITIONAL_MS);
        assertEquals(String.valueOf(KEPT.toMillis() + ADDITIONAL_MS), changelog.get(TopicConfig.RETENTION_MS_CONFIG));
    }
}
