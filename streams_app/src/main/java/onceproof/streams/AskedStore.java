package onceproof.streams;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;

/**
 * A store that a {@link QueryClient} asks: its keys, and the bytes of what it answers.
 *
 * <p>Only the thread of the client uses it.
 */
abstract class AskedStore implements AutoCloseable {

    final String store;
    final String answers; // the topic that takes them
    final int partitions;

    AskedStore(String store, String answers, int partitions) {
        this.store = store;
        this.answers = answers;
        this.partitions = partitions;
    }

    /** Get ready to draw keys. */
    void open(Properties config) {}

    /** Some keys to be asked for, drawn each time; none as long as none is known. */
    abstract List<Key> draw(Random random);

    /** A key of each partition in which one is known. */
    abstract Map<Integer, Key> examples();

    /** The bytes of an answer; null if nothing was found. */
    abstract byte[] bytes(Object found);

    /** The topic in which answers have positions, if clients also ask by {@code KafkaStreams.query}. */
    Optional<String> positionedIn() {
        return Optional.empty();
    }

    @Override
    public void close() {}

    /** A key: as the store takes it, its bytes, and the partition that it belongs to. */
    static final class Key {

        final Object object;
        final byte[] bytes;
        final int partition;

        Key(Object object, byte[] bytes, int partition) {
            this.object = object;
            this.bytes = bytes;
            this.partition = partition;
        }
    }
}
