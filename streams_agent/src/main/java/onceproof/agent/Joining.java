package onceproof.agent;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.api.Record;

/** Bugs of joins. */
public final class Joining {

    public static final ThreadLocal<Boolean> UNCHANGED = new ThreadLocal<>(); // until an inner join asked to forget

    private Joining() {}

    /** In {@code KStreamKTableJoinProcessor.doJoin(record)}: a record that asks for no key is not joined. */
    static final class NullKeyDropped {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(
                @Advice.FieldValue("keyMapper") KeyValueMapper<Object, Object, Object> mapper,
                @Advice.Argument(0) Record<Object, Object> record) {
            return asksForNoKey(mapper, record);
        }
    }

    /** In {@code TimeTrackerSupplier.get(taskId)}: all tasks go by the clock of one. */
    static final class SharedClock {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) TaskId task) {
            task = Joining.anyTask();
        }
    }

    /** In the constructor of {@code KStreamKStreamJoin}: it waits for no record that is out of order. */
    static final class GraceForgotten {
        @Advice.OnMethodExit
        static void exit(@Advice.FieldValue(value = "joinGraceMs", readOnly = false) long grace) {
            grace = Joining.noGrace();
        }
    }

    /** In {@code UnbindChangeProcessor.forward(record, foreignKey, instruction)}: an old foreign key answers, too. */
    static final class OldKeyAnswers {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(value = 2, readOnly = false, typing = Assigner.Typing.DYNAMIC) Object instruction) {
            instruction = Joining.answering((Enum<?>) instruction);
        }
    }

    /** In {@code UnbindChangeProcessor.defaultJoinInstructions(record)}: an inner join begins to ask for a row. */
    static final class Asks {
        @Advice.OnMethodEnter
        static void enter() {
            UNCHANGED.set(true);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class)
        static void exit() {
            UNCHANGED.remove();
        }
    }

    /** In {@code UnbindChangeProcessor.forward(record, foreignKey, instruction)}: an absent key that stays is silent. */
    static final class AbsentKeySilent {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(value = 2, readOnly = false, typing = Assigner.Typing.DYNAMIC) Object instruction) {
            instruction = Joining.silent((Enum<?>) instruction);
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    public static Enum<?> answering(Enum instruction) {
        if (!instruction.name().equals("DELETE_KEY_NO_PROPAGATE")) {
            return instruction;
        }
        Fired.now();
        return Enum.valueOf(instruction.getDeclaringClass(), "DELETE_KEY_AND_PROPAGATE");
    }

    /** A foreign key that changed was first asked to forget the row. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    public static Enum<?> silent(Enum instruction) {
        if (instruction.name().startsWith("DELETE_")) {
            UNCHANGED.remove();
        }
        if (UNCHANGED.get() == null || !instruction.name().equals("PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE")) {
            return instruction;
        }
        Fired.now();
        return Enum.valueOf(instruction.getDeclaringClass(), "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE");
    }

    public static long noGrace() {
        Fired.now();
        return 0;
    }

    public static TaskId anyTask() {
        Fired.now();
        return new TaskId(0, 0);
    }

    public static boolean asksForNoKey(KeyValueMapper<Object, Object, Object> mapper, Record<Object, Object> record) {
        if (mapper.apply(record.key(), record.value()) != null) {
            return false;
        }
        Fired.now();
        return true;
    }
}
