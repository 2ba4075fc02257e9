package org.apache.kafka.streams.processor.internals;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.LogAndContinueExceptionHandler;
import org.apache.kafka.streams.kstream.Consumed;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Properties;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

/**
 * The transaction that writes a dead letter (KIP-1034) must commit the position behind its record, or the record is read
 * and its dead letter written once more after a failure.
 */
public class StreamTaskDeadLetterPositionTest {

    private static final TopicPartition PARTITION = new TopicPartition("input", 0);
    private static final byte[] GOOD = {0, 0, 0, 1};
    private static final byte[] CORRUPTED = {1};

    private TopologyTestDriver driver;
    private StreamTask task;

    @BeforeEach
    public void setUp() throws ReflectiveOperationException {
        final Properties config = new Properties();
        config.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        config.put(StreamsConfig.DESERIALIZATION_EXCEPTION_HANDLER_CLASS_CONFIG, LogAndContinueExceptionHandler.class);
        config.put(StreamsConfig.ERRORS_DEAD_LETTER_QUEUE_TOPIC_NAME_CONFIG, "dead-letters");
        final StreamsBuilder builder = new StreamsBuilder();
        builder.stream("input", Consumed.with(Serdes.ByteArray(), Serdes.Integer())).to("output");
        driver = new TopologyTestDriver(builder.build(), config);
        final Field field = TopologyTestDriver.class.getDeclaredField("task");
        field.setAccessible(true);
        task = (StreamTask) field.get(driver);
    }

    @AfterEach
    public void tearDown() {
        driver.close();
    }

    @Test
    public void shouldCommitPositionBehindDeadLetters() {
        add(GOOD, CORRUPTED, CORRUPTED);
        task.process(0L);
        assertEquals(3L, committed(), "the dead letters of the records 1 and 2 are in this transaction");
    }

    @Test
    public void shouldCommitPositionBehindDeadLettersOfTaskThatHasProcessedNothing() {
        add(CORRUPTED, CORRUPTED, GOOD);
        assertTrue(task.commitNeeded(), "the dead letters of the records 0 and 1 are in this transaction");
        assertEquals(2L, committed());
    }

    @Test
    public void shouldCommitPositionBehindDeadLettersBeforeGoodRecord() {
        add(GOOD, CORRUPTED, CORRUPTED, GOOD);
        task.process(0L);
        assertEquals(3L, committed());
    }

    @Test
    public void shouldNotCommitPositionOfTaskThatHasReadNoCorruptedRecord() {
        add(GOOD, CORRUPTED);
        assertFalse(task.commitNeeded(), "nothing was processed, and no dead letter was written");
    }

    private void add(final byte[]... values) {
        final List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (final byte[] value : values) {
            records.add(new ConsumerRecord<>(
                "input", 0, records.size(), 0L, TimestampType.CREATE_TIME, 1, value.length, new byte[] {7}, value,
                new RecordHeaders(), Optional.empty()));
        }
        task.addRecords(PARTITION, records);
    }

    private long committed() {
        return task.prepareCommit(true).get(PARTITION).offset();
    }
}
