package onceproof.streams;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.test.TestRecord;

/**
 * The records of the changelogs of a topology, and the restoration of the stores of another driver from it: in one batch for
 * each store, by the {@code ProcessorStateManager} of the driver's task. A driver does not restore by itself.
 */
final class Changelogs {

    private final Map<String, List<ConsumerRecord<byte[], byte[]>>> records = new HashMap<>(); // by topic

    /** Take what a driver has written to its changelogs; a source topic that stands for one has these inputs. */
    void take(TopologyTestDriver driver, List<JsonNode> inputs) {
        for (TopicPartition partition : partitions(manager(driver))) {
            String topic = partition.topic();
            if (driver.producedTopicNames().contains(topic)) {
                for (TestRecord<byte[], byte[]> record :
                        driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer())
                                .readRecordsToList()) {
                    // The buffer of a suppression writes none; brokers give such a record the time of the machine.
                    long timestamp = record.timestamp() == null ? 0 : record.timestamp();
                    add(partition, timestamp, record.getKey(), record.getValue(), record.getHeaders());
                }
            }
            for (JsonNode input : inputs) {
                if (input.get(0).textValue().equals(topic)) {
                    Headers none = new TestRecord<>("").getHeaders();
                    add(partition, input.get(1).longValue(), bytes(input.get(2)), bytes(input.get(3)), none);
                }
            }
        }
    }

    /** Restore the stores of a driver, which are empty. */
    void restore(TopologyTestDriver driver) {
        Object manager = manager(driver);
        for (TopicPartition partition : partitions(manager)) {
            List<ConsumerRecord<byte[], byte[]>> batch = records.getOrDefault(partition.topic(), List.of());
            if (!batch.isEmpty()) {
                Object store = call(manager, "storeMetadata", partition);
                Object[] two = {store, batch};
                Object[] three = {store, batch, OptionalLong.of(batch.size())}; // since 3.8 with the end of the changelog
                call(manager, "restore", method(manager, "restore").getParameterCount() == 2 ? two : three);
            }
        }
    }

    private void add(TopicPartition partition, long timestamp, byte[] key, byte[] value, Headers headers) {
        List<ConsumerRecord<byte[], byte[]>> all = records.computeIfAbsent(partition.topic(), topic -> new ArrayList<>());
        all.add(new ConsumerRecord<>(
                partition.topic(), partition.partition(), all.size(), timestamp, TimestampType.CREATE_TIME, 0, 0, key, value,
                headers, Optional.empty()));
    }

    private static byte[] bytes(JsonNode text) {
        return text.isNull() ? null : text.textValue().getBytes(StandardCharsets.UTF_8);
    }

    @SuppressWarnings("unchecked")
    private static Collection<TopicPartition> partitions(Object manager) {
        return manager == null ? List.of() : (Collection<TopicPartition>) call(manager, "changelogPartitions");
    }

    /** The state manager of the driver's task; null if it has none. */
    private static Object manager(TopologyTestDriver driver) {
        Object task = get(driver, "task");
        return task == null ? null : get(task, "stateMgr");
    }

    private static Object get(Object of, String name) {
        for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
            for (Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    try {
                        field.setAccessible(true);
                        return field.get(of);
                    } catch (IllegalAccessException e) {
                        throw unknown(name, e);
                    }
                }
            }
        }
        throw unknown(name, null);
    }

    private static Method method(Object of, String name) {
        return Arrays.stream(of.getClass().getDeclaredMethods())
                .filter(method -> method.getName().equals(name))
                .findFirst()
                .orElseThrow(() -> unknown(name, null));
    }

    private static Object call(Object on, String name, Object... arguments) {
        try {
            Method method = method(on, name);
            method.setAccessible(true);
            return method.invoke(on, arguments);
        } catch (InvocationTargetException e) {
            if (e.getCause() instanceof RuntimeException) {
                throw (RuntimeException) e.getCause();
            }
            throw unknown(name, e);
        } catch (IllegalAccessException e) {
            throw unknown(name, e);
        }
    }

    private static IllegalStateException unknown(String name, Exception cause) {
        return new IllegalStateException("This release restores stores otherwise: it has no such " + name + ".", cause);
    }
}
