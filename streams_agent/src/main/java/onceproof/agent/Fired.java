package onceproof.agent;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** How often the plant of this JVM did its harm, reported as it happens: the process may be killed at any time. */
public final class Fired {

    private static final long PAUSE = 50_000_000; // ns between two reports; the first is sent at once
    private static final AtomicLong COUNT = new AtomicLong();
    private static final Map<String, AtomicLong> CANDIDATES = new ConcurrentHashMap<>();
    private static final AtomicLong TOLD = new AtomicLong();
    private static volatile String plant = "";
    private static volatile List<String> altered = List.of();
    private static volatile Consumer<Map<String, Object>> owner = fields -> { };

    private Fired() {}

    static void planted(String name, List<String> methods) {
        plant = name;
        altered = methods;
    }

    /** Have it reported: {@code plant}, {@code altered}, {@code fired}; now, and whenever it fires. */
    public static void listen(Consumer<Map<String, Object>> listener) {
        owner = listener;
        tell();
    }

    /** Tell how often it has fired so far. */
    public static void tell() {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("plant", plant);
        fields.put("altered", altered);
        fields.put("fired", COUNT.get());
        owner.accept(fields);
    }

    /** The plant does its harm now. */
    public static void now() {
        long count = COUNT.incrementAndGet();
        long now = System.nanoTime();
        long told = TOLD.get();
        if (count == 1 || now - told > PAUSE && TOLD.compareAndSet(told, now)) {
            tell();
        }
    }

    /** As {@code everyNth(n)}, of the calls with this name. */
    public static boolean everyNth(String name, int n) {
        if (CANDIDATES.computeIfAbsent(name, any -> new AtomicLong()).incrementAndGet() % n != 0) {
            return false;
        }
        now();
        return true;
    }

    /** True, and counted as fired, at every n-th call: for harm that would be too obvious if done to every record. */
    public static boolean everyNth(int n) {
        return everyNth("", n);
    }
}
