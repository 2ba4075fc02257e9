package onceproof.agent;

import java.nio.file.Path;
import net.bytebuddy.asm.Advice;

/**
 * Ends the JVM, as SIGKILL would, while Kafka Streams deletes an expired segment of a window or session store: after the
 * first of the two files without which RocksDB finds no database.
 */
public final class Halting {

    static final Alteration ALTERED =
            Alteration.of("org.apache.kafka.common.utils.Utils$1", "visitFile", 2, Deleted.class);
    private static final int KILLED = 137; // 128 and the number of SIGKILL

    private Halting() {}

    /** In what {@code Utils.delete} does with a file: it is deleted. */
    static final class Deleted {
        @Advice.OnMethodExit
        static void exit(@Advice.Argument(0) Path file) {
            deleted(file);
        }
    }

    public static void deleted(Path file) {
        String name = file.getFileName().toString();
        if ((name.equals("CURRENT") || name.startsWith("MANIFEST-")) && isOfSegment(file.getParent())) {
            Runtime.getRuntime().halt(KILLED);
        }
    }

    /** A segment is below the directory of its store, and has its name, a dot, and a time. */
    private static boolean isOfSegment(Path database) {
        String store = database.getParent().getFileName().toString();
        String name = database.getFileName().toString();
        return name.startsWith(store + ".") && name.substring(store.length() + 1).matches("\\d+");
    }
}
