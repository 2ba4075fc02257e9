package org.apache.kafka.streams.state.internals;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.internals.Change;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.ProcessorRecordContext;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.internals.RecordCollector;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.mockito.ArgumentCaptor;

import java.io.File;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;
import static org.mockito.Mockito.withSettings;

/** A buffer that is restored must hold each key for as long as the one that wrote the changelog would have held it. */
public class InMemoryTimeOrderedKeyValueChangeBufferHeldAgainTest {

    @TempDir
    File stateDir;

    private final List<ConsumerRecord<byte[], byte[]>> changelog = new ArrayList<>();

    private InMemoryTimeOrderedKeyValueChangeBuffer<String, String, Change<String>> buffer;
    private RecordBatchingStateRestoreCallback restoration;

    @BeforeEach
    public void open() {
        buffer = new InMemoryTimeOrderedKeyValueChangeBuffer.Builder<>("buffer", Serdes.String(), Serdes.String()).build();
        final InternalProcessorContext<?, ?> context = context();
        buffer.init(context, buffer);
        final ArgumentCaptor<RecordBatchingStateRestoreCallback> registered =
            ArgumentCaptor.forClass(RecordBatchingStateRestoreCallback.class);
        verify(context).register(any(), registered.capture());
        restoration = registered.getValue();
    }

    @AfterEach
    public void close() {
        buffer.close();
    }

    @Test
    public void shouldHoldKeyAnewOnceItWasEvicted() {
        holdAgain();

        assertEquals(100L, buffer.minTimestamp());
    }

    @Test
    public void shouldRestoreTimeOfKeyThatIsHeldAgain() {
        holdAgain();

        restore();

        assertEquals(100L, buffer.minTimestamp(), "it was evicted, and has been held again since 100");
    }

    @Test
    public void shouldNotEvictRestoredKeyBeforeItsTimeIsUp() {
        holdAgain();
        put("b", 50L, "b at 50");
        commit();

        restore();

        assertEquals(List.of("b at 50"), evictUntil(50L));
        assertEquals(List.of("a at 100"), evictUntil(100L));
    }

    @Test
    public void shouldRestoreTimeOfKeyThatIsHeldAgainIfEvictionWasCommitted() {
        put("a", 0L, "a at 0");
        commit();
        evictUntil(0L);
        commit();
        put("a", 100L, "a at 100");
        commit();

        restore();

        assertEquals(100L, buffer.minTimestamp());
    }

    @Test
    public void shouldRestoreFirstTimeOfKeyThatIsUpdatedWhileItIsHeld() {
        put("a", 0L, "a at 0");
        commit();
        put("a", 50L, "a at 50");
        commit();

        restore();

        assertEquals(0L, buffer.minTimestamp());
        assertEquals(List.of("a at 50"), evictUntil(0L));
    }

    @Test
    public void shouldNotRestoreKeyThatIsHeldNoMore() {
        holdAgain();
        evictUntil(100L);
        commit();

        restore();

        assertEquals(0, buffer.numRecords());
        assertEquals(0L, buffer.bufferSize());
        assertEquals(Long.MAX_VALUE, buffer.minTimestamp());
    }

    /** Holds a key, evicts it and holds it again, with commits of the first and of the second time. */
    private void holdAgain() {
        put("a", 0L, "a at 0");
        commit();
        assertEquals(List.of("a at 0"), evictUntil(0L));
        put("a", 100L, "a at 100");
        commit();
    }

    private void restore() {
        buffer.close();
        open();
        restoration.restoreBatch(changelog);
    }

    private void put(final String key, final long time, final String value) {
        final ProcessorRecordContext context = new ProcessorRecordContext(time, 0L, 0, "input", new RecordHeaders());
        buffer.put(time, new Record<>(key, new Change<>(value, null), time), context);
    }

    private void commit() {
        buffer.commit(Map.of());
    }

    private List<String> evictUntil(final long time) {
        final List<String> evicted = new ArrayList<>();
        buffer.evictWhile(() -> buffer.minTimestamp() <= time, eviction -> evicted.add(eviction.value().newValue));
        return evicted;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private InternalProcessorContext<?, ?> context() {
        final MockProcessorContext<?, ?> known = new MockProcessorContext<>(new Properties(), new TaskId(0, 0), stateDir);
        final RecordCollector collector = mock(RecordCollector.class);
        doAnswer(sent -> changelog.add(logged(sent.getArgument(1), sent.getArgument(2), sent.getArgument(3))))
            .when(collector).send(any(), any(), any(), any(), any(Integer.class), any(), any(), any(), any(), any());
        final InternalProcessorContext context = mock(
            InternalProcessorContext.class,
            withSettings().extraInterfaces(RecordCollector.Supplier.class)
        );
        when(((RecordCollector.Supplier) context).recordCollector()).thenReturn(collector);
        when(context.taskId()).thenReturn(known.taskId());
        when(context.metrics()).thenReturn((StreamsMetricsImpl) known.metrics());
        when(context.appConfigs()).thenReturn(known.appConfigs());
        when(context.headers()).thenReturn(new RecordHeaders());
        when(context.changelogFor("buffer")).thenReturn("changelog");
        return context;
    }

    private ConsumerRecord<byte[], byte[]> logged(final Bytes key, final byte[] value, final Headers headers) {
        return new ConsumerRecord<>(
            "changelog", 0, changelog.size(), -1L, TimestampType.CREATE_TIME, -1, -1, key.get(), value,
            headers == null ? new RecordHeaders() : headers, Optional.empty()
        );
    }
}
