package onceproof.streams;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.ConcurrentModificationException;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.LagInfo;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.QueryableStoreType;
import org.apache.kafka.streams.state.internals.StateStoreProvider;

/**
 * What the stores of a running instance hold, active and standby, in memory or in RocksDB, each with the offset in its
 * changelog that it claims to have reached: it holds everything before it, and nothing else.
 *
 * <p>Read by interactive queries, which every release answers alike, so an entry is what a processor would read,
 * whether from the record cache, from memory or from disk. An active store claims the end of its changelog, a standby
 * the offset up to which it was restored. What a closed store leaves on disk is another matter: {@link
 * TaskDirectory}.
 *
 * <p>One file per store, {@code <instance>.<store>.<partition>.<active|standby>.<offset>.csv}, one line
 * {@code key,value} per entry. A file that exists is complete. Of a value longer than an integer, only the first four
 * bytes are written. Of stores that are asked for by name there are files {@code .entries}, as bytes: {@link Entries}.
 */
final class Dumps {

    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final Duration PAUSE = Duration.ofMillis(50);
    private static final List<String> OF_THE_DSL =
            List.of(StreamJoin.STORES, Windows.SUMS, AsOfJoin.VERSIONS, AsOfJoin.WAITING); // no integer for each key

    private static final String NUMBERS = "csv";
    private static final String BYTES = "entries"; // suffix of a file, and in the event

    private final KafkaStreams streams;
    private final Set<String> asBytes;

    /** {@code asBytes}: the names of the stores whose entries are written as bytes. */
    Dumps(KafkaStreams streams, Set<String> asBytes) {
        this.streams = streams;
        this.asBytes = asBytes;
    }

    /**
     * Write all stores once they are at rest: what they claim is the same before and after they are read.
     *
     * @return {@code stores} and, as bytes, {@code entries}; for each store: store, partition, role, position, end of
     *     its changelog, entries
     * @throws IllegalStateException they do not come to rest
     */
    Map<String, Object> write(Path folder, String instance) {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        String why = "they were still moving";
        do {
            List<Held> held = held();
            pause();
            try {
                // Reading a store takes longer than seeing that it is still being restored.
                Map<String, Object> written = held.equals(held()) ? write(held, folder, instance) : null;
                if (written != null && held.equals(held())) {
                    for (Held store : held) {
                        Files.move(store.draft(folder, instance), store.file(folder, instance), StandardCopyOption.ATOMIC_MOVE);
                    }
                    return written;
                }
            } catch (InvalidStateStoreException | ConcurrentModificationException e) { // its task is moving
                why = e.getMessage();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        } while (System.nanoTime() < deadline);
        throw new IllegalStateException(
                "the stores did not come to rest within " + PATIENCE.toSeconds() + " s: " + why);
    }

    private Map<String, Object> write(List<Held> held, Path folder, String instance) throws IOException {
        Files.createDirectories(folder);
        List<Map<String, Object>> numbers = new ArrayList<>();
        List<Map<String, Object>> bytes = new ArrayList<>();
        for (Held store : held) {
            Path draft = store.draft(folder, instance);
            StoreQueryParameters<Object> query = StoreQueryParameters.fromNameAndType(store.name, new OfAnyKind())
                    .withPartition(store.partition)
                    .enableStaleStores();
            Object found = streams.store(query);
            if (store.suffix.equals(BYTES)) {
                bytes.add(store.told(Entries.write(found, draft)));
            } else {
                numbers.add(store.told(writeEntries(Numbers.of(found).entries().iterator(), draft)));
            }
        }
        return Events.fields("stores", numbers, BYTES, bytes);
    }

    /** Write a line {@code key,value} for each entry and count them. */
    static long writeEntries(Iterator<KeyValue<Object, Object>> entries, Path file) throws IOException {
        long count = 0;
        try (BufferedWriter lines = Files.newBufferedWriter(file)) {
            while (entries.hasNext()) {
                KeyValue<Object, Object> entry = entries.next();
                lines.write(entry.key + "," + Numbers.number(entry.value) + "\n");
                count++;
            }
        }
        return count;
    }

    private List<Held> held() {
        Map<Integer, Boolean> standby = new TreeMap<>();
        streams.metadataForLocalThreads().forEach(thread -> {
            thread.standbyTasks().forEach(task -> standby.put(task.taskId().partition(), true));
            thread.activeTasks().forEach(task -> standby.put(task.taskId().partition(), false));
        });
        List<Held> held = new ArrayList<>();
        new TreeMap<>(streams.allLocalStorePartitionLags()).forEach((store, partitions) -> {
            List<String> files = new ArrayList<>();
            if (OF_THE_DSL.stream().noneMatch(store::startsWith)) {
                files.add(NUMBERS);
            }
            if (asBytes.contains(store)) {
                files.add(BYTES);
            }
            new TreeMap<Integer, LagInfo>(partitions).forEach((partition, lag) -> files.forEach(suffix ->
                    held.add(new Held(store, partition, standby.getOrDefault(partition, false), lag, suffix))));
        });
        return held;
    }

    private static void pause() {
        try {
            Thread.sleep(PAUSE.toMillis());
        } catch (InterruptedException e) {
            throw new IllegalStateException("interrupted", e);
        }
    }

    /** For querying a store of any kind: each of Kafka's own types knows one kind, and none knows versioned stores. */
    private static final class OfAnyKind implements QueryableStoreType<Object> {

        @Override
        public boolean accepts(StateStore store) {
            return true;
        }

        @Override
        public Object create(StateStoreProvider provider, String name) {
            // A provider hands out what it has, as whatever type it is asked for.
            return provider.stores(name, this).get(0);
        }
    }

    /** A store of a task, and the offset that it claims. */
    private static final class Held {

        private final String name;
        private final int partition;
        private final String role;
        private final LagInfo lag;
        private final String suffix; // of its file

        private Held(String name, int partition, boolean standby, LagInfo lag, String suffix) {
            this.name = name;
            this.partition = partition;
            this.role = standby ? "standby" : "active";
            this.lag = lag;
            this.suffix = suffix;
        }

        private Path file(Path folder, String instance) {
            return folder.resolve(String.join(
                    ".", instance, name, String.valueOf(partition), role, String.valueOf(lag.currentOffsetPosition()), suffix));
        }

        private Path draft(Path folder, String instance) {
            return folder.resolve(String.join(".", instance, name, String.valueOf(partition), suffix, "draft"));
        }

        private Map<String, Object> told(long entries) {
            return Events.fields(
                    "store", name,
                    "partition", partition,
                    "role", role,
                    "position", lag.currentOffsetPosition(),
                    "end", lag.endOffsetPosition(),
                    "entries", entries);
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Held && told(0).equals(((Held) other).told(0));
        }

        @Override
        public int hashCode() {
            return told(0).hashCode();
        }
    }
}
