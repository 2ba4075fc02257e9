"""The network between one instance and one broker fails: the link between them is cut, reset, or slow.

Nothing else is affected: the brokers see each other and the other instances. If the link to the group's coordinator is
    cut
(nothing passes, and no side gets an error), the instance is missed, and others get its tasks; it does not know, its
transaction is aborted, and when the link is healed it must be fenced and come back. If the broker leads something else,
the instance may stay a member that cannot do its work. A connection that is reset may or may not have delivered a
request: what is sent again must not appear twice. All promises hold throughout.

The instance goes through a proxy of its own, Toxiproxy: brokers have a second listener that is advertised as the
proxy's address.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import Field

from onceproof.faults.base import (
    SESSION,
    Fault,
    FaultContext,
    FaultRun,
    Instance,
    LinkFault,
    NoTargetError,
    continues,
    count_processed,
    log_lines,
)
from onceproof.faults.leader import GROUP, Led, partition_led
from onceproof.model.capability import Capability
from onceproof.model.parameter import BaseParameters, name_parameters
from onceproof.model.phrases import DISCONNECTED, FENCED, TIMED_OUT, Phrase

NAME = "partition"
PATIENCE = 30.0  # seconds beyond the time of the fault
REQUEST = 3.0  # seconds after which a client gives up on a request
ANSWERED_WITHIN = 1.0  # seconds that a link has to let an answer pass, in addition to the delay
RESET_FOR, RESET_EVERY = 0.3, 1.0  # seconds for which connections are reset, and between two such times


class Parameters(BaseParameters):
    """The kind of the disturbance, the link, and for how long it is disturbed."""

    model_config = name_parameters(NAME)
    kind: LinkFault = Field(
        "cut",
        description=f"what `{NAME}` does to the link: nothing passes, connections are reset now and then, or all comes "
        "late",
    )
    leads: Led = Field(GROUP, description="the partition whose leader the fault hits")
    seconds: float = Field(7.0, ge=SESSION + 1, description=f"seconds for which `{NAME}` disturbs the link, at least")
    ms: int = Field(300, ge=1, description=f"milliseconds by which `{NAME}` of the kind `latency` delays what is sent")
    transaction_timeout_ms: int = Field(
        4_000, ge=1_000, examples=[60_000], description=f"transaction timeout under the fault `{NAME}`"
    )


class LinkFailure(FaultRun):
    """The link between an instance and a broker fails."""

    kind: ClassVar[LinkFault]
    ms = 0  # by which what is sent is delayed

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._parameters = Parameters.of(lab.parameters)
        self.patience = self._parameters.seconds + PATIENCE
        self._instance: Instance | None = None
        self._log_end = 0
        self._tasks: list[str] = []
        self._taken_over: set[str] = set()  # of its tasks, by others meanwhile
        self._place = ""
        self.node: int | None = None
        self.toxics: set[str] = set()  # as reported by the proxy
        self._began = self._healed = 0.0  # epoch seconds
        self._processed = (0, 0)  # by all and by it, when the link was healed
        self._went_on = False

    @property
    def name(self) -> str:
        """The instance's."""
        return self._instance.name if self._instance else ""

    def apply(self) -> str:
        """Disturb the link between the proxied instance and a broker."""
        instance = self.lab.instances.running.get(self.lab.links.instance or "")
        if instance is None or not instance.tasks("active"):
            raise NoTargetError("it takes an instance with an active task that goes through the proxy, but none did")
        topic, number = partition_led(self._parameters.leads, self.lab)
        self._place = f"{topic}-{number}"
        replicas = self.lab.brokers.replicas().get((topic, number))
        if replicas is None or replicas.leader is None:
            raise NoTargetError(f"no broker led {self._place}")
        self._instance, self._tasks = instance, instance.tasks("active")
        self._log_end = instance.log.stat().st_size
        self.node, self._began = replicas.leader, self.lab.now()
        self.disturb()
        return f"{instance.name} to node {self.node}, {self.kind}"

    def disturb(self) -> None:
        """Have the proxy do it."""
        if self.node is not None:
            self.toxics |= set(self.lab.links.disturb(self.node, self.kind, self.ms))

    def has_taken_effect(self) -> bool:
        """Whether the instance felt it, and it lasted long enough; each call continues it."""
        if self.node is not None:
            self.go_on(self.node)
        others = [other for name, other in self.lab.instances.running.items() if name != self.name]
        self._taken_over |= {task for other in others for task in other.tasks("active") if task in self._tasks}
        return self.lab.now() - self._began >= self._parameters.seconds and not any(self.list_unfelt())

    def heal(self) -> None:
        """Let everything pass."""
        if self.node is not None and self._instance is not None:
            self._processed = (count_processed(self.lab), self._instance.processed)
            self._healed = self.lab.now()
            self.lab.links.clear(self.node)

    def has_recovered(self) -> bool:
        """Whether the instance runs, and records are processed: by itself, if it has tasks."""
        if self._instance is None:
            return False
        self._went_on = continues(self.lab, self._instance, *self._processed)
        return self._went_on

    @abstractmethod
    def go_on(self, node: int) -> None:
        """Called again and again while it lasts."""

    @abstractmethod
    def list_unfelt(self) -> Iterator[str]:
        """The missing part of the proof that the link failed, and that this was felt."""

    @abstractmethod
    def proof(self) -> Mapping[str, Any]:
        """That proof."""

    @abstractmethod
    def sentence(self, whom: str, how_long: str) -> str:
        """The event at the link of the instance to the node."""

    def time_answer_ms(self, node: int, within: float) -> int | None:
        """Milliseconds until a new client that goes through the link has an answer; None if it gets none."""
        answered = self.lab.links.time_answer(node, within)
        return None if answered is None else round(answered * 1_000)

    def find_felt(self, phrase: Phrase) -> Iterator[str]:
        """The matching lines of the instance's log, before the link was healed."""
        if self._instance is None:
            return
        until = self._healed * 1_000 or float("inf")
        yield from (text for t, text in log_lines(self._instance.log, self._log_end, phrase.pattern) if t <= until)

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """Whose link to whom, what proxy and instance reported, and how it continued."""
        fenced = None
        if self._instance is not None:
            fenced = next((text for _, text in log_lines(self._instance.log, self._log_end, FENCED.pattern)), None)
        lasted = round((self._healed - self._began) * 1_000)
        proof = {
            "kind": self.kind,
            "instance": self.name,
            "node": self.node,
            "leads": self._parameters.leads,
            "partition": self._place,
            "disturbed_ms": lasted,
            "toxics": sorted(self.toxics),
            **self.proof(),
            "tasks": self._tasks,
            "taken_over": sorted(self._taken_over),
            "fenced": fenced,
            "went_on": self._went_on,
        }
        missing = [] if self.toxics else ["the proxy did not report what it was to do"]
        missing += self.list_unfelt()
        missing += [] if self._went_on else [f"{self.name} did not process records again after the link was healed"]
        ending = f"{self.name} kept its tasks and continued."
        if self._taken_over:
            tasks = ", ".join(sorted(self._taken_over))
            ending = f"Others took over {tasks}; {self.name}{' was fenced and' if fenced else ''} continued."
        whom = f"node {self.node}, which led {self._place} ({self._parameters.leads}),"
        return proof, missing, f"{self.sentence(whom, f'{lasted:,} ms')} {ending}"


class Cut(LinkFailure):
    """Nothing passes, and no side gets an error."""

    kind = "cut"

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._passed_ms: int | None = None
        self._is_asked = False
        self._swallowed = 0

    def go_on(self, node: int) -> None:
        """Check, once, that nothing passes."""
        if not self._is_asked:
            self._is_asked, self._passed_ms = True, self.time_answer_ms(node, ANSWERED_WITHIN)

    def has_recovered(self) -> bool:
        """Whether it is also known what was lost: that is counted when a connection ends."""
        if self.node is not None:
            self._swallowed = self.lab.links.count_swallowed(self.node)
        return super().has_recovered() and self._swallowed > 0

    def list_unfelt(self) -> Iterator[str]:
        """Something passed, or nothing was sent, or no request timed out."""
        if self._passed_ms is not None:
            yield f"a client that went through the cut link had an answer after {self._passed_ms} ms"
        if next(self.find_felt(TIMED_OUT), None) is None:
            yield f"{self.name} did not report a request that timed out"

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """Something must have been lost in it, too."""
        proof, missing, description = super().report_observed()
        return proof, [*missing, *([] if self._swallowed else ["nothing went into the cut link"])], description

    def proof(self) -> Mapping[str, Any]:
        """The traffic that passed, that did not, and what the instance reported."""
        return {
            "answered_after_ms": self._passed_ms,
            "swallowed_bytes": self._swallowed,
            "logged": next(self.find_felt(TIMED_OUT), None),
        }

    def sentence(self, whom: str, how_long: str) -> str:
        """For how long it was cut."""
        return f"The link of {self.name} to {whom} was cut for {how_long} and swallowed {self._swallowed:,} bytes."


class Reset(LinkFailure):
    """Connections are reset now and then."""

    kind = "reset"

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._changed, self._is_over = 0.0, False
        self._resets = 0

    def disturb(self) -> None:
        """For a moment, reset all that send something."""
        super().disturb()
        self._resets += 1
        self._changed, self._is_over = self.lab.now(), False

    def go_on(self, node: int) -> None:
        """End it after a moment, and do it again a while later."""
        since = self.lab.now() - self._changed
        if self._is_over and since >= RESET_EVERY:
            self.disturb()
        elif not self._is_over and since >= RESET_FOR:
            self.lab.links.clear(node)
            self._changed, self._is_over = self.lab.now(), True

    def list_unfelt(self) -> Iterator[str]:
        """No connection ended."""
        if self._disconnected is None:
            yield f"{self.name} did not report a connection that ended"

    @property
    def _disconnected(self) -> str | None:
        # A consumer knows the broker under another id when it is its coordinator.
        ids = {str(number) for number in (self.node, 2**31 - 1 - (self.node or 0))}
        return next((text for text in self.find_felt(DISCONNECTED) if _node_of(text) in ids), None)

    def proof(self) -> Mapping[str, Any]:
        """How often, and what the instance reported."""
        return {"resets": self._resets, "logged": self._disconnected}

    def sentence(self, whom: str, how_long: str) -> str:
        """How often they were reset."""
        return f"The connections of {self.name} to {whom} were reset {self._resets} times in {how_long}."


class Latency(LinkFailure):
    """The requests of the instance come late."""

    kind = "latency"

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self.ms = self._parameters.ms
        self._answered_ms: int | None = None

    def go_on(self, node: int) -> None:
        """Measure, once, how late an answer comes."""
        if self._answered_ms is None:
            self._answered_ms = self.time_answer_ms(node, ANSWERED_WITHIN + 5 * self.ms / 1_000)

    def list_unfelt(self) -> Iterator[str]:
        """An answer came too soon."""
        if self._answered_ms is None or self._answered_ms < self.ms:
            yield f"a client that went through the slow link had an answer after {self._answered_ms} ms"

    def proof(self) -> Mapping[str, Any]:
        """How late an answer came."""
        return {"ms": self.ms, "answered_after_ms": self._answered_ms}

    def sentence(self, whom: str, how_long: str) -> str:
        """How late it came."""
        return f"What {self.name} sent to {whom} came {self.ms:,} ms late for {how_long}."


def _node_of(text: str) -> str | None:
    """The id of the node that a client was disconnected from."""
    found = DISCONNECTED.pattern.search(text)
    return found["node"] if found else None


KINDS: Mapping[str, type[LinkFailure]] = {failure.kind: failure for failure in (Cut, Reset, Latency)}


def config(values: Mapping[str, Any]) -> dict[str, str]:
    """Timeouts that a cut can outlast."""
    request = str(int(REQUEST * 1_000))
    return {
        "main.consumer.session.timeout.ms": str(int(SESSION * 1_000)),
        "consumer.request.timeout.ms": request,
        "producer.request.timeout.ms": request,
        "producer.transaction.timeout.ms": str(Parameters.of(values).transaction_timeout_ms),
    }


FAULT = Fault(
    name=NAME,
    effect="The link between an instance and a broker is cut, or its connections are reset, or its traffic is delayed.",
    undone="The link works as before.",
    needs="it takes an instance whose work others can take over, and transactions to be fenced",
    new_run=lambda lab: KINDS[Parameters.of(lab.parameters).kind](lab),
    parameters=Parameters,
    config=config,
    requires=frozenset({Capability.CUT_LINK}),
)
