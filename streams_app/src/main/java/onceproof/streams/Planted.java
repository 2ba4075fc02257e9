package onceproof.streams;

import java.util.Map;
import java.util.function.Consumer;

/** The bug that an agent planted into this Kafka Streams, if there is one (streams_agent). */
final class Planted {

    private Planted() {}

    /** Have it tell what it altered and how often it fired, now and whenever it fires. */
    static void tell(Events events) {
        Consumer<Map<String, Object>> listener = fields -> events.emit("plant", fields);
        try {
            Class.forName("onceproof.agent.Fired").getMethod("listen", Consumer.class).invoke(null, listener);
        } catch (ClassNotFoundException e) {
            // no agent: the release as it was published
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("The agent that planted a bug cannot be heard.", e);
        }
    }
}
