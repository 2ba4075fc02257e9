package onceproof.streams;

import org.apache.kafka.streams.Topology;

/** The topology of {@link Counting}, whose store a {@link QueryClient} asks while tasks move. */
final class InteractiveQueries {

    static final String NAME = "interactive-queries";

    private InteractiveQueries() {}

    static Topology topology(Settings settings, Progress progress) {
        CountedStore.of(settings);
        return Counting.topology(settings, progress);
    }
}
