package onceproof.streams;

import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.streams.StreamsConfig;

/** What Kafka Streams makes of its configuration, defaults among them, of that on which the meaning of records hangs. */
final class Effective {

    private static final List<String> TOLD = List.of(
            "buffered.records.per.partition",
            "cache.max.bytes.buffering", // until 3.4
            "commit.interval.ms",
            "default.dsl.store",
            "dsl.store.format", // from 4.3 on
            "enable.transactional.statestores", // from 4.4 on
            "errors.dead.letter.queue.topic.name", // from 4.2 on
            "group.protocol", // from 4.1 on
            "max.task.idle.ms",
            "num.standby.replicas",
            "num.stream.threads",
            "processing.guarantee",
            "statestore.cache.max.bytes",
            "topology.optimization");

    private Effective() {}

    /** By name, those that this release knows and that are not null. */
    static Map<String, String> of(Properties config) {
        Map<String, ?> values = new StreamsConfig(config).values();
        Map<String, String> told = new TreeMap<>();
        for (String name : TOLD) {
            if (values.get(name) != null) {
                told.put(name, String.valueOf(values.get(name)));
            }
        }
        return told;
    }
}
