package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import org.junit.jupiter.api.Test;

class LogSegmentsTest {

    @Test
    void each_run_has_its_arguments() {
        String[] args = {"--run", "--files", "a,b", "--run", "--files", "c", "--offsets-decoder"};
        assertEquals(
                List.of(List.of("--files", "a,b"), List.of("--files", "c", "--offsets-decoder")), LogSegments.runs(args));
    }

    @Test
    void arguments_before_the_first_run_are_refused() {
        String[] args = {"--files", "a"};
        assertThrows(IllegalArgumentException.class, () -> LogSegments.runs(args));
    }

    @Test
    void without_Kafkas_class_it_says_so() {
        assertThrows(ClassNotFoundException.class, LogSegments::dumper);
    }
}
