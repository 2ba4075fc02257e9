package onceproof.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.time.Duration;
import org.apache.kafka.common.serialization.Serdes;
import org.junit.jupiter.api.Test;

/** What all kinds of stores have in common is tested by {@link DedupTest}. */
class VersionedStoreTest {

    static boolean thereAre() {
        try {
            Class.forName("org.apache.kafka.streams.state.VersionedKeyValueStore");
            return true;
        } catch (ClassNotFoundException e) {
            return false;
        }
    }

    @Test
    void a_release_that_has_none_says_so() {
        assumeFalse(thereAre());
        String said = assertThrows(IllegalArgumentException.class, () -> VersionedStore.builder(
                "seen", Duration.ofHours(1), Serdes.Integer(), Serdes.Integer())).getMessage();
        assertEquals(
                "This Kafka Streams has no versioned stores; take 3.5.0 or later, or another kind of store.", said);
    }

    @Test
    void a_key_that_would_not_be_seen_is_refused() {
        String said = assertThrows(
                IllegalArgumentException.class, () -> new VersionedStore(null).put(-1, 2, 3L)).getMessage();
        assertEquals("Key -1 would not be seen in a versioned store; take keys from 0 to 99999.", said);
    }
}
