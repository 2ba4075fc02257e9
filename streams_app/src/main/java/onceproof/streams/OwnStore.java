package onceproof.streams;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.internals.ProcessorTopology;

/**
 * A store of your own application that is asked: for keys that its changelog has, which also says to which partition
 * each belongs. Keys and answers go through the serdes of the store.
 */
final class OwnStore extends AskedStore {

    static final String ASKED = "queries";
    private static final int KNOWN = 64; // keys of each partition: those that were put last
    private static final int DRAWN = 4; // of each partition in a round
    private static final Duration POLL = Duration.ofMillis(5);
    private static final Duration PATIENCE = Duration.ofSeconds(5);

    private final String changelog;
    private final Serde<Object> keySerde;
    private final Serializer<Object> valueSerializer;
    private final Map<Integer, Map<ByteBuffer, Key>> known = new TreeMap<>(); // by partition, the key put last at the end
    private Consumer<byte[], byte[]> consumer;
    private boolean isAssigned;

    private OwnStore(Settings settings, ProcessorTopology topology, Properties config) {
        super(settings.text("store"), settings.text("answers.topic"), settings.count("partitions"));
        StateStore found = topology.stateStores().stream()
                .filter(one -> one.name().equals(store))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("The topology has no store " + store + "."));
        StreamsConfig defaults = new StreamsConfig(config);
        changelog = config.getProperty("application.id") + "-" + store + "-changelog";
        keySerde = serde(found, "keySerde").orElseGet(() -> any(defaults.defaultKeySerde()));
        valueSerializer = plain(serde(found, "valueSerde").orElseGet(() -> any(defaults.defaultValueSerde())).serializer());
    }

    /** The stores that the settings name; the topology is built again, for their serdes. */
    static List<AskedStore> all(Settings settings, Properties config) {
        List<Settings> asked = settings.tables(ASKED);
        if (asked.isEmpty()) {
            return List.of();
        }
        ProcessorTopology topology = Described.processors(Loaded.topology(settings, config), config);
        return asked.stream().map(one -> new OwnStore(one, topology, config)).collect(Collectors.toList());
    }

    @Override
    void open(Properties config) {
        Properties own = new Properties();
        config.stringPropertyNames().stream()
                .filter(name -> ConsumerConfig.configNames().contains(name) && !name.startsWith("group.")) // it is in none
                .forEach(name -> own.put(name, config.getProperty(name)));
        own.put("client.id", config.getProperty("client.id") + "-query-client-" + store);
        own.put("auto.offset.reset", "earliest");
        own.put("allow.auto.create.topics", "false");
        own.put("enable.auto.commit", "false");
        consumer = new KafkaConsumer<>(own, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    @Override
    List<Key> draw(Random random) {
        readOn();
        List<Key> drawn = new ArrayList<>();
        for (Map<ByteBuffer, Key> keys : known.values()) {
            List<Key> choice = new ArrayList<>(keys.values());
            for (int i = 0; i < DRAWN; i++) {
                drawn.add(choice.get(random.nextInt(choice.size())));
            }
        }
        return drawn;
    }

    @Override
    Map<Integer, Key> examples() {
        Map<Integer, Key> examples = new TreeMap<>();
        known.forEach((partition, keys) -> examples.put(partition, keys.values().iterator().next()));
        return examples;
    }

    @Override
    byte[] bytes(Object found) {
        return found == null ? null : valueSerializer.serialize(changelog, found);
    }

    @Override
    public void close() {
        if (consumer != null) {
            consumer.close(PATIENCE);
        }
    }

    private void readOn() {
        if (!isAssigned && !assign()) {
            return;
        }
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
            Map<ByteBuffer, Key> keys = known.computeIfAbsent(record.partition(), ignored -> new LinkedHashMap<>());
            ByteBuffer bytes = ByteBuffer.wrap(record.key());
            Key before = keys.remove(bytes);
            keys.put(bytes, before != null ? before : key(record.key(), record.partition()));
            if (keys.size() > KNOWN) {
                Iterator<Key> first = keys.values().iterator();
                first.next();
                first.remove();
            }
        }
    }

    private Key key(byte[] bytes, int partition) {
        return new Key(keySerde.deserializer().deserialize(changelog, bytes), bytes, partition);
    }

    /** Begin to read the changelog, if it is there; false if not. */
    private boolean assign() {
        List<PartitionInfo> found;
        try {
            found = consumer.partitionsFor(changelog, PATIENCE);
        } catch (TimeoutException e) {
            return false;
        }
        if (found == null || found.isEmpty()) {
            return false;
        }
        if (found.size() != partitions) {
            throw new IllegalArgumentException("The changelog of the store " + store + " has " + found.size()
                    + " partitions, and not " + partitions + "; say so where the file names the store: partitions = "
                    + found.size() + ".");
        }
        consumer.assign(found.stream().map(one -> new TopicPartition(changelog, one.partition())).collect(Collectors.toList()));
        isAssigned = true;
        return true;
    }

    // --- serdes ------------------------------------------------------------------------------------------------

    /** A serde of the outermost layer of a store; none if the application leaves it to the configuration. */
    private static Optional<Serde<Object>> serde(StateStore store, String name) {
        try {
            return Optional.ofNullable(any((Serde<?>) Described.inherited(store, name)));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("This release does not tell the serdes of the store " + store.name() + ".", e);
        }
    }

    /** Without the timestamp, or headers, that a store keeps with a value: answers and changelogs have none. */
    @SuppressWarnings("unchecked")
    private static Serializer<Object> plain(Serializer<Object> serializer) {
        String name = serializer.getClass().getSimpleName();
        if (!name.startsWith("ValueAndTimestamp") && !name.startsWith("ValueTimestamp")) {
            return serializer;
        }
        try {
            return (Serializer<Object>) Described.inherited(serializer, "valueSerializer");
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("This release does not tell how " + name + " writes a value.", e);
        }
    }

    @SuppressWarnings("unchecked")
    private static Serde<Object> any(Serde<?> serde) {
        return (Serde<Object>) serde;
    }
}
