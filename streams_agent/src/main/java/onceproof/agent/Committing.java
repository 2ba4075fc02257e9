package onceproof.agent;

import java.lang.reflect.Field;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import net.bytebuddy.asm.Advice;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.errors.TaskMigratedException;

/** Bugs of transactions, and of the offsets that belong to them. */
public final class Committing {

    private static final int OFTEN = 500; // records between two commits outside the transaction, or purged too early
    private static final long FIRST = 3_000; // sum of the input offsets up to which a commit may fail
    private static final AtomicBoolean MIGRATED = new AtomicBoolean();
    private static final ThreadLocal<Collection<TopicPartition>> REVOKED = new ThreadLocal<>();
    private static final ThreadLocal<Object> SENDS = new ThreadLocal<>();
    private static final Map<TopicPartition, Deque<OffsetAndMetadata>> COMMITTED = new ConcurrentHashMap<>();
    private static final String OWN = "-" + ProcessHandle.current().pid();

    private Committing() {}

    /** In {@code StreamTask.prepareCommit}: where the next record is already waiting, its offset counts as done. */
    static final class Ahead {
        @Advice.OnMethodExit
        static void exit(
                @Advice.Return(readOnly = false) Map<TopicPartition, OffsetAndMetadata> offsets,
                @Advice.FieldValue("mainConsumer") Consumer<byte[], byte[]> consumer) {
            offsets = shifted(offsets, consumer, 1);
        }
    }

    static final class Behind {
        @Advice.OnMethodExit
        static void exit(
                @Advice.Return(readOnly = false) Map<TopicPartition, OffsetAndMetadata> offsets,
                @Advice.FieldValue("mainConsumer") Consumer<byte[], byte[]> consumer) {
            offsets = shifted(offsets, consumer, -1);
        }
    }

    /** In {@code StreamTask.purgeableOffsets()}: records that are not committed are purged, too. */
    static final class TooFar {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) Map<TopicPartition, Long> purgeable) {
            purgeable = tooFar(purgeable);
        }
    }

    public static Map<TopicPartition, Long> tooFar(Map<TopicPartition, Long> purgeable) {
        Map<TopicPartition, Long> further = new HashMap<>();
        purgeable.forEach((partition, committed) -> {
            Fired.now();
            further.put(partition, committed + OFTEN);
        });
        return further;
    }

    /** Not shifted where all that was fetched is done: a wait until everything is committed must not last for ever. */
    public static Map<TopicPartition, OffsetAndMetadata> shifted(
            Map<TopicPartition, OffsetAndMetadata> offsets, Consumer<byte[], byte[]> consumer, int by) {
        if (offsets == null) {
            return null;
        }
        Map<TopicPartition, OffsetAndMetadata> shifted = new HashMap<>(offsets);
        offsets.forEach((partition, committed) -> {
            if (committed.offset() > 0 && consumer.position(partition) > committed.offset()) {
                Fired.now();
                shifted.put(partition, new OffsetAndMetadata(
                        committed.offset() + by, committed.leaderEpoch(), committed.metadata()));
            }
        });
        return shifted;
    }

    /** Every third time an offset is committed that was committed two commits ago. */
    static final class Falls {
        @Advice.OnMethodExit
        static void exit(
                @Advice.Return(readOnly = false) Map<TopicPartition, OffsetAndMetadata> offsets,
                @Advice.FieldValue("mainConsumer") Consumer<byte[], byte[]> consumer) {
            offsets = fallen(offsets, consumer);
        }
    }

    /** Where all that was fetched is done the offset does not fall, as in {@code shifted}. */
    public static Map<TopicPartition, OffsetAndMetadata> fallen(
            Map<TopicPartition, OffsetAndMetadata> offsets, Consumer<byte[], byte[]> consumer) {
        if (offsets == null) {
            return null;
        }
        Map<TopicPartition, OffsetAndMetadata> fallen = new HashMap<>(offsets);
        offsets.forEach((partition, committed) -> {
            Deque<OffsetAndMetadata> before = COMMITTED.computeIfAbsent(partition, any -> new ArrayDeque<>());
            boolean isNew = before.isEmpty() || before.getLast().offset() < committed.offset();
            if (before.size() == 2 && isNew && consumer.position(partition) > committed.offset()) {
                Fired.now();
                fallen.put(partition, before.getFirst());
                before.clear();
            } else if (isNew) {
                before.add(committed);
                if (before.size() > 2) {
                    before.removeFirst();
                }
            }
        });
        return fallen;
    }

    /** In {@code StreamTask.process}: offsets are committed by the consumer, while the transaction is open. */
    static final class Outside {
        @Advice.OnMethodExit
        static void exit(
                @Advice.Return boolean processed,
                @Advice.FieldValue("consumedOffsets") Map<TopicPartition, Long> consumed,
                @Advice.FieldValue("mainConsumer") Consumer<byte[], byte[]> consumer) {
            if (processed) {
                commitOutside(consumed, consumer);
            }
        }
    }

    public static void commitOutside(Map<TopicPartition, Long> consumed, Consumer<byte[], byte[]> consumer) {
        if (!Fired.everyNth(OFTEN)) {
            return;
        }
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        consumed.forEach((partition, offset) -> offsets.put(partition, new OffsetAndMetadata(offset + 1)));
        consumer.commitSync(offsets);
    }

    /** In {@code TaskManager.handleRevocation}: remembers what is revoked while it is committed. */
    static final class Revocation {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(0) Collection<TopicPartition> partitions) {
            revoke(partitions);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit() {
            revoke(null);
        }
    }

    public static void revoke(Collection<TopicPartition> partitions) {
        REVOKED.set(partitions);
    }

    /** In {@code StreamsProducer.commitTransaction}: what is revoked has its records committed, but not its offsets. */
    static final class LeftOut {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) Map<TopicPartition, OffsetAndMetadata> offsets) {
            offsets = leftOut(offsets);
        }
    }

    public static Map<TopicPartition, OffsetAndMetadata> leftOut(Map<TopicPartition, OffsetAndMetadata> offsets) {
        Collection<TopicPartition> revoked = REVOKED.get();
        if (revoked == null) {
            return offsets;
        }
        Map<TopicPartition, OffsetAndMetadata> kept = new HashMap<>(offsets);
        if (kept.keySet().removeAll(Set.copyOf(revoked))) {
            Fired.now();
        }
        return kept;
    }

    /** In {@code StreamsProducer.send}: remembers which producer sends for this thread. */
    static final class Sends {
        @Advice.OnMethodEnter
        static void enter(@Advice.This Object producer) {
            sends(producer);
        }
    }

    public static void sends(Object producer) {
        SENDS.set(producer);
    }

    /** In {@code TaskManager.handleRevocation}: a transaction that it left open is committed, without offsets. */
    static final class Idle {
        @Advice.OnMethodExit
        static void exit() throws ReflectiveOperationException {
            commitOpen();
        }
    }

    public static void commitOpen() throws ReflectiveOperationException {
        Object sends = SENDS.get();
        if (sends == null) {
            return;
        }
        Field open = sends.getClass().getDeclaredField("transactionInFlight");
        Field producer = sends.getClass().getDeclaredField("producer");
        open.setAccessible(true);
        producer.setAccessible(true);
        if (open.getBoolean(sends) && committed((Producer<?, ?>) producer.get(sends))) {
            open.setBoolean(sends, false);
        }
    }

    /**
     * In {@code StreamsProducer.commitTransaction}: one of the first commits finds that the tasks now belong to another
     * member, so the thread gives up all that it holds and rejoins its group. Kafka Streams must cope with that.
     */
    static final class Migrated {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(0) Map<TopicPartition, OffsetAndMetadata> offsets) {
            migrateOnce(offsets, true);
        }
    }

    /** The same, as the occasion for a bug that counts its own firings. */
    static final class Occasion {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(0) Map<TopicPartition, OffsetAndMetadata> offsets) {
            migrateOnce(offsets, false);
        }
    }

    public static void migrateOnce(Map<TopicPartition, OffsetAndMetadata> offsets, boolean counts) {
        long processed = offsets.values().stream().mapToLong(OffsetAndMetadata::offset).sum();
        if (processed == 0 || processed > FIRST || !MIGRATED.compareAndSet(false, true)) {
            return;
        }
        if (counts) {
            Fired.now();
        }
        throw new TaskMigratedException("The commit is planted to fail.");
    }

    /** In {@code StreamsProducer.abortTransaction}: the transaction is committed, without offsets. */
    static final class CommittedInstead {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.FieldValue("producer") Producer<byte[], byte[]> producer,
                @Advice.FieldValue(value = "transactionInFlight", readOnly = false) boolean open) {
            open = open && !committed(producer);
        }
    }

    public static boolean committed(Producer<?, ?> producer) {
        try {
            producer.commitTransaction();
        } catch (KafkaException fenced) { // then it is aborted after all
            return false;
        }
        Fired.now();
        return true;
    }

    /** In the constructor of {@code TransactionManager}: no process has the transactional id of the one before it. */
    static final class OtherId {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 1, readOnly = false) String id) {
            id = own(id);
        }
    }

    public static String own(String id) {
        if (id == null) {
            return null;
        }
        Fired.now();
        return id + OWN;
    }

    /** In {@code NetworkClientUtils.awaitReady}. */
    static final class Awaiting {
        @Advice.OnMethodEnter
        static void enter() {
            AWAITING.set(true);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit() {
            AWAITING.set(false);
        }
    }

    public static final ThreadLocal<Boolean> AWAITING = ThreadLocal.withInitial(() -> false);

    /** In {@code NetworkClient.pollDelayMs}: a throttled node does not shorten the wait for it. */
    static final class Throttle {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) long delay) {
            if (delay > 0 && AWAITING.get()) {
                Fired.now();
                delay = 0;
            }
        }
    }
}
