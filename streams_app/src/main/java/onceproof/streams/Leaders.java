package onceproof.streams;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.ElectionNotNeededException;

/**
 * Changes the order of replicas, whose first one is the preferred leader, and has preferred leaders elected.
 *
 * <p>Asked for ({@link AdminProgram}): {@code replicas}, a list of objects with {@code topic}, {@code partition} and
 * {@code nodes} in the order that they are to have. It reports an event {@code leaders} with the number of partitions.
 */
public final class Leaders {

    private static final String REPLICAS = "replicas";

    private Leaders() {}

    public static void main(String[] arguments) {
        AdminProgram.run(Leaders::elect);
    }

    private static void elect(Admin admin, Map<String, Object> asked, Events events)
            throws ExecutionException, InterruptedException {
        Map<TopicPartition, Optional<NewPartitionReassignment>> replicas = replicas(asked);
        admin.alterPartitionReassignments(replicas).all().get();
        AdminProgram.await("order of replicas", () -> admin.listPartitionReassignments(replicas.keySet())
                .reassignments().get().isEmpty());
        for (Optional<Throwable> failed :
                admin.electLeaders(ElectionType.PREFERRED, replicas.keySet()).partitions().get().values()) {
            if (failed.isPresent() && !(failed.get() instanceof ElectionNotNeededException)) {
                throw new ExecutionException(failed.get());
            }
        }
        events.emit("leaders", Events.fields("partitions", replicas.size()));
    }

    /** The replicas that are asked for, in their order. */
    static Map<TopicPartition, Optional<NewPartitionReassignment>> replicas(Map<String, Object> asked) {
        Map<TopicPartition, Optional<NewPartitionReassignment>> replicas = new HashMap<>();
        try {
            for (Object one : (List<?>) asked.get(REPLICAS)) {
                Map<?, ?> of = (Map<?, ?>) one;
                TopicPartition place = new TopicPartition((String) of.get("topic"), (Integer) of.get("partition"));
                List<Integer> nodes = ((List<?>) of.get("nodes")).stream().map(Integer.class::cast).collect(Collectors.toList());
                replicas.put(place, Optional.of(new NewPartitionReassignment(nodes)));
            }
            return replicas;
        } catch (ClassCastException | NullPointerException e) {
            throw new IllegalArgumentException(
                    REPLICAS + " must be a list of objects with topic (a text), partition (a number) and nodes (a list).");
        }
    }
}
