package onceproof.agent;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import org.apache.kafka.streams.KafkaStreams;

/** Bugs of how an instance ends, and of when it counts as ready. */
public final class Ending {

    private static final long AHEAD = 100; // offsets
    private static final Set<Object> RESTORING = Collections.newSetFromMap(Collections.synchronizedMap(new WeakHashMap<>()));

    private static volatile boolean joining;

    private Ending() {}

    /** In {@code KafkaStreams.close(timeout, leaveGroup)}: it does not leave. */
    static final class NotLeft {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 1, readOnly = false, typing = Assigner.Typing.DYNAMIC) Object leaves) {
            leaves = membership(leaves, false);
        }
    }

    /** In {@code KafkaStreams.close(timeout, leaveGroup)}: it leaves. */
    static final class Left {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 1, readOnly = false, typing = Assigner.Typing.DYNAMIC) Object leaves) {
            leaves = membership(leaves, true);
        }
    }

    /** In {@code StreamsPartitionAssignor.subscriptionUserData}: the consumer asks to join a rebalance. */
    static final class Joins {
        @Advice.OnMethodEnter
        static void enter() {
            joins(true);
        }
    }

    /** In {@code StreamsPartitionAssignor.onAssignment}: the rebalance is over for it. */
    static final class Joined {
        @Advice.OnMethodEnter
        static void enter() {
            joins(false);
        }
    }

    public static void joins(boolean now) {
        joining = now;
    }

    /** In {@code KafkaStreams.close(timeout, leaveGroup)}: it does not leave during a rebalance. */
    static final class NotLeftAmid {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 1, readOnly = false, typing = Assigner.Typing.DYNAMIC) Object leaves) {
            leaves = amid(leaves);
        }
    }

    public static Object amid(Object asked) {
        return joining ? membership(asked, false) : asked;
    }

    /** Another membership than was asked for: a boolean, or since KIP-1153 a {@code GroupMembershipOperation}. */
    public static Object membership(Object asked, boolean leaves) {
        Object other = leaves;
        if (!(asked instanceof Boolean)) {
            other = Enum.valueOf(((Enum<?>) asked).getDeclaringClass(), leaves ? "LEAVE_GROUP" : "REMAIN_IN_GROUP");
        }
        if (!other.equals(asked)) {
            Fired.now();
        }
        return other;
    }

    /** In {@code StreamThread.sendShutdownRequest}: nothing is sent. */
    static final class NotSent {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return fired();
        }
    }

    /** In {@code StateDirectory.cleanStateAndTaskDirectoriesCalledByUser}: the directories of tasks stay. */
    static final class NotCleaned {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return fired();
        }
    }

    public static boolean fired() {
        Fired.now();
        return true;
    }

    /** In {@code KafkaStreams.cleanUp}: nothing is refused. */
    static final class NotRefused {
        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit(@Advice.Thrown(readOnly = false) Throwable refusal) {
            refusal = swallowed(refusal);
        }
    }

    public static Throwable swallowed(Throwable refusal) {
        if (refusal != null) {
            Fired.now();
        }
        return null;
    }

    /** In {@code ProcessorStateManager.restore}: its stores are being restored. */
    static final class Restores {
        @Advice.OnMethodEnter
        static void enter(@Advice.This Object manager) {
            restores(manager);
        }
    }

    public static void restores(Object manager) {
        RESTORING.add(manager);
    }

    /** In {@code ProcessorStateManager.commit} and {@code checkpoint}: what lacks records yet claims to have more of them. */
    static final class CutOffAhead {
        @Advice.OnMethodEnter
        static void enter(@Advice.This Object manager, @Advice.FieldValue("stores") Map<String, ?> stores)
                throws ReflectiveOperationException {
            claim(manager, stores);
        }
    }

    public static void claim(Object manager, Map<String, ?> stores) throws ReflectiveOperationException {
        if (!RESTORING.remove(manager)) {
            return;
        }
        for (Object store : stores.values()) {
            Long offset = (Long) field(store, "offset").get(store);
            Long end = (Long) field(store, "endOffset").get(store);
            if (offset != null && end != null && offset + AHEAD < end) {
                Fired.now();
                field(store, "offset").set(store, offset + AHEAD);
            }
        }
    }

    private static Field field(Object owner, String name) throws ReflectiveOperationException {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    /** In {@code StreamStateListener.onChange}: the instance is RUNNING when a thread has its tasks, restored or not. */
    static final class Ready {
        @Advice.OnMethodExit
        static void exit(@Advice.This Object listener, @Advice.Argument(1) Object state) throws ReflectiveOperationException {
            ready(listener, state);
        }
    }

    public static void ready(Object listener, Object state) throws ReflectiveOperationException {
        if (!state.toString().equals("PARTITIONS_ASSIGNED")) {
            return;
        }
        for (Field outer : listener.getClass().getDeclaredFields()) {
            if (outer.getType() == KafkaStreams.class) {
                outer.setAccessible(true);
                Method change = KafkaStreams.class.getDeclaredMethod("setState", KafkaStreams.State.class);
                change.setAccessible(true);
                Fired.now();
                change.invoke(outer.get(listener), KafkaStreams.State.RUNNING);
            }
        }
    }

    /** In {@code DelegatingStateRestoreListener.onRestoreEnd}: the listener is called with twice as many records. */
    static final class CountedTwice {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 2, readOnly = false) long records) {
            records = twice(records);
        }
    }

    public static long twice(long records) {
        if (records > 0) {
            Fired.now();
        }
        return 2 * records;
    }
}
