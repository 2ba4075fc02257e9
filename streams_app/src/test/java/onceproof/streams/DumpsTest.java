package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.streams.KeyValue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The form of a dump; running instances are dumped by the lab's tests. */
class DumpsTest {

    @TempDir
    Path folder;

    @Test
    void a_line_is_a_key_and_a_number() throws IOException {
        Path file = folder.resolve("seen.csv");
        List<KeyValue<Object, Object>> entries =
                List.of(KeyValue.pair(7, -1), KeyValue.pair(-8, new byte[] {0, 0, 1, 2, 99, 99}));
        assertEquals(2, Dumps.writeEntries(entries.iterator(), file));
        assertEquals(List.of("7,-1", "-8,258"), Files.readAllLines(file));
    }
}
