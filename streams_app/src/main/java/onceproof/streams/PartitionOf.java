package onceproof.streams;

import java.util.Optional;
import java.util.Set;
import org.apache.kafka.streams.processor.StreamPartitioner;

/** Each key belongs to one partition that is known; raw, and with both methods, as {@link KeyPartitioner} is. */
@SuppressWarnings("rawtypes")
final class PartitionOf implements StreamPartitioner {

    private final int partition;

    private PartitionOf(int partition) {
        this.partition = partition;
    }

    @SuppressWarnings("unchecked")
    static <K, V> StreamPartitioner<K, V> known(int partition) {
        return new PartitionOf(partition);
    }

    // No @Override: gone in 4.0.
    public Integer partition(String topic, Object key, Object value, int partitions) {
        return partition;
    }

    // No @Override: came with 3.4.
    public Optional<Set<Integer>> partitions(String topic, Object key, Object value, int partitions) {
        return Optional.of(Set.of(partition));
    }
}
