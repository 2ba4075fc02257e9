package org.apache.kafka.clients.consumer;

import org.apache.kafka.clients.ClientRequest;
import org.apache.kafka.clients.ClientResponse;
import org.apache.kafka.clients.GroupRebalanceConfig;
import org.apache.kafka.clients.KafkaClient;
import org.apache.kafka.clients.LeastLoadedNode;
import org.apache.kafka.clients.consumer.CloseOptions.GroupMembershipOperation;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.internals.AutoOffsetResetStrategy;
import org.apache.kafka.clients.consumer.internals.ConsumerMetadata;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.clients.consumer.internals.ConsumerUtils;
import org.apache.kafka.clients.consumer.internals.SubscriptionState;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.internals.ClusterResourceListeners;
import org.apache.kafka.common.message.HeartbeatResponseData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupResponseData;
import org.apache.kafka.common.message.LeaveGroupResponseData.MemberResponse;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.FindCoordinatorResponse;
import org.apache.kafka.common.requests.HeartbeatResponse;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.LeaveGroupRequest;
import org.apache.kafka.common.requests.LeaveGroupResponse;
import org.apache.kafka.common.requests.SyncGroupResponse;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.mockito.invocation.InvocationOnMock;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.mockito.Answers.RETURNS_DEFAULTS;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.withSettings;

/**
 * A member that closes with {@code LEAVE_GROUP} must leave its group, also if it has unsubscribed and subscribed since
 * it joined, as a stream thread that is fenced does ({@code StreamThread.handleTaskMigrated}).
 */
@Timeout(120)
public class KafkaConsumerStaticMemberLeaveTest {

    private static final String GROUP = "group";
    private static final Node NODE = new Node(0, "unused", 1);

    private final KafkaClient client = mock(KafkaClient.class, withSettings().stubOnly().defaultAnswer(this::answer));
    private final List<ClientRequest> unanswered = new ArrayList<>();
    private final List<String> left = new ArrayList<>();
    private int joins = 0;

    @Test
    public void shouldLeaveGroupOnCloseOfStaticMember() {
        final Consumer<byte[], byte[]> consumer = joined("instance-1");

        close(consumer, GroupMembershipOperation.LEAVE_GROUP);

        assertEquals(List.of("member-1"), left);
    }

    @Test
    public void shouldLeaveGroupOnCloseOfStaticMemberThatHasUnsubscribed() {
        final Consumer<byte[], byte[]> consumer = joined("instance-1");
        consumer.unsubscribe();

        close(consumer, GroupMembershipOperation.LEAVE_GROUP);

        assertEquals(List.of("member-1"), left);
    }

    @Test
    public void shouldLeaveGroupOnCloseOfStaticMemberThatIsToJoinAgain() {
        final Consumer<byte[], byte[]> consumer = joined("instance-1");
        consumer.unsubscribe();
        consumer.subscribe(List.of("topic"));

        close(consumer, GroupMembershipOperation.LEAVE_GROUP);

        assertEquals(List.of("member-1"), left);
    }

    @Test
    public void shouldLeaveGroupOnCloseOfStaticMemberThatHasJoinedAgain() {
        final Consumer<byte[], byte[]> consumer = joined("instance-1");
        consumer.unsubscribe();
        join(consumer);

        close(consumer, GroupMembershipOperation.LEAVE_GROUP);

        assertEquals(List.of("member-2"), left);
    }

    @ParameterizedTest
    @EnumSource(names = {"DEFAULT", "REMAIN_IN_GROUP"})
    public void shouldRemainInGroupOnCloseOfStaticMemberThatHasUnsubscribed(final GroupMembershipOperation operation) {
        final Consumer<byte[], byte[]> consumer = joined("instance-1");
        consumer.unsubscribe();
        consumer.subscribe(List.of("topic"));

        close(consumer, operation);

        assertEquals(List.of(), left);
    }

    @ParameterizedTest
    @EnumSource(GroupMembershipOperation.class)
    public void shouldLeaveGroupOnceIfDynamicMemberUnsubscribesAndCloses(final GroupMembershipOperation operation) {
        final Consumer<byte[], byte[]> consumer = joined(null);
        consumer.unsubscribe();
        assertEquals(List.of("member-1"), left);

        close(consumer, operation);

        assertEquals(List.of("member-1"), left);
    }

    private static void close(final Consumer<?, ?> consumer, final GroupMembershipOperation operation) {
        consumer.close(CloseOptions.groupMembershipOperation(operation));
    }

    /** A consumer that is a member of its group, without partitions. */
    private Consumer<byte[], byte[]> joined(final String groupInstanceId) {
        final Map<String, Object> properties = new HashMap<>();
        properties.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, "unused:1");
        properties.put(ConsumerConfig.GROUP_ID_CONFIG, GROUP);
        properties.put(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG, groupInstanceId);
        properties.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false);
        properties.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        properties.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
        final ConsumerConfig config = new ConsumerConfig(properties);
        final var logContext = ConsumerUtils.createLogContext(
            config, new GroupRebalanceConfig(config, GroupRebalanceConfig.ProtocolType.CONSUMER));
        final SubscriptionState subscriptions = new SubscriptionState(logContext, AutoOffsetResetStrategy.EARLIEST);
        final Consumer<byte[], byte[]> consumer = new KafkaConsumer<>(
            logContext, Time.SYSTEM, config, new ByteArrayDeserializer(), new ByteArrayDeserializer(), client,
            subscriptions, new ConsumerMetadata(config, subscriptions, logContext, new ClusterResourceListeners()),
            List.of(new RangeAssignor()));
        join(consumer);
        return consumer;
    }

    private void join(final Consumer<?, ?> consumer) {
        final String member = "member-" + (joins + 1);
        consumer.subscribe(List.of("topic"));
        while (!consumer.groupMetadata().memberId().equals(member)) {
            consumer.poll(Duration.ofMillis(10));
        }
    }

    /** The answers of a network with one broker: the coordinator of a group that another member leads. */
    private Object answer(final InvocationOnMock call) throws Throwable {
        switch (call.getMethod().getName()) {
            case "ready":
            case "isReady":
            case "hasReadyNodes":
            case "active":
                return true;
            case "leastLoadedNode":
                return new LeastLoadedNode(NODE, true);
            case "newClientRequest":
                return new ClientRequest(
                    call.getArgument(0), call.getArgument(1), 0, "client", call.getArgument(2), true, 60_000,
                    call.getArgument(5));
            case "send":
                unanswered.add(call.getArgument(0));
                return null;
            case "poll":
                final List<ClientResponse> responses = new ArrayList<>();
                while (!unanswered.isEmpty()) {
                    responses.add(responseTo(unanswered.remove(0)));
                }
                responses.forEach(ClientResponse::onComplete);
                return responses;
            default:
                return RETURNS_DEFAULTS.answer(call);
        }
    }

    private ClientResponse responseTo(final ClientRequest sent) {
        final short version = sent.requestBuilder().latestAllowedVersion();
        final AbstractResponse body = responseTo(sent.requestBuilder().build(version));
        return new ClientResponse(sent.makeHeader(version), sent.callback(), "0", 0, 0, false, null, null, body);
    }

    private AbstractResponse responseTo(final AbstractRequest request) {
        switch (request.apiKey()) {
            case FIND_COORDINATOR:
                return FindCoordinatorResponse.prepareResponse(Errors.NONE, GROUP, NODE);
            case JOIN_GROUP:
                return new JoinGroupResponse(
                    new JoinGroupResponseData().setGenerationId(1).setProtocolType("consumer").setProtocolName("range")
                        .setLeader("leader").setMemberId("member-" + ++joins),
                    request.version());
            case SYNC_GROUP:
                return new SyncGroupResponse(new SyncGroupResponseData().setAssignment(
                    Utils.toArray(ConsumerProtocol.serializeAssignment(new Assignment(List.of())))));
            case HEARTBEAT:
                return new HeartbeatResponse(new HeartbeatResponseData());
            case LEAVE_GROUP:
                final String member = ((LeaveGroupRequest) request).members().get(0).memberId();
                left.add(member);
                return new LeaveGroupResponse(
                    new LeaveGroupResponseData().setMembers(List.of(new MemberResponse().setMemberId(member))),
                    request.version());
            default:
                throw new IllegalStateException("The consumer is not expected to send " + request);
        }
    }
}
