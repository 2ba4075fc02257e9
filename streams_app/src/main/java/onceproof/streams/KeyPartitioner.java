package onceproof.streams;

import java.util.Optional;
import java.util.Set;
import org.apache.kafka.streams.processor.StreamPartitioner;

/**
 * The rule of the reproduction: a key belongs to partition `(key + 1) mod partitions`.
 *
 * <p>Until 3.3 the interface has only {@code partition}, from 4.0 on only {@code partitions}, in between both. This
 * class has both on every release. It implements the raw type because the compiler makes no bridge from
 * {@code partitions(String, Object, Object, int)} to a method that the interface of 3.0.0 does not know.
 */
@SuppressWarnings("rawtypes")
final class KeyPartitioner implements StreamPartitioner {

    /** For a sink; the raw type fits any. */
    @SuppressWarnings("unchecked")
    static <K, V> StreamPartitioner<K, V> of() {
        return new KeyPartitioner();
    }

    static int partition(int key, int partitions) {
        return (int) Math.floorMod(key + 1L, (long) partitions); // as a long: even the greatest key has a successor
    }

    // No @Override: gone in 4.0.
    public Integer partition(String topic, Object key, Object value, int partitions) {
        return partition((Integer) key, partitions);
    }

    // No @Override: came with 3.4.
    public Optional<Set<Integer>> partitions(String topic, Object key, Object value, int partitions) {
        return Optional.of(Set.of(partition((Integer) key, partitions)));
    }
}
