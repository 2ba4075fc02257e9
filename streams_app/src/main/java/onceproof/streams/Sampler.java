package onceproof.streams;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.Metric;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.LagInfo;
import org.apache.kafka.streams.TaskMetadata;
import org.apache.kafka.streams.ThreadMetadata;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Looks at the running KafkaStreams again and again, each look in its own thread, and reports what changed. */
final class Sampler {

    private static final Logger LOG = LoggerFactory.getLogger(Sampler.class);

    private final KafkaStreams streams;
    private final Events events;
    private final Map<String, Long> totals = new TreeMap<>(); // only for the look "progress"
    private final List<Look> looks;

    Sampler(KafkaStreams streams, Progress progress, Events events) {
        this.streams = streams;
        this.events = events;
        this.looks = List.of(
                new Look("assignment", "threads", 20, this::threads),
                new Look("progress", "processed", 50, () -> progress.isCounted() ? progress.processed() : totals()),
                new Look("lags", "stores", 100, this::stores), // asks the broker, so it must not hold up the others
                new Look("throttle", "producers", 500, this::producers),
                new Look("deadlock", "threads", 1_000, Sampler::deadlocked));
    }

    void start() {
        looks.forEach(Look::start);
    }

    /** Look at the assignment now: something has happened. */
    void wake() {
        looks.get(0).due.release();
    }

    /** Tell what has been processed so far, before the end. */
    void finish() {
        looks.get(1).take();
    }

    private List<Map<String, Object>> threads() {
        return streams.metadataForLocalThreads().stream()
                .sorted(Comparator.comparing(ThreadMetadata::threadName))
                .map(thread -> Events.fields(
                        "thread", thread.threadName(),
                        "state", thread.threadState(),
                        "active", names(thread.activeTasks()),
                        "standby", names(thread.standbyTasks())))
                .collect(Collectors.toList());
    }

    private static List<String> names(Set<TaskMetadata> tasks) {
        return tasks.stream().map(TaskMetadata::taskId).sorted().map(Object::toString).collect(Collectors.toList());
    }

    /** What each thread processed, by Kafka Streams' own metric, which disappears with the thread. */
    private List<Map<String, Object>> totals() {
        for (Metric metric : streams.metrics().values()) {
            if (metric.metricName().name().equals("process-total") && metric.metricName().group().equals("stream-thread-metrics")) {
                long count = ((Double) metric.metricValue()).longValue();
                totals.merge(metric.metricName().tags().get("thread-id"), count, Math::max);
            }
        }
        return totals.entrySet().stream()
                .filter(total -> total.getValue() > 0)
                .map(total -> Events.fields("task", "all", "thread", total.getKey(), "count", total.getValue()))
                .collect(Collectors.toList());
    }

    private List<Map<String, Object>> stores() {
        if (streams.metadataForLocalThreads().stream().allMatch(thread -> thread.standbyTasks().isEmpty())) {
            return List.of();
        }
        List<Map<String, Object>> rows = new ArrayList<>();
        new TreeMap<>(streams.allLocalStorePartitionLags()).forEach((store, partitions) ->
                new TreeMap<Integer, LagInfo>(partitions).forEach((partition, lag) -> rows.add(Events.fields(
                        "store", store,
                        "partition", partition,
                        "position", lag.currentOffsetPosition(),
                        "end", lag.endOffsetPosition()))));
        return rows;
    }

    private List<Map<String, Object>> producers() {
        Map<String, Map<String, Object>> rows = new TreeMap<>();
        for (Metric metric : streams.metrics().values()) {
            String name = metric.metricName().name();
            if (name.startsWith("produce-throttle-time-") && metric.metricName().group().equals("producer-metrics")) {
                double value = (Double) metric.metricValue();
                String client = metric.metricName().tags().get("client-id");
                rows.computeIfAbsent(client, c -> Events.fields(
                                "client_id", c, "produce_throttle_time_max", 0.0, "produce_throttle_time_avg", 0.0))
                        .put(name.replace('-', '_'), Double.isNaN(value) ? 0.0 : value);
            }
        }
        boolean throttled = rows.values().stream().anyMatch(row -> (Double) row.get("produce_throttle_time_max") > 0);
        return throttled ? List.copyOf(rows.values()) : List.of();
    }

    /** Threads that wait for one another forever, each with the monitor that it lacks. */
    private static List<Map<String, Object>> deadlocked() {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long[] found = threads.findDeadlockedThreads();
        return found == null ? List.of() : Stream.of(threads.getThreadInfo(found))
                .filter(Objects::nonNull)
                .map(thread -> Events.fields("thread", thread.getThreadName(), "lacks", thread.getLockName()))
                .collect(Collectors.toList());
    }

    /** One look: it reports what it sees under its name whenever that differs from its last report. */
    private final class Look {
        private final String event;
        private final String field;
        private final long millis;
        private final Supplier<List<Map<String, Object>>> sample;
        private final Semaphore due = new Semaphore(0);
        private List<Map<String, Object>> told = List.of();

        Look(String event, String field, long millis, Supplier<List<Map<String, Object>>> sample) {
            this.event = event;
            this.field = field;
            this.millis = millis;
            this.sample = sample;
        }

        void start() {
            Thread thread = new Thread(this::run, "sample-" + event);
            thread.setDaemon(true);
            thread.start();
        }

        private void run() {
            try {
                while (true) {
                    take();
                    due.tryAcquire(millis, TimeUnit.MILLISECONDS);
                    due.drainPermits();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }

        synchronized void take() {
            try {
                List<Map<String, Object>> seen = sample.get();
                if (!seen.equals(told)) {
                    told = seen;
                    events.emit(event, Events.fields(field, seen));
                }
            } catch (RuntimeException e) { // not available while rebalancing or closing; the next look will tell
                LOG.debug("No {} this time", event, e);
            }
        }
    }
}
