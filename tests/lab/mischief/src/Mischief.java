import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;

/** Passes records on, and does what no application should. */
public final class Mischief {

    private Mischief() {}

    public static Topology topology(Properties config) {
        String kind = config.getProperty("mischief");
        if (kind.equals("stays")) {
            Runtime.getRuntime().addShutdownHook(new Thread(Mischief::waitForEver));
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.<byte[], byte[]>stream("in").peek((key, value) -> act(kind)).to("out");
        return builder.build();
    }

    private static void act(String kind) {
        if (kind.equals("exits")) {
            System.exit(7);
        }
        if (kind.equals("talks")) {
            System.out.println("x".repeat(100_000));
        }
    }

    private static void waitForEver() {
        try {
            new CountDownLatch(1).await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
