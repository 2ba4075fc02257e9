package org.apache.kafka.streams.processor.internals;

import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.Task.TaskType;

import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.File;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import java.util.Set;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.doThrow;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

/**
 * A task under exactly-once whose store cannot be opened, as its process was killed without transactional stores:
 * {@code RocksDBStore.openDB} throws {@code TaskCorruptedException}, and the task is closed dirty to be restored.
 */
public class StateManagerUtilTransactionalStoresTest {

    private static final Logger LOG = LoggerFactory.getLogger(StateManagerUtilTransactionalStoresTest.class);
    private static final boolean EOS = true;

    private final TaskId taskId = new TaskId(0, 0);

    @TempDir
    File stateDir;

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    public void shouldWipeTaskWhoseStoreWasFoundCorruptedWhenOpened(final boolean transactional) throws Exception {
        final StateDirectory directory = new StateDirectory(
            new StreamsConfig(Map.of(
                StreamsConfig.APPLICATION_ID_CONFIG, "app",
                StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "unused:1",
                StreamsConfig.STATE_DIR_CONFIG, stateDir.getPath())),
            Time.SYSTEM, true, true);
        final StateStore store = mock(StateStore.class);
        when(store.name()).thenReturn("store");
        when(store.persistent()).thenReturn(true);
        when(store.managesOffsets()).thenReturn(true);
        doThrow(new TaskCorruptedException(Set.of(taskId))).when(store).init(any(), any());
        final ProcessorTopology topology = mock(ProcessorTopology.class);
        when(topology.stateStores()).thenReturn(List.of(store));
        final ProcessorStateManager stateManager = new ProcessorStateManager(
            taskId, TaskType.ACTIVE, EOS, transactional, new LogContext(), directory, Time.SYSTEM,
            Map.of("store", "changelog"), Set.of());
        final File taskDir = directory.getOrCreateDirectoryForTask(taskId);
        Files.createDirectories(taskDir.toPath().resolve("rocksdb").resolve("store"));

        assertThrows(TaskCorruptedException.class, () -> StateManagerUtil.registerStateStores(
            LOG, "", topology, stateManager, directory, mock(InternalProcessorContext.class)));
        StateManagerUtil.closeStateManager(
            LOG, "", false, EOS, transactional, stateManager, directory, TaskType.ACTIVE);

        assertFalse(taskDir.exists(), "the next attempt must find nothing to open");
    }
}
