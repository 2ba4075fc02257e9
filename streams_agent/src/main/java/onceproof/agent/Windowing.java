package onceproof.agent;

import java.lang.reflect.Method;
import java.util.Map;
import java.util.TreeMap;
import net.bytebuddy.asm.Advice;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.kstream.Aggregator;

/** Bugs of windows and of what holds their results back. */
public final class Windowing {

    private static final int RARELY = 50;
    private static Aggregator<Object, Object, Object> first;

    private Windowing() {}

    /** In {@code KStreamSlidingWindowAggregateProcessor.createPreviousRecordRightWindow}: now and then it does nothing. */
    static final class LeftOut {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter() {
            return leftOut();
        }
    }

    public static boolean leftOut() {
        return Fired.everyNth(RARELY);
    }

    /** In the constructor of {@code KStreamWindowAggregate}: the first aggregator of the topology is that of all. */
    static final class FirstOfFive {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(value = 4, readOnly = false) Aggregator<Object, Object, Object> aggregator) {
            aggregator = first(aggregator);
        }
    }

    /** The same up to 3.2, without a strategy to emit by. */
    static final class FirstOfFour {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(value = 3, readOnly = false) Aggregator<Object, Object, Object> aggregator) {
            aggregator = first(aggregator);
        }
    }

    public static synchronized Aggregator<Object, Object, Object> first(Aggregator<Object, Object, Object> aggregator) {
        if (first == null) {
            first = aggregator;
        } else {
            Fired.now();
        }
        return first;
    }

    /** In {@code InMemoryTimeOrderedKeyValueChangeBuffer.cleanPut}: a key that is held back gets the time of its update. */
    static final class Anew {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(0) long time, @Advice.Argument(1) Bytes key,
                @Advice.FieldValue("index") Map<Bytes, Object> index,
                @Advice.FieldValue("sortedMap") TreeMap<Object, Object> sorted,
                @Advice.FieldValue(value = "minTimestamp", readOnly = false) long least)
                throws ReflectiveOperationException {
            least = begunAnew(time, key, index, sorted, least);
        }
    }

    public static long begunAnew(
            long time, Bytes key, Map<Bytes, Object> index, TreeMap<Object, Object> sorted, long least)
            throws ReflectiveOperationException {
        Object before = index.get(key);
        if (before == null || time(before) >= time) {
            return least;
        }
        Fired.now();
        sorted.remove(index.remove(key));
        return sorted.isEmpty() ? Long.MAX_VALUE : time(sorted.firstKey());
    }

    private static long time(Object place) throws ReflectiveOperationException {
        Method time = place.getClass().getDeclaredMethod("time");
        time.setAccessible(true);
        return (long) time.invoke(place);
    }
}
