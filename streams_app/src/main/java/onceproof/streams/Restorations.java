package onceproof.streams;

import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.StateRestoreListener;

/**
 * Reports from where to where each store of an active task is restored, and by how many records in all. A store that
 * lacks nothing is left out.
 *
 * <p>With a pause, the thread that restores waits so long after each batch: what is to happen during a restoration must
 * find one, however slow the machine is.
 */
final class Restorations implements StateRestoreListener {

    private final Events events;
    private final long pauseMs;
    private final Map<String, Restoration> open = new ConcurrentSkipListMap<>(); // by store and partition

    Restorations(Events events, long pauseMs) {
        this.events = events;
        this.pauseMs = pauseMs;
    }

    @Override
    public void onRestoreStart(TopicPartition changelog, String store, long from, long end) {
        open.put(place(changelog, store), new Restoration(store, changelog.partition()));
        events.emit("restore", Events.fields(
                "store", store, "partition", changelog.partition(), "from", from, "end", end));
    }

    @Override
    public void onBatchRestored(TopicPartition changelog, String store, long last, long records) {
        Restoration restoration = open.get(place(changelog, store));
        if (restoration != null) {
            restoration.last = Math.max(restoration.last, last);
            restoration.records += records;
        }
        try {
            Thread.sleep(pauseMs);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void onRestoreEnd(TopicPartition changelog, String store, long records) {
        Restoration restoration = open.remove(place(changelog, store));
        events.emit("restored", Events.fields(
                "store", store, "partition", changelog.partition(), "records", records,
                "batched", restoration == null ? null : restoration.records,
                "last", restoration == null ? null : restoration.last));
    }

    /** Its task goes elsewhere, or is closed; since 3.5 (KIP-869), so this overrides nothing in what it is compiled against. */
    public void onRestoreSuspended(TopicPartition changelog, String store, long records) {
        Restoration restoration = open.remove(place(changelog, store));
        if (restoration != null) {
            restoration.tell("suspended");
        }
    }

    /** Tell of restorations that have not ended, now that the application is closed. */
    void finish() {
        open.values().forEach(restoration -> restoration.tell("suspended"));
        open.clear();
    }

    private static String place(TopicPartition changelog, String store) {
        return store + "-" + changelog.partition();
    }

    private final class Restoration {
        private final String store;
        private final int partition;
        private volatile long last = -1;
        private volatile long records;

        private Restoration(String store, int partition) {
            this.store = store;
            this.partition = partition;
        }

        private void tell(String event) {
            events.emit(event, Events.fields("store", store, "partition", partition, "records", records, "last", last));
        }
    }
}
