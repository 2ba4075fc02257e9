package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TopologyTestDriver;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CopyTest {

    @TempDir
    Path state;

    @Test
    void each_record_comes_out_as_it_is() {
        Trial trial = new Trial("copy", state, Map.of("input.topic", "in", "output.topic", "out"));
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 7, 70, 8, 80, 7, 71);

            assertEquals(
                    List.of(KeyValue.pair(7, 70), KeyValue.pair(8, 80), KeyValue.pair(7, 71)),
                    Trial.read(driver, "out", new IntegerDeserializer()));
        }
        assertEquals(3L, trial.progress.processed().get(0).get("count"));
    }
}
