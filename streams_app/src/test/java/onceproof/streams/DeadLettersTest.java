package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.serialization.IntegerDeserializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.processor.api.MockProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class DeadLettersTest {

    private static final String CONTINUES = "org.apache.kafka.streams.errors.LogAndContinueExceptionHandler";

    @TempDir
    Path state;

    @Test
    void what_cannot_be_deserialized_is_skipped_by_a_handler_that_continues() {
        Trial trial = failing("deserialization");
        trial.config.put("default.deserialization.exception.handler", CONTINUES);
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 7, 70, 8, -8, 9, 90);

            assertEquals(
                    List.of(KeyValue.pair(7, 70), KeyValue.pair(9, 90)),
                    Trial.read(driver, "out", new IntegerDeserializer()));
        }
        assertEquals(2L, trial.progress.processed().get(0).get("count"));
    }

    @Test
    void without_one_it_ends_the_thread() {
        try (TopologyTestDriver driver = failing("deserialization").open()) {
            assertThrows(StreamsException.class, () -> Trial.pipe(driver, 8, -8));
        }
    }

    @Test
    void what_cannot_be_processed_fails_in_the_processor() {
        try (TopologyTestDriver driver = failing("processing").open()) {
            StreamsException failure = assertThrows(StreamsException.class, () -> Trial.pipe(driver, 8, -8));
            assertEquals("The value -8 cannot be processed.", failure.getCause().getMessage());
        }
    }

    @Test
    void a_commit_is_requested_for_each_record_that_comes_to_the_processor() {
        List<Boolean> requested = new ArrayList<>();
        for (boolean commits : List.of(false, true)) {
            MockProcessorContext<Integer, Integer> context = new MockProcessorContext<>();
            DeadLetters copy = new DeadLetters(new Progress((event, fields) -> {}), commits);
            copy.init(context);
            assertThrows(IllegalStateException.class, () -> copy.process(new Record<>(8, -8, 0L)));
            requested.add(context.committed());
        }
        assertEquals(List.of(false, true), requested);
    }

    private Trial failing(String where) {
        Map<String, Object> settings =
                Map.of("input.topic", "in", "output.topic", "out", "failing", where, "commits", false);
        return new Trial("dead-letters", state, settings);
    }
}
