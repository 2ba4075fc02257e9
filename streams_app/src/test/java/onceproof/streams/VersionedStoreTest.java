package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Properties;
import java.util.StringJoiner;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.IntegerSerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.processor.StateRestoreCallback;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What all kinds of stores have in common is tested by {@link DedupTest}. */
class VersionedStoreTest {

    static boolean thereAre() {
        try {
            Class.forName("org.apache.kafka.streams.state.VersionedKeyValueStore");
            return true;
        } catch (ClassNotFoundException e) {
            return false;
        }
    }

    @Test
    void a_release_that_has_none_says_so() {
        assumeFalse(thereAre());
        String said = assertThrows(IllegalArgumentException.class, () -> VersionedStore.builder(
                "seen", Duration.ofHours(1), Serdes.Integer(), Serdes.Integer())).getMessage();
        assertEquals(
                "This Kafka Streams has no versioned stores; take 3.5.0 or later, or another kind of store.", said);
    }

    @Test
    void a_key_that_would_not_be_seen_is_refused() {
        String said = assertThrows(
                IllegalArgumentException.class, () -> new VersionedStore(null).put(-1, 2, 3L)).getMessage();
        assertEquals("Key -1 would not be seen in a versioned store; take keys from 0 to 99999.", said);
    }

    /** The finding of docs/findings/versioned-store-forgets-history.md. A release that fixes it fails here. */
    @Test
    void a_store_that_is_opened_again_does_not_find_what_has_ended_until_a_version_ends_in_the_same_segment(
            @TempDir Path folder) throws Exception {
        assumeTrue(thereAre());
        StateStore store = opened(folder);
        Object key = 7;
        put(store, key, 10, 1_000);
        put(store, key, 20, 2_000);
        put(store, key, 30, 9_000);
        assertEquals("10, 20, 30", asOf(store, key, 1_500, 5_000, 9_000));
        store.close();

        store = opened(folder);
        assertEquals("null, null, 30", asOf(store, key, 1_500, 5_000, 9_000));
        put(store, 8, 80, 8_000);
        put(store, 8, 81, 9_500); // in the segment in which 20 ended
        assertEquals("null, 20, 30", asOf(store, key, 1_500, 5_000, 9_000));
        store.close();
    }

    /** The same finding: what the store takes meanwhile contradicts its later answer. A release that fixes it fails here. */
    @Test
    void a_store_that_is_opened_again_fails_where_it_finds_that_a_key_was_deleted_after_its_last_version(
            @TempDir Path folder) throws Exception {
        assumeTrue(thereAre());
        for (boolean again : new boolean[] {false, true}) {
            Path own = folder.resolve("again " + again);
            StateStore store = opened(own);
            put(store, 7, null, 2_000); // of a key that is not there
            if (again) {
                store.close();
                store = opened(own);
            }
            put(store, 7, 11, 1_500); // late: it has been deleted since 2,000
            assertEquals(again ? "11" : "null", asOf(store, 7, 2_200));
            StateStore open = store;
            if (again) {
                Throwable said = assertThrows(Exception.class, () -> put(open, 7, 12, 2_500)).getCause();
                assertEquals("Timestamp is too large to be found in this segment.", said.getMessage());
            } else {
                put(open, 7, 12, 2_500);
            }
            store.close();
        }
    }

    /** The finding of docs/findings/versioned-store-revives-what-was-deleted.md. A release that fixes it fails here. */
    @Test
    void a_store_that_is_restored_in_one_batch_forgets_a_deletion_and_has_what_was_put_before_it(@TempDir Path folder)
            throws Exception {
        assumeTrue(thereAre());
        List<ConsumerRecord<byte[], byte[]>> changelog = List.of(
                changed(0, 7, 10, 1_000),
                changed(1, 7, null, 2_000),
                changed(2, 7, 11, 1_500), // late: it has been deleted since 2,000
                changed(3, 8, 80, 60_000)); // now the deletion is older than the retention
        AtomicReference<StateRestoreCallback> callback = new AtomicReference<>();

        StateStore store = opened(folder.resolve("one by one"), callback);
        for (ConsumerRecord<byte[], byte[]> record : changelog) {
            restore(callback.get(), List.of(record));
        }
        assertEquals("null", asOf(store, 7, 60_000));
        store.close();

        store = opened(folder.resolve("at once"), callback);
        restore(callback.get(), changelog);
        assertEquals("11", asOf(store, 7, 60_000));
        store.close();
    }

    private static ConsumerRecord<byte[], byte[]> changed(long offset, int key, Integer value, long time) {
        IntegerSerializer integers = new IntegerSerializer();
        return new ConsumerRecord<>(
                "changelog", 0, offset, time, TimestampType.CREATE_TIME, 4, 4,
                integers.serialize("", key), integers.serialize("", value), new RecordHeaders(), Optional.empty());
    }

    /** The callback takes batches, which only Kafka Streams itself may know. */
    private static void restore(StateRestoreCallback callback, Collection<ConsumerRecord<byte[], byte[]>> records)
            throws Exception {
        Class.forName("org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback")
                .getMethod("restoreBatch", Collection.class).invoke(callback, records);
    }

    private static StateStore opened(Path folder) {
        return opened(folder, new AtomicReference<>());
    }

    /** An open store; the callback is what it is restored by. */
    private static StateStore opened(Path folder, AtomicReference<StateRestoreCallback> callback) {
        StateStoreContext context = registering(new MockProcessorContext<Void, Void>(
                new Properties(), new TaskId(0, 0), folder.toFile()).getStateStoreContext(), callback);
        StateStore store = VersionedStore.builder("versions", Duration.ofSeconds(20), Serdes.Integer(), Serdes.Integer())
                .withLoggingDisabled()
                .build();
        store.init(context, store);
        return store;
    }

    /** Of all the interfaces that the context has: from 4.3 on, stores ask for more than the public one. */
    private static StateStoreContext registering(
            StateStoreContext context, AtomicReference<StateRestoreCallback> callback) {
        Class<?>[] interfaces = Stream.<Class<?>>iterate(context.getClass(), Objects::nonNull, Class::getSuperclass)
                .flatMap(type -> Stream.of(type.getInterfaces()))
                .distinct()
                .toArray(Class<?>[]::new);
        return (StateStoreContext) Proxy.newProxyInstance(
                VersionedStoreTest.class.getClassLoader(), interfaces,
                (proxy, method, arguments) -> {
                    if (method.getName().equals("register")) {
                        callback.set((StateRestoreCallback) arguments[1]);
                    }
                    return method.invoke(context, arguments);
                });
    }

    private static Class<?> type(String name) throws ClassNotFoundException {
        return Class.forName("org.apache.kafka.streams.state." + name);
    }

    private static void put(StateStore store, Object key, Object value, long time) throws Exception {
        type("VersionedKeyValueStore").getMethod("put", Object.class, Object.class, long.class)
                .invoke(store, key, value, time);
    }

    private static String asOf(StateStore store, Object key, long... times) throws Exception {
        StringJoiner found = new StringJoiner(", ");
        for (long time : times) {
            Object version = type("VersionedKeyValueStore").getMethod("get", Object.class, long.class).invoke(store, key, time);
            found.add(String.valueOf(version == null ? null : type("VersionedRecord").getMethod("value").invoke(version)));
        }
        return found.toString();
    }
}
