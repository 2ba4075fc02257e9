package org.apache.kafka.streams.state.internals;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.WindowKeyQuery;
import org.apache.kafka.streams.query.WindowRangeQuery;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.File;
import java.time.Duration;
import java.time.Instant;
import java.util.Properties;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

/** A store that is closed, as its task moves, has nothing; it must not answer that there is nothing. */
public class InMemoryClosedStoreQueryTest {

    private static final Bytes KEY = Bytes.wrap(new byte[]{1});
    private static final byte[] VALUE = {2};
    private static final Instant START = Instant.ofEpochMilli(0L);
    private static final Instant END = Instant.ofEpochMilli(100L);

    @TempDir
    File stateDir;

    private StateStoreContext context;

    @BeforeEach
    public void receiveRecord() {
        final MockProcessorContext<Void, Void> processorContext =
            new MockProcessorContext<>(new Properties(), new TaskId(0, 0), stateDir);
        processorContext.setRecordMetadata("input", 0, 7L);
        context = processorContext.getStateStoreContext();
    }

    @Test
    public void shouldNotAnswerFromClosedKeyValueStore() {
        final KeyValueStore<Bytes, byte[]> store = Stores.inMemoryKeyValueStore("store").get();
        fill(store);
        store.close();
        assertFalse(query(store, KeyQuery.withKey(KEY)).isSuccess(), "the store is closed");
    }

    @Test
    public void shouldNotAnswerFromClosedWindowStore() {
        final WindowStore<Bytes, byte[]> store = Stores.inMemoryWindowStore(
            "store", Duration.ofMillis(1_000L), Duration.ofMillis(10L), false).get();
        store.init(context, store);
        store.put(KEY, VALUE, 0L);
        store.close();
        assertFalse(query(store, WindowKeyQuery.withKeyAndWindowStartRange(KEY, START, END)).isSuccess(), "the store is closed");
    }

    @Test
    public void shouldNotAnswerFromClosedSessionStore() {
        final SessionStore<Bytes, byte[]> store = Stores.inMemorySessionStore("store", Duration.ofMillis(1_000L)).get();
        store.init(context, store);
        store.put(new Windowed<>(KEY, new SessionWindow(0L, 10L)), VALUE);
        store.close();
        assertFalse(query(store, WindowRangeQuery.withKey(KEY)).isSuccess(), "the store is closed");
    }

    @Test
    public void shouldAnswerFromOpenKeyValueStore() {
        final KeyValueStore<Bytes, byte[]> store = Stores.inMemoryKeyValueStore("store").get();
        fill(store);
        final QueryResult<byte[]> answer = query(store, KeyQuery.withKey(KEY));
        assertTrue(answer.isSuccess());
        assertArrayEquals(VALUE, answer.getResult());
        store.close();
    }

    @Test
    public void shouldNotAnswerFromClosedRocksDBStore() {
        final KeyValueStore<Bytes, byte[]> store = Stores.persistentKeyValueStore("store").get();
        fill(store);
        store.close();
        assertFalse(query(store, KeyQuery.withKey(KEY)).isSuccess(), "the store is closed");
    }

    private void fill(final KeyValueStore<Bytes, byte[]> store) {
        store.init(context, store);
        store.put(KEY, VALUE);
    }

    /** The answer of a store to a client that wants to see the record. */
    private static <R> QueryResult<R> query(final StateStore store, final Query<R> query) {
        final PositionBound seen = PositionBound.at(Position.emptyPosition().withComponent("input", 0, 7L));
        return store.query(query, seen, new QueryConfig(false));
    }
}
