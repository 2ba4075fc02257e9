package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.streams.TopologyTestDriver;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GroupedTableTest {

    @TempDir
    Path state;

    private Trial trial;

    @BeforeEach
    void prepare() {
        trial = new Trial("grouped-table", state, Map.of("input.topic", "in", "output.topic", "out", "caching", false));
    }

    @ParameterizedTest
    @CsvSource({"true,rocksdb,stream", "false,rocksdb,stream", "true,in-memory,stream", "false,in-memory,stream",
        "false,rocksdb,longer-stream", "true,rocksdb,source", "false,rocksdb,optimized-source",
        "true,in-memory,optimized-source"})
    void the_sum_of_each_group_is_that_of_the_last_values_of_its_keys(boolean caching, String stores, String readAs) {
        trial.with("caching", caching).with("stores", stores).with("read.as", readAs);
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 7, 70, 107, 1, 8, 80, 7, 71, 7, 60);

            Map<Integer, Integer> table = new TreeMap<>();
            Trial.read(driver, "out").forEach(entry -> table.put(entry.key, entry.value));
            assertEquals(Map.of(7, 61, 8, 80), table);
        }
        assertEquals(5L, trial.progress.processed().get(0).get("count"));
    }

    /** One task has all keys, so they are right wherever the repartition is. */
    @ParameterizedTest
    @CsvSource({"selectKey,none", "selectKey,all", "process,none", "process,all"})
    void the_sum_of_each_group_of_a_stream_is_that_of_all_values(String by, String optimization) {
        assumeTrue(by.equals("selectKey") || !System.getProperty("kafka.version").startsWith("3.0."));
        trial.with("grouped.by", by).config.put("topology.optimization", optimization);
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 7, 70, 107, 1, 8, 80, 207, 2);

            Map<Integer, Integer> table = new TreeMap<>();
            Trial.read(driver, "out").forEach(entry -> table.put(entry.key, entry.value));
            assertEquals(Map.of(7, 73, 8, 80), table);
        }
        assertEquals(4L, trial.progress.processed().get(0).get("count"));
    }

    /** KIP-904: in the form that 3.5 brought, the change of a value is one record, which has both. */
    @Test
    void a_change_is_one_result_from_the_release_on_that_writes_both_values_into_one_record() {
        try (TopologyTestDriver driver = trial.open()) {
            Trial.pipe(driver, 7, 70, 7, 71);

            boolean isOne = !System.getProperty("kafka.version").startsWith("3.0.");
            assertEquals(
                    Trial.pairs(isOne ? new int[] {7, 70, 7, 71} : new int[] {7, 70, 7, 0, 7, 71}),
                    Trial.read(driver, "out"));
        }
    }

    @ParameterizedTest
    @CsvSource({"stream,true", "longer-stream,true", "source,true", "optimized-source,false"})
    void a_deployment_changes_the_changelog_of_the_table_or_the_names_of_operators_and_no_other_name(
            String readAs, boolean hasChangelog) {
        String described = trial.with("read.as", readAs).topology().describe().toString();

        assertEquals(readAs.equals("stream"), described.contains("KSTREAM-TOTABLE-0000000001"));
        assertEquals(readAs.equals("longer-stream"), described.contains("KSTREAM-TOTABLE-0000000002"));
        assertTrue(described.contains("Sub-topology: 1") && !described.contains("Sub-topology: 2"));
        try (TopologyTestDriver driver = trial.open()) {
            assertEquals(Set.of("table", "sums"), driver.getAllStateStores().keySet());
            Trial.pipe(driver, 7, 70);
            Set<String> written = driver.producedTopicNames();
            assertEquals(hasChangelog, written.contains("app-table-changelog"));
            assertTrue(written.containsAll(Set.of("app-groups-repartition", "app-sums-changelog", "out")), written.toString());
        }
    }
}
