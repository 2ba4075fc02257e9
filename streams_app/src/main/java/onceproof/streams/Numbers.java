package onceproof.streams;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.WindowStore;

/**
 * A store of any kind, as a number for each key; where the kind has times, for each key and time: a window of one
 * millisecond, a session that begins and ends then, or the version from then on.
 */
interface Numbers {

    String WITH_HEADERS = "org.apache.kafka.streams.state.ValueTimestampHeaders";

    /** The number of the key at the time; null if there is none. */
    Integer get(int key, long time);

    void put(int key, int number, long time);

    /** All of them by key, without their times. */
    List<KeyValue<Object, Object>> entries();

    @SuppressWarnings("unchecked") // our own stores
    static Numbers of(Object store) {
        if (store instanceof KeyValueStore) {
            return new OfKeys((KeyValueStore<Object, Object>) store);
        }
        if (store instanceof WindowStore) {
            return new OfWindows((WindowStore<Integer, Integer>) store);
        }
        if (store instanceof SessionStore) {
            return new OfSessions((SessionStore<Integer, Integer>) store);
        }
        return new VersionedStore(store);
    }

    /**
     * The number that a store of any kind gave: as it is, or what a longer value begins with, without the timestamp and
     * the headers (KIP-1271) that the store keeps with it.
     */
    static int number(Object value) {
        Object plain = value;
        if (value instanceof ValueAndTimestamp) {
            plain = ((ValueAndTimestamp<?>) value).value();
        } else if (value.getClass().getName().equals(WITH_HEADERS)) {
            plain = Newer.call(value, value.getClass(), "value", List.of());
        }
        return plain instanceof byte[] ? ByteBuffer.wrap((byte[]) plain).getInt() : (Integer) plain;
    }

    private static <K, V> List<KeyValue<Object, Object>> drained(KeyValueIterator<K, V> all, Function<K, Object> key) {
        List<KeyValue<Object, Object>> entries = new ArrayList<>();
        try (all) {
            all.forEachRemaining(entry -> entries.add(KeyValue.pair(key.apply(entry.key), number(entry.value))));
        }
        return entries;
    }

    /** Keys, whose values may have timestamps. */
    final class OfKeys implements Numbers {

        private final KeyValueStore<Object, Object> store;

        private OfKeys(KeyValueStore<Object, Object> store) {
            this.store = store;
        }

        @Override
        public Integer get(int key, long time) {
            Object value = store.get(key);
            return value == null ? null : (Integer) number(value);
        }

        @Override
        public void put(int key, int number, long time) {
            store.put(key, store instanceof TimestampedKeyValueStore ? ValueAndTimestamp.make(number, time) : (Object) number);
        }

        @Override
        public List<KeyValue<Object, Object>> entries() {
            return drained(store.all(), key -> key);
        }
    }

    /** A window for each time. */
    final class OfWindows implements Numbers {

        private final WindowStore<Integer, Integer> store;

        private OfWindows(WindowStore<Integer, Integer> store) {
            this.store = store;
        }

        @Override
        public Integer get(int key, long time) {
            return store.fetch(key, time);
        }

        @Override
        public void put(int key, int number, long time) {
            store.put(key, number, time);
        }

        @Override
        public List<KeyValue<Object, Object>> entries() {
            return drained(store.all(), Windowed::key);
        }
    }

    /** A session for each time. */
    final class OfSessions implements Numbers {

        private final SessionStore<Integer, Integer> store;

        private OfSessions(SessionStore<Integer, Integer> store) {
            this.store = store;
        }

        @Override
        public Integer get(int key, long time) {
            return store.fetchSession(key, time, time);
        }

        @Override
        public void put(int key, int number, long time) {
            store.put(new Windowed<>(key, new SessionWindow(time, time)), number);
        }

        /** Only those of keys from 0 on, which is how far a range of bytes goes. */
        @Override
        public List<KeyValue<Object, Object>> entries() {
            return drained(store.fetch(0, Integer.MAX_VALUE), Windowed::key);
        }
    }
}
