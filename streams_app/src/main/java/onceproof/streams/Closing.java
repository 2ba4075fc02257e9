package onceproof.streams;

import java.lang.reflect.InvocationTargetException;
import java.time.Duration;
import java.util.Arrays;
import org.apache.kafka.streams.KafkaStreams;

/**
 * {@code KafkaStreams.close(CloseOptions)}, which says whether the instance leaves its group (KIP-812, from 3.3.0 on). Newer
 * releases have the options as a class of its own (KIP-1153). The application is compiled against neither.
 */
final class Closing {

    private static final String OPTIONS = "org.apache.kafka.streams.CloseOptions";

    private Closing() {}

    /**
     * Close, and leave the group or stay in it.
     *
     * @return whether all threads ended in time
     * @throws IllegalStateException the release has no such options
     */
    static boolean close(KafkaStreams streams, boolean leaves, Duration patience) {
        try {
            Object options = has(OPTIONS) ? ofGroup(leaves, patience) : ofStreams(leaves, patience);
            return (Boolean) KafkaStreams.class.getMethod("close", options.getClass()).invoke(streams, options);
        } catch (InvocationTargetException e) {
            throw new IllegalStateException("Kafka Streams did not close: " + e.getCause(), e.getCause());
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("This Kafka Streams has no CloseOptions; they came with 3.3.0.", e);
        }
    }

    private static boolean has(String type) {
        try {
            Class.forName(type);
            return true;
        } catch (ClassNotFoundException e) {
            return false;
        }
    }

    private static Object ofGroup(boolean leaves, Duration patience) throws ReflectiveOperationException {
        Class<?> type = Class.forName(OPTIONS);
        Class<?> operation = Class.forName(OPTIONS + "$GroupMembershipOperation");
        String wanted = leaves ? "LEAVE_GROUP" : "REMAIN_IN_GROUP";
        Object chosen = Arrays.stream(operation.getEnumConstants())
                .filter(constant -> constant.toString().equals(wanted))
                .findFirst()
                .orElseThrow(() -> new NoSuchFieldException(wanted));
        Object options = type.getMethod("timeout", Duration.class).invoke(null, patience);
        return type.getMethod("withGroupMembershipOperation", operation).invoke(options, chosen);
    }

    private static Object ofStreams(boolean leaves, Duration patience) throws ReflectiveOperationException {
        Class<?> type = Class.forName("org.apache.kafka.streams.KafkaStreams$CloseOptions");
        Object options = type.getConstructor().newInstance();
        type.getMethod("timeout", Duration.class).invoke(options, patience);
        return type.getMethod("leaveGroup", boolean.class).invoke(options, leaves);
    }
}
