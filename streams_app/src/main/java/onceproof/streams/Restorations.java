package onceproof.streams;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.StateRestoreListener;

/**
 * Reports from where to where each store of an active task is restored. A store that lacks nothing is left out.
 *
 * <p>With a pause, the thread that restores waits so long after each batch: what is to happen during a restoration must
 * find one, however slow the machine is.
 */
final class Restorations implements StateRestoreListener {

    private final Events events;
    private final long pauseMs;

    Restorations(Events events, long pauseMs) {
        this.events = events;
        this.pauseMs = pauseMs;
    }

    @Override
    public void onRestoreStart(TopicPartition changelog, String store, long from, long end) {
        events.emit("restore", Events.fields(
                "store", store, "partition", changelog.partition(), "from", from, "end", end));
    }

    @Override
    public void onBatchRestored(TopicPartition changelog, String store, long last, long records) {
        try {
            Thread.sleep(pauseMs);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void onRestoreEnd(TopicPartition changelog, String store, long records) {
        events.emit("restored", Events.fields(
                "store", store, "partition", changelog.partition(), "records", records));
    }
}
