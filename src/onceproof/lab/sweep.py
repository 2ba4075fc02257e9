"""Removes what a run that was cut off left behind. Only what bears our mark is touched."""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient

from onceproof.lab.cluster import Cluster
from onceproof.lab.quota import clients_with_quota, set_producer_quota
from onceproof.lab.replay import find_scratch
from onceproof.model.cell import is_run_id
from onceproof.model.errors import HarnessError
from onceproof.model.matrices import BROKER
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.processes.locks import unless_in_use
from onceproof.processes.orphans import find_marked, has_reaper
from onceproof.processes.waiting import await_condition

TIMEOUT = 30.0
CLIENT = Release.parse(BROKER)  # of the Java clients that ask for quotas
OLD = timedelta(hours=1)  # a run that is younger may be at work on another machine
STARTING = 60.0  # seconds within which a process that uses new data may be about to start
# Data of brokers (shared by a run, of a trial, of a bisection, of a search, of plants), and state of instances.
PLACES = (
    "clusters/*/data-*",
    "trials/*/cluster/data-*",
    "cluster/data-*",
    "cluster-*/data-*",
    "planted/clusters/*/data-*",
    "trials/*/state",
    "planted/trials/*/state",
)


def sweep(runs: Path, *, topics: bool = False) -> Iterator[str]:
    """Kill processes of these runs that have no reaper, then delete data of brokers and state that is not in use.

    And what replays have left in memory. In use is what belongs to a process with a reaper, or to a trial that is
    driven. The `topics` of runs that can be resumed stay, unless they are asked for.

    Yields:
        What was removed, in words.
    """
    in_use = []
    for process, folder in list(find_marked(runs)):
        if has_reaper(process):
            in_use.append(folder)
        else:
            with suppress(psutil.NoSuchProcess):
                process.kill()
            yield f"process {process.pid}"
    needed = () if topics else tuple(run.path / "clusters" for run in _resumable(runs))
    for data in chain.from_iterable(runs.glob(f"*/{place}") for place in PLACES):
        if any(data.is_relative_to(clusters) for clusters in needed):
            continue
        young = time.time() - data.stat().st_mtime < STARTING
        if young or any(folder.is_relative_to(data.parent) for folder in in_use):
            continue
        with unless_in_use(data.parent) as unused:
            if unused:
                yield remove_folder(data)
    for scratch in find_scratch():
        yield remove_folder(scratch)


def remove_folder(folder: Path) -> str:
    """Remove a folder; returns what was removed, in words."""
    shutil.rmtree(folder, ignore_errors=True)
    is_left = folder.exists()
    return f"what could be of {folder}: the rest is sealed, or of another user" if is_left else str(folder)


def find_kept(runs: Path) -> list[RunFolder]:
    """Runs whose topics a sweep leaves, because they can be resumed; none that is at work."""
    at_work = [folder for process, folder in find_marked(runs) if has_reaper(process)]
    return [run for run in _resumable(runs) if not any(folder.is_relative_to(run.path) for folder in at_work)]


def _resumable(runs: Path) -> list[RunFolder]:
    return [run for run in map(RunFolder, sorted(runs.glob("*"))) if run.can_be_resumed]


@dataclass(frozen=True)
class Left:
    """The leftovers of runs that are over on brokers that are not ours."""

    groups: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()  # that have a quota

    def __iter__(self) -> Iterator[str]:
        for kind, names in (("group", self.groups), ("topic", self.topics), ("quota of", self.clients)):
            yield from (f"{kind} {name}" for name in names)

    def of_both(self, other: "Left") -> "Left":
        """The part that is in another one, too."""
        mine, theirs = astuple(self), astuple(other)
        return Left(*(tuple(name for name in one if name in two) for one, two in zip(mine, theirs, strict=True)))


def find_left_on(cluster: Cluster) -> Left:
    """The groups, topics and quotas with our prefix, of runs of an hour ago and before, of which no group has a member.

    Raises:
        HarnessError: the brokers do not answer all, or the quotas cannot be asked for.
    """
    groups, topics = _list_named(AdminClient(cluster.client()), lambda name: run_of(name, cluster.prefix) is not None)
    with TemporaryDirectory() as folder:
        clients = clients_with_quota(cluster, CLIENT, Path(folder) / "quota.log")
    return select_left(cluster.prefix, groups, topics, clients, datetime.now(UTC))


def select_left(
    prefix: str, groups: Mapping[str, bool], topics: Iterable[str], clients: Iterable[str], now: datetime
) -> Left:
    """The same of names with a prefix: groups, each with whether it has members, topics, clients that have a quota."""
    alive = {run_of(group, prefix) for group, has_members in groups.items() if has_members}

    def over(names: Iterable[str]) -> tuple[str, ...]:
        runs = ((name, run_of(name, prefix)) for name in sorted(names))
        return tuple(name for name, run in runs if run and run not in alive and now - parse_begin(run) > OLD)

    return Left(over(groups), over(topics), over(clients))


def sweep_brokers(cluster: Cluster, found: Left) -> Iterator[str]:
    """Remove what was found, and is still left.

    Yields:
        What was removed, in words.

    Raises:
        HarnessError: the brokers do not answer all, or the quotas cannot be asked for, or not be lifted.
    """
    left = found.of_both(find_left_on(cluster))
    admin = AdminClient(cluster.client())
    yield from _delete_idle(admin, dict.fromkeys(left.groups, False), left.topics)
    with TemporaryDirectory() as folder:
        for client in left.clients:
            set_producer_quota(cluster, CLIENT, client, None, Path(folder) / "quota.log")
            yield f"quota of {client}"


def remove_run(cluster: Cluster, run_id: str) -> None:
    """Delete groups and topics of a run from brokers that are not ours, as soon as the last member of each is missed.

    Raises:
        HarnessError: something is left.
    """
    admin = AdminClient(cluster.client())

    def is_gone() -> bool:
        groups, topics = _list_named(admin, lambda name: name.startswith(f"{cluster.prefix}.{run_id}."))
        for _ in _delete_idle(admin, groups, topics):
            pass
        return not groups and not topics

    try:
        await_condition(f"what run {run_id} left on brokers to go", is_gone, timeout=TIMEOUT, interval=0.2)
    except KafkaException as error:
        raise HarnessError(
            f"Not all of run {run_id} could be removed from the brokers at {cluster.bootstrap_servers}: {error}; "
            "`onceproof system sweep --brokers` removes it after an hour."
        ) from error


def _list_named(admin: AdminClient, is_ours: Callable[[str], bool]) -> tuple[dict[str, bool], list[str]]:
    """Groups, each with whether it has members, and topics."""
    listed = admin.list_consumer_groups(request_timeout=TIMEOUT).result(TIMEOUT)
    if listed.errors:  # a group that is not seen may have a member
        raise HarnessError(f"Not all brokers say which groups there are: {listed.errors[0]}; call it again.")
    groups = {
        group.group_id: group.state != ConsumerGroupState.EMPTY for group in listed.valid if is_ours(group.group_id)
    }
    return groups, list(filter(is_ours, admin.list_topics(timeout=TIMEOUT).topics))


def _delete_idle(admin: AdminClient, groups: Mapping[str, bool], topics: Iterable[str]) -> Iterator[str]:
    """Delete groups without members, and topics but those of the others; yields what was removed."""
    in_use = _prefixes_in_use(groups)
    for kind, names, delete in (
        ("group", [group for group, has_members in groups.items() if not has_members], admin.delete_consumer_groups),
        ("topic", [topic for topic in topics if not topic.startswith(in_use)], admin.delete_topics),
    ):
        for name, future in (delete(sorted(names)) if names else {}).items():
            with suppress(KafkaException):  # another process was quicker, or it is not allowed
                future.result(TIMEOUT)
                yield f"{kind} {name}"


def _prefixes_in_use(groups: Mapping[str, bool]) -> tuple[str, ...]:
    """The prefixes of all names that belong to groups with members."""
    return tuple(f"{group}-" for group, has_members in groups.items() if has_members)


def run_of(name: str, prefix: str) -> str | None:
    """The run to which a name on brokers belongs; None if it does not have our prefix, the id of a run behind it."""
    ours = f"{prefix}."
    run = name.removeprefix(ours).partition(".")[0]
    return run if name.startswith(ours) and is_run_id(run) else None


def parse_begin(run_id: str) -> datetime:
    """When a run was asked for, as its id says."""
    return datetime.strptime(run_id.partition("-")[0], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
