package onceproof.streams;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyQueryMetadata;
import org.apache.kafka.streams.LagInfo;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.state.HostInfo;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A client in the process of an instance, on a thread of its own: it asks a store by interactive queries, in rounds,
 * and writes each answer to a topic, with what an answer of its kind must hold.
 *
 * <p>An answer is a record: the key, the bytes that were found, and in its headers
 *
 * <ul>
 *   <li>{@code floor}: it must hold all committed records of the changelog before this offset,
 *   <li>{@code ceiling}: and none from this offset on,
 *   <li>{@code read}: it must hold what the records of the input before this offset give,
 *   <li>{@code how}: who was asked for what.
 * </ul>
 *
 * <p>The kinds: {@code store} asks a store that is active and restored, and no other ({@code withPartition}). So it
 * must hold what was committed before it was asked: the floor is the changelog's last stable offset. {@code stale} also
 * asks standbys and stores that are being restored ({@code enableStaleStores}), whose floor is the position that
 * {@code allLocalStorePartitionLags} declares. A standby reads what is committed only, so its ceiling is the last
 * stable offset after the answer. With the setting {@code by.query}, from 3.2 on (KIP-796), {@code query} requires an active store, as {@code store} does,
 * and {@code bounded} asks for a position in the input that an earlier answer had; both must hold the position that
 * they return.
 *
 * <p>With {@code default.interactive.query.isolation.level=READ_COMMITTED} (KIP-892, from 4.4 on) nothing answers with
 * what is not committed, so there is a ceiling everywhere: the end of the changelog. A store gets what its transaction
 * wrote only when that is committed, so the floor is one transaction older.
 */
final class QueryClient {

    private static final Logger LOG = LoggerFactory.getLogger(QueryClient.class);
    private static final String ISOLATION = "default.interactive.query.isolation.level"; // from 4.4 on
    private static final String QUERIES = "org.apache.kafka.streams.query."; // from 3.2 on
    private static final long ROUND_MS = 40;
    private static final long PATIENCE_SECONDS = 5; // the client may be caught in a deadlock (KAFKA-19629)
    private static final long TELL_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long UNLIMITED = Long.MAX_VALUE;

    private final AskedStore asked;
    private final Properties config;
    private final Events events;
    private final boolean committedOnly;
    private final AtomicInteger moves = new AtomicInteger(); // changes of the instance's state
    private final CountDownLatch ended = new CountDownLatch(1);
    private final Random random = new Random();
    private final Map<Integer, Long> settled = new HashMap<>(); // last stable offset of the changelog, by partition
    private final Map<Integer, Long> settledBefore = new HashMap<>(); // when it was another one
    private final Map<Integer, Long> reached = new HashMap<>(); // in the input, by an answer of this client
    private final Map<String, Integer> answers = new TreeMap<>(); // by kind
    private final Map<String, Integer> refusals = new TreeMap<>(); // by reason
    private List<Map<String, Object>> routes = List.of();
    private long told = System.nanoTime();
    private volatile boolean goesOn = true;

    QueryClient(AskedStore asked, Properties config, Events events) {
        this.asked = asked;
        this.config = config;
        this.events = events;
        this.committedOnly = "READ_COMMITTED".equals(config.getProperty(ISOLATION));
    }

    /** The instance has changed its state, so its tasks may be others. */
    void moved() {
        moves.incrementAndGet();
    }

    void start(KafkaStreams streams) {
        Thread thread = new Thread(() -> run(streams), "query-client");
        thread.setDaemon(true);
        thread.start();
    }

    /** Ask no more, and report how many answers there were. */
    void finish() {
        goesOn = false;
        try {
            ended.await(PATIENCE_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void run(KafkaStreams streams) {
        try (Admin admin = Admin.create(settings(AdminClientConfig.configNames()));
                Producer<byte[], byte[]> producer = new KafkaProducer<>(
                        settings(ProducerConfig.configNames()), new ByteArraySerializer(), new ByteArraySerializer());
                asked) {
            asked.open(config);
            while (goesOn) {
                round(streams, admin).forEach(answer -> producer.send(answer.record(asked)));
                tellRoutes(streams);
                if (System.nanoTime() - told > TELL_NANOS) {
                    tell();
                }
                TimeUnit.MILLISECONDS.sleep(ROUND_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (RuntimeException e) {
            LOG.error("The client ends", e);
            events.error("The client of interactive queries ended: " + Main.sentence(e));
        } finally {
            tell();
            ended.countDown();
        }
    }

    private Properties settings(Set<String> names) {
        Properties own = new Properties();
        config.stringPropertyNames().stream()
                .filter(names::contains)
                .forEach(name -> own.put(name, config.getProperty(name)));
        own.put("client.id", config.getProperty("client.id") + "-query-client-" + asked.store);
        return own;
    }

    // --- a round ---------------------------------------------------------------------------------------------

    private List<Answer> round(KafkaStreams streams, Admin admin) throws InterruptedException {
        List<Answer> found = new ArrayList<>();
        int before = moves.get();
        boolean atRest = streams.state() == KafkaStreams.State.RUNNING;
        Map<Integer, Long> stable = ends(admin, IsolationLevel.READ_COMMITTED);
        stable.forEach(this::settle);
        Map<Integer, LagInfo> lags = lags(streams);
        Set<Integer> standbys = standbys(streams);
        for (AskedStore.Key key : asked.draw(random)) {
            if (stable.containsKey(key.partition)) {
                ask(streams, key, lags.get(key.partition), found);
            }
        }
        Map<Integer, Long> stableAfter = ends(admin, IsolationLevel.READ_COMMITTED);
        found.forEach(this::lookAtPosition);
        Map<Integer, Long> endsAfter = ends(admin, IsolationLevel.READ_UNCOMMITTED);
        boolean staysAtRest = atRest && before == moves.get() && streams.state() == KafkaStreams.State.RUNNING;
        List<Answer> sound = new ArrayList<>();
        for (Answer answer : found) {
            boolean ofStandby = answer.isStale && staysAtRest && standbys.contains(answer.partition);
            Map<Integer, Long> ends = ofStandby ? stableAfter : endsAfter;
            boolean limited = ofStandby || committedOnly;
            boolean mayHaveMoved = answer.isStale && answer.seemsComplete && !staysAtRest; // since it declared a position
            if (mayHaveMoved || limited && !ends.containsKey(answer.partition)) {
                continue;
            }
            answer.ceiling = limited ? ends.get(answer.partition) : UNLIMITED;
            String kind = ofStandby ? "standby " + answer.kind : answer.kind;
            answer.how = config.getProperty("client.id").replaceFirst(".*-instance-", "instance-") + " " + kind;
            answers.merge(kind, 1, Integer::sum);
            sound.add(answer);
        }
        return sound;
    }

    private void settle(int partition, long offset) {
        Long last = settled.put(partition, offset);
        if (last != null && last != offset) {
            settledBefore.put(partition, last);
        }
    }

    /** The offset before which a store that is active and restored must have all that is committed. */
    private long floor(int partition) {
        return (committedOnly ? settledBefore : settled).getOrDefault(partition, 0L);
    }

    private void ask(KafkaStreams streams, AskedStore.Key key, LagInfo lag, List<Answer> found) {
        int partition = key.partition;
        boolean byQuery = asked.positionedIn().isPresent();
        add(found, "store", key, () -> Found.of(get(streams, key, false), floor(partition)));
        if (lag != null) {
            long position = lag.currentOffsetPosition();
            boolean complete = position >= lag.endOffsetPosition();
            long declared = complete && committedOnly ? Math.min(position, floor(partition)) : position;
            Answer stale = add(found, "stale", key, () -> Found.of(get(streams, key, true), declared));
            mark(stale, complete);
            if (byQuery) {
                Long bound = reached.get(partition);
                Answer bounded = add(found, "bounded", key, () -> query(streams, key, false, bound, declared));
                mark(bounded, complete);
            }
        }
        if (byQuery) {
            add(found, "query", key, () -> query(streams, key, true, null, floor(partition)));
        }
    }

    private static void mark(Answer answer, boolean complete) {
        if (answer != null) {
            answer.isStale = true;
            answer.seemsComplete = complete;
        }
    }

    private interface Question {
        Found ask();
    }

    private Answer add(List<Answer> found, String kind, AskedStore.Key key, Question question) {
        try {
            Found one = question.ask();
            if (one.refusal != null) {
                refusals.merge(kind + " " + one.refusal, 1, Integer::sum);
                return null;
            }
            Answer answer = new Answer(kind, key, one);
            found.add(answer);
            return answer;
        } catch (InvalidStateStoreException | IllegalStateException e) { // its task is elsewhere, or the instance closes
            refusals.merge(kind + " " + e.getClass().getSimpleName(), 1, Integer::sum);
            return null;
        }
    }

    private Object get(KafkaStreams streams, AskedStore.Key key, boolean stale) {
        StoreQueryParameters<ReadOnlyKeyValueStore<Object, Object>> query =
                StoreQueryParameters.fromNameAndType(asked.store, QueryableStoreTypes.keyValueStore())
                        .withPartition(key.partition);
        return streams.store(stale ? query.enableStaleStores() : query).get(key.object);
    }

    /** By {@code KafkaStreams.query}: of an active store, else of any store that has reached the bound, if there is one. */
    private Found query(KafkaStreams streams, AskedStore.Key key, boolean active, Long bound, long floor) {
        Class<?> type = queryType("StateQueryRequest");
        Object inStore = Newer.call(null, type, "inStore", List.of(String.class), asked.store);
        Object asks = Newer.call(null, queryType("KeyQuery"), "withKey", List.of(Object.class), key.object);
        Object request = Newer.call(
                inStore, queryType("StateQueryRequest$InStore"), "withQuery", List.of(queryType("Query")), asks);
        request = Newer.call(request, type, "withPartitions", List.of(Set.class), Set.of(key.partition));
        if (active) {
            request = Newer.call(request, type, "requireActive", List.of());
        } else if (bound != null) {
            request = Newer.call(request, type, "withPositionBound", List.of(queryType("PositionBound")), at(key.partition, bound));
        }
        Object result = Newer.call(streams, KafkaStreams.class, "query", List.of(type), request);
        Map<?, ?> results = (Map<?, ?>) Newer.call(result, queryType("StateQueryResult"), "getPartitionResults", List.of());
        Object of = results.get(key.partition);
        return (Boolean) Newer.call(of, queryType("QueryResult"), "isSuccess", List.of())
                ? new Found(Newer.call(of, queryType("QueryResult"), "getResult", List.of()), floor, of, bound, null)
                : Found.refused(String.valueOf(Newer.call(of, queryType("QueryResult"), "getFailureReason", List.of())));
    }

    private Object at(int partition, long bound) {
        Class<?> position = queryType("Position");
        Object empty = Newer.call(null, position, "emptyPosition", List.of());
        Object at = Newer.call(
                empty, position, "withComponent", List.of(String.class, int.class, long.class), input(), partition, bound);
        return Newer.call(null, queryType("PositionBound"), "at", List.of(position), at);
    }

    /** The position that an answer has, if it has one; only now, as it must not change behind the answer. */
    private void lookAtPosition(Answer answer) {
        if (answer.result != null) {
            Object position = Newer.call(answer.result, queryType("QueryResult"), "getPosition", List.of());
            Object offsets = position == null ? Map.of() : Newer.call(
                    position, queryType("Position"), "getPartitionPositions", List.of(String.class), input());
            Object offset = ((Map<?, ?>) offsets).get(answer.partition);
            answer.read = Math.max(offset == null ? 0 : (Long) offset + 1, answer.bound == null ? 0 : answer.bound + 1);
            if (offset != null && answer.kind.equals("query")) {
                reached.merge(answer.partition, (Long) offset, Math::max);
            }
        }
    }

    private String input() {
        return asked.positionedIn().orElseThrow();
    }

    private static Class<?> queryType(String name) {
        return Newer.type(QUERIES + name, name);
    }

    // --- what is known of the tasks ----------------------------------------------------------------------------

    /** Ends of the changelog's partitions; none if the brokers do not say. */
    private Map<Integer, Long> ends(Admin admin, IsolationLevel isolation) throws InterruptedException {
        String changelog = config.getProperty("application.id") + "-" + asked.store + "-changelog";
        Map<TopicPartition, OffsetSpec> wanted = IntStream.range(0, asked.partitions).boxed()
                .collect(Collectors.toMap(p -> new TopicPartition(changelog, p), p -> OffsetSpec.latest()));
        Map<Integer, Long> ends = new TreeMap<>();
        try {
            admin.listOffsets(wanted, new ListOffsetsOptions(isolation)).all().get()
                    .forEach((topic, end) -> ends.put(topic.partition(), end.offset()));
        } catch (ExecutionException e) {
            LOG.debug("No ends this time", e);
        }
        return ends;
    }

    private Map<Integer, LagInfo> lags(KafkaStreams streams) {
        try {
            return Objects.requireNonNullElse(streams.allLocalStorePartitionLags().get(asked.store), Map.of());
        } catch (RuntimeException e) { // not running, or no broker says
            LOG.debug("No lags this time", e);
            return Map.of();
        }
    }

    private static Set<Integer> standbys(KafkaStreams streams) {
        Set<Integer> partitions = new TreeSet<>();
        try {
            for (ThreadMetadata thread : streams.metadataForLocalThreads()) {
                thread.standbyTasks().forEach(task -> partitions.add(task.taskId().partition()));
            }
        } catch (IllegalStateException e) { // not running
            LOG.debug("No standbys this time", e);
        }
        return partitions;
    }

    /** Where each partition's keys are to be asked for, whenever that changes. */
    private void tellRoutes(KafkaStreams streams) {
        List<Map<String, Object>> now = new ArrayList<>();
        try {
            for (AskedStore.Key key : asked.examples().values()) {
                KeyQueryMetadata where = streams.queryMetadataForKey(asked.store, key.object, PartitionOf.known(key.partition));
                boolean isKnown = where != null && !where.equals(KeyQueryMetadata.NOT_AVAILABLE); // not so in a rebalance
                Set<HostInfo> standbys = isKnown ? where.standbyHosts() : Set.of();
                now.add(Events.fields(
                        "partition", key.partition,
                        "active", isKnown ? where.activeHost().host() : null,
                        "standby", standbys.stream().map(HostInfo::host).sorted().collect(Collectors.toList()),
                        "answers", isAnswered(streams, key)));
            }
        } catch (IllegalStateException | InvalidStateStoreException e) { // not running
            return;
        }
        if (!now.equals(routes)) {
            routes = now;
            events.emit("routes", Events.fields("store", asked.store, "routes", now));
        }
    }

    /** Whether the instance answers for a key as active. */
    private boolean isAnswered(KafkaStreams streams, AskedStore.Key key) {
        try {
            get(streams, key, false);
            return true;
        } catch (InvalidStateStoreException e) {
            return false;
        }
    }

    private void tell() {
        told = System.nanoTime();
        events.emit("answers", Events.fields(
                "store", asked.store, "given", new TreeMap<>(answers), "refused", new TreeMap<>(refusals)));
    }

    /** What a question gave. */
    private static final class Found {

        private final Object value;
        private final long floor;
        private final Object result; // of KafkaStreams.query
        private final Long bound; // that it had to have reached
        private final String refusal;

        private Found(Object value, long floor, Object result, Long bound, String refusal) {
            this.value = value;
            this.floor = floor;
            this.result = result;
            this.bound = bound;
            this.refusal = refusal;
        }

        static Found of(Object value, long floor) {
            return new Found(value, floor, null, null, null);
        }

        static Found refused(String reason) {
            return new Found(null, 0, null, null, reason);
        }
    }

    /** An answer, and what it must hold. */
    private static final class Answer {

        private final String kind;
        private final byte[] key;
        private final int partition;
        private final Object value;
        private final long floor;
        private final Object result;
        private final Long bound;
        private long ceiling = UNLIMITED;
        private long read; // 0: it has no position
        private boolean isStale; // a store was asked that need not be active and restored
        private boolean seemsComplete; // its position is the end of the changelog
        private String how = "";

        private Answer(String kind, AskedStore.Key key, Found found) {
            this.kind = kind;
            this.key = key.bytes;
            this.partition = key.partition;
            this.value = found.value;
            this.floor = found.floor;
            this.result = found.result;
            this.bound = found.bound;
        }

        private ProducerRecord<byte[], byte[]> record(AskedStore asked) {
            ProducerRecord<byte[], byte[]> record =
                    new ProducerRecord<>(asked.answers, partition, key, asked.bytes(value));
            header(record, "floor", floor);
            header(record, "ceiling", ceiling);
            header(record, "read", read);
            record.headers().add("how", how.getBytes(StandardCharsets.UTF_8));
            return record;
        }

        private static void header(ProducerRecord<byte[], byte[]> record, String name, long number) {
            record.headers().add(name, ByteBuffer.allocate(Long.BYTES).putLong(number).array());
        }
    }
}
