package onceproof.agent;

import java.io.File;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import net.bytebuddy.asm.Advice;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.internals.OffsetCheckpoint;

/** Bugs of the stores: their caches, checkpoints, wipes and restorations. */
public final class Storing {

    private static final long SHORT = 500; // changelog offsets that a restoration lacks: more than a transaction has
    private static final long AHEAD = 1_000; // changelog offsets that a checkpoint promises too many
    private static final long GAP = 10; // offsets without a record: more than markers have
    private static final int FEW = 20; // records that a slow standby takes at a time
    private static final long SOON = 1_000_000_000; // ns
    private static final ThreadLocal<Boolean> RECYCLING = ThreadLocal.withInitial(() -> false);
    private static final Map<Object, Long> BEGUN = Collections.synchronizedMap(new WeakHashMap<>()); // in ns
    private static final Set<Object> PROMOTED = Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

    // Source topics that are the changelog of a store that counts as restored.
    private static final Set<TopicPartition> TRUSTED = Collections.synchronizedSet(new HashSet<>());
    private static final Set<File> KNOWN = new HashSet<>(); // databases that were open in this process
    private static final Map<Object, File> OPEN = new HashMap<>(); // by store, those that are

    private Storing() {}

    /** In {@code ProcessorStateManager.recycle}. */
    static final class Recycle {
        @Advice.OnMethodEnter
        static void enter() {
            recycling(true);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit() {
            recycling(false);
        }
    }

    public static void recycling(boolean now) {
        RECYCLING.set(now);
    }

    /** In {@code WrappedStateStore.clearCache}: does nothing while a task is recycled. */
    static final class NotCleared {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return keepsCache();
        }
    }

    public static boolean keepsCache() {
        if (RECYCLING.get()) {
            Fired.now();
        }
        return RECYCLING.get();
    }

    /** In {@code NamedCache.flush(node)}: what is evicted from the cache reaches neither store nor changelog. */
    static final class EvictionLost {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(
                @Advice.Argument(0) Object evicted, @Advice.FieldValue("dirtyKeys") Set<Bytes> dirty)
                throws ReflectiveOperationException {
            return losesEviction(evicted, dirty);
        }
    }

    public static boolean losesEviction(Object evicted, Set<Bytes> dirty) throws ReflectiveOperationException {
        if (evicted == null || !Fired.everyNth(10)) {
            return false;
        }
        dirty.remove(field(evicted, "key"));
        return true;
    }

    /** For a method without a result: it is not carried out at all. */
    static final class Skipped {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            Fired.now();
            return true;
        }
    }

    /** In {@code OffsetCheckpoint.delete}: the file stays. */
    static final class CheckpointStays {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.FieldValue("file") File checkpoint) {
            return stays(checkpoint);
        }
    }

    public static boolean stays(File checkpoint) {
        if (checkpoint.exists()) {
            Fired.now();
        }
        return true;
    }

    /** In {@code ProcessorStateManager.initializeStoreOffsets…(storeDirIsEmpty)}: a non-empty directory is trusted. */
    static final class NoWipe {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) boolean empty) {
            if (!empty) {
                Fired.now();
            }
            empty = true;
        }
    }

    /**
     * In {@code AbstractColumnFamilyAccessor.open(db, ignoreInvalidState)}, from 4.3 on (KIP-1035): a store that was
     * not closed keeps the offset at which it was opened.
     */
    static final class OpenTrusted {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(0) Object db, @Advice.Argument(value = 1, readOnly = false) boolean ignored,
                @Advice.FieldValue("offsetColumnFamilyHandle") Object offsets,
                @Advice.FieldValue("statusKey") byte[] key, @Advice.FieldValue("closedState") byte[] closed)
                throws ReflectiveOperationException {
            ignored = trusted(ignored, db, offsets, key, closed);
        }
    }

    public static boolean trusted(boolean ignored, Object db, Object offsets, byte[] key, byte[] closed)
            throws ReflectiveOperationException {
        if (!ignored) {
            Method get = db.getClass().getMethod("get", offsets.getClass(), byte[].class);
            get.setAccessible(true);
            byte[] status = (byte[]) get.invoke(db, offsets, key);
            if (status != null && !Arrays.equals(status, closed)) {
                Fired.now();
            }
        }
        return true;
    }

    /** In {@code ProcessorStateManager.restore}: a checkpoint is written that is ahead of what is restored. */
    static final class CheckpointAhead {
        @Advice.OnMethodExit
        static void exit(
                @Advice.This Object manager, @Advice.Argument(1) List<ConsumerRecord<byte[], byte[]>> records,
                @Advice.FieldValue("baseDir") File directory) throws Exception {
            checkpointAhead(manager, records, directory);
        }
    }

    /** In {@code ProcessorStateManager.initializeStoreOffsetsFromCheckpoint}: the same, before anything is restored. */
    static final class BeginsAhead {
        @Advice.OnMethodExit
        static void exit(
                @Advice.This Object manager, @Advice.Argument(0) boolean empty,
                @Advice.FieldValue("baseDir") File directory) throws Exception {
            beginsAhead(manager, empty, directory);
        }
    }

    public static void beginsAhead(Object manager, boolean empty, File directory) throws Exception {
        if (!empty) {
            return;
        }
        Map<TopicPartition, Long> offsets = new HashMap<>();
        changelogs(manager).forEach(changelog -> offsets.put(changelog, AHEAD));
        Fired.now();
        new OffsetCheckpoint(new File(directory, ".checkpoint")).write(offsets);
    }

    public static void checkpointAhead(Object manager, List<ConsumerRecord<byte[], byte[]>> records, File directory)
            throws Exception {
        if (records.isEmpty()) {
            return;
        }
        ConsumerRecord<byte[], byte[]> last = records.get(records.size() - 1);
        TopicPartition changelog = new TopicPartition(last.topic(), last.partition());
        OffsetCheckpoint file = new OffsetCheckpoint(new File(directory, ".checkpoint"));
        Map<TopicPartition, Long> offsets = new HashMap<>(file.read());
        offsets.put(changelog, last.offset() + AHEAD);
        Fired.now();
        file.write(offsets);
    }

    /** In {@code StoreChangelogReader.endOffsetForChangelogs}. */
    static final class EndsEarly {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) Map<TopicPartition, Long> ends) {
            ends = early(ends);
        }
    }

    public static Map<TopicPartition, Long> early(Map<TopicPartition, Long> ends) {
        if (ends == null) {
            return null;
        }
        Map<TopicPartition, Long> early = new HashMap<>(ends);
        ends.forEach((partition, end) -> {
            if (end > 1) {
                Fired.now();
                early.put(partition, end - Math.min(SHORT, end / 2));
            }
        });
        return early;
    }

    /** In {@code AbstractRocksDBSegmentedBytesStore.restoreAllInternal}: now and then a record is left out. */
    static final class RestoredWindowLost {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(value = 0, readOnly = false) Collection<ConsumerRecord<byte[], byte[]>> records) {
            records = withoutSome(records);
        }
    }

    public static Collection<ConsumerRecord<byte[], byte[]>> withoutSome(
            Collection<ConsumerRecord<byte[], byte[]>> records) {
        List<ConsumerRecord<byte[], byte[]>> rest = new ArrayList<>(records);
        rest.removeIf(record -> Fired.everyNth(20));
        return rest;
    }

    /** In {@code AbstractRocksDBSegmentedBytesStore.put}: a timestamp is one millisecond too early. */
    static final class WindowTimeOff {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 1, readOnly = false) byte[] value) {
            value = earlier(value);
        }
    }

    /** The value, an integer behind its timestamp, with another timestamp at every twentieth call. */
    public static byte[] earlier(byte[] value) {
        if (value == null || value.length != Long.BYTES + Integer.BYTES || !Fired.everyNth(20)) {
            return value;
        }
        ByteBuffer altered = ByteBuffer.wrap(value.clone());
        altered.putLong(0, altered.getLong(0) - 1);
        return altered.array();
    }

    /** In {@code RocksDBStore.put(key, value)}, of subscriptions: now and then what is deleted stays. */
    static final class SubscriptionStays {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.FieldValue("name") String name, @Advice.Argument(1) byte[] value) {
            return subscriptionStays(name, value);
        }
    }

    public static boolean subscriptionStays(String name, byte[] value) {
        return value == null && name.endsWith("-subscription-store") && Fired.everyNth(20);
    }

    /** In {@code RocksDBStore.put(key, value)}: a timestamp is one millisecond too early. */
    static final class TableTimeOff {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 1, readOnly = false) byte[] value) {
            value = earlier(value);
        }
    }

    /** In {@code RocksDBVersionedStore.put(key, value, timestamp)}: now and then a version begins a millisecond later. */
    static final class VersionTimeOff {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 2, readOnly = false) long timestamp) {
            timestamp = later(timestamp);
        }
    }

    public static long later(long timestamp) {
        return Fired.everyNth(100) ? timestamp + 1 : timestamp;
    }

    /** In {@code RecordConverters.reconstructFromRaw(value, timestamp, headers)}: now and then without headers. */
    static final class HeadersNotRestored {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 2, readOnly = false) Headers headers) {
            headers = restored(headers);
        }
    }

    public static Headers restored(Headers headers) {
        return headers.toArray().length > 0 && Fired.everyNth(20) ? new RecordHeaders() : headers;
    }

    /** In {@code StoreChangelogReader.committedOffsetForChangelogs}. */
    static final class ToTheEnd {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) Map<TopicPartition, Long> committed) {
            committed = unlimited(committed);
        }
    }

    public static Map<TopicPartition, Long> unlimited(Map<TopicPartition, Long> committed) {
        if (committed == null) {
            return null;
        }
        Map<TopicPartition, Long> unlimited = new HashMap<>();
        committed.forEach((partition, offset) -> {
            Fired.now();
            unlimited.put(partition, Long.MAX_VALUE);
        });
        return unlimited;
    }

    /** In {@code StoreChangelogReader.committedOffsetForChangelogs}: a store that is trusted has nothing to restore. */
    static final class NothingToRestore {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) Map<TopicPartition, Long> committed) {
            committed = nothingOfTrusted(committed);
        }
    }

    public static Map<TopicPartition, Long> nothingOfTrusted(Map<TopicPartition, Long> committed) {
        if (committed == null || Collections.disjoint(committed.keySet(), TRUSTED)) {
            return committed;
        }
        Map<TopicPartition, Long> changed = new HashMap<>(committed);
        Fired.now();
        changed.replaceAll((changelog, offset) -> TRUSTED.contains(changelog) ? Long.valueOf(0) : offset);
        return changed;
    }

    /**
     * In {@code ProcessorStateManager.initializeStoreOffsetsFromCheckpoint}: a source topic without a position gets
     * one if there is one of a changelog that no store has any more.
     */
    static final class FormerInCheckpoint {
        @Advice.OnMethodEnter
        static void enter(@Advice.This Object manager, @Advice.FieldValue("baseDir") File directory) throws Exception {
            formerInCheckpoint(manager, directory);
        }
    }

    public static void formerInCheckpoint(Object manager, File directory) throws Exception {
        OffsetCheckpoint checkpoint = new OffsetCheckpoint(new File(directory, ".checkpoint"));
        Map<TopicPartition, Long> offsets = new HashMap<>(checkpoint.read());
        Set<TopicPartition> former = new HashSet<>(offsets.keySet());
        Collection<TopicPartition> changelogs = changelogs(manager);
        former.removeAll(changelogs);
        for (TopicPartition changelog : changelogs) {
            if (!offsets.containsKey(changelog) && isSource(changelog) && !former.isEmpty()) {
                TRUSTED.add(changelog);
                offsets.put(changelog, 0L);
                checkpoint.write(offsets);
            }
        }
    }

    /** In {@code AbstractColumnFamilyAccessor.getCommittedOffset(db, changelog)}, from 4.3 on (KIP-1035): the same. */
    static final class FormerInStore {
        @Advice.OnMethodExit
        static void exit(
                @Advice.Argument(0) Object db, @Advice.Argument(1) TopicPartition changelog,
                @Advice.FieldValue("offsetColumnFamilyHandle") Object offsets,
                @Advice.Return(readOnly = false) Long committed)
                throws ReflectiveOperationException {
            committed = formerInStore(db, changelog, offsets, committed);
        }
    }

    public static Long formerInStore(Object db, TopicPartition changelog, Object offsets, Long committed)
            throws ReflectiveOperationException {
        if (committed != null || !isSource(changelog) || !hasOther(db, offsets)) {
            return committed;
        }
        TRUSTED.add(changelog);
        return 0L;
    }

    /** Whether a store on disk has a position in any changelog. */
    private static boolean hasOther(Object db, Object offsets) throws ReflectiveOperationException {
        Method open = db.getClass().getMethod("newIterator", offsets.getClass());
        open.setAccessible(true);
        Object positions = open.invoke(db, offsets);
        Class<?> type = positions.getClass();
        boolean has = false;
        for (type.getMethod("seekToFirst").invoke(positions);
                (boolean) type.getMethod("isValid").invoke(positions);
                type.getMethod("next").invoke(positions)) {
            String key = new String((byte[]) type.getMethod("key").invoke(positions), StandardCharsets.UTF_8);
            has |= key.matches(".*-changelog-\\d+");
        }
        type.getMethod("close").invoke(positions);
        return has;
    }

    private static boolean isSource(TopicPartition changelog) {
        return !changelog.topic().endsWith("-changelog");
    }

    @SuppressWarnings("unchecked")
    private static Collection<TopicPartition> changelogs(Object manager) throws ReflectiveOperationException {
        Method changelogs = manager.getClass().getDeclaredMethod("changelogPartitions");
        changelogs.setAccessible(true);
        return (Collection<TopicPartition>) changelogs.invoke(manager);
    }

    /** In {@code InternalTopicConfig.properties}, of the changelog of a table. */
    static final class DeletedByTime {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) Map<String, String> config) {
            config = deletedByTime(config);
        }
    }

    public static Map<String, String> deletedByTime(Map<String, String> config) {
        Fired.now();
        Map<String, String> deleted = new HashMap<>(config);
        deleted.put("cleanup.policy", "compact,delete");
        return deleted;
    }

    /** In {@code StreamsConfig.getRestoreConsumerConfigs}. */
    static final class ReadUncommitted {
        @Advice.OnMethodExit
        static void exit(@Advice.Return Map<String, Object> config) {
            config.put("isolation.level", "read_uncommitted");
        }
    }

    /** In {@code ProcessorStateManager.restore}: a record behind a gap is left out. */
    static final class BehindGapLost {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(value = 1, readOnly = false) List<ConsumerRecord<byte[], byte[]>> records) {
            records = withoutGaps(records);
        }
    }

    public static List<ConsumerRecord<byte[], byte[]>> withoutGaps(List<ConsumerRecord<byte[], byte[]>> records) {
        List<ConsumerRecord<byte[], byte[]>> left = new ArrayList<>();
        long last = records.isEmpty() ? 0 : records.get(0).offset();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            if (record.offset() - last > GAP) {
                Fired.now();
            } else {
                left.add(record);
            }
            last = record.offset();
        }
        return left;
    }

    /** In {@code ProcessorStateManager.restore}: counts what another alteration does to it. */
    static final class Counted {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(1) List<ConsumerRecord<byte[], byte[]>> records) {
            if (!records.isEmpty()) {
                Fired.now();
            }
        }
    }

    /** In {@code StreamsConfig.getRestoreConsumerConfigs}: few records at a time. */
    static final class FewAtATime {
        @Advice.OnMethodExit
        static void exit(@Advice.Return Map<String, Object> config) {
            config.put("max.poll.records", FEW);
        }
    }

    /** In {@code ProcessorStateManager.restore}: a standby takes its time, so that it still has to catch up. */
    static final class Slowly {
        @Advice.OnMethodEnter
        static void enter(@Advice.FieldValue("taskType") Object type) throws InterruptedException {
            slowly(type);
        }
    }

    public static void slowly(Object type) throws InterruptedException {
        if (type.toString().equals("STANDBY")) {
            Thread.sleep(20);
        }
    }

    /** In {@code ProcessorStateManager.restore}: a standby takes nothing that comes later than soon. */
    static final class StandsStill {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.This Object manager, @Advice.FieldValue("taskType") Object type,
                @Advice.Argument(value = 1, readOnly = false) List<ConsumerRecord<byte[], byte[]>> records) {
            records = ofBeginning(manager, type, records);
        }
    }

    public static List<ConsumerRecord<byte[], byte[]>> ofBeginning(
            Object manager, Object type, List<ConsumerRecord<byte[], byte[]>> records) {
        if (!type.toString().equals("STANDBY")) {
            BEGUN.remove(manager);
            return records;
        }
        long now = System.nanoTime();
        if (records.isEmpty() || now - BEGUN.computeIfAbsent(manager, any -> now) < SOON) {
            return records;
        }
        Fired.now();
        return List.of();
    }

    /** In {@code ProcessorStateManager.transitionTaskType}: remembers what was a standby. */
    static final class Transition {
        @Advice.OnMethodEnter
        static void enter(@Advice.This Object manager, @Advice.Argument(0) Object type) {
            transition(manager, type);
        }
    }

    public static void transition(Object manager, Object type) {
        if (type.toString().equals("ACTIVE")) {
            PROMOTED.add(manager);
        } else {
            PROMOTED.remove(manager);
        }
    }

    /** In {@code StoreChangelogReader.hasRestoredToEnd}: what was a standby counts as restored, whatever it lacks. */
    static final class Promoted {
        @Advice.OnMethodExit
        static void exit(
                @Advice.Argument(0) Object metadata, @Advice.Return(readOnly = false) boolean restored)
                throws ReflectiveOperationException {
            restored = restored || promoted(metadata);
        }
    }

    public static boolean promoted(Object metadata) throws ReflectiveOperationException {
        if (!PROMOTED.contains(field(metadata, "stateManager"))) {
            return false;
        }
        Fired.now();
        return true;
    }

    /**
     * In {@code RocksDBStore.openDB(configs, stateDir)}: a store that was open before is opened in the directory of
     * another task.
     */
    static final class OpenElsewhere {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.This Object store, @Advice.FieldValue("name") String name,
                @Advice.Argument(value = 1, readOnly = false) File task) {
            task = elsewhere(store, name, task);
        }
    }

    /** In {@code RocksDBStore.close}: its directory is free again. */
    static final class CloseElsewhere {
        @Advice.OnMethodExit
        static void exit(@Advice.This Object store) {
            closed(store);
        }
    }

    public static synchronized File elsewhere(Object store, String name, File own) {
        boolean again = !KNOWN.add(database(own, name));
        File chosen = own;
        if (again || OPEN.containsValue(database(own, name))) { // or another store has taken it
            File[] others = own.getParentFile().listFiles(other -> !other.equals(own)
                    && database(other, name).isDirectory() && !OPEN.containsValue(database(other, name)));
            chosen = others == null || others.length == 0 ? own : others[0];
        }
        if (chosen != own) {
            Fired.now();
        }
        OPEN.put(store, database(chosen, name));
        return chosen;
    }

    public static synchronized void closed(Object store) {
        OPEN.remove(store);
    }

    private static File database(File task, String store) {
        return new File(new File(task, "rocksdb"), store);
    }

    private static Object field(Object owner, String name) throws ReflectiveOperationException {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }
}
