package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Optional;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class KeyPartitionerTest {

    @ParameterizedTest
    @CsvSource({
        "0,2,1", "1,2,0", "2,2,1", "-1,2,0", "-2,2,1", "-3,2,0",
        "0,6,1", "4,6,5", "5,6,0", "6,6,1", "-1,6,0", "-2,6,5", "-7,6,0",
        "2147483647,2,0", "2147483647,6,2", "-2147483648,2,1", "-2147483648,6,5", "9,1,0",
    })
    void reproduced_rule_for_every_integer_and_by_the_methods_of_every_release(int key, int partitions, int expected) {
        KeyPartitioner partitioner = new KeyPartitioner();
        assertEquals(expected, KeyPartitioner.partition(key, partitions));
        assertEquals(expected, partitioner.partition("topic", key, 0, partitions));
        assertEquals(Optional.of(Set.of(expected)), partitioner.partitions("topic", key, 0, partitions));
    }
}
