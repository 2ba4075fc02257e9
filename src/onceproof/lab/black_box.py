"""Black boxes: processes that run a user application as it is deployed, by its command.

They are seen from outside alone: whether the process runs, and what its group commits. A signal ends them.
"""

import signal
from pathlib import Path
from typing import Any

from onceproof.lab.instance import LARGEST_FILE, START_TIMEOUT, InstanceProcess
from onceproof.model.errors import HarnessError, KafkaFailedError
from onceproof.model.json_file import unwritable
from onceproof.processes.process import spawn, tail
from onceproof.processes.waiting import await_condition

# What a command reads from its environment, and the configuration whose value that is.
ENVIRONMENT = {
    "ONCEPROOF_BOOTSTRAP_SERVERS": "bootstrap.servers",
    "ONCEPROOF_APPLICATION_ID": "application.id",
    "ONCEPROOF_STATE_DIR": "state.dir",
}
IN_GOOD_ORDER = (0, 128 + signal.SIGTERM)  # exit codes of a process that was asked to end; a JVM's is the latter
CLOSES_WITHIN = 30.0  # seconds


class BlackBox(InstanceProcess):
    """One process running a command."""

    reports = False

    def start(self, topology: str, app: dict[str, Any], config: dict[str, str]) -> None:
        """Start the process, in the application's folder; returns at once.

        Args:
            topology: of no use.
            app: the command, and the folder.
            config: of which it gets what `ENVIRONMENT` names.

        Raises:
            HarnessError: the process cannot be started.
        """
        del topology
        state = Path(config["state.dir"])
        try:
            state.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(error, state) from error
        env = {variable: config[name] for variable, name in ENVIRONMENT.items()}
        folder = Path(app["application"])
        self._process = spawn(app["command"], log=self.log, env=env, folder=folder, user_code=True)
        self._timeline.add("driver", "instance", name=self.name, action="started", release=str(self.release))

    def await_hello(self) -> dict[str, Any]:
        """Wait until the command runs; it is not known what it loads.

        Raises:
            HarnessError: it ended at once.
        """
        self.await_(self._runs, f"{self.name} to start", START_TIMEOUT)
        self.process.limit_files(LARGEST_FILE)
        return {"release": str(self.release), "plant": None}

    def _runs(self) -> bool:
        """Whether the reaper has started the command."""
        return self.process.alive() and self.process.has_command()

    def check_alive(self) -> None:
        """Check that it is still running.

        Raises:
            HarnessError: it ended unasked.
        """
        if not self.process.alive():
            raise HarnessError(
                f"{self.name} ended (exit code {self.process.poll()}), without being asked to; its log "
                f"{self.log} ends with:\n{tail(self.log)}"
            )

    @property
    def state(self) -> str:
        """RUNNING, as far as can be seen."""
        return "RUNNING" if self._process is not None and self._process.alive() else "NOT_STARTED"

    def close(self, leave_group: bool = False) -> None:
        """Ask it to end (SIGTERM); whether it leaves its group is its own affair."""
        del leave_group
        self.process.ask_to_end()

    def await_closed(self, timeout: float = CLOSES_WITHIN) -> None:
        """Wait until it has ended after `close`.

        Raises:
            KafkaFailedError: it did not end in time, or with another exit code.
        """
        ends = f"ends within {timeout:g} s when it is asked to (SIGTERM)"
        await_condition(
            f"{self.name} to end",
            lambda: not self.process.alive(),
            timeout=timeout,
            late=lambda message: KafkaFailedError("unclean-close", self.name, ends, message),
        )
        if (code := self.process.poll()) not in IN_GOOD_ORDER:
            raise KafkaFailedError("unclean-close", self.name, ends, f"it ended with exit code {code}")
        self._timeline.add("driver", "instance", name=self.name, action="closed")

    def dump_threads(self, file: Path) -> str | None:
        """Why nothing is known of its threads."""
        del file
        return "it is a black box"
