import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
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
 * The number of records that wait in a left join of streams, and that it reads to put out the one that is due.
 *
 * <p>It counts the keys that the join deserializes for one record. Run it as one file: {@code java -cp CLASSPATH LeftJoinLooks.java}.
 */
public final class LeftJoinLooks {

    private static final long WINDOW = 10_000;

    private LeftJoinLooks() {}

    public static void main(String[] args) {
        System.out.println("waiting  keys read");
        for (int waiting : new int[] {10, 100, 1_000}) {
            System.out.printf("%7d  %9d%n", waiting, read(waiting));
        }
    }

    private static int read(int waiting) {
        AtomicInteger read = new AtomicInteger();
        Serde<String> text = Serdes.String();
        Serde<String> counted = Serdes.serdeFrom(new StringSerializer(), (topic, data) -> {
            read.incrementAndGet();
            return new String(data);
        });
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> right = builder.stream("right", Consumed.with(text, text));
        builder.stream("left", Consumed.with(text, text))
                .leftJoin(
                        right,
                        (one, other) -> one,
                        JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofMillis(WINDOW)),
                        StreamJoined.with(counted, text, text))
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
            read.set(0);
            left.pipeInput("key", "value", WINDOW + 1);
            int keys = read.get();
            int came = driver.createOutputTopic("out", text.deserializer(), text.deserializer())
                    .readKeyValuesToList()
                    .size();
            if (came != 1) {
                throw new AssertionError(came + " came out, and one was due");
            }
            return keys;
        }
    }
}
