package org.apache.kafka.streams.state.internals;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.ProcessorRecordContext;
import org.apache.kafka.streams.processor.internals.RecordCollector;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.File;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.doAnswer;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;
import static org.mockito.Mockito.withSettings;

/** A buffer must give out each record once its grace period is over, also if it was restored or opened again meanwhile. */
public class RocksDBTimeOrderedKeyValueBufferLossTest {

    private static final long BEGIN = 1_795_000_000_000L;
    private static final Duration GRACE = Duration.ofMillis(1_000L);

    @TempDir
    File stateDir;

    @TempDir
    File restoredDir;

    private final List<ConsumerRecord<byte[], byte[]>> changelog = new ArrayList<>();

    private RocksDBTimeOrderedKeyValueBytesStore store;
    private RocksDBTimeOrderedKeyValueBuffer<String, String> buffer;

    @BeforeEach
    public void open() {
        open(stateDir);
    }

    @AfterEach
    public void close() {
        buffer.close();
    }

    @Test
    public void shouldEvictInOrder() {
        put("a", 0);
        put("b", 10);
        put("c", 1_005);

        assertEquals(List.of("a"), evict());
        put("d", 1_010);
        assertEquals(List.of("b"), evict());
    }

    @Test
    public void shouldRefuseLateRecord() {
        put("a", 2_000);
        assertFalse(put("late", 999));
        assertTrue(put("not late", 1_000));
    }

    @Test
    public void shouldEvictRestoredRecords() {
        put("order-17", 0);
        put("order-18", 10);

        restore();

        put("order-19", 2_000);
        assertEquals(List.of("order-17", "order-18"), evict());
    }

    @Test
    public void shouldBufferAfterRestore() {
        put("order-17", 0);

        restore();

        assertTrue(put("order-18", 10), "it is not late");
    }

    @Test
    public void shouldNotRestoreWhatWasEvicted() {
        put("a", 0);
        put("b", 1_500);
        assertEquals(List.of("a"), evict());

        restore();

        assertEquals(List.of(), evict());
    }

    @Test
    public void shouldEvictRecordsOfBeforeReopen() {
        put("a", 0);
        put("b", 10);
        put("c", 20);

        reopen();

        put("d", 1_000);
        assertEquals(List.of("a"), evict());
        put("e", 1_020);
        assertEquals(List.of("b", "c"), evict());
    }

    @Test
    public void shouldNotOverwriteRecordOfBeforeReopen() {
        put("a", 0);

        reopen();

        put("a", 0);
        put("b", 1_000);
        assertEquals(List.of("a", "a"), evict());
    }

    private void restore() {
        buffer.close();
        open(restoredDir);
        store.restoreAllInternal(changelog);
    }

    private void reopen() {
        buffer.close();
        open(stateDir);
    }

    private boolean put(final String key, final long after) {
        final ProcessorRecordContext context = new ProcessorRecordContext(BEGIN + after, 0L, 0, "input", new RecordHeaders());
        return buffer.put(BEGIN + after, new Record<>(key, "value", BEGIN + after), context);
    }

    private List<String> evict() {
        final List<String> evicted = new ArrayList<>();
        buffer.evictWhile(() -> true, eviction -> evicted.add(eviction.key()));
        return evicted;
    }

    private void open(final File directory) {
        store = new RocksDBTimeOrderedKeyValueBytesStoreSupplier("buffer").get();
        buffer = new RocksDBTimeOrderedKeyValueBuffer<>(store, Serdes.String(), Serdes.String(), GRACE, "input", true);
        buffer.init(context(directory), store);
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private InternalProcessorContext<?, ?> context(final File directory) {
        final MockProcessorContext<?, ?> known = new MockProcessorContext<>(new Properties(), new TaskId(0, 0), directory);
        final RecordCollector collector = mock(RecordCollector.class);
        doAnswer(sent -> changelog.add(new ConsumerRecord<>(
            "changelog", 0, changelog.size(), ((Bytes) sent.getArgument(1)).get(), sent.getArgument(2)
        ))).when(collector).send(any(), any(), any(), any(), any(Integer.class), any(), any(), any(), any(), any());
        final InternalProcessorContext context = mock(
            InternalProcessorContext.class,
            withSettings().extraInterfaces(RecordCollector.Supplier.class)
        );
        when(((RecordCollector.Supplier) context).recordCollector()).thenReturn(collector);
        when(context.taskId()).thenReturn(known.taskId());
        when(context.stateDir()).thenReturn(directory);
        when(context.metrics()).thenReturn((StreamsMetricsImpl) known.metrics());
        when(context.appConfigs()).thenReturn(known.appConfigs());
        when(context.headers()).thenReturn(new RecordHeaders());
        when(context.changelogFor("buffer")).thenReturn("changelog");
        return context;
    }
}
