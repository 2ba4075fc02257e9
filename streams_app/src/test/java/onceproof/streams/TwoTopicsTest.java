package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TwoTopicsTest {

    @TempDir
    Path state;

    @Test
    void each_record_of_the_stream_finds_the_entry_of_its_key() {
        Trial trial = new Trial(
                "two-topics", state,
                Map.of(
                        "input.topic", "in", "entries.topic", "entries", "output.topic", "out", "caching", false,
                        "stores", "in-memory"));
        try (TopologyTestDriver driver = trial.open()) {
            TestInputTopic<Integer, Integer> input = Trial.input(driver, "in");
            TestInputTopic<Integer, Integer> entries = Trial.input(driver, "entries");
            input.pipeInput(7, 1, 1_000);
            entries.pipeInput(7, 70, 1_001);
            entries.pipeInput(8, 80, 1_002);
            input.pipeInput(7, 2, 1_003);
            entries.pipeInput(7, 71, 1_004);
            input.pipeInput(7, 3, 1_005);

            assertEquals(
                    List.of(
                            KeyValue.pair(7, Counting.pair(1, 0)), KeyValue.pair(7, Counting.pair(2, 70)),
                            KeyValue.pair(7, Counting.pair(3, 71))),
                    Trial.read(driver, "out", new LongDeserializer()));
        }
        assertEquals(3L, trial.progress.processed().get(0).get("count"));
    }
}
