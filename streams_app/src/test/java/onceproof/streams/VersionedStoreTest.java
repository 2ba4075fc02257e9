package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Properties;
import java.util.StringJoiner;
import org.apache.kafka.common.serialization.Serdes;
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

    /** The finding of docs/findings/versioned-store-forgets-history.md. A release that mends it fails here. */
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

    private static StateStore opened(Path folder) {
        StateStoreContext context = new MockProcessorContext<Void, Void>(
                new Properties(), new TaskId(0, 0), folder.toFile()).getStateStoreContext();
        StateStore store = VersionedStore.builder("versions", Duration.ofSeconds(20), Serdes.Integer(), Serdes.Integer())
                .withLoggingDisabled()
                .build();
        store.init(context, store);
        return store;
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
