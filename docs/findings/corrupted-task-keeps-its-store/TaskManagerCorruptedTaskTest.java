package org.apache.kafka.streams.processor.internals;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.Task.State;

import org.junit.jupiter.api.Test;
import org.mockito.InOrder;

import java.util.Map;
import java.util.Set;

import static org.mockito.Mockito.inOrder;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

/** In the terms of {@code TaskManagerTest}, which before 4.4.0 asserts only that {@code postCommit(true)} is called. */
public class TaskManagerCorruptedTaskTest {

    private final TaskId taskId = new TaskId(0, 0);
    private final Set<TopicPartition> inputs = Set.of(new TopicPartition("topic", 0));
    private final Set<TopicPartition> changelogs = Set.of(new TopicPartition("changelog", 0));

    /** KAFKA-10391: the checkpoint that {@code postCommit(true)} enforces must leave out what is corrupted. */
    @Test
    public void shouldMarkChangelogsOfCorruptedActiveTaskBeforeCheckpoint() {
        final StreamTask corrupted = mock(StreamTask.class);
        when(corrupted.id()).thenReturn(taskId);
        when(corrupted.isActive()).thenReturn(true);
        when(corrupted.state()).thenReturn(State.RUNNING);
        when(corrupted.inputPartitions()).thenReturn(inputs);
        when(corrupted.changelogPartitions()).thenReturn(changelogs);

        taskManagerOf(corrupted).handleCorruption(Set.of(taskId));

        final InOrder order = inOrder(corrupted);
        order.verify(corrupted).suspend();
        order.verify(corrupted).markChangelogAsCorrupted(changelogs);
        order.verify(corrupted).postCommit(true);
        order.verify(corrupted).closeDirty();
        order.verify(corrupted).revive();
    }

    @SuppressWarnings("unchecked")
    private TaskManager taskManagerOf(final StreamTask task) {
        final TasksRegistry tasks = mock(TasksRegistry.class);
        when(tasks.initializedTask(taskId)).thenReturn(task);
        when(tasks.allInitializedTasksPerId()).thenReturn(Map.of(taskId, task));
        when(tasks.activeInitializedTaskIds()).thenReturn(Set.of(taskId));
        final StreamsConfig config = new StreamsConfig(Map.of(
            StreamsConfig.APPLICATION_ID_CONFIG, "app",
            StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "unused:1",
            StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.AT_LEAST_ONCE));
        final TaskManager taskManager = new TaskManager(
            Time.SYSTEM,
            mock(ChangelogReader.class),
            ProcessId.randomProcessId(),
            "test",
            mock(ActiveTaskCreator.class),
            mock(StandbyTaskCreator.class),
            tasks,
            new TopologyMetadata(mock(InternalTopologyBuilder.class), config),
            mock(Admin.class),
            mock(StateDirectory.class),
            mock(StateUpdater.class),
            null);
        final Consumer<byte[], byte[]> consumer = mock(Consumer.class);
        when(consumer.assignment()).thenReturn(inputs);
        taskManager.setMainConsumer(consumer);
        return taskManager;
    }
}
