"""Instances: processes that run the application under test, and speak its protocol (streams_app/README.md)."""

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from onceproof.installation import Installation
from onceproof.lab.applications import application_class_path
from onceproof.lab.artifacts import streams_class_path
from onceproof.lab.class_data import ClassData
from onceproof.lab.java import Jvm, java_of
from onceproof.lab.threads import dump_threads
from onceproof.model.client_properties import java_options
from onceproof.model.errors import HarnessError, KafkaFailedError, OnceproofError
from onceproof.model.json_file import unwritable
from onceproof.model.phrases import NO_ACCESS, NO_LIBRARY, UNEQUAL
from onceproof.model.release import Release
from onceproof.model.timeline import Event, Timeline
from onceproof.processes.cpu import CpuTime, check_not_starved
from onceproof.processes.process import Process, open_pipes, spawn
from onceproof.processes.waiting import await_condition
from onceproof.scenarios.base import HALTS
from onceproof.scenarios.declared import HEAP, PHASE
from onceproof.scenarios.liveness import RUNS_ON, death_text, find_explained_deaths

START_TIMEOUT = 60.0
LARGEST_FILE = 2**31  # bytes that a user application may write into a file, be it its log
JAVA_VERSION = "onceproof.java"  # configuration: the feature version of the Java that it runs on
NATIVE = "onceproof.native.objects"  # configuration: whether the native objects of RocksDB are counted
LOG_TRANSACTIONS = "onceproof.log.transactions"  # configuration: the level at which requests of transactions are logged


def thread_died(uncaught: Event) -> OnceproofError:
    """The meaning of the event `uncaught` of an instance: Kafka failed, or something it needs from us was missing."""
    said = " ".join([uncaught["exception"], str(uncaught["message"]), *uncaught["causes"]])
    if refused := NO_ACCESS.pattern.search(said):
        return HarnessError(
            f"The brokers refused {uncaught['source']} ({refused[1]}: {uncaught['message']}): "
            "`onceproof system preflight` says what they must allow."
        )
    if NO_LIBRARY.pattern.search(said):
        reason = str(uncaught["message"]).rpartition(": ")[2]
        return HarnessError(
            f"{uncaught['source']} could not load RocksDB's library ({reason}), which it unpacks next to its state: "
            "set ONCEPROOF_HOME to a folder from which programs may be run (not mounted noexec)."
        )
    if unequal := UNEQUAL.pattern.search(said):
        topics = unequal["topics"].strip("{}")
        return HarnessError(
            "The topology takes records of one key from topics that must have equally many partitions "
            f"({topics}): correct `partitions` in onceproof.toml."
        )
    return KafkaFailedError("thread-died", uncaught["source"], RUNS_ON, death_text(uncaught))


class InstanceProcess:
    """One process running the application under test.

    What it prints goes to the timeline immediately; the last event of each kind is kept in `last`.
    """

    reports = True  # what happens in it

    def __init__(self, name: str, release: Release, log: Path, timeline: Timeline, installation: Installation) -> None:
        """Prepare an instance; `log` takes its log."""
        self.name = name
        self.release = release
        self.log = log
        self._replaces_threads = False
        self.last: dict[str, Event] = {}
        self._timeline, self._installation = timeline, installation
        self._process: Process | None = None
        self._listener: threading.Thread | None = None
        self._class_data: ClassData | None = None
        self._is_of_people = False
        self.plant: str | None = None  # the bug that is put into its release; set before it is started

    def start(self, topology: str, app: dict[str, Any], config: dict[str, str]) -> None:
        """Start the process; returns at once.

        Args:
            topology: name of the topology in the application's jar.
            app: the topology's own settings.
            config: Kafka Streams configuration, and ours (`onceproof.*`). May hold credentials, so it goes through a
                pipe.

        Raises:
            HarnessError: the jar or the release's artifacts are missing, or the process cannot be started.
        """
        self._replaces_threads = app.get("on.uncaught") == "REPLACE_THREAD"
        version = int(config.get(JAVA_VERSION, 0))
        installation = replace(self._installation, java=java_of(self._installation, version))
        if not installation.application_jar.is_file():
            raise HarnessError(f"{installation.application_jar} is missing: type `make setup`.")
        scratch = Path(config["state.dir"]) / "tmp"
        try:
            scratch.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(error, scratch) from error
        jars = [installation.application_jar, *streams_class_path(installation, self.release)]
        agent = [f"plant={self.plant}"] if self.plant else []
        agent += ["native"] if config.get(NATIVE) == "true" else []
        agent += ["halt"] if config.get(HALTS) == "true" else []
        # An altered class must neither come from the archive nor get into it.
        jvm = Jvm(installation.java, jars) if agent else Jvm.of(installation, jars)
        self._class_data = jvm.data
        folder = app.get("application")
        self._is_of_people = folder is not None
        of_people = self._of_people(folder, config) if folder else []
        # RocksDB unpacks its library there and leaves it if the JVM is killed: it is removed with the state.
        altered = (f"-javaagent:{installation.agent_jar}={','.join(agent)}",) if agent else ()
        logging = f"-D{LOG_TRANSACTIONS}={config.get(LOG_TRANSACTIONS, 'INFO')}"
        options = (
            f"-Xmx{config.get(HEAP, '512m')}",
            f"-Djava.io.tmpdir={scratch}",
            logging,
            *altered,
            *java_options(config),
        )
        main = ("onceproof.streams.Main",)
        # Their classes are not recorded.
        command = jvm.beside(of_people).command(main, self.log.parent, *options, records=not of_people)
        self._process = spawn(command, log=self.log, piped=True, user_code=self._is_of_people)
        self._timeline.add("driver", "instance", name=self.name, action="started", release=str(self.release))
        self._send(json.dumps({"topology": topology, "app": app, "config": config}))
        self._listener = threading.Thread(target=self._listen, name=f"listen-{self.name}", daemon=True)
        self._listener.start()

    def _of_people(self, folder: str, config: dict[str, str]) -> list[Path]:
        return application_class_path(self._installation, folder, self.release, int(config.get(PHASE, 1)))

    def _listen(self) -> None:
        """Take in what the process prints until it ends."""
        _, stdout = open_pipes(self.process)
        for line in stdout:
            try:
                event = {**json.loads(line), "source": self.name}
                kind = event["event"]
            except (ValueError, KeyError, TypeError):
                event = {
                    "t": int(time.time() * 1000),
                    "source": self.name,
                    "event": "noise",
                    "line": line.strip(),
                }
                kind = "noise"
            self._timeline.append(event)
            self.last[kind] = event

    @property
    def process(self) -> Process:
        """The process that was started."""
        if self._process is None:
            raise HarnessError(f"{self.name} was not started.")
        return self._process

    def _send(self, line: str) -> None:
        stdin, _ = open_pipes(self.process)
        try:
            stdin.write(line + "\n")
            stdin.flush()
        except OSError:
            self.check_alive()

    def check_alive(self) -> None:
        """Check that the instance is still running; one that replaces failed threads is.

        Raises:
            KafkaFailedError: a stream thread died.
            HarnessError: it could not load RocksDB's library, refused its instructions, or ended unasked.
        """
        error = self.last.get("error")
        if error is not None:
            said = error["message"]
            raise HarnessError(f"{self.name} (Kafka Streams {self.release}) failed: {said} Its log is {self.log}.")
        self._check_threads()
        if not self.process.alive():
            raise HarnessError(f"{self.name} (Kafka Streams {self.release}) {self.process.describe_end()}")

    def _check_threads(self) -> None:
        """Check that no thread of it died, other than those that are replaced or may die."""
        if "uncaught" in self.last:
            died = thread_died(self.last["uncaught"])
            may_die = self._replaces_threads or self.last["uncaught"] in find_explained_deaths(self._timeline.events)
            if isinstance(died, HarnessError) or not may_die:
                raise died

    @property
    def state(self) -> str:
        """The last `KafkaStreams.State` it reported, or NOT_STARTED."""
        return str(self.last.get("state", {}).get("to", "NOT_STARTED"))

    @property
    def threads(self) -> list[dict[str, Any]]:
        """Its StreamThreads with their tasks, as last reported."""
        return list(self.last.get("assignment", {}).get("threads", []))

    @property
    def processed(self) -> int:
        """Records it has processed since it started."""
        return sum(p["count"] for p in self.last.get("progress", {}).get("processed", []))

    def tasks(self, task_type: str) -> list[str]:
        """Tasks that its threads hold as `active` or `standby`."""
        return sorted(task for thread in self.threads for task in thread[task_type])

    def await_hello(self) -> dict[str, Any]:
        """Wait for the greeting and check that the loaded release is the cell's.

        Returns:
            release, streams_version, streams_commit, clients_version, clients_commit, java, plant (null as a rule).

        Raises:
            HarnessError: it did not start, loaded another release, or has a plant other than it should.
        """
        self.await_(lambda: "hello" in self.last, f"{self.name} to start", START_TIMEOUT)
        if self._is_of_people:
            self.process.limit_files(LARGEST_FILE)
        hello = self.last["hello"]
        loaded = (hello["streams_version"], hello["clients_version"])
        commit = hello["streams_commit"] or ""
        if loaded != (self.release.version, self.release.version) or not commit.startswith(self.release.commit):
            raise HarnessError(
                f"{self.name} loaded kafka-streams {loaded[0]} (commit {commit or 'unknown'}) and kafka-clients "
                f"{loaded[1]}, but the cell asks for {self.release}: the class path is wrong."
            )
        wanted = ("streams_version", "streams_commit", "clients_version", "clients_commit", "java")
        planted = self.last.get("plant", {}).get("plant") or None
        if planted != self.plant:
            raise HarnessError(
                f"{self.name} says that {planted or 'nothing'} is planted in it, but it should be "
                f"{self.plant or 'nothing'}: look for other agents, as in JAVA_TOOL_OPTIONS."
            )
        return {"release": str(self.release), **{name: hello[name] for name in wanted}, "plant": planted}

    def await_(self, condition: Any, what: str, timeout: float) -> None:
        """Wait for something of this instance; ends at once when it dies."""
        await_condition(
            what,
            condition,
            timeout=timeout,
            check=self.check_alive,
            last_seen=lambda: f"{self.name} was last {self.state} with {self.threads}; its log is {self.log}.",
        )

    def command(self, command: str, timeout: float = 30.0, meanwhile: Callable[[], None] = lambda: None) -> Any:
        """Have a command carried out (`add-thread`, `dump` and others) and return its result.

        Args:
            command: its line.
            timeout: in seconds, from when what is done `meanwhile` is over.
            meanwhile: called when the command was sent.

        Raises:
            KafkaFailedError: it was not carried out in time.
            StoodStillError: nor did the instance get a CPU.
        """
        seen, before = self.last.get("command"), self.cpu_times()

        def late(message: str) -> OnceproofError:
            check_not_starved(timeout, before, self.cpu_times())
            return KafkaFailedError("stuck", self.name, f"{command} is carried out", message)

        self._send(command)
        meanwhile()
        await_condition(
            f"{self.name} to {command}",
            lambda: self.last.get("command") is not seen,
            timeout=timeout,
            check=self.check_alive,
            late=late,
        )
        return self.last["command"]["result"]

    def close(self, leave_group: bool = False) -> None:
        """Ask it to close; returns at once, `await_closed` waits."""
        self._send("close-and-leave-group" if leave_group else "close")

    def ask_to_end(self) -> None:
        """Ask its process to end (SIGTERM), upon which it closes; returns at once, `await_closed` waits."""
        self._timeline.add("driver", "instance", name=self.name, action="asked to end")
        self.process.ask_to_end()

    def await_closed(self, timeout: float = 30.0) -> None:
        """Wait until it has ended by itself after `close` or `ask_to_end`.

        Raises:
            KafkaFailedError: it did not end in time, or not cleanly.
            StoodStillError: it did not end in time, nor did it get a CPU.
        """
        in_good_order, before = "closes cleanly", self.cpu_times()

        def late(message: str) -> OnceproofError:
            check_not_starved(timeout, before, self.cpu_times())
            return KafkaFailedError("unclean-close", self.name, in_good_order, message)

        await_condition(
            f"{self.name} to close",
            lambda: not self.process.alive(),
            timeout=timeout,
            last_seen=lambda: f"It was last {self.state}.",
            late=late,
        )
        if self._listener is not None:
            self._listener.join(timeout)
        self._check_threads()
        closed = self.last.get("closed", {})
        if not closed.get("clean"):
            said = "its threads did not end in time" if closed else "it said nothing"
            message = f"exit code {self.process.poll()}, {said}; it was last {self.state}"
            raise KafkaFailedError("unclean-close", self.name, in_good_order, message)
        if self._class_data is not None:
            self._class_data.keep()
        self._timeline.add("driver", "instance", name=self.name, action="closed")

    def has_ended(self) -> bool:
        """Whether its process is gone."""
        return not self.process.alive()

    def is_stopped(self) -> bool:
        """Whether its process was stopped (SIGSTOP), so that it does nothing."""
        with suppress(KeyError, psutil.NoSuchProcess):
            return psutil.Process(self.last["hello"]["pid"]).status() == psutil.STATUS_STOPPED
        return False

    def cpu_times(self) -> dict[str, CpuTime]:
        """The CPU time of each of its threads since it was started."""
        return {} if self._process is None else self._process.cpu_times()

    def dump_threads(self, file: Path) -> str | None:
        """Write down what its threads do; returns why there is nothing, or None."""
        if self.has_ended():
            return "it has ended"
        return dump_threads(self._installation.java, self.last["hello"]["pid"], file)

    def freeze(self) -> None:
        """Freeze it, as a paused machine would; it can still be killed."""
        self._timeline.add("driver", "instance", name=self.name, action="frozen")
        self.process.freeze()

    def thaw(self) -> None:
        """Send SIGCONT, and note it in the timeline."""
        self.process.thaw()
        self._timeline.add("driver", "instance", name=self.name, action="thawed")

    def kill(self) -> None:
        """End it at once (SIGKILL), as a crash would; safe to call at any time."""
        if self._process is not None and self._process.alive():
            self._process.kill()
            self._process.terminate(timeout=5)
            if self._listener is not None:  # so that its last words are heard
                self._listener.join(5)
            self._timeline.add("driver", "instance", name=self.name, action="killed")
