"""Kafka clusters: what a trial may ask of brokers, and embedded KRaft brokers of any release, which give all of it."""

import base64
import contextlib
import shutil
import socket
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from onceproof.installation import Installation
from onceproof.lab.answer_proxy import AnswerProxy
from onceproof.lab.artifacts import broker_class_path
from onceproof.lab.class_data import ClassData
from onceproof.lab.java import Jvm, require_java
from onceproof.lab.proxies import BrokersProxy, node_name
from onceproof.lab.toxiproxy import Toxiproxy, require_toxiproxy
from onceproof.model.capability import BY_PROXY, Capability
from onceproof.model.cell import MARK
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.json_file import read_json, unwritable, write_json
from onceproof.model.release import Release
from onceproof.model.segments import COORDINATOR, OFFSETS
from onceproof.processes.cpu import CpuTime
from onceproof.processes.process import Process, spawn, tail
from onceproof.processes.waiting import await_condition

READY_TIMEOUT = 60.0
DEAD_DATA = "data-dead"
REGISTERED = "dead.registered"  # marks that there is a broker that is registered and dead
LEAST_SESSION_MS = 1_000
AT_THEIR_PROCESSES = BY_PROXY | {Capability.KILL_NODE}  # possible only where these are


class Cluster:
    """Brokers: what every part of a trial asks of them, and what only those with a capability allow.

    Code that needs a capability looks for it in `capabilities` before anything is started; brokers without it raise.
    """

    installation: Installation  # what these are run with, if they are ours, and programs next to them
    release: Release
    bootstrap_servers: str
    least_session_ms: ClassVar[int] = 6_000  # Kafka's own `group.min.session.timeout.ms`
    is_claimed: ClassVar[bool] = False  # whether the release is claimed by somebody, not started by us
    nodes: Sequence[Process] = ()  # those of ours
    proxy: BrokersProxy | None = None  # between an instance and these, if a fault needs one (BY_PROXY)

    @property
    def capabilities(self) -> frozenset[Capability]:
        """The capabilities besides being used by clients."""
        return frozenset()

    @property
    def prefix(self) -> str:
        """The beginning of all names that we give there, without the dot behind it."""
        return MARK

    def client(self) -> dict[str, Any]:
        """Configuration of a confluent-kafka client; may hold credentials, so it is never written anywhere."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "reconnect.backoff.max.ms": 200,  # brokers are near; librdkafka would wait up to 10 s
            "log_level": 2,  # what matters comes back as an exception
        }

    def java_client(self, release: Release) -> dict[str, str]:  # noqa: ARG002
        """The configuration of a Java client: our own brokers ask for no login."""
        return {"bootstrap.servers": self.bootstrap_servers}

    @property
    def leaders_move(self) -> bool:
        """Whether another broker may become leader of a partition while a trial runs."""
        return True

    def check_alive(self) -> None:
        """Raise a HarnessError if the brokers are known to be gone; those that are not ours are not watched."""

    def cpu_times(self) -> dict[str, CpuTime]:
        """The CPU time of each thread of the brokers since they were started; none of those that are not ours."""
        return {thread: time for node in self.nodes for thread, time in node.cpu_times().items()}

    def files(self) -> Mapping[str, str]:
        """Configuration files of the brokers by name; nothing of those that are not ours."""
        return {}

    def hosts(self) -> tuple[str, ...]:
        """Names of the machines of those that are not ours."""
        return ()

    def segments_folder(self) -> Path:
        """Where the brokers' data lies (READ_SEGMENTS)."""
        self._cannot(Capability.READ_SEGMENTS)

    def kill_node(self, number: int, *, orderly: bool = False) -> None:  # noqa: ARG002
        """SIGKILL a broker (from 1 on), or let it shut down, without reporting it as dead (KILL_NODE)."""
        self._cannot(Capability.KILL_NODE)

    def start_node(self, number: int) -> None:  # noqa: ARG002
        """Start a broker that was killed, over its data, and wait until it listens (KILL_NODE)."""
        self._cannot(Capability.KILL_NODE)

    def dead_broker(self) -> int:
        """Node id of a broker that is registered and dead (REFUSE_RECORDS)."""
        self._cannot(Capability.REFUSE_RECORDS)

    def _cannot(self, capability: Capability) -> NoReturn:
        raise HarnessError(
            f"The brokers at {self.bootstrap_servers} do not allow {capability.value}; those that Onceproof starts do."
        )


@dataclass(frozen=True)
class EmbeddedCluster(Cluster):
    """KRaft brokers of our own, as processes of the machine that started them; on loopback, unless it has a name.

    Another machine of the same deployment uses them, too, but has no hold of their processes: it sees no `nodes`.
    """

    least_session_ms: ClassVar[int] = LEAST_SESSION_MS

    installation: Installation = field(repr=False)
    release: Release
    bootstrap_servers: str
    folder: Path = Path()
    nodes: list[Process] = field(default_factory=list)
    killed: set[int] = field(default_factory=set)  # node ids, from 1 on
    class_data: ClassData | None = field(default=None, repr=False)
    proxy: BrokersProxy | None = field(default=None, repr=False)
    are_here: bool = True  # on this machine
    file: Path | None = None  # has `to_dict`, also when a node was started again
    owner: int | None = None  # the process with which a node that is started again dies; None: this one

    @classmethod
    def start(
        cls,
        installation: Installation,
        release: Release,
        folder: Path,
        owner: int | None = None,
        nodes: int = 1,
        *,
        link: Capability | None = None,
    ) -> "EmbeddedCluster":
        """Start brokers and wait until they serve; they die with the process `owner` (default: this one).

        Each of the `nodes` is broker and controller. Logs and data go below `folder`; brokers whose data is there
        already continue with it, but for groups and transactions: a client that had any was killed with them, or has
        ended. With a `link` (of BY_PROXY) each has a second listener, behind the proxy that it takes.

        Raises:
            UsageError: Java is missing or too old, or the release does not exist or is only claimed; or there is no
                Toxiproxy.
            HarnessError: artifacts are incomplete, or a broker did not start.
        """
        if release.is_claimed:
            raise UsageError(f"Brokers of {release} are not started: name those of which you say so with --brokers.")
        if link is Capability.CUT_LINK:
            require_toxiproxy(installation.toxiproxy)
        require_java(installation.java, release.oldest_java, f"a broker of Kafka {release}")
        jvm = Jvm.of(installation, broker_class_path(installation, release))
        host = installation.host
        free = free_ports(3 * nodes + 1, host)
        ports, controllers, behind = free[:nodes], free[nodes : 2 * nodes], free[2 * nodes : -1]
        proxy = _start_proxy(installation, link, free[-1], folder)
        goes_on = cls.has_data(folder)
        _forget_applications(folder)
        started: list[Process] = []
        try:
            links = [(port, proxy.add(node_name(n), f"{host}:{port}")) for n, port in enumerate(behind, 1) if proxy]
            files = _write_configs(folder, host, ports, controllers, links)
            if not goes_on:
                _format(jvm, files, _new_cluster_id(), owner)
            started += [_start_node(jvm, file, owner, records=True) for file in files]
            bootstrap = ",".join(f"{host}:{port}" for port in ports)
            cluster = cls(installation, release, bootstrap, folder, started, class_data=jvm.data, proxy=proxy)
            cluster._await_ready()
        except BaseException:
            for node in started:
                node.terminate(timeout=1)
            if proxy:
                proxy.stop()
            if not goes_on:
                cls.delete_data(folder)
            raise
        return cluster

    @property
    def capabilities(self) -> frozenset[Capability]:
        """All, where their processes are."""
        return frozenset(Capability) - (frozenset() if self.are_here else AT_THEIR_PROCESSES)

    @property
    def leaders_move(self) -> bool:
        """Whether there is another broker."""
        return len(self._servers) > 1

    @property
    def _servers(self) -> list[str]:
        return self.bootstrap_servers.split(",")

    def files(self) -> Mapping[str, str]:
        """Their server.properties."""
        return {file.name: file.read_text() for file in sorted(self.folder.glob("*.properties"))}

    def segments_folder(self) -> Path:
        """Where the data of each node lies."""
        return self.folder

    @staticmethod
    def has_data(folder: Path) -> bool:
        """Whether brokers that kept their data below the folder have left it."""
        return (folder / "data-1" / "meta.properties").exists()

    @staticmethod
    def delete_data(folder: Path) -> None:
        """Delete the data of brokers that are gone; their logs stay."""
        for data in folder.glob("data-*"):
            shutil.rmtree(data, ignore_errors=True)
        (folder / REGISTERED).unlink(missing_ok=True)  # with those to which it was registered

    def kill_node(self, number: int, *, orderly: bool = False) -> None:
        """SIGKILL a broker (from 1 on), or let it shut down; until `start_node` its death is not reported."""
        if not self.are_here:
            self._cannot(Capability.KILL_NODE)
        self.killed.add(number)
        if not orderly:
            self.nodes[number - 1].kill()
        self.nodes[number - 1].terminate(timeout=15)

    def start_node(self, number: int) -> None:
        """Start a broker that was killed, over its data, and wait until it listens.

        Raises:
            HarnessError: it did not start.
        """
        if number not in self.killed:
            return
        file = self.folder / f"node-{number}.properties"
        self.nodes[number - 1] = _start_node(self._jvm, file, self.owner, records=False)
        if self.file is not None:
            write_json(self.file, read_json(self.file) | self.to_dict())
        self.killed.discard(number)
        self._await_listening(self._servers[number - 1])

    @property
    def _jvm(self) -> Jvm:
        return Jvm.of(self.installation, broker_class_path(self.installation, self.release))

    def _await_listening(self, server: str) -> None:
        host, port = server.split(":")
        await_condition(
            f"the broker at {server} to listen",
            partial(_listens, (host, int(port))),
            timeout=READY_TIMEOUT,
            check=self.check_alive,
        )

    def _await_ready(self) -> None:
        for server in self._servers:
            self._await_listening(server)
        admin = AdminClient(self.client())

        def complete() -> bool:
            with contextlib.suppress(KafkaException):
                return len(admin.list_topics(timeout=2).brokers) == len(self.nodes)
            return False

        await_condition(
            f"{len(self.nodes)} brokers of Kafka {self.release} to register",
            complete,
            timeout=READY_TIMEOUT,
            check=self.check_alive,
        )

    def dead_broker(self) -> int:
        """Node id of a broker that is registered and dead; it is started for a moment, the first time.

        A topic with a replica on it works as long as one in-sync replica is enough, and refuses records when configured
        to require two (NOT_ENOUGH_REPLICAS).

        Raises:
            HarnessError: it did not register.
        """
        number = len(self._servers) + 1
        done = self.folder / REGISTERED
        if done.exists():
            return number
        jvm = self._jvm
        file = _write_dead_config(self.folder, number, self.installation.host)
        shutil.rmtree(
            self.folder / DEAD_DATA, ignore_errors=True
        )  # a process that removed it before may have been killed
        _format(jvm, [file], _cluster_id(self.folder), None)
        argv = jvm.command(("kafka.Kafka", str(file)), self.folder, "-Xmx512m")
        broker = spawn(argv, log=self.folder / "dead.log")
        admin = AdminClient(self.client())
        try:
            await_condition(
                f"a second broker of Kafka {self.release} to register",
                lambda: len(admin.list_topics(timeout=2).brokers) == number,
                timeout=READY_TIMEOUT,
                check=partial(_check_node, broker, self.release),
            )
            broker.terminate(timeout=15)
            await_condition(
                f"the second broker of Kafka {self.release} to be gone",
                lambda: len(admin.list_topics(timeout=2).brokers) == len(self.nodes),
                timeout=READY_TIMEOUT,
            )
        finally:
            broker.kill()
            broker.terminate(timeout=5)
        done.touch()
        return number

    def check_alive(self) -> None:
        """Raise a HarnessError if a broker has ended that was not killed by `kill_node`."""
        for number, node in enumerate(self.nodes, 1):
            if number not in self.killed:
                _check_node(node, self.release)
        if self.proxy:
            self.proxy.check_alive()

    def stop(self, keep_data: bool = False) -> None:
        """Stop the brokers and delete their data, unless it is to be kept; the logs stay."""
        if self.class_data is not None and self.class_data.records:
            for node in self.nodes:
                node.terminate(timeout=15)
            self.class_data.keep()
        for node in self.nodes:
            # Written data survives it, and recovery takes no longer than an orderly shutdown.
            node.kill()
            node.terminate(timeout=5)
        if self.proxy:
            self.proxy.stop()
        if not keep_data:
            self.delete_data(self.folder)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, from which another process can reach and stop the brokers."""
        return {
            "release": str(self.release),
            "host": socket.gethostname(),
            "bootstrap_servers": self.bootstrap_servers,
            "folder": str(self.folder),
            "nodes": [{"pid": n.pid, "started": n.started, "boot": n.boot, "log": str(n.log)} for n in self.nodes],
        }

    @classmethod
    def from_dict(
        cls, installation: Installation, data: dict[str, Any], file: Path | None = None, owner: int | None = None
    ) -> "EmbeddedCluster":
        """Read what `to_dict` wrote, into this file if any, on whatever machine."""
        release, folder = Release.parse(data["release"]), Path(data["folder"])
        servers, nodes = data["bootstrap_servers"], _nodes(data) if _are_here(data) else []
        return cls(installation, release, servers, folder, nodes, are_here=_are_here(data), file=file, owner=owner)


def _start_proxy(installation: Installation, link: Capability | None, port: int, folder: Path) -> BrokersProxy | None:
    """The proxy that a link takes; its API listens on this port, if it has one."""
    if link is Capability.CUT_LINK:
        return Toxiproxy.start(installation.toxiproxy, port, folder / "toxiproxy.log")
    return AnswerProxy.start(folder / "answer-proxy.log") if link is Capability.LOSE_ANSWER else None


def may_serve(data: Mapping[str, Any]) -> bool:
    """Whether the brokers of `to_dict` live, or are on another machine, where their processes cannot be seen."""
    return not _are_here(data) or any(node.alive() for node in _nodes(data))


def _are_here(data: Mapping[str, Any]) -> bool:
    return bool(data.get("host", socket.gethostname()) == socket.gethostname())


def _nodes(data: Mapping[str, Any]) -> list[Process]:
    return [Process.attach(n["pid"], n["started"], Path(n["log"]), n.get("boot")) for n in data["nodes"]]


def _forget_applications(folder: Path) -> None:
    """Delete what the brokers' data says of groups and transactions.

    Brokers would wait for members that were killed until their sessions expire (45 s), and positions and transactions
    of a trial that was cut off would be taken for those of the next attempt.
    """
    for log in (OFFSETS, COORDINATOR):
        for partition in folder.glob(f"data-*/{log}-*"):
            shutil.rmtree(partition)


def _start_node(jvm: Jvm, file: Path, owner: int | None, *, records: bool) -> Process:
    main = ("kafka.Kafka", str(file))
    argv = jvm.command(main, file.parent, "-Xms256m", "-Xmx1g", records=records)
    return spawn(argv, log=file.with_suffix(".log"), owner=owner)


def _check_node(node: Process, release: Release) -> None:
    if not node.alive():
        raise HarnessError(f"A broker of Kafka {release} {node.describe_end()}")


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Ports that are free now, of one of this machine's addresses.

    Raises:
        UsageError: it is none of them.
    """
    with contextlib.ExitStack() as stack:
        ports = []
        for _ in range(count):
            bound = stack.enter_context(socket.socket())
            try:
                bound.bind((host, 0))
            except OSError as error:
                raise UsageError(
                    f"ONCEPROOF_HOST={host}: brokers cannot listen there ({error.strerror}): name this machine as "
                    "others of the deployment know it, or leave it out if all is on one machine."
                ) from error
            ports.append(bound.getsockname()[1])
        return ports


def _listens(address: tuple[str, int]) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(address) == 0


def _write_configs(
    folder: Path, host: str, ports: list[int], controllers: list[int], links: Sequence[tuple[int, str]]
) -> list[Path]:
    """One server.properties per node; `links` are ports of further listeners, and where a proxy listens for each."""
    voters = ",".join(f"{n}@{host}:{port}" for n, port in enumerate(controllers, 1))
    replicas = min(len(ports), 3)
    in_sync = max(1, replicas - 1)
    files = []
    for number, (port, controller) in enumerate(zip(ports, controllers, strict=True), 1):
        config = {
            "process.roles": "broker,controller",
            "node.id": number,
            "controller.quorum.voters": voters,
            "listeners": f"PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{host}:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LINK:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": folder / f"data-{number}",
            "auto.create.topics.enable": "false",
            "default.replication.factor": replicas,
            "min.insync.replicas": in_sync,
            "offsets.topic.replication.factor": replicas,
            "offsets.topic.num.partitions": 4,  # few, because one node opens them all
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": in_sync,
            "transaction.state.log.num.partitions": 4,
            # A group starts at once with its first member; the trial itself decides who joins when.
            "group.initial.rebalance.delay.ms": 0,
            # An instance that dies or stays silent may be missed sooner than after Kafka's 6 seconds.
            "group.min.session.timeout.ms": LEAST_SESSION_MS,
            # The same for groups of the streams protocol (KIP-1071); releases that do not know it ignore these.
            "group.streams.initial.rebalance.delay.ms": 0,
            "group.streams.min.session.timeout.ms": LEAST_SESSION_MS,
            "group.streams.min.heartbeat.interval.ms": 200,
            # A quota is measured over 3 seconds, not over 10, so that a producer that exceeds it is throttled soon.
            "quota.window.num": 3,
            # The broker looks for timed-out transactions every second, not every 10 seconds.
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000,
            # If one of several dies, it is missed after 3 seconds, not after 9.
            **({"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500} if replicas > 1 else {}),
        }
        if links:  # a client that uses it is sent to where the proxy listens, never past it
            behind, advertised = links[number - 1]
            config["listeners"] = f"{config['listeners']},LINK://{host}:{behind}"
            config["advertised.listeners"] = f"{config['advertised.listeners']},LINK://{advertised}"
        file = folder / f"node-{number}.properties"
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{name}={_escape(value)}\n" for name, value in config.items()))
        except OSError as error:
            raise unwritable(error, file) from error
        files.append(file)
    return files


def _write_dead_config(folder: Path, number: int, host: str) -> Path:
    """server.properties of the broker that will be dead: as the first node's, but it is no controller."""
    (port,) = free_ports(1, host)
    changed = {
        "process.roles": "broker",
        "node.id": number,
        "listeners": f"PLAINTEXT://{host}:{port}",
        "advertised.listeners": f"PLAINTEXT://{host}:{port}",
        "log.dirs": folder / DEAD_DATA,
    }
    model, file = folder / "node-1.properties", folder / "dead.properties"
    kept = [line for line in model.read_text().splitlines(keepends=True) if line.partition("=")[0] not in changed]
    lines = [f"{name}={_escape(value)}\n" for name, value in changed.items()]
    file.write_text("".join([*kept, *lines]))
    return file


def _new_cluster_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A", 1)


def _cluster_id(folder: Path) -> str:
    """The id with which the first node's data was prepared."""
    lines = (folder / "data-1" / "meta.properties").read_text().splitlines()
    return next(line.partition("=")[2] for line in lines if line.startswith("cluster.id="))


def _format(jvm: Jvm, files: list[Path], cluster_id: str, owner: int | None) -> None:
    """Prepare the data folders, as KRaft requires (`kafka-storage format`)."""
    for file in files:
        main = ("kafka.tools.StorageTool", "format", "-t", cluster_id, "-c", str(file))
        _format_one(jvm.command(main, file.parent, "-Xmx512m"), file, owner)


def _format_one(argv: list[str], file: Path, owner: int | None) -> None:
    log = file.with_suffix(".format.log")
    process = spawn(argv, log=log, owner=owner)
    try:
        await_condition(
            f"the data folder of {file.stem} to be prepared",
            partial(_has_ended, process),
            timeout=READY_TIMEOUT,
        )
    finally:
        process.terminate(timeout=1)
    if process.poll():
        raise HarnessError(
            f"The data folder of {file} could not be prepared (exit code {process.poll()}); {log} ends with:\n"
            f"{tail(log)}"
        )


def _has_ended(process: Process) -> bool:
    return process.poll() is not None


def _escape(value: object) -> str:
    """A value of a properties file, which Java reads as Latin-1 with escapes."""
    text = str(value).replace("\\", "\\\\")
    return "".join(c if c.isascii() else "".join(f"\\u{u:04x}" for u in _utf16(c)) for c in text)


def _utf16(character: str) -> list[int]:
    encoded = character.encode("utf-16-be")
    return [int.from_bytes(encoded[i : i + 2]) for i in range(0, len(encoded), 2)]
