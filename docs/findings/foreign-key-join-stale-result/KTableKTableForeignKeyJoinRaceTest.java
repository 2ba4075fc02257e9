package org.apache.kafka.streams.kstream.internals.foreignkeyjoin;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.KeyValueStore;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.File;
import java.util.Arrays;
import java.util.Properties;
import java.util.stream.Collectors;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

/**
 * A row of the left table is its foreign key and another attribute, as in {@code A 0}; the right table has A, and no B.
 * Two updates that come as one record overtake the answer to the first, as they do on brokers: TopologyTestDriver
 * processes all that a record gives before it passes on the internal topics.
 */
public class KTableKTableForeignKeyJoinRaceTest {

    private static final String DELETED = "deleted";

    @TempDir
    File stateDir;

    @ParameterizedTest
    @ValueSource(strings = {"B 1", "deleted"})
    public void shouldDeleteResultIfAnswerIsNotOvertaken(final String update) {
        assertNull(resultAfter(update));
    }

    @Test
    public void shouldDeleteResultIfAnswerIsOvertakenByTheSameKey() {
        assertNull(resultAfter("B 1;B 2"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"deleted;B 1", "- 0;B 1"})
    public void shouldDeleteResultIfAnswerIsOvertakenByAnInsert(final String updates) {
        assertNull(resultAfter(updates));
    }

    /** @return the result of row k, which was "A 0 + a", after these updates at once */
    private String resultAfter(final String updates) {
        final StreamsBuilder builder = new StreamsBuilder();
        final Consumed<String, String> strings = Consumed.with(Serdes.String(), Serdes.String());
        final Materialized<String, String, KeyValueStore<Bytes, byte[]>> rows =
            Materialized.with(Serdes.String(), Serdes.String());
        final KTable<String, String> right = builder.table("right", strings);
        final KTable<String, String> left = builder.stream("left", strings)
            .flatMapValues(value -> Arrays.stream(value.split(";"))
                .map(row -> row.equals(DELETED) ? null : row)
                .collect(Collectors.toList()))
            .toTable(rows.withCachingDisabled());
        left.join(right, KTableKTableForeignKeyJoinRaceTest::foreignKey, (row, other) -> row + " + " + other)
            .toStream().to("out", Produced.with(Serdes.String(), Serdes.String()));

        final Properties config = new Properties();
        config.put(StreamsConfig.APPLICATION_ID_CONFIG, "app");
        config.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "unused:1");
        config.put(StreamsConfig.STATE_DIR_CONFIG, stateDir.getPath());
        try (final TopologyTestDriver driver = new TopologyTestDriver(builder.build(), config)) {
            driver.createInputTopic("right", new StringSerializer(), new StringSerializer()).pipeInput("A", "a");
            final TestInputTopic<String, String> changes =
                driver.createInputTopic("left", new StringSerializer(), new StringSerializer());
            changes.pipeInput("k", "A 0");
            assertEquals("A 0 + a", lastResult(driver));
            changes.pipeInput("k", updates);
            return lastResult(driver);
        }
    }

    private static String lastResult(final TopologyTestDriver driver) {
        return driver.createOutputTopic("out", new StringDeserializer(), new StringDeserializer())
            .readKeyValuesToMap().getOrDefault("k", "A 0 + a");
    }

    private static String foreignKey(final String row) {
        return row.startsWith("-") ? null : row.substring(0, 1);
    }
}
