"""Removes what a run that was cut off left behind. Only what bears our mark is touched."""

import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient

from onceproof.lab.cluster import Cluster
from onceproof.lab.quota import clients_with_quota, set_producer_quota
from onceproof.lab.replay import left_scratch
from onceproof.model.cell import MARK, is_run_id
from onceproof.model.errors import HarnessError
from onceproof.model.matrices import BROKER
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.processes.locks import unless_in_use
from onceproof.processes.orphans import has_reaper, marked
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
    for process, folder in list(marked(runs)):
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
                shutil.rmtree(data, ignore_errors=True)
                yield str(data)
    for scratch in left_scratch():
        shutil.rmtree(scratch, ignore_errors=True)
        yield str(scratch)


def kept(runs: Path) -> list[RunFolder]:
    """Runs whose topics a sweep leaves, because they can be resumed; none that is at work."""
    at_work = [folder for process, folder in marked(runs) if has_reaper(process)]
    return [run for run in _resumable(runs) if not any(folder.is_relative_to(run.path) for folder in at_work)]


def _resumable(runs: Path) -> list[RunFolder]:
    return [run for run in map(RunFolder, sorted(runs.glob("*"))) if run.can_be_resumed]


def sweep_brokers(cluster: Cluster) -> Iterator[str]:
    """Remove groups, topics and quotas of old runs from brokers that are not ours, unless a group still has a member.

    Yields:
        What was removed, in words.

    Raises:
        HarnessError: the quotas cannot be asked for, or not be lifted.
    """
    admin = AdminClient(cluster.client())
    groups, topics = _named(admin, _is_of_old_run)
    yield from _delete_idle(admin, groups, topics)
    with TemporaryDirectory() as folder:
        log = Path(folder) / "quota.log"
        for client in filter(_is_of_old_run, clients_with_quota(cluster, CLIENT, log)):
            if not client.startswith(_prefixes_in_use(groups)):
                set_producer_quota(cluster, CLIENT, client, None, log)
                yield f"quota of {client}"


def remove_run(cluster: Cluster, run_id: str) -> None:
    """Delete groups and topics of a run from brokers that are not ours, as soon as the last member of each is missed.

    Raises:
        HarnessError: something is left.
    """
    admin = AdminClient(cluster.client())

    def is_gone() -> bool:
        groups, topics = _named(admin, lambda name: name.startswith(f"{MARK}.{run_id}."))
        for _ in _delete_idle(admin, groups, topics):
            pass
        return not groups and not topics

    try:
        await_condition(f"what run {run_id} left on brokers to go", is_gone, timeout=TIMEOUT, interval=0.2)
    except KafkaException as error:
        raise HarnessError(
            f"Not all of run {run_id} could be removed from the brokers at {cluster.bootstrap_servers}: {error}; "
            "`onceproof sweep --brokers` removes it after an hour."
        ) from error


def _named(admin: AdminClient, is_ours: Callable[[str], bool]) -> tuple[dict[str, bool], list[str]]:
    """Groups, each with whether it has members, and topics."""
    groups = {
        group.group_id: group.state != ConsumerGroupState.EMPTY
        for group in admin.list_consumer_groups(request_timeout=TIMEOUT).result(TIMEOUT).valid
        if is_ours(group.group_id)
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
            with suppress(KafkaException):  # somebody else was quicker, or it is not allowed
                future.result(TIMEOUT)
                yield f"{kind} {name}"


def _prefixes_in_use(groups: Mapping[str, bool]) -> tuple[str, ...]:
    """The prefixes of all names that belong to groups with members."""
    return tuple(f"{group}-" for group, has_members in groups.items() if has_members)


def _is_of_old_run(name: str) -> bool:
    """Whether a name on brokers belongs to a run that began at least an hour ago."""
    mark, _, rest = name.partition(".")
    run = rest.partition(".")[0]
    if mark != MARK or not is_run_id(run):
        return False
    began = datetime.strptime(run.partition("-")[0], "%Y%m%dT%H%M%S").replace(tzinfo=UTC)
    return datetime.now(UTC) - began > OLD
