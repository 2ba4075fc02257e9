package onceproof.streams;

import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.function.BiFunction;
import org.apache.kafka.streams.Topology;

/** Every topology of the application, by name. A scenario that needs another one adds its row here. */
final class Topologies {

    static final String OF_PEOPLE = "app"; // your own application
    static final String WRITTEN = "dsl"; // a program of the DSL
    private static final Map<String, BiFunction<Settings, Progress, Topology>> BY_NAME =
            Map.ofEntries(
                    Map.entry("as-of-join", AsOfJoin::topology),
                    Map.entry("copy", Copy::topology),
                    Map.entry("enumerator", Enumerator::topology),
                    Map.entry("counting", Counting::topology),
                    Map.entry("dedup", Dedup::topology),
                    Map.entry("dead-letters", DeadLetters::topology),
                    Map.entry("deleter", Deleter::topology),
                    Map.entry("foreign-key-join", ForeignKeyJoin::topology),
                    Map.entry("global-join", GlobalJoin::topology),
                    Map.entry(InteractiveQueries.NAME, InteractiveQueries::topology),
                    Map.entry("outbox", Outbox::topology),
                    Map.entry("scans", Scans::topology),
                    Map.entry("stream-join", StreamJoin::topology),
                    Map.entry("table-join", TableJoin::topology),
                    Map.entry("two-topics", TwoTopics::topology),
                    Map.entry("values", Values::topology),
                    Map.entry("windows", Windows::topology));

    private Topologies() {}

    /** Those that are built with the configuration, and the others. */
    private static BiFunction<Settings, Progress, Topology> configured(String name, Properties config) {
        switch (name) {
            case OF_PEOPLE:
                return (own, ignored) -> Loaded.topology(own, config);
            case GroupedTable.NAME:
                return (own, progress) -> GroupedTable.topology(own, config, progress);
            case WRITTEN:
                return (own, ignored) -> Dsl.topology(own, config);
            default:
                return BY_NAME.get(name);
        }
    }

    static Topology build(String name, Settings settings, Properties config, Progress progress) {
        BiFunction<Settings, Progress, Topology> builder = configured(name, config);
        if (builder == null) {
            TreeSet<String> known = new TreeSet<>(BY_NAME.keySet());
            known.add(GroupedTable.NAME);
            throw new IllegalArgumentException(
                    "Unknown topology " + name + "; known are: " + String.join(", ", known) + ".");
        }
        Topology topology = builder.apply(settings, progress);
        settings.rejectUnknown();
        return topology;
    }
}
