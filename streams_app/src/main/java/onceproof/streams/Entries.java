package onceproof.streams;

import java.io.BufferedWriter;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BiConsumer;
import java.util.stream.Collectors;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.TimestampedWindowStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.internals.WrappedStateStore;

/**
 * The entries of a store as bytes, in the form in which its changelog has them, so that a reader needs no serdes.
 *
 * <p>One line {@code key,value,timestamp} an entry: bytes in hexadecimal digits, and milliseconds, or nothing where the
 * store keeps no timestamp. Of a store that keeps headers (KIP-1271) a fourth column has them, {@code name=hex} one after
 * the other, and the name alone of one without a value. The key of a window ends with its start, that of a session with its end and start. The
 * sequence number that a changelog has behind the start of a window is left out: stores do not show it. A versioned store
 * has a line for each version, with the time from which it is valid, in their order; without a value for a deletion.
 *
 * <p>Read below the layer that has the serdes, so through the record cache, as a processor reads. A buffer of {@code
 * suppress} cannot be queried; it is read by its fields. A versioned store cannot be scanned: its fields tell the keys and
 * times for which it is asked.
 */
final class Entries {

    private static final String BUFFER = "InMemoryTimeOrderedKeyValue"; // its name has changed behind that
    private static final String LISTS = "ListValue";
    private static final String VERSIONS = "VersionedKeyValueToBytes";
    private static final String STATE = "org.apache.kafka.streams.state.";
    private static final long NONE = -1; // for Kafka Streams no timestamp
    private static final byte[] FIRST_KEY = {0, 0, 0, 0};
    private static final byte[] LAST_KEY = {127, -1, -1, -1};

    private final BufferedWriter lines;
    private final boolean timestamped;
    private final boolean hasHeaders; // and a timestamp behind them (KIP-1271)
    private long count;

    private Entries(BufferedWriter lines, Object store) {
        this.lines = lines;
        timestamped = store instanceof TimestampedKeyValueStore || store instanceof TimestampedWindowStore;
        hasHeaders = Arrays.stream(store.getClass().getInterfaces())
                .anyMatch(type -> type.getName().startsWith(STATE + "Timestamped") && type.getName().endsWith("WithHeaders"));
    }

    /**
     * Write the entries of a store and count them.
     *
     * @throws IllegalArgumentException this kind of store cannot be read
     */
    static long write(Object store, Path file) throws IOException {
        try (BufferedWriter lines = Files.newBufferedWriter(file)) {
            Entries entries = new Entries(lines, store);
            entries.writeAll(store);
            return entries.count;
        }
    }

    @SuppressWarnings("unchecked") // below the serdes all is bytes
    private void writeAll(Object store) throws IOException {
        Object bytes = store instanceof WrappedStateStore ? ((WrappedStateStore<?, ?, ?>) store).wrapped() : store;
        if (bytes instanceof WindowStore) {
            writeWindows(((WindowStore<Bytes, byte[]>) bytes).all());
        } else if (bytes instanceof SessionStore) {
            writeSessions(((SessionStore<Bytes, byte[]>) bytes).fetch(Bytes.wrap(FIRST_KEY), Bytes.wrap(LAST_KEY)));
        } else if (hasLayer(bytes, VERSIONS)) {
            writeVersions((StateStore) bytes);
        } else if (bytes instanceof KeyValueStore) {
            writeKeys((KeyValueStore<Bytes, byte[]>) bytes);
        } else if (store.getClass().getSimpleName().startsWith(BUFFER)) {
            writeBuffer(store);
        } else {
            throw new IllegalArgumentException("The entries of a " + store.getClass().getName() + " cannot be read.");
        }
    }

    /** A store of lists, of records that wait for their match, shows each element, and its changelog has the list. */
    private void writeKeys(KeyValueStore<Bytes, byte[]> store) throws IOException {
        boolean hasLists = hasLayer(store, LISTS);
        Bytes before = null;
        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
            while (all.hasNext()) {
                KeyValue<Bytes, byte[]> entry = all.next();
                if (!hasLists) {
                    line(entry.key.get(), entry.value);
                } else if (!entry.key.equals(before)) {
                    line(entry.key.get(), store.get(entry.key));
                }
                before = entry.key;
            }
        }
    }

    private void writeWindows(KeyValueIterator<Windowed<Bytes>, byte[]> all) throws IOException {
        try (all) {
            while (all.hasNext()) {
                KeyValue<Windowed<Bytes>, byte[]> entry = all.next();
                byte[] key = entry.key.key().get();
                line(ByteBuffer.allocate(key.length + Long.BYTES)
                        .put(key).putLong(entry.key.window().start()).array(), entry.value);
            }
        }
    }

    private void writeSessions(KeyValueIterator<Windowed<Bytes>, byte[]> all) throws IOException {
        try (all) {
            while (all.hasNext()) {
                KeyValue<Windowed<Bytes>, byte[]> entry = all.next();
                byte[] key = entry.key.key().get();
                line(ByteBuffer.allocate(key.length + 2 * Long.BYTES)
                        .put(key).putLong(entry.key.window().end()).putLong(entry.key.window().start()).array(), entry.value);
            }
        }
    }

    /**
     * Each version, and each time from which there is none. A store gives what is valid as of a time; where something
     * begins or ends, its parts that it looks into say.
     */
    private void writeVersions(StateStore store) throws IOException {
        try {
            Map<Bytes, TreeSet<Long>> times = new TreeMap<>();
            Object versions = Described.inherited(innermost(store), "inner");
            addTimes(times, Described.inherited(versions, "latestValueStore"), Entries::addLatest);
            Object segments = Described.inherited(versions, "segmentStores");
            Method all = segments.getClass().getMethod("allSegments", boolean.class);
            all.setAccessible(true);
            for (Object segment : (List<?>) all.invoke(segments, true)) {
                addTimes(times, segment, Entries::addEnded);
            }
            Class<?> type = Newer.type(STATE + "VersionedBytesStore", "versioned stores");
            for (Map.Entry<Bytes, TreeSet<Long>> ofKey : times.entrySet()) {
                for (Long time : ofKey.getValue()) {
                    Long next = ofKey.getValue().higher(time);
                    byte[] valid = (byte[]) Newer.call(
                            store, type, "get", List.of(Bytes.class, long.class), ofKey.getKey(),
                            next == null ? Long.MAX_VALUE : next - 1);
                    if (valid == null) {
                        line(ofKey.getKey().get(), new byte[0], time);
                    } else {
                        line(ofKey.getKey().get(), valueBehindTime(valid), ByteBuffer.wrap(valid).getLong());
                    }
                }
            }
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("This release does not tell what " + store.getClass().getName() + " holds.", e);
        }
    }

    @SuppressWarnings("unchecked") // each part is a store of bytes
    private static void addTimes(
            Map<Bytes, TreeSet<Long>> times, Object part, BiConsumer<TreeSet<Long>, ByteBuffer> add) {
        try (KeyValueIterator<Bytes, byte[]> all = ((KeyValueStore<Bytes, byte[]>) part).all()) {
            all.forEachRemaining(entry ->
                    add.accept(times.computeIfAbsent(entry.key, any -> new TreeSet<>()), ByteBuffer.wrap(entry.value)));
        }
    }

    /** Of the last version: when it begins. */
    private static void addLatest(TreeSet<Long> times, ByteBuffer value) {
        times.add(value.getLong());
    }

    /** Of versions in a segment: when the last one ends, the first one begins, and each begins, with their sizes. */
    private static void addEnded(TreeSet<Long> times, ByteBuffer value) {
        times.add(value.getLong());
        long first = value.getLong();
        times.add(first);
        for (long begin = value.getLong(); begin > first; begin = value.getLong()) {
            times.add(begin);
            value.getInt();
        }
    }

    private static StateStore innermost(StateStore store) {
        return store instanceof WrappedStateStore ? innermost(((WrappedStateStore<?, ?, ?>) store).wrapped()) : store;
    }

    /** What is held back, and behind it the time by which it is ordered. */
    private void writeBuffer(Object store) throws IOException {
        try {
            Map<?, ?> index = new TreeMap<>((Map<?, ?>) Described.inherited(store, "index"));
            Map<?, ?> sorted = (Map<?, ?>) Described.inherited(store, "sortedMap");
            for (Map.Entry<?, ?> entry : index.entrySet()) {
                Object held = sorted.get(entry.getValue());
                Method serialize = held.getClass().getDeclaredMethod("serialize", int.class);
                serialize.setAccessible(true);
                ByteBuffer value = (ByteBuffer) serialize.invoke(held, Long.BYTES);
                value.putLong((Long) Described.inherited(entry.getValue(), "time"));
                line(((Bytes) entry.getKey()).get(), value.array());
            }
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("This release does not tell what " + store.getClass().getName() + " holds.", e);
        }
    }

    private static boolean hasLayer(Object store, String name) {
        return store instanceof StateStore
                && Described.layers((StateStore) store).stream().anyMatch(layer -> layer.contains(name));
    }

    private void line(byte[] key, byte[] value) throws IOException {
        if (hasHeaders) {
            String headers = text((Headers) part("headers", value));
            line(key, (byte[]) part("rawPlainValue", value), (Long) part("timestamp", value), "," + headers);
        } else if (timestamped) {
            line(key, valueBehindTime(value), ByteBuffer.wrap(value).getLong());
        } else {
            line(key, value, NONE);
        }
    }

    /** Headers as {@code name=hex}, one after the other; of one without a value the name alone. */
    static String text(Headers headers) {
        return Arrays.stream(headers.toArray())
                .map(header -> header.key() + (header.value() == null ? "" : "=" + hex(header.value())))
                .collect(Collectors.joining(" "));
    }

    private static byte[] valueBehindTime(byte[] value) {
        return Arrays.copyOfRange(value, Long.BYTES, value.length);
    }

    private void line(byte[] key, byte[] plain, long timestamp) throws IOException {
        line(key, plain, timestamp, "");
    }

    private void line(byte[] key, byte[] plain, long timestamp, String more) throws IOException {
        lines.write(hex(key) + "," + hex(plain) + "," + (timestamp == NONE ? "" : timestamp) + more + "\n");
        count++;
    }

    /** Of a value behind its headers; as Kafka Streams itself reads it. */
    private static Object part(String name, byte[] value) {
        Class<?> reader = Newer.type(STATE + "internals.Utils", "stores with headers; take 4.3.0 or later");
        return Newer.call(null, reader, name, List.of(byte[].class), value);
    }

    private static String hex(byte[] bytes) {
        StringBuilder digits = new StringBuilder();
        for (byte one : bytes) {
            digits.append(String.format("%02x", one));
        }
        return digits.toString();
    }
}
