"""A run that is under way says so on brokers that are not ours, where any sweep then spares all that is its own.

It does so as the member of a group, which ends with the process that holds it. Between two trials no other group of the
run has one. As a program it holds the group of a run whose tasks are processes of their own.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from onceproof.lab.cluster import Cluster
from onceproof.model.cell import MARK
from onceproof.model.errors import HarnessError, OnceproofError
from onceproof.processes.process import Process, open_pipes, spawn, tail
from onceproof.processes.signals import end_by_sigterm
from onceproof.processes.waiting import await_condition

JOINED_WITHIN = 60.0  # seconds
SESSION = 20.0  # seconds after which a member that was killed is missed, less than `remove_run` waits for that
HELD = "held"  # what the program says then


def group_of(cluster: Cluster, run_id: str) -> str:
    """The group that a run holds as long as it is under way; its topic has the same name."""
    return f"{cluster.prefix}.{run_id}.alive"


@contextmanager
def alive(client: Mapping[str, Any], group: str) -> Iterator[None]:
    """Hold the group of a run until the end of a `with` block.

    Args:
        client: configuration of a client of the brokers (`Cluster.client`).
        group: its name (`group_of`).

    Raises:
        HarnessError: the brokers do not let us.
    """
    settings = {"group.id": group, "session.timeout.ms": int(SESSION * 1_000), "enable.auto.commit": False}
    consumer, ended = Consumer({**client, **settings}), Event()
    with closing(consumer):
        try:
            _create(AdminClient(dict(client)), group)
            consumer.subscribe([group])
            await_condition(
                f"the group {group} to have its member",
                lambda: _has_joined(consumer),
                timeout=JOINED_WITHIN,
                interval=0,
            )
        except (KafkaException, TimeoutError) as error:
            raise HarnessError(f"The run cannot say that it is alive, by its group {group}: {error}.") from error

        def stay() -> None:
            while not ended.is_set():
                with suppress(KafkaException):
                    consumer.poll(1.0)

        staying = Thread(target=stay, name=group, daemon=True)
        staying.start()
        try:
            yield
        finally:
            ended.set()
            staying.join()


def _create(admin: AdminClient, topic: str) -> None:
    for future in admin.create_topics([NewTopic(topic, 1)], request_timeout=JOINED_WITHIN).values():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise


def _has_joined(consumer: Consumer) -> bool:
    consumer.poll(0.2)
    return bool(consumer.assignment())


def hold(cluster: Cluster, run_id: str, *, folder: Path, owner: int) -> Process:
    """Start a process that holds the group of a run until it is terminated, or its owner is gone.

    Args:
        cluster: the brokers; the process gets the configuration of a client through a pipe.
        run_id: of the run.
        folder: takes its log; a sweep of this machine knows it by that.
        owner: the process with which it ends.

    Raises:
        HarnessError: the brokers do not let it; its log says why.
    """
    command = [sys.executable, "-m", __name__, f"-D{MARK}.mark={folder}", group_of(cluster, run_id)]
    process = spawn(command, log=folder / "alive.log", owner=owner, piped=True)
    stdin, stdout = open_pipes(process)
    with suppress(BrokenPipeError), stdin:
        json.dump(cluster.client(), stdin)
    with stdout:
        said = stdout.readline().strip()
    if said != HELD:
        process.terminate()
        raise HarnessError(f"Run {run_id} cannot say on the brokers that it is alive: {tail(process.log, 1)}")
    return process


def main() -> None:
    """Hold the group that the last argument names, on brokers whose client's configuration is the input."""
    ended = Event()
    try:
        with end_by_sigterm(), alive(json.load(sys.stdin), sys.argv[-1]):
            print(HELD, flush=True)
            ended.wait()
    except KeyboardInterrupt:
        pass
    except OnceproofError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
