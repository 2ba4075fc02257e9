package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import java.util.Properties;
import java.util.function.Supplier;
import org.apache.kafka.streams.Topology;
import org.junit.jupiter.api.Test;

/** Topologies of other people's classes, and one sentence for each class that gives none. */
class LoadedTest {

    private static final String HERE = LoadedTest.class.getName();

    public static final class Supplies implements Supplier<Topology> {
        @Override
        public Topology get() {
            return new Topology().addSource("source", "in");
        }
    }

    public static final class SuppliesNothing implements Supplier<Topology> {
        @Override
        public Topology get() {
            return null;
        }
    }

    public static Topology configured(Properties config) {
        return new Topology().addSource("source", config.getProperty("in"));
    }

    public static Topology plain() {
        return new Supplies().get();
    }

    public static Topology broken() {
        throw new IllegalStateException("theirs");
    }

    private static Topology load(String name) {
        Properties config = new Properties();
        config.put("in", "in");
        Settings settings = new Settings(Map.of("application", "/there", "class", name));
        return Topologies.build("app", settings, config, new Progress((event, fields) -> {}));
    }

    private static String refused(String name) {
        return assertThrows(IllegalArgumentException.class, () -> load(name)).getMessage();
    }

    @Test
    void suppliers_and_static_methods_give_a_topology() {
        for (String name : new String[] {HERE + "$Supplies", HERE + "#configured", HERE + "#plain"}) {
            assertTrue(load(name).describe().toString().contains("topics: [in]"), name);
        }
    }

    @Test
    void what_gives_none_is_said() {
        assertTrue(refused("no.Such").startsWith("There is no class no.Such"));
        assertTrue(refused(HERE).endsWith("to name a static method."));
        assertTrue(refused(HERE + "#other").contains("has no public static method other"));
        assertTrue(refused(HERE + "$SuppliesNothing").contains("gave null"));
    }

    @Test
    void what_it_throws_is_told_as_it_is() {
        assertEquals("theirs", assertThrows(IllegalStateException.class, () -> load(HERE + "#broken")).getMessage());
    }
}
