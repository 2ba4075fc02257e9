package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.rocksdb.Options;

class RocksDbMemoryTest {

    /** Of the records; newer releases have a separate column family for offsets. */
    private static final Pattern WRITE_BUFFER =
            Pattern.compile("\\[CFOptions \"default\"].*?\n\\s*write_buffer_size=(\\d+)", Pattern.DOTALL);

    @TempDir
    Path state;

    @ParameterizedTest
    @ValueSource(longs = {65536, 131072})
    void the_store_opens_with_the_write_buffer_that_was_asked_for(long bytes) throws IOException {
        Trial trial = new Trial("dedup", state, Map.of("input.topic", "in", "output.topic", "out", "caching", false));
        trial.config.put("rocksdb.config.setter", RocksDbMemory.class.getName());
        trial.config.put(RocksDbMemory.BYTES, String.valueOf(bytes));
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 1, 10);
            assertEquals(Set.of(bytes), writeBuffersOnDisk());
        }
    }

    @Test
    void number_and_text_are_the_same_size() {
        for (Object bytes : List.<Object>of(4096, 4096L, "4096")) {
            try (Options options = new Options()) {
                RocksDbMemory memory = new RocksDbMemory();
                memory.setConfig("seen", options, Map.of(RocksDbMemory.BYTES, bytes));
                memory.close("seen", options);
                assertEquals(4096, options.writeBufferSize());
                assertTrue(options.level0FileNumCompactionTrigger() > 1_000, "a file would be younger than its writes");
            }
        }
    }

    @Test
    void a_setter_of_the_application_is_asked_first_and_closed() {
        Own.closed = null;
        try (Options options = new Options()) {
            RocksDbMemory memory = new RocksDbMemory();
            memory.setConfig("seen", options, Map.of(RocksDbMemory.BYTES, 4096, RocksDbMemory.OWN, Own.class.getName()));
            assertEquals(4096, options.writeBufferSize());
            assertEquals(7, options.maxWriteBufferNumber());
            memory.close("seen", options);
            assertEquals("seen", Own.closed);
            assertTrue(assertThrows(IllegalArgumentException.class, () -> new RocksDbMemory().setConfig("seen", options,
                    Map.of(RocksDbMemory.BYTES, 1, RocksDbMemory.OWN, "no.Such"))).getMessage().startsWith("no.Such"));
        }
    }

    /** As an application has it. */
    public static final class Own implements RocksDBConfigSetter {
        private static String closed;

        @Override
        public void setConfig(String store, Options options, Map<String, Object> config) {
            options.setWriteBufferSize(1_000_000);
            options.setMaxWriteBufferNumber(7);
        }

        @Override
        public void close(String store, Options options) {
            closed = store;
        }
    }

    private Set<Long> writeBuffersOnDisk() throws IOException {
        Set<Long> sizes = new HashSet<>();
        try (Stream<Path> files = Files.walk(state)) {
            for (Path file : files.filter(f -> f.getFileName().toString().startsWith("OPTIONS-")).collect(Collectors.toList())) {
                Matcher found = WRITE_BUFFER.matcher(Files.readString(file));
                assertTrue(found.find(), file.toString());
                sizes.add(Long.parseLong(found.group(1)));
            }
        }
        return sizes;
    }
}
