import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.StreamJoined;

/**
 * The time that a left join of streams takes for the record by which one of the records that wait is due, by how many wait.
 *
 * <p>Run it as one file: {@code java -cp CLASSPATH LeftJoinTime.java}. Times are of the processor (of this thread alone).
 */
public final class LeftJoinTime {

    private static final long WINDOW = 10_000_000;

    private LeftJoinTime() {}

    public static void main(String[] args) {
        time(500); // so that what follows is compiled
        System.out.println("waiting  milliseconds");
        for (int waiting : new int[] {500, 1_000, 4_000}) {
            System.out.printf("%7d  %.1f%n", waiting, Math.min(time(waiting), time(waiting)) / 1e6);
        }
    }

    /** In nanoseconds. */
    private static long time(int waiting) {
        Serde<String> text = Serdes.String();
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> right = builder.stream("right", Consumed.with(text, text));
        builder.stream("left", Consumed.with(text, text))
                .leftJoin(
                        right,
                        (one, other) -> one,
                        JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(WINDOW)),
                        StreamJoined.with(text, text, text))
                .to("out");
        Properties config = new Properties();
        config.put("default.key.serde", Serdes.StringSerde.class.getName());
        config.put("default.value.serde", Serdes.StringSerde.class.getName());
        config.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0L);
        try (TopologyTestDriver driver = new TopologyTestDriver(builder.build(), config)) {
            TestInputTopic<String, String> left =
                    driver.createInputTopic("left", new StringSerializer(), new StringSerializer());
            for (int number = 0; number < waiting; number++) {
                left.pipeInput("key", "value", number); // the window of the first one alone will have closed
            }
            long begin = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
            left.pipeInput("key", "value", WINDOW + 1);
            long time = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - begin;
            int came = driver.createOutputTopic("out", Serdes.String().deserializer(), Serdes.String().deserializer())
                    .readKeyValuesToList()
                    .size();
            if (came != 1) {
                throw new AssertionError(came + " came out, and one was due");
            }
            return time;
        }
    }
}
