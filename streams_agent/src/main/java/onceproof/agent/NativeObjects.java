package onceproof.agent;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import net.bytebuddy.asm.Advice;

/**
 * The objects of RocksDB that own memory outside of the heap, by class, until they are closed. RocksDB has no finalizers:
 * one that is forgotten is collected, and its native memory is lost.
 *
 * <p>From 8.0 on a database has {@code ReadOptions} of its own that RocksDB never closes. That is no leak of Kafka Streams,
 * so they count as closed with it.
 */
public final class NativeObjects {

    private static final String DATABASE = "org.rocksdb.RocksDB"; // has a close of its own
    private static final String ITS_OPTIONS = "org.rocksdb.ReadOptions";
    private static final String OWNER = "org.rocksdb.AbstractImmutableNativeReference";
    private static final Map<String, AtomicLong> OPEN = new ConcurrentHashMap<>();

    static final List<Alteration> COUNTED = List.of(
            Alteration.of(OWNER, "<init>", Made.class),
            Alteration.of(OWNER, "disOwnNativeHandle", Released.class),
            Alteration.of(OWNER, "close", Released.class),
            Alteration.of(DATABASE, "close", Closed.class));

    private NativeObjects() {}

    /** By class the number of objects that were made and neither closed nor handed over to another one. */
    public static Map<String, Long> opened() {
        Map<String, Long> opened = new TreeMap<>();
        OPEN.forEach((type, number) -> opened.put(type, number.get()));
        return opened;
    }

    static final class Made {
        @Advice.OnMethodExit
        static void exit(@Advice.This Object made, @Advice.Argument(0) boolean owns) {
            made(made, owns);
        }
    }

    public static void made(Object made, boolean owns) {
        if (owns) {
            add(made, 1);
        }
    }

    static final class Released {
        @Advice.OnMethodEnter
        static void enter(@Advice.This Object released, @Advice.FieldValue("owningHandle_") AtomicBoolean owns) {
            released(released, owns);
        }
    }

    public static void released(Object released, AtomicBoolean owns) {
        if (owns.get()) {
            add(released, -1);
        }
    }

    static final class Closed {
        @Advice.OnMethodEnter
        static void enter(@Advice.This Object database, @Advice.FieldValue("owningHandle_") AtomicBoolean owns) {
            closed(database, owns);
        }
    }

    public static void closed(Object database, AtomicBoolean owns) {
        boolean hasOptions = Stream.of(database.getClass().getDeclaredFields())
                .anyMatch(field -> field.getType().getName().equals(ITS_OPTIONS));
        if (owns.get() && hasOptions) {
            add(ITS_OPTIONS, -1);
        }
        released(database, owns);
    }

    private static void add(Object owner, int number) {
        add(owner.getClass().getName(), number);
    }

    private static void add(String type, int number) {
        OPEN.computeIfAbsent(type, any -> new AtomicLong()).addAndGet(number);
    }
}
