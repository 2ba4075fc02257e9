package onceproof.streams;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.common.serialization.IntegerSerializer;

/** The store of {@link Counting}: keys are numbers from 0 on, and an answer is the number that was found, or 0. */
final class CountedStore extends AskedStore {

    private static final int KEYS = 8; // that are asked for in a round

    private final String input;
    private final int keys;
    private final boolean byQuery;

    private CountedStore(String input, String answers, int keys, int partitions, boolean byQuery) {
        super(Counting.LAST, answers, partitions);
        this.input = input;
        this.keys = keys;
        this.byQuery = byQuery;
    }

    static CountedStore of(Settings settings) {
        return new CountedStore(
                settings.text("input.topic"), settings.text("answers.topic"), settings.count("keys"),
                settings.count("partitions"), settings.flag("by.query"));
    }

    @Override
    List<Key> draw(Random random) {
        List<Key> drawn = new ArrayList<>();
        for (int i = 0; i < KEYS; i++) {
            int key = random.nextInt(keys);
            drawn.add(key(key, KeyPartitioner.partition(key, partitions)));
        }
        return drawn;
    }

    @Override
    Map<Integer, Key> examples() {
        Map<Integer, Key> examples = new TreeMap<>();
        for (int partition = 0; partition < partitions; partition++) {
            examples.put(partition, key(Math.floorMod(partition - 1, partitions), partition));
        }
        return examples;
    }

    @Override
    byte[] bytes(Object found) {
        return number(found == null ? 0 : (Integer) found);
    }

    @Override
    Optional<String> positionedIn() {
        return byQuery ? Optional.of(input) : Optional.empty();
    }

    private static Key key(int key, int partition) {
        return new Key(key, number(key), partition);
    }

    private static byte[] number(int number) {
        try (IntegerSerializer serializer = new IntegerSerializer()) {
            return serializer.serialize("", number);
        }
    }
}
