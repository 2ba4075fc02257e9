package onceproof.streams;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BiConsumer;
import org.apache.kafka.streams.processor.TaskId;

/**
 * What the processors of this process tell: how many records they processed, per task and thread (a processor takes
 * its counter once, in {@code init}), and what they noticed on the way.
 */
final class Progress {

    private final Map<TaskId, Map<String, LongAdder>> counters = new ConcurrentSkipListMap<>();
    private final BiConsumer<String, Map<String, Object>> listener;

    Progress(BiConsumer<String, Map<String, Object>> listener) {
        this.listener = listener;
    }

    /** Report something as a separate event. */
    void tell(String event, Map<String, Object> fields) {
        listener.accept(event, fields);
    }

    /** The task's counter on the calling thread. */
    LongAdder counter(TaskId task) {
        return counters
                .computeIfAbsent(task, t -> new ConcurrentSkipListMap<>())
                .computeIfAbsent(Thread.currentThread().getName(), t -> new LongAdder());
    }

    /** Whether any processor counts what it processes; those of your own application do not. */
    boolean isCounted() {
        return !counters.isEmpty();
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
