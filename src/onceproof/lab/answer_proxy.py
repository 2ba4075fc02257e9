"""The proxy of ours that drops or delays single answers (`frame_proxy`), as a process with two pipes."""

import json
import select
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onceproof.model.errors import HarnessError
from onceproof.processes.process import Process, open_pipes, spawn, tail

PROGRAM = Path(__file__).with_name("frame_proxy.py")
ANSWERED_WITHIN = 20.0


@dataclass(frozen=True)
class AnswerProxy:
    """A running proxy. It is asked by one thread at a time."""

    process: Process
    listens: dict[str, str] = field(default_factory=dict)  # by the broker's name, where

    @classmethod
    def start(cls, log: Path) -> "AnswerProxy":
        """Start one; it dies with this process.

        Raises:
            HarnessError: it could not be started.
        """
        return cls(spawn([sys.executable, "-I", "-S", str(PROGRAM)], log=log, piped=True))

    def check_alive(self) -> None:
        """Raise a HarnessError with the exit code if its process has ended."""
        if not self.process.alive():
            raise HarnessError(f"The proxy before the brokers {self.process.describe_end()}")

    def add(self, name: str, upstream: str) -> str:
        """Put it before a broker; returns the address where it listens.

        Raises:
            HarnessError: it ended, or did not answer.
        """
        host, _, port = upstream.rpartition(":")
        made = self._ask(do="add", name=name, host=host, port=int(port))
        self.listens[name] = f"127.0.0.1:{made['port']}"
        return self.listens[name]

    def lose(self, apis: list[int], delay_ms: int | None) -> None:
        """Drop, or delay, the next answer to a request of one of these APIs, and no other.

        Raises:
            HarnessError: as of `add`.
        """
        self._ask(do="lose", apis=apis, delay_ms=delay_ms)

    def report_lost(self) -> dict[str, Any] | None:
        """The answer that was lost, and what became of it; None as long as none came by.

        Raises:
            HarnessError: as of `add`.
        """
        found: dict[str, Any] | None = self._ask(do="lost")["lost"]
        return found

    def clear(self) -> None:
        """Lose none any more; a connection that lacks an answer ends.

        Raises:
            HarnessError: as of `add`.
        """
        self._ask(do="clear")

    def stop(self) -> None:
        """Close its standard input and end it; it has 5 s."""
        stdin, stdout = open_pipes(self.process)
        with suppress(OSError):
            stdin.close()
        self.process.terminate(timeout=5)
        stdout.close()

    def _ask(self, **order: Any) -> dict[str, Any]:
        stdin, stdout = open_pipes(self.process)
        try:
            stdin.write(json.dumps(order) + "\n")
            stdin.flush()
            answered, _, _ = select.select([stdout], [], [], ANSWERED_WITHIN)
            line = stdout.readline() if answered else ""
        except OSError as error:
            raise self._explain_failure(order) from error
        if not line:
            raise self._explain_failure(order)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _explain_failure(self, order: dict[str, Any]) -> HarnessError:
        return HarnessError(
            f"The proxy before the brokers did not do {order['do']}; its log {self.process.log} ends with:\n"
            f"{tail(self.process.log)}"
        )
