package onceproof.streams;

import static java.util.stream.Collectors.toList;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.test.TestRecord;
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

    @Test
    void a_record_that_is_valid_for_ever_sets_the_clock_of_the_punctuator_and_comes_out_with_its_own_time() {
        Trial trial = new Trial("copy", state, Map.of("input.topic", "in", "output.topic", "out"))
                .with("punctuate.ms", 1_000)
                .with("forever.ms", "4000000000000");
        try (TopologyTestDriver driver = trial.open()) {
            TestInputTopic<Integer, Integer> in = Trial.input(driver, "in");
            in.pipeInput(7, 70, 5_000);
            in.pipeInput(8, Copy.FOREVER, 5_001);
            in.pipeInput(9, 90, 5_002);

            List<TestRecord<Integer, Integer>> out = driver.createOutputTopic(
                            "out", new IntegerDeserializer(), new IntegerDeserializer())
                    .readRecordsToList();
            assertEquals(List.of(5_000L, 5_001L, 5_002L), out.stream().map(TestRecord::timestamp).collect(toList()));
        }
        assertEquals(
                List.of(
                        Map.of("event", "punctuated", "task", "0_0", "at", 5_000L, "times", 1L),
                        Map.of("event", "punctuated", "task", "0_0", "at", 4_000_000_000_000L, "times", 1L)),
                trial.told);
    }

    @Test
    void punctuations_without_end_are_told_now_and_then() {
        Trial trial = new Trial("copy", state, Map.of("input.topic", "in", "output.topic", "out"))
                .with("punctuate.ms", 1_000)
                .with("forever.ms", Long.toString(Long.MAX_VALUE - 1));
        List<Object> times = new ArrayList<>();
        // Releases with CVE-2026-111496 punctuate until somebody stops them.
        Progress progress = new Progress((event, fields) -> {
            times.add(fields.get("times"));
            if (times.size() == 3) {
                throw new IllegalStateException("enough");
            }
        });
        Topology topology = Topologies.build("copy", new Settings(trial.app), trial.config, progress);
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, trial.config)) {
            Trial.input(driver, "in").pipeInput(8, Copy.FOREVER, 5_001);
            assertEquals(List.of(1L), times);
        } catch (StreamsException e) {
            assertEquals(List.of(1L, 10L, 100L), times);
        }
    }
}
