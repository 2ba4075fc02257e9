package onceproof.streams;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.Random;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;

/**
 * The tasks of several partitions: a driver each, over one log in memory. A record that one of them writes to an internal
 * topic waits there, until its turn has come by a schedule that a seed gives. Then the task takes it whose partition its key
 * belongs to. As on brokers, records of one task that wait in one partition stay in their order, and no others do.
 */
final class Tasks implements AutoCloseable {

    private final String application;
    private final Random schedule;
    private final List<TopologyTestDriver> drivers = new ArrayList<>();
    private final Map<String, Queue<Waiting>> waiting = new TreeMap<>(); // by topic, and partitions of origin and destination

    /**
     * Open the drivers.
     *
     * @param opened the driver of a partition
     * @param config with the application's id, by which internal topics are known
     */
    Tasks(int partitions, long seed, Properties config, Function<Integer, TopologyTestDriver> opened) {
        application = config.getProperty("application.id") + "-";
        schedule = new Random(seed);
        for (int partition = 0; partition < partitions; partition++) {
            TopologyTestDriver driver = opened.apply(partition);
            drivers.add(driver);
            divert(driver, partition);
        }
    }

    /**
     * Process all records of the input in their order, and whatever follows from them, in any order that brokers allow.
     *
     * @param isSettled whether a record of the input is taken only when nothing waits
     * @return the turns, each ends with the partition whose task takes the next record of the input, or, behind its topic
     *     and the partition of its origin, the one that waits there longest
     */
    List<String> process(
            List<JsonNode> inputs, boolean isSettled, Function<JsonNode, TestRecord<byte[], byte[]>> read) {
        Queue<JsonNode> rest = new ArrayDeque<>(inputs);
        List<String> turns = new ArrayList<>();
        while (true) {
            List<String> ready = waiting.entrySet().stream()
                    .filter(entry -> !entry.getValue().isEmpty())
                    .map(Map.Entry::getKey)
                    .collect(Collectors.toList());
            boolean isOpen = !rest.isEmpty() && (ready.isEmpty() || !isSettled);
            int choices = ready.size() + (isOpen ? 1 : 0);
            if (choices == 0) {
                return turns;
            }
            int choice = schedule.nextInt(choices);
            if (choice == ready.size()) {
                JsonNode input = rest.remove();
                TestRecord<byte[], byte[]> record = read.apply(input);
                turns.add(String.valueOf(partitionOf(record.key())));
                pipe(driverOf(record.key()), input.get(0).textValue(), record);
            } else {
                Waiting next = waiting.get(ready.get(choice)).remove();
                turns.add(ready.get(choice));
                pipe(driverOf(next.record.key()), next.topic, next.record);
            }
        }
    }

    List<TopologyTestDriver> drivers() {
        return drivers;
    }

    @Override
    public void close() {
        drivers.forEach(TopologyTestDriver::close);
    }

    private int partitionOf(byte[] key) {
        return Math.floorMod(Arrays.hashCode(key), drivers.size());
    }

    private TopologyTestDriver driverOf(byte[] key) {
        return drivers.get(partitionOf(key));
    }

    private static void pipe(TopologyTestDriver driver, String topic, TestRecord<byte[], byte[]> record) {
        driver.createInputTopic(topic, new ByteArraySerializer(), new ByteArraySerializer()).pipeInput(record);
    }

    /** Hides from a driver what it has written to internal topics, which it would take itself at once, and has it wait. */
    @SuppressWarnings("unchecked")
    private void divert(TopologyTestDriver driver, int partition) {
        try {
            Field field = TopologyTestDriver.class.getDeclaredField("producer");
            field.setAccessible(true);
            field.set(driver, new Diverting((MockProducer<byte[], byte[]>) field.get(driver), partition));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("The driver of this release keeps what it produces elsewhere.", e);
        }
    }

    private static final class Waiting {

        private final String topic;
        private final TestRecord<byte[], byte[]> record;

        private Waiting(ProducerRecord<byte[], byte[]> produced) {
            topic = produced.topic();
            record = new TestRecord<>(produced.key(), produced.value(), produced.headers(), produced.timestamp());
        }
    }

    /** The producer of a driver as the driver sees it: it asks for the history only to pass it on. */
    private final class Diverting extends MockProducer<byte[], byte[]> {

        private final MockProducer<byte[], byte[]> producer;
        private final int partition;

        private Diverting(MockProducer<byte[], byte[]> producer, int partition) {
            this.producer = producer;
            this.partition = partition;
        }

        @Override
        public synchronized List<ProducerRecord<byte[], byte[]>> history() {
            List<ProducerRecord<byte[], byte[]>> rest = new ArrayList<>();
            for (ProducerRecord<byte[], byte[]> record : producer.history()) {
                if (record.topic().startsWith(application) && !record.topic().endsWith("-changelog")) {
                    String way = record.topic() + " " + partition + " " + partitionOf(record.key());
                    waiting.computeIfAbsent(way, key -> new ArrayDeque<>()).add(new Waiting(record));
                } else {
                    rest.add(record);
                }
            }
            return rest;
        }

        @Override
        public synchronized void clear() {
            producer.clear();
        }

        @Override
        public void close() {
            producer.close();
        }
    }
}
