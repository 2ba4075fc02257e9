import java.util.function.Supplier;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;

/** Passes on what it reads, after it has looked around. */
public final class PryingTopology implements Supplier<Topology> {

    @Override
    public Topology get() {
        Prying.main(new String[0]);
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream("read").to("written");
        return builder.build();
    }
}
