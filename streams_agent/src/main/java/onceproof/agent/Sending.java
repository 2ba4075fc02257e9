package onceproof.agent;

import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import net.bytebuddy.asm.Advice;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Bugs on a record's way to the brokers: all go through {@code StreamsProducer.send(record, callback)}. */
public final class Sending {

    private static final int RARELY = 100; // one record in this many
    private static final int BATCH = 50; // records that are lost together
    private static final long HOUR = 3_600_000;
    private static Producer<byte[], byte[]> second;
    private static final ThreadLocal<Held> HELD = new ThreadLocal<>();
    private static final ThreadLocal<Integer> LOSING = ThreadLocal.withInitial(() -> 0);
    private static final int OFTEN = 20; // one change in this many
    private static final int EARLY = 4_000; // changes of a process, behind which others still follow
    private static final AtomicInteger CHANGES = new AtomicInteger();
    private static final Map<List<Object>, ProducerRecord<byte[], byte[]>> LAST = new ConcurrentHashMap<>();

    private Sending() {}

    private static boolean isChange(ProducerRecord<byte[], byte[]> record) {
        return record.topic().endsWith("-changelog");
    }

    static final class PutLost {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.Argument(0) ProducerRecord<byte[], byte[]> record) {
            return loses(record, true);
        }
    }

    static final class TombstoneLost {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.Argument(0) ProducerRecord<byte[], byte[]> record) {
            return loses(record, false);
        }
    }

    public static boolean loses(ProducerRecord<byte[], byte[]> record, boolean puts) {
        return isChange(record) && (record.value() != null) == puts && Fired.everyNth(RARELY);
    }

    /** In {@code ExceptionHandlerUtils}: now and then there is no dead letter. */
    static final class DeadLetterLost {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) List<ProducerRecord<byte[], byte[]>> letters) {
            letters = withoutSome(letters);
        }
    }

    public static List<ProducerRecord<byte[], byte[]>> withoutSome(List<ProducerRecord<byte[], byte[]>> letters) {
        return !letters.isEmpty() && Fired.everyNth(RARELY) ? List.of() : letters;
    }

    /** Now and then the change before it is sent once more. */
    static final class OlderChange {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(0) ProducerRecord<byte[], byte[]> record,
                @Advice.FieldValue("producer") Producer<byte[], byte[]> producer) {
            olderChange(record, producer);
        }
    }

    public static void olderChange(ProducerRecord<byte[], byte[]> record, Producer<byte[], byte[]> producer) {
        ProducerRecord<byte[], byte[]> before = before(record);
        if (before != null && Fired.everyNth(RARELY)) {
            producer.send(before);
        }
    }

    /** Now and then, among the first changes, the one before it is sent in its place. */
    static final class OutdatedChange {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) ProducerRecord<byte[], byte[]> record) {
            record = outdatedChange(record);
        }
    }

    public static ProducerRecord<byte[], byte[]> outdatedChange(ProducerRecord<byte[], byte[]> record) {
        ProducerRecord<byte[], byte[]> before = before(record);
        boolean early = before != null && CHANGES.incrementAndGet() < EARLY;
        return early && Fired.everyNth(OFTEN) ? before : record;
    }

    /** The change of its key that was to be sent before this one; null if it is the first, or no change. */
    private static ProducerRecord<byte[], byte[]> before(ProducerRecord<byte[], byte[]> record) {
        return isChange(record) && record.key() != null && record.partition() != null
                ? LAST.put(List.of(record.topic(), record.partition(), ByteBuffer.wrap(record.key())), record) : null;
    }

    static final class BatchLost {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(@Advice.Argument(0) ProducerRecord<byte[], byte[]> record) {
            return losesBatch(record);
        }
    }

    /** Some consecutive records of the output, out of every 2,000. */
    public static boolean losesBatch(ProducerRecord<byte[], byte[]> record) {
        if (isChange(record)) {
            return false;
        }
        int left = LOSING.get();
        if (left == 0 && Fired.everyNth(2_000)) {
            left = BATCH;
        }
        LOSING.set(Math.max(0, left - 1));
        return left > 0;
    }

    static final class SentTwice {
        @Advice.OnMethodExit
        static void exit(
                @Advice.Argument(0) ProducerRecord<byte[], byte[]> record, @Advice.Argument(1) Callback callback,
                @Advice.FieldValue("producer") Producer<byte[], byte[]> producer) {
            sendsAgain(record, callback, producer);
        }
    }

    public static void sendsAgain(
            ProducerRecord<byte[], byte[]> record, Callback callback, Producer<byte[], byte[]> producer) {
        if (!isChange(record) && Fired.everyNth(record.topic(), RARELY)) {
            producer.send(record, callback);
        }
    }

    static final class OtherPartition {
        @Advice.OnMethodEnter
        static void enter(
                @Advice.Argument(value = 0, readOnly = false) ProducerRecord<byte[], byte[]> record,
                @Advice.FieldValue("producer") Producer<byte[], byte[]> producer) {
            record = otherPartition(record, producer);
        }
    }

    public static ProducerRecord<byte[], byte[]> otherPartition(
            ProducerRecord<byte[], byte[]> record, Producer<byte[], byte[]> producer) {
        if (isChange(record) || record.partition() == null) {
            return record;
        }
        int partitions = producer.partitionsFor(record.topic()).size();
        if (partitions == 1 || !Fired.everyNth(RARELY)) {
            return record;
        }
        int other = (record.partition() + 1) % partitions;
        return new ProducerRecord<>(
                record.topic(), other, record.timestamp(), record.key(), record.value(), record.headers());
    }

    static final class OtherTimestamp {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) ProducerRecord<byte[], byte[]> record) {
            record = otherTimestamp(record);
        }
    }

    public static ProducerRecord<byte[], byte[]> otherTimestamp(ProducerRecord<byte[], byte[]> record) {
        if (isChange(record) || record.timestamp() == null || !Fired.everyNth(RARELY)) {
            return record;
        }
        long earlier = Math.max(0, record.timestamp() - HOUR); // brokers refuse timestamps in the future
        return new ProducerRecord<>(
                record.topic(), record.partition(), earlier, record.key(), record.value(), record.headers());
    }

    /** Every so often a record of the output is held back until the one after it is sent. */
    static final class OtherOrder {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(
                @Advice.Argument(0) ProducerRecord<byte[], byte[]> record, @Advice.Argument(1) Callback callback) {
            return holds(record, callback);
        }

        @Advice.OnMethodExit
        static void exit(
                @Advice.Enter boolean held, @Advice.Argument(0) ProducerRecord<byte[], byte[]> record,
                @Advice.FieldValue("producer") Producer<byte[], byte[]> producer) {
            if (!held) {
                release(record, producer);
            }
        }
    }

    /** What is held back goes out with the flush. */
    static final class OrderFlush {
        @Advice.OnMethodEnter
        static void enter(@Advice.FieldValue("producer") Producer<byte[], byte[]> producer) {
            release(null, producer);
        }
    }

    private static final class Held {
        final ProducerRecord<byte[], byte[]> record;
        final Callback callback;

        Held(ProducerRecord<byte[], byte[]> record, Callback callback) {
            this.record = record;
            this.callback = callback;
        }
    }

    public static boolean holds(ProducerRecord<byte[], byte[]> record, Callback callback) {
        if (isChange(record) || HELD.get() != null || !Fired.everyNth(RARELY)) {
            return false;
        }
        HELD.set(new Held(record, callback));
        return true;
    }

    public static void release(ProducerRecord<byte[], byte[]> sent, Producer<byte[], byte[]> producer) {
        Held held = HELD.get();
        if (held == null) {
            return;
        }
        boolean behind = sent != null && sent.topic().equals(held.record.topic())
                && sent.partition() != null && sent.partition().equals(held.record.partition());
        if (sent == null || behind) {
            HELD.remove();
            producer.send(held.record, held.callback);
        }
    }

    /** The output goes through a producer without transactions. */
    static final class OutsideTransaction {
        @Advice.OnMethodEnter(skipOn = Advice.OnNonDefaultValue.class)
        static boolean enter(
                @Advice.Argument(0) ProducerRecord<byte[], byte[]> record, @Advice.Argument(1) Callback callback,
                @Advice.FieldValue("producer") Producer<byte[], byte[]> producer) {
            return sendsOutside(record, callback, producer);
        }
    }

    public static synchronized boolean sendsOutside(
            ProducerRecord<byte[], byte[]> record, Callback callback, Producer<byte[], byte[]> producer) {
        if (isChange(record)) {
            return false;
        }
        if (second == null) {
            Map<String, Object> config = new HashMap<>(configOf(producer).originals());
            config.remove(ProducerConfig.TRANSACTIONAL_ID_CONFIG);
            config.put(ProducerConfig.CLIENT_ID_CONFIG, "second-producer");
            config.put(ProducerConfig.LINGER_MS_CONFIG, 0);
            second = new KafkaProducer<>(config);
        }
        Fired.now();
        second.send(record, callback);
        return true;
    }

    private static ProducerConfig configOf(Producer<byte[], byte[]> producer) {
        try {
            Field config = KafkaProducer.class.getDeclaredField("producerConfig");
            config.setAccessible(true);
            return (ProducerConfig) config.get(producer);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("The producer does not tell its configuration.", e);
        }
    }
}
