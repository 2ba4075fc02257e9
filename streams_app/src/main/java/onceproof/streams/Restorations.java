package onceproof.streams;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.StateRestoreListener;

/** Reports from where to where each store of an active task is restored. A store that lacks nothing is left out. */
final class Restorations implements StateRestoreListener {

    private final Events events;

    Restorations(Events events) {
        this.events = events;
    }

    @Override
    public void onRestoreStart(TopicPartition changelog, String store, long from, long end) {
        events.emit("restore", Events.fields(
                "store", store, "partition", changelog.partition(), "from", from, "end", end));
    }

    @Override
    public void onBatchRestored(TopicPartition changelog, String store, long last, long records) {
        // the end tells all
    }

    @Override
    public void onRestoreEnd(TopicPartition changelog, String store, long records) {
        events.emit("restored", Events.fields(
                "store", store, "partition", changelog.partition(), "records", records));
    }
}
