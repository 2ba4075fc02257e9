package onceproof.streams;

import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Runs Kafka's own {@code DumpLogSegments} several times in one JVM: one run reads one kind of record.
 *
 * <p>Arguments: the file for what is printed, then the arguments of each run, beginning with {@value #RUN}. Kafka's
 * class is on the class path, wherever its release has it. It prints line by line, which a buffer makes several times
 * faster.
 */
public final class LogSegments {

    static final String RUN = "--run";
    private static final int BUFFER_BYTES = 1 << 16;
    private static final List<String> CLASSES =
            List.of("org.apache.kafka.tools.DumpLogSegments", "kafka.tools.DumpLogSegments");

    private LogSegments() {}

    public static void main(String[] args) throws ReflectiveOperationException, IOException {
        Method dump = dumper().getMethod("main", String[].class);
        List<List<String>> runs = runs(Arrays.copyOfRange(args, 1, args.length));
        BufferedOutputStream file = new BufferedOutputStream(new FileOutputStream(args[0]), BUFFER_BYTES);
        try (PrintStream out = new PrintStream(file, false, StandardCharsets.UTF_8)) {
            System.setOut(out);
            for (List<String> run : runs) {
                dump.invoke(null, (Object) run.toArray(new String[0]));
            }
            if (out.checkError()) {
                throw new IOException(args[0] + " could not be written.");
            }
        }
    }

    static List<List<String>> runs(String[] args) {
        List<List<String>> runs = new ArrayList<>();
        for (String arg : args) {
            if (arg.equals(RUN)) {
                runs.add(new ArrayList<>());
            } else if (runs.isEmpty()) {
                throw new IllegalArgumentException("The first argument of a run must be " + RUN + ", but is " + arg + ".");
            } else {
                runs.get(runs.size() - 1).add(arg);
            }
        }
        return runs;
    }

    static Class<?> dumper() throws ClassNotFoundException {
        for (String name : CLASSES) {
            try {
                return Class.forName(name);
            } catch (ClassNotFoundException e) {
                continue;
            }
        }
        throw new ClassNotFoundException("None of " + CLASSES + " is on the class path.");
    }
}
