package onceproof.streams;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.LongAdder;
import org.apache.kafka.streams.processor.TaskId;

/** Records processed by this process, per task and thread. A processor takes its counter once, in `init`. */
final class Progress {

    private final Map<TaskId, Map<String, LongAdder>> counters = new ConcurrentSkipListMap<>();

    /** The counter of the task on the thread that calls. */
    LongAdder counter(TaskId task) {
        return counters
                .computeIfAbsent(task, t -> new ConcurrentSkipListMap<>())
                .computeIfAbsent(Thread.currentThread().getName(), t -> new LongAdder());
    }

    List<Map<String, Object>> processed() {
        List<Map<String, Object>> rows = new ArrayList<>();
        counters.forEach((task, threads) -> threads.forEach((thread, counter) -> {
            long count = counter.sum();
            if (count > 0) {
                rows.add(Events.fields("task", task.toString(), "thread", thread, "count", count));
            }
        }));
        return rows;
    }
}
