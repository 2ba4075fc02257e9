package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;

class RestorationsTest {

    @Test
    void the_start_and_the_end_are_told_and_no_batch() {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        Restorations restorations = new Restorations(new Events(out), 0);
        TopicPartition changelog = new TopicPartition("app-seen-changelog", 3);

        restorations.onRestoreStart(changelog, "seen", 5, 12);
        restorations.onBatchRestored(changelog, "seen", 8, 4);
        restorations.onRestoreEnd(changelog, "seen", 7);

        String said = out.toString(StandardCharsets.UTF_8);
        assertTrue(said.matches(
                "\\{\"t\":\\d+,\"event\":\"restore\",\"store\":\"seen\",\"partition\":3,\"from\":5,\"end\":12}\n"
                        + "\\{\"t\":\\d+,\"event\":\"restored\",\"store\":\"seen\",\"partition\":3,\"records\":7,\"batched\":4,\"last\":8}\n"), said);
    }

    @Test
    void each_batch_is_followed_by_a_pause() {
        Restorations restorations = new Restorations(new Events(new ByteArrayOutputStream()), 20);
        long before = System.nanoTime();
        restorations.onBatchRestored(new TopicPartition("app-seen-changelog", 0), "seen", 1, 1);
        assertTrue(System.nanoTime() - before >= 20_000_000);
    }
}
