package org.apache.kafka.streams.state.internals;

import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.StateDirectory;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.File;
import java.util.Map;
import java.util.Set;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

/** A persistent store of one's own that does not manage its offsets. There are such from 4.3.0 on. */
public class LegacyCheckpointingStateStoreCorruptedTest {

    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);

    @TempDir
    File stateDir;

    @Test
    public void shouldKeepOffsetsOfHealthyStore() {
        final StateStore store = opened();
        store.commit(Map.of(CHANGELOG, 3_000L));
        store.close();

        assertEquals(3_000L, opened().committedOffset(CHANGELOG));
    }

    /** As {@code ProcessorStateManager} does it when a running task is found corrupted under at-least-once. */
    @Test
    public void shouldNotKeepOffsetsOfCorruptedStore() {
        final StateStore healthy = opened();
        healthy.commit(Map.of(CHANGELOG, 3_000L));
        healthy.close();

        final StateStore corrupted = opened();
        LegacyCheckpointingStateStore.maybeMarkCorrupted(corrupted);
        corrupted.commit(Map.of());
        corrupted.close();

        assertNull(opened().committedOffset(CHANGELOG), "it is to be restored from the beginning");
    }

    private StateStore opened() {
        final StateDirectory directory = new StateDirectory(
            new StreamsConfig(Map.of(
                StreamsConfig.APPLICATION_ID_CONFIG, "app",
                StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "unused:1",
                StreamsConfig.STATE_DIR_CONFIG, stateDir.getPath())),
            Time.SYSTEM, true, true);
        final StateStore store = LegacyCheckpointingStateStore.maybeWrapStore(
            new OwnStore(), false, Set.of(CHANGELOG), directory, new TaskId(0, 0), "");
        store.init(null, store);
        return store;
    }

    private static class OwnStore implements StateStore {
        private boolean open;

        @Override
        public String name() {
            return "own";
        }

        @Override
        public void init(final StateStoreContext context, final StateStore root) {
            open = true;
        }

        @Override
        public void close() {
            open = false;
        }

        @Override
        public boolean persistent() {
            return true;
        }

        @Override
        public boolean isOpen() {
            return open;
        }
    }
}
