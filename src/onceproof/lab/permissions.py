"""The permissions that users need on their own brokers, found out by doing it, under our prefix."""

import secrets
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed

from onceproof.lab.cluster import Cluster
from onceproof.lab.quota import set_producer_quota
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.release import Release

TIMEOUT = 10.0
TOPIC, GROUP, TRANSACTION = "--topic", "--group", "--transactional-id"
REFUSED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: TOPIC,
    KafkaError.GROUP_AUTHORIZATION_FAILED: GROUP,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: TRANSACTION,
}
NOT_YET = {  # what is answered right after something was created
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}
ABSENT = {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.GROUP_ID_NOT_FOUND}  # for deleting what is not there


@dataclass(frozen=True, order=True)
class Permission:
    """An operation on a kind of resource, in the words of `kafka-acls`; Describe is implied by all that is here."""

    resource: str
    operation: str


NEEDED = (
    Permission(TOPIC, "Create"),
    Permission(TOPIC, "Delete"),
    Permission(TOPIC, "Write"),
    Permission(TOPIC, "Read"),
    Permission(GROUP, "Read"),
    Permission(GROUP, "Delete"),
    Permission(TRANSACTION, "Write"),
)


def check_permissions(cluster: Cluster, user: str | None) -> None:
    """Check that a trial may do all that every trial does.

    Raises:
        UsageError: it may not; names what is missing, as one command.
        HarnessError: the brokers failed.
    """
    found = find_missing(cluster)
    if found.missing:
        left = f"the topic {found.left} was created and cannot be deleted; " if found.left else ""
        commands = " and ".join(acl_commands(cluster, user, found.missing))
        raise UsageError(
            f"The brokers at {cluster.bootstrap_servers} do not allow what a trial does; {left}allow it: {commands}"
        )


def acl_commands(cluster: Cluster, user: str | None, missing: Sequence[Permission]) -> list[str]:
    """The commands that give what is missing, one for each kind of resource."""
    of_ours = (f"{cluster.prefix}.", "--resource-pattern-type", "prefixed")
    return [
        _command(
            cluster,
            user,
            [permission.operation for permission in missing if permission.resource == resource],
            resource,
            *of_ours,
        )
        for resource in dict.fromkeys(permission.resource for permission in missing)
    ]


def _command(cluster: Cluster, user: str | None, operations: Iterable[str], *resource: str) -> str:
    words = ["kafka-acls.sh", "--bootstrap-server", cluster.bootstrap_servers.split(",")[0]]
    words += ["--command-config", "ADMIN.properties", "--add", "--allow-principal", f"User:{user or 'NAME'}"]
    for operation in operations:
        words += ["--operation", operation]
    return shlex.join([*words, *resource])


def check_quotas(cluster: Cluster, user: str | None, release: Release) -> None:
    """Check that a trial may set quotas, by lifting one that was never set.

    Args:
        cluster: the brokers.
        user: the name by which they know us.
        release: of the Java clients that ask for it.

    Raises:
        UsageError: it may not; names the command that allows it.
    """
    with TemporaryDirectory() as folder:
        try:
            set_producer_quota(cluster, release, f"{cluster.prefix}.preflight", None, Path(folder) / "quota.log")
        except HarnessError as error:
            command = _command(cluster, user, ("AlterConfigs", "DescribeConfigs"), "--cluster")
            raise UsageError(
                f"The brokers at {cluster.bootstrap_servers} do not let a trial set a quota: {error} "
                f"Allow it, or leave such scenarios out: {command}"
            ) from error


@dataclass(frozen=True)
class Found:
    """The missing permission, and the topic that was created and could not be deleted again, if there is one."""

    missing: tuple[Permission, ...]
    left: str | None


def find_missing(cluster: Cluster) -> Found:
    """The missing permissions of all that every trial does.

    Each is tried, on a topic, a group and a transactional id that bear our prefix; the topic is deleted again. If it
    cannot be created, it cannot be written, read or deleted either, so these count as missing, too.

    Raises:
        HarnessError: the brokers failed in another way.
    """
    probe = _Probe(cluster)
    try:
        allowed = probe.find_allowed()
    except KafkaException as error:
        raise HarnessError(f"The brokers at {cluster.bootstrap_servers} failed: {error}.") from error
    finally:
        left = probe.clean()
    return Found(tuple(permission for permission in NEEDED if permission not in allowed), left)


def _comes_too_early(error: BaseException) -> bool:
    return isinstance(error, KafkaException) and error.args[0].code() in NOT_YET


class _Probe:
    """Things of our own on which permissions are tried."""

    def __init__(self, cluster: Cluster) -> None:
        """Connect."""
        self._client = cluster.client()
        self._admin = AdminClient(self._client)
        self._name = f"{cluster.prefix}.{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}.preflight"
        self._exists = False

    def find_allowed(self) -> set[Permission]:
        """The permissions that are there, of all that every trial needs."""
        tried = {
            Permission(GROUP, "Delete"): self._is_allowed(self._delete_group),
            Permission(GROUP, "Read"): self._is_allowed(self._commit, of=GROUP),
            Permission(TRANSACTION, "Write"): self._is_allowed(self._transact),
            Permission(TOPIC, "Create"): self._is_allowed(self._create),
        }
        if self._exists:
            tried[Permission(TOPIC, "Write")] = self._is_allowed(self._write)
            tried[Permission(TOPIC, "Read")] = self._is_allowed(self._read)
            tried[Permission(TOPIC, "Delete")] = self._is_allowed(self._delete_topic)
        return {permission for permission, is_allowed in tried.items() if is_allowed}

    def clean(self) -> str | None:
        """Delete the topic, if that was not done; returns its name if it cannot be."""
        with suppress(KafkaException):
            if self._exists:
                self._delete_topic()
        return self._name if self._exists else None

    def _is_allowed(self, attempt: Callable[[], None], of: str | None = None) -> bool:
        """Whether it is allowed; a refusal that concerns a kind of resource other than `of` says nothing about it."""
        early = retry_if_exception(_comes_too_early)
        try:
            Retrying(retry=early, stop=stop_after_delay(TIMEOUT), wait=wait_fixed(0.1), reraise=True)(attempt)
        except KafkaException as error:
            kind = REFUSED.get(error.args[0].code())
            if kind is None:
                raise
            return of is not None and kind != of
        return True

    def _create(self) -> None:
        for future in self._admin.create_topics([NewTopic(self._name, 1)]).values():
            future.result(TIMEOUT)
        self._exists = True

    def _delete_topic(self) -> None:
        for future in self._admin.delete_topics([self._name]).values():
            future.result(TIMEOUT)
        self._exists = False

    def _delete_group(self) -> None:
        with _absent():
            for future in self._admin.delete_consumer_groups([self._name]).values():
                future.result(TIMEOUT)

    def _write(self) -> None:
        refused: list[KafkaError] = []
        producer = Producer({**self._client, "acks": "all", "delivery.timeout.ms": int(TIMEOUT * 1_000)})
        producer.produce(self._name, b"", on_delivery=lambda error, _: refused.append(error) if error else None)
        producer.flush(TIMEOUT)
        _raise_first(refused)

    @contextmanager
    def _consumer(self) -> Iterator[Consumer]:
        consumer = Consumer(
            {**self._client, "group.id": self._name, "enable.auto.commit": False, "enable.partition.eof": True}
        )
        with closing(consumer):
            yield consumer

    def _read(self) -> None:
        with self._consumer() as consumer:
            consumer.assign([TopicPartition(self._name, 0, 0)])
            messages = consumer.consume(1, timeout=TIMEOUT)
            errors = [message.error() for message in messages if message.error()]
            _raise_first([error for error in errors if error.code() != KafkaError._PARTITION_EOF])

    def _commit(self) -> None:
        # The group is checked first, so a nonexistent topic will do, and no group is created.
        with _absent(), self._consumer() as consumer:
            try:
                places = consumer.commit(offsets=[TopicPartition(f"{self._name}-absent", 0, 0)], asynchronous=False)
            except KafkaException as error:
                if error.args[0].code() == KafkaError._WAIT_COORD and (why := consumer.poll(1.0)) is not None:
                    _raise_first(list(filter(None, [why.error()])))  # a user without any right to the group finds none
                raise
            _raise_first([place.error for place in places if place.error is not None])

    def _transact(self) -> None:
        producer = Producer({**self._client, "transactional.id": self._name})
        producer.init_transactions(TIMEOUT)


@contextmanager
def _absent() -> Iterator[None]:
    """Ignore that something is not there."""
    try:
        yield
    except KafkaException as error:
        if error.args[0].code() not in ABSENT:
            raise


def _raise_first(errors: list[KafkaError]) -> None:
    if errors:
        raise KafkaException(errors[0])
