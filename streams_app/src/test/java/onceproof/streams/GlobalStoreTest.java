package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TopologyTestDriver;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GlobalStoreTest {

    @TempDir
    Path state;

    @ParameterizedTest
    @ValueSource(strings = {"rocksdb", "in-memory"})
    void what_is_found_is_what_the_stores_own_processor_put(String stores) {
        Trial trial = new Trial(
                "global-join", state,
                Map.of("input.topic", "in", "output.topic", "out", "caching", false, "stores", stores,
                        "table", "global-store", "added", 1_000));
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 1, -50, 2, -60);
            Trial.pipe(driver, 11, 2, 12, 9, 13, 0); // ask for keys 1, 8 (which does not exist) and none

            assertEquals(
                    List.of(
                            KeyValue.pair(1, Counting.pair(0, 50)),
                            KeyValue.pair(2, Counting.pair(0, 60)),
                            KeyValue.pair(11, Counting.pair(2, 1_050)),
                            KeyValue.pair(12, Counting.pair(9, 0)),
                            KeyValue.pair(13, Counting.pair(0, 0))),
                    Trial.read(driver, "out", new LongDeserializer()));
        }
        assertEquals(5L, trial.progress.processed().get(0).get("count"));
    }
}
