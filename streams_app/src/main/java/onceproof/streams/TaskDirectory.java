package onceproof.streams;

import java.io.BufferedWriter;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.streams.KeyValue;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.DBOptions;
import org.rocksdb.Options;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;

/**
 * Reads the directories of tasks that no process has open (closed, or copied after a kill): what RocksDB holds on
 * disk, and the offsets that Kafka Streams would trust at the next start.
 *
 * <p>A separate program: arguments {@code <form> <output folder> <task directory>...}. Writes
 * {@code <task>/<store>.csv}, one line {@code key,value} per entry: of the form {@code integers} as numbers, of the
 * form {@code bytes} as its bytes in Base64, without the timestamp before a value. Prints one event {@code directories}
 * with the {@code tasks}, each with its stores: store, entries, position (the first offset of its changelog that it
 * does not claim to hold: from the file {@code .checkpoint}, or, since 4.3, from RocksDB's column family {@code
 * offsets}, KIP-1035; null if there is none), whether it is in {@code segments} of time, and its {@code unknown} column
 * families, with unknown bytes before their values; or {@code error} with exit code 1. The directories are opened
 * read-only: their stores stay as they are, RocksDB's own log next to them grows.
 *
 * <p>What was in memory when the process died is not on disk: Kafka Streams writes no write-ahead log (WAL).
 */
public final class TaskDirectory {

    private static final String PLAIN = "default";
    private static final String OFFSETS = "offsets";
    private static final String TIMESTAMPED = "keyValueWithTimestamp";
    private static final int TIMESTAMP_BYTES = Long.BYTES;
    private static final int VERSIONED_BYTES = Long.BYTES + Integer.BYTES; // a segment before the key, a time before the value
    private static final String CHANGELOG = ".*-changelog-\\d+"; // an offset's key among the others in `offsets`

    private TaskDirectory() {}

    public static void main(String[] arguments) {
        Events events = new Events(new FileOutputStream(FileDescriptor.out));
        System.setOut(System.err);
        if (arguments.length < 3) {
            events.error("Give a form (integers or bytes), the folder to write to, and the directories of tasks.");
            Exit.FAILED.now();
        }
        Form form = Form.valueOf(arguments[0].toUpperCase(Locale.ROOT));
        Map<String, Object> tasks = new LinkedHashMap<>();
        for (String task : List.of(arguments).subList(2, arguments.length)) {
            try {
                String name = Path.of(task).getFileName().toString();
                tasks.put(name, dump(form, Path.of(task), Path.of(arguments[1], name)));
            } catch (IOException | RocksDBException | RuntimeException e) {
                events.error(task + " cannot be read: " + e.getClass().getSimpleName() + ": " + e.getMessage());
                Exit.FAILED.now();
            }
        }
        events.emit("directories", Events.fields("tasks", tasks));
        Exit.CLOSED.now();
    }

    /** How entries are written. */
    enum Form {
        INTEGERS {
            @Override
            KeyValue<Object, Object> entry(byte[] key, byte[] value) {
                int before = key.length == VERSIONED_BYTES ? Long.BYTES : 0;
                // A time follows the key, where the kind of store has them.
                return KeyValue.pair(ByteBuffer.wrap(key).getInt(before), ByteBuffer.wrap(value).getInt(before));
            }
        },
        BYTES {
            @Override
            KeyValue<Object, Object> entry(byte[] key, byte[] value) {
                return KeyValue.pair(Base64.getEncoder().encodeToString(key), Base64.getEncoder().encodeToString(value));
            }
        };

        abstract KeyValue<Object, Object> entry(byte[] key, byte[] value);
    }

    /** Write the entries of every RocksDB store in the directory; returns what the event reports about each. */
    static List<Map<String, Object>> dump(Form form, Path task, Path folder) throws IOException, RocksDBException {
        Files.createDirectories(folder);
        Map<String, Long> checkpoint = checkpoint(task.resolve(".checkpoint"));
        List<Map<String, Object>> told = new ArrayList<>();
        for (Path directory : stores(task)) {
            String store = directory.getFileName().toString();
            List<Path> databases = databases(directory);
            if (databases.isEmpty()) {
                continue;
            }
            Long last = null;
            int entries = 0;
            Set<String> unknown = new TreeSet<>();
            try (BufferedWriter lines = Files.newBufferedWriter(folder.resolve(store + ".csv"))) {
                for (Path database : databases) {
                    try (Store opened = new Store(database)) {
                        if (form == Form.INTEGERS && !opened.unknown().isEmpty()) {
                            throw new IOException(database + " has column families whose form is not known: "
                                    + opened.families.keySet());
                        }
                        entries += opened.write(form, lines);
                        unknown.addAll(opened.unknown());
                        Long own = opened.last();
                        last = last == null || own != null && own > last ? own : last;
                    }
                }
            }
            last = checkpoint.getOrDefault(changelog(checkpoint.keySet(), store), last);
            Long position = last == null || last < 0 ? null : Long.valueOf(last + 1); // negative: none is known
            boolean segments = !databases.equals(List.of(directory));
            told.add(Events.fields("store", store, "entries", entries, "position", position, "segments", segments,
                    "unknown", unknown));
        }
        return told;
    }

    /** The changelog of a store: all have the application's id before them, so that of {@code daily-sums} is longer. */
    private static String changelog(Set<String> topics, String store) {
        return topics.stream()
                .filter(topic -> topic.endsWith("-" + store + "-changelog"))
                .min(Comparator.comparingInt(String::length))
                .orElse("");
    }

    /** The folders of the stores: those in {@code rocksdb}, and next to it those of stores with times. */
    private static List<Path> stores(Path task) throws IOException {
        Path plain = task.resolve("rocksdb");
        Stream<Path> timed = folders(task).stream().filter(folder -> !folder.equals(plain));
        return Stream.concat(folders(plain).stream(), timed).collect(Collectors.toList());
    }

    /** The databases of a store: its folder, or, if it has times, the folders below, each a segment of time. */
    private static List<Path> databases(Path store) throws IOException {
        Stream<Path> places = Stream.concat(Stream.of(store), folders(store).stream());
        return places.filter(place -> Files.exists(place.resolve("CURRENT"))).collect(Collectors.toList());
    }

    /** The folders in a folder, if it is there. */
    private static List<Path> folders(Path parent) throws IOException {
        if (!Files.isDirectory(parent)) {
            return List.of();
        }
        try (Stream<Path> found = Files.list(parent)) {
            return found.filter(Files::isDirectory).sorted().collect(Collectors.toList());
        }
    }

    /**
     * Changelog topic to the last offset in its store, by {@code OffsetCheckpoint}: its version, the number of lines,
     * then {@code topic partition offset}.
     */
    private static Map<String, Long> checkpoint(Path file) throws IOException {
        Map<String, Long> offsets = new HashMap<>();
        if (!Files.exists(file)) {
            return offsets;
        }
        List<String> lines = Files.readAllLines(file);
        int header = 2;
        if (lines.size() < header || !lines.get(0).equals("0") || !lines.get(1).equals(String.valueOf(lines.size() - header))) {
            throw new IOException(file + " has a form that is not known: " + lines);
        }
        for (String line : lines.subList(header, lines.size())) {
            String[] parts = line.split(" ");
            if (parts.length != 3) {
                throw new IOException(file + " has a line that is not known: " + line);
            }
            offsets.put(parts[0], Long.parseLong(parts[2]));
        }
        return offsets;
    }

    /** A RocksDB as Kafka Streams lays it out: values in one column family, with or without a timestamp before them. */
    private static final class Store implements AutoCloseable {

        private final Map<String, ColumnFamilyHandle> families = new HashMap<>();
        private final DBOptions options = new DBOptions();
        private final RocksDB database;

        private Store(Path directory) throws RocksDBException {
            List<ColumnFamilyDescriptor> descriptors = new ArrayList<>();
            try (Options any = new Options()) {
                for (byte[] name : RocksDB.listColumnFamilies(any, directory.toString())) {
                    descriptors.add(new ColumnFamilyDescriptor(name));
                }
            }
            List<ColumnFamilyHandle> handles = new ArrayList<>();
            database = RocksDB.openReadOnly(options, directory.toString(), descriptors, handles);
            for (int i = 0; i < handles.size(); i++) {
                families.put(new String(descriptors.get(i).getName(), StandardCharsets.UTF_8), handles.get(i));
            }
        }

        /** The column families of which it is not known what stands before their values. */
        private Set<String> unknown() {
            Set<String> unknown = new TreeSet<>(families.keySet());
            unknown.removeAll(Set.of(PLAIN, OFFSETS, TIMESTAMPED));
            return unknown;
        }

        /** Write the entries, without their timestamps, and count them. */
        private int write(Form form, BufferedWriter lines) throws IOException {
            int count = 0;
            for (Map.Entry<String, ColumnFamilyHandle> family : families.entrySet()) {
                int skipped = family.getKey().equals(PLAIN) ? 0 : TIMESTAMP_BYTES;
                if (family.getKey().equals(OFFSETS)) {
                    continue;
                }
                try (RocksIterator rows = database.newIterator(family.getValue())) {
                    for (rows.seekToFirst(); rows.isValid(); rows.next()) {
                        byte[] value = rows.value();
                        KeyValue<Object, Object> entry =
                                form.entry(rows.key(), Arrays.copyOfRange(value, skipped, value.length));
                        lines.write(entry.key + "," + entry.value + "\n");
                        count++;
                    }
                }
            }
            return count;
        }

        /** The last changelog offset it claims in the column family {@code offsets}; null if it has none. */
        private Long last() {
            Long last = null;
            if (families.containsKey(OFFSETS)) {
                try (RocksIterator rows = database.newIterator(families.get(OFFSETS))) {
                    for (rows.seekToFirst(); rows.isValid(); rows.next()) {
                        if (new String(rows.key(), StandardCharsets.UTF_8).matches(CHANGELOG)) {
                            last = ByteBuffer.wrap(rows.value()).getLong();
                        }
                    }
                }
            }
            return last;
        }

        @Override
        public void close() {
            families.values().forEach(ColumnFamilyHandle::close);
            database.close();
            options.close();
        }
    }
}
