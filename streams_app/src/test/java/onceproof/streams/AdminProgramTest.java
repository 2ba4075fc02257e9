package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class AdminProgramTest {

    @ParameterizedTest
    @ValueSource(strings = {"", "not json", "{\"secret\": 1}", "{\"config\": \"secret\"}"})
    void a_line_that_asks_for_nothing_is_refused_and_not_quoted(String line) {
        Exception refused = assertThrows(IllegalArgumentException.class, () -> AdminProgram.parse(line));
        assertFalse(refused.getMessage().contains("secret"));
    }

    @Test
    void replicas_keep_the_order_that_is_asked_for() {
        Map<String, Object> asked = AdminProgram.parse(
                "{\"config\": {}, \"replicas\": [{\"topic\": \"t\", \"partition\": 1, \"nodes\": [3, 1, 2]}]}");
        assertEquals(
                List.of(3, 1, 2),
                Leaders.replicas(asked).get(new TopicPartition("t", 1)).orElseThrow().targetReplicas());
    }

    @ParameterizedTest
    @ValueSource(strings = {"{\"config\": {}}", "{\"config\": {}, \"replicas\": [{\"topic\": \"t\"}]}"})
    void replicas_that_cannot_be_read_are_refused(String line) {
        Map<String, Object> asked = AdminProgram.parse(line);
        assertThrows(IllegalArgumentException.class, () -> Leaders.replicas(asked));
    }
}
