package org.apache.kafka.streams.state.internals;

import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.ProcessorRecordContext;
import org.apache.kafka.streams.state.SessionStore;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.mockito.ArgumentCaptor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

/** A restoration that seeks by time must find a session as long as it is open: its record must not be older than its end. */
public class ChangeLoggingSessionBytesStoreTimeTest {

    private static final Windowed<Bytes> SESSION =
        new Windowed<>(Bytes.wrap(new byte[] {1}), new SessionWindow(50_000L, 100_000L));

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    public void shouldLogSessionWithTimeOfRecordThatEndsIt(final boolean headers) {
        assertEquals(100_000L, loggedBy(100_000L, headers));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    public void shouldNotLogSessionWithTimeBeforeItsEnd(final boolean headers) {
        assertEquals(100_000L, loggedBy(50_000L, headers), "an older record extended it");
    }

    /** The time of the changelog record of a session that was put for a record of this time. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    private static long loggedBy(final long timestamp, final boolean headers) {
        final InternalProcessorContext context = mock(InternalProcessorContext.class);
        when(context.recordContext()).thenReturn(new ProcessorRecordContext(timestamp, 0L, 0, "input", new RecordHeaders()));
        final SessionStore<Bytes, byte[]> wrapped = mock(SessionStore.class);
        when(wrapped.name()).thenReturn("sessions");
        final ChangeLoggingSessionBytesStore store =
            headers ? new ChangeLoggingSessionBytesStoreWithHeaders(wrapped) : new ChangeLoggingSessionBytesStore(wrapped);
        store.init(context, store);
        store.put(SESSION, new byte[] {0, 2}); // no headers, and the aggregate
        final ArgumentCaptor<Long> logged = ArgumentCaptor.forClass(Long.class);
        verify(context).logChange(any(), any(), any(), logged.capture(), any(), any());
        return logged.getValue();
    }
}
