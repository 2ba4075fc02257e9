package onceproof.streams;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import javax.management.JMException;
import javax.management.ObjectName;
import org.apache.kafka.streams.KafkaStreams;

/** What the process holds after a full garbage collection: what grows while nothing else does is leaked. */
final class Resources {

    private static final Path HANDLES = Path.of("/proc/self/fd");
    /** A line of the JVM's histogram: a number, instances, bytes, the class. */
    private static final Pattern CLASS = Pattern.compile(
            "^\\s*\\d+:\\s+(\\d+)\\s+\\d+\\s+(org\\.(?:apache\\.kafka|rocksdb)\\.\\S+)", Pattern.MULTILINE);

    private Resources() {}

    /** By resource how many there are. Objects of RocksDB that are open in native code are counted by the agent. */
    static Map<String, Long> held(KafkaStreams streams) {
        Map<String, Long> held = new TreeMap<>();
        instances().forEach((type, number) -> held.put("objects of " + type, number));
        opened().forEach((type, number) -> held.put("open " + type, number));
        held.put("threads", (long) ManagementFactory.getThreadMXBean().getThreadCount());
        held.put("metrics", (long) streams.metrics().size());
        try (Stream<Path> handles = Files.list(HANDLES)) {
            held.put("file handles", handles.count());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return held;
    }

    /** By class of Kafka and RocksDB the number of instances that can be reached. */
    private static Map<String, Long> instances() {
        Map<String, Long> instances = new TreeMap<>();
        Matcher line = CLASS.matcher(histogram());
        while (line.find()) {
            // A lambda has another name in each process.
            instances.merge(line.group(2).replaceFirst("\\$\\$Lambda.*", " (lambda)"), Long.valueOf(line.group(1)), Long::sum);
        }
        return instances;
    }

    private static String histogram() {
        try {
            return (String) ManagementFactory.getPlatformMBeanServer().invoke(
                    new ObjectName("com.sun.management:type=DiagnosticCommand"),
                    "gcClassHistogram",
                    new Object[] {null},
                    new String[] {String[].class.getName()});
        } catch (JMException e) {
            throw new IllegalStateException("The JVM does not say which objects it has.", e);
        }
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Long> opened() {
        try {
            return (Map<String, Long>) Class.forName("onceproof.agent.NativeObjects").getMethod("opened").invoke(null);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("The agent does not count the native objects: start it with `native`.", e);
        }
    }
}
