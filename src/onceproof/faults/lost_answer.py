"""A broker has done what an instance asked for, and the instance does not hear of it, or hears of it late.

One answer is lost, of a chosen kind: to a heartbeat, which under `group.protocol` `streams` or `consumer` carries the
assignment; to a request for committed positions or for the ends of partitions, by which a task learns where it begins;
or to the end of a transaction, which is committed then, and asked for again. The client gives up when its request has
timed out, and asks again over another connection. All promises hold throughout.

The instance goes through a proxy of ours that knows frames (`lab/frame_proxy.py`). By default it is closed and started
again first, since some of these are asked for at the start of a task alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from onceproof.faults.base import (
    Fault,
    FaultContext,
    FaultRun,
    LostAnswer,
    NoTargetError,
    continues,
    count_processed,
    is_at_rest,
    tasks_come_back,
)
from onceproof.model.capability import Capability
from onceproof.model.parameter import BaseParameters, name_parameters

NAME = "lost-answer"
PATIENCE = 30.0  # seconds that the answer has to come by, and the instance to continue
REQUEST_MS = 3_000  # after which a client gives up on a request
# The keys of Kafka's APIs, by the name that stands for them here.
Asked = Literal["Heartbeat", "OffsetFetch", "ListOffsets", "EndTxn"]
APIS: Mapping[Asked, Mapping[int, str]] = {
    "Heartbeat": {12: "Heartbeat", 68: "ConsumerGroupHeartbeat", 88: "StreamsGroupHeartbeat"},
    "OffsetFetch": {9: "OffsetFetch"},
    "ListOffsets": {2: "ListOffsets"},
    "EndTxn": {26: "EndTxn"},
}


class Parameters(BaseParameters):
    """Which answer is lost, and how."""

    model_config = name_parameters(NAME)
    to: Asked = Field(
        "Heartbeat",
        description=f"the request whose answer `{NAME}` loses; of heartbeats those of each group protocol",
    )
    kind: Literal["drop", "delay"] = Field("drop", description=f"what `{NAME}` does to the answer")
    ms: int = Field(
        2_000, ge=1, le=REQUEST_MS - 500, description=f"milliseconds by which `{NAME}` of the kind `delay` delays it"
    )
    at_start: bool = Field(
        True, description=f"whether `{NAME}` starts the instance again, and the answer is the first one after that"
    )


class AnswerLoss(FaultRun):
    """An answer to the instance that goes through the proxy is lost."""

    patience = PATIENCE

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        self._parameters = Parameters.of(lab.parameters)
        self._name = ""
        self._lost: LostAnswer | None = None
        self._processed = (0, 0)  # by all and by it, when it was over
        self._went_on = False

    def is_ripe(self) -> bool:
        """Whether the group is at rest, so that the next answer is that of the restart."""
        return is_at_rest(self.lab)

    def apply(self) -> str:
        """Have the proxy lose the next answer; unless the instance is to continue, it is closed before and started."""
        instance = self.lab.instances.running.get(self.lab.links.instance or "")
        if instance is None or not instance.tasks("active"):
            raise NoTargetError("it takes an instance with an active task that goes through the proxy, but none did")
        self._name = instance.name
        if self._parameters.at_start:
            self.lab.instances.stop(self._name, leave_group=True)
        self.lab.links.lose_answer(APIS[self._parameters.to], self._parameters.ms if self._delays else None)
        if self._parameters.at_start:
            self.lab.instances.start(self._name)
        return f"{self._name}, {self._parameters.to}"

    @property
    def _delays(self) -> bool:
        return self._parameters.kind == "delay"

    def has_taken_effect(self) -> bool:
        """Whether an answer came by, and the client has got it late or given up."""
        self._lost = self.lab.links.report_lost_answer()
        return self._lost is not None and (self._lost.passed_ms, self._lost.ended_ms) != (None, None)

    def heal(self) -> None:
        """Let all answers pass, and remember how much was processed until now."""
        if not self._name:
            return
        self.lab.links.lose_no_more()
        instance = self.lab.instances.running.get(self._name)
        self._processed = count_processed(self.lab), instance.processed if instance else 0

    def has_recovered(self) -> bool:
        """Whether the instance, which may have been started again, processes records or has no task."""
        instance = self.lab.instances.running.get(self._name)
        self._went_on = instance is not None and continues(self.lab, instance, *self._processed)
        return self._went_on

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """The request, by its header, when its answer was lost, and what the client did."""
        lost, names = self._lost, APIS[self._parameters.to]
        proof: dict[str, Any] = {
            "instance": self._name,
            "kind": self._parameters.kind,
            "started_again": self._parameters.at_start,
            "request": lost and {**lost.request, "api": names[lost.api]},
            "behind": lost and lost.behind,
            "passed_ms": lost and lost.passed_ms,
            "gave_up_ms": lost and lost.ended_ms,
            "went_on": self._went_on,
        }
        if lost is None:
            return proof, [f"no answer to {self._parameters.to} of {self._name} came by within {PATIENCE:g} s"], ""
        what = f"The answer of node {lost.node} to {names[lost.api]} {lost.correlation} of {lost.client or 'a client'}"
        how = f"came {lost.passed_ms:,} ms late" if lost.passed_ms is not None else "was dropped"
        gave_up = "" if lost.ended_ms is None else f", and given up after {lost.ended_ms:,} ms"
        return proof, [*self._missing(lost)], f"{what} {how}{gave_up}; {self._name} continued."

    def _missing(self, lost: LostAnswer) -> Iterator[str]:
        """The missing part of the proof that the client felt it, and continued."""
        if self._delays and lost.passed_ms is None:
            yield f"{self._name} had given the request up before its answer was due"
        if not self._delays and lost.ended_ms is None:
            yield f"{self._name} did not give the request up"
        if not self._went_on:
            yield f"{self._name} did not process records again after it was over"


def config(_values: Mapping[str, Any]) -> dict[str, str]:
    """Clients that give up a request soon, and tasks that come back at once.

    Kafka's admin client sleeps until a call must end (`KafkaAdminClient`, whose `NetworkClient` has a request timeout
    of one hour), so it does not notice that a request has timed out before.
    """
    clients = ("consumer", "producer", "admin")
    requests = {f"{client}.request.timeout.ms": str(REQUEST_MS) for client in clients}
    return {**requests, "admin.default.api.timeout.ms": str(2 * REQUEST_MS), **tasks_come_back()}


FAULT = Fault(
    name=NAME,
    effect="One answer of a broker to an instance is dropped, or delayed.",
    undone="All answers pass; the connection that lacked one has ended.",
    needs="it takes an instance whose work others can take over",
    new_run=AnswerLoss,
    parameters=Parameters,
    config=config,
    lasts=20.0,  # an instance is closed and started meanwhile
    requires=frozenset({Capability.LOSE_ANSWER}),
)
