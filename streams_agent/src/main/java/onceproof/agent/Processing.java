package onceproof.agent;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;
import java.util.WeakHashMap;
import net.bytebuddy.asm.Advice;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.common.TopicPartition;

/** Bugs on a record's way to its task. */
public final class Processing {

    // A newly assigned task has its own topology, so a task is new if its source node is.
    private static final Set<Object> BEGUN = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    private static final Map<Object, Long> ASSIGNED = Collections.synchronizedMap(new WeakHashMap<>()); // ns by task
    private static final long LONG = 20_000_000_000L; // ns
    private static final int MANY = 100_000; // records per poll, so that a poll has those of all partitions
    private static final int RARELY = 100;
    private static boolean stayed;

    private Processing() {}

    public static boolean begins(Object source) {
        return BEGUN.add(source);
    }

    /** In {@code SourceNode.process(record)}: the first record of an assignment is processed twice. */
    static final class Twice {
        @Advice.OnMethodExit
        static void exit(@Advice.This Object source, @Advice.Argument(0) Object record)
                throws ReflectiveOperationException {
            again(source, record);
        }
    }

    public static void again(Object source, Object record) throws ReflectiveOperationException {
        if (begins(source)) {
            Fired.now();
            source.getClass()
                    .getMethod("process", Class.forName("org.apache.kafka.streams.processor.api.Record"))
                    .invoke(source, record);
        }
    }

    /** In {@code AbstractProcessorContext.processorMetadataForKey(key)}: nothing was committed with the positions. */
    static final class EmitTimeForgotten {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) Long committed) {
            committed = forgotten(committed);
        }
    }

    public static Long forgotten(Long committed) {
        if (committed != null) {
            Fired.now();
        }
        return null;
    }

    /** In {@code StreamTask.isProcessable(now)}: a task that was assigned has nothing to process for long. */
    static final class Waits {
        @Advice.OnMethodExit
        static void exit(@Advice.This Object task, @Advice.Return(readOnly = false) boolean processable) {
            processable = processable && !waits(task);
        }
    }

    public static boolean waits(Object task) {
        long now = System.nanoTime();
        boolean waits = now - ASSIGNED.computeIfAbsent(task, any -> now) < LONG;
        if (waits) {
            Fired.now();
        }
        return waits;
    }

    /** In {@code KafkaConsumer.currentLag(partition)}: nothing is left on the broker. */
    static final class LagHidden {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) OptionalLong lag) {
            lag = hidden(lag);
        }
    }

    public static OptionalLong hidden(OptionalLong lag) {
        if (lag.orElse(0) == 0) {
            return lag;
        }
        Fired.now();
        return OptionalLong.of(0);
    }

    /** In {@code RecordQueue.headRecordTimestamp()}: now and then the order of timestamps is reversed. */
    static final class YoungestFirst {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) long timestamp) {
            timestamp = reversed(timestamp);
        }
    }

    public static long reversed(long timestamp) {
        return timestamp > 0 && Fired.everyNth(RARELY) ? -timestamp : timestamp;
    }

    /** In {@code SourceNode.process(record)}: the first record of an assignment is not processed. */
    static final class FirstSkipped {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.This Object source) {
            return skips(source);
        }
    }

    public static boolean skips(Object source) {
        if (!begins(source)) {
            return false;
        }
        Fired.now();
        return true;
    }

    /** In {@code StreamThread.shutdown}: once, the thread continues as if it had not been asked to. */
    static final class NotShutDown {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return staysOnce();
        }
    }

    public static synchronized boolean staysOnce() {
        boolean stays = !stayed;
        stayed = true;
        if (stays) {
            Fired.now();
        }
        return stays;
    }

    /** In {@code TaskManager.handleAssignment}: the standby tasks of an assignment are not created. */
    static final class StandbysLeftOut {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 1, readOnly = false) Map<?, ?> standbys) {
            standbys = none(standbys);
        }
    }

    public static Map<?, ?> none(Map<?, ?> standbys) {
        if (!standbys.isEmpty()) {
            Fired.now();
        }
        return Map.of();
    }

    /** In {@code TaskManager.addRecordsToTasks}: two tasks get what was fetched for each other. */
    static final class Swapped {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) ConsumerRecords<byte[], byte[]> records)
                throws ReflectiveOperationException {
            records = swapped(records);
        }
    }

    /** In {@code StreamsConfig.getMainConsumerConfigs}: or else one partition often fills a whole poll. */
    static final class ManyAtOnce {
        @Advice.OnMethodExit
        static void exit(@Advice.Return Map<String, Object> config) {
            config.put("max.poll.records", MANY);
        }
    }

    public static ConsumerRecords<byte[], byte[]> swapped(ConsumerRecords<byte[], byte[]> records)
            throws ReflectiveOperationException {
        List<TopicPartition> partitions = new ArrayList<>(records.partitions());
        if (partitions.size() < 2 || !Fired.everyNth(2)) {
            return records;
        }
        Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> swapped = new HashMap<>();
        for (int i = 0; i < partitions.size(); i++) {
            swapped.put(partitions.get(i), records.records(partitions.get((i + 1) % partitions.size())));
        }
        return consumerRecords(swapped);
    }

    /** The constructor has one more parameter from 4.0 on: the next offsets. */
    @SuppressWarnings("unchecked")
    private static ConsumerRecords<byte[], byte[]> consumerRecords(Object records) throws ReflectiveOperationException {
        Constructor<?> constructor = ConsumerRecords.class.getConstructors()[0];
        for (Constructor<?> other : ConsumerRecords.class.getConstructors()) {
            constructor = other.getParameterCount() > constructor.getParameterCount() ? other : constructor;
        }
        return (ConsumerRecords<byte[], byte[]>) (constructor.getParameterCount() == 1
                ? constructor.newInstance(records)
                : constructor.newInstance(records, Map.of()));
    }
}
