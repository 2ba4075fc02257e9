"""The application moves to another release instance by instance, while records flow: a rolling upgrade.

Each instance is closed and started again on the other release, over its state directory; the next one follows when the
group has settled. So for a time both releases are members of one group, and hand tasks and state to each other. Where
Kafka Streams asks for it every instance is bounced twice, one of these times with `upgrade.from`
(`Release.bounces_to`), unless a trial is to show what happens without. The way back may follow in the same trial.

Transactional stores may be switched on with the other release, and off with the way back, as an upgrade does. Then each
instance opens stores that it, or another one, left without them, or with them.

Stores of the DSL may have the form that keeps headers (KIP-1271) from the other release on, so that their entries are
carried over one by one. There is no way back from that over state.

Nothing may be lost, repeated or counted twice on the way. That both releases were members of one group at once is
concluded from what the instances report: the release that each has loaded, and that each task is active in exactly one
of them. An instance alone in its group would have them all.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import Field

from onceproof.faults.base import WORKS, Fault, FaultContext, FaultRun, Instance, NoTargetError, tasks_come_back
from onceproof.model.errors import KafkaFailedError
from onceproof.model.parameter import BaseParameters, name_parameters
from onceproof.model.release import Release

NAME = "rolling-bounce"
AWAY = 30.0  # seconds that a static member may stay away without losing its tasks
AT_REST_WITHIN = 60.0  # seconds that the group has after each bounce
WORKS_WITHIN = 8.0  # seconds that each instance has to process records together with the others
TOGETHER_FOR = 1.0  # seconds that releases are members of one group, at least
PATIENCE = 300.0  # seconds that all bounces may take

BACK, UPGRADE_FROM = f"{NAME}.back", f"{NAME}.upgrade.from"
SWITCHED, HEADERS_ON = f"{NAME}.transactional", f"{NAME}.headers"
TRANSACTIONAL_STORES = {"enable.transactional.statestores": "true"}
STORE_HEADERS = {"dsl.store.format": "HEADERS"}
STATIC = "static.membership"  # a parameter of the scenario


class Parameters(BaseParameters):
    """How the application goes to the other release."""

    model_config = name_parameters(NAME)
    back: bool = Field(False, description=f"whether `{NAME}` goes all the way back to the first release, too")
    upgrade_from: bool = Field(
        True, description="whether `upgrade.from` is set where Kafka Streams asks for it, and bounced twice"
    )
    transactional: bool = Field(
        False, description="whether instances have transactional stores (KIP-892) while they run the other release"
    )
    headers: bool = Field(
        False,
        description="whether stores have the form that keeps headers (KIP-1271) while instances run the other release",
    )

    @property
    def switched(self) -> dict[str, str]:
        """The configuration of an instance that runs the other release."""
        return (TRANSACTIONAL_STORES if self.transactional else {}) | (STORE_HEADERS if self.headers else {})


class StaticMembership(BaseParameters):
    """For a scenario whose instances can be static members of their group."""

    static_membership: bool = Field(False, description="whether each instance has a group.instance.id")


def config(values: Mapping[str, Any]) -> dict[str, str]:
    """A member that leaves is missed soon, and gets tasks as soon as it is back; a static one keeps them meanwhile."""
    if StaticMembership.of(values).static_membership:
        return {"main.consumer.session.timeout.ms": str(int(AWAY * 1_000))}
    return tasks_come_back()


def bounces(before: Release, after: Release, parameters: Parameters) -> tuple[tuple[Release, str | None], ...]:
    """The bounces from one release to the other: for each the release and `upgrade.from`."""
    return before.bounces_to(after) if parameters.upgrade_from else ((after, None),)


def make_config(upgrade_from: str | None) -> dict[str, str]:
    """Configuration of an instance that is started with this value of `upgrade.from`."""
    return {} if upgrade_from is None else {"upgrade.from": upgrade_from}


class RollingBounce(FaultRun):
    """Each instance is closed and started again on the other release, one after the other."""

    patience = PATIENCE

    def __init__(self, lab: FaultContext) -> None:
        super().__init__(lab)
        cell, parameters = lab.trial.cell, Parameters.of(lab.parameters)
        self._static = StaticMembership.of(lab.parameters).static_membership
        self._there = bounces(cell.streams, cell.restart_on, parameters) if cell.restart_on else ()
        self._parameters = parameters
        self._back = bounces(cell.running, cell.streams, parameters) if self._there and parameters.back else ()
        self._tasks: set[str] = set()  # that were active in any instance so far
        self._upgrade_from: dict[str, str | None] = {}  # by bounced instance
        self._bounces: list[dict[str, Any]] = []
        self._together: list[dict[str, Any]] = []
        self._steps: Iterator[bool] = iter(())
        self._is_over = False

    def apply(self) -> str:
        """Begin; the bounces follow while their effect is awaited."""
        running = self.lab.instances.running
        self._tasks = {task for instance in running.values() for task in instance.tasks("active")}
        if not self._there or len(running) < 2 or not self._tasks:
            raise NoTargetError(
                "it takes another release to go to, and two instances with a task, but there were "
                f"{len(running)} instances with {len(self._tasks)} tasks"
            )
        self._steps = self._roll()
        return f"to {self.lab.trial.cell.restart_on}{' and back' if self._back else ''}"

    def has_taken_effect(self) -> bool:
        """Whether every instance has reached the last release; each call continues the way there."""
        self._is_over = next(self._steps, True)
        return self._is_over

    def _roll(self) -> Iterator[bool]:
        """All bounces; yields False while there is something to wait for."""
        yield from self._work_together()  # there may be two releases already
        for release, upgrade_from in (*self._there, *self._back):
            for name, instance in sorted(self.lab.instances.running.items()):
                if (_release(instance), self._upgrade_from.get(name)) != (str(release), upgrade_from):
                    self._bounce(name, release, upgrade_from)
                    yield from self._work_together()

    def _bounce(self, name: str, release: Release, upgrade_from: str | None) -> None:
        began = self.lab.now()
        self.lab.instances.stop(name, leave_group=not self._static)
        switched = self._parameters.switched if release == self.lab.trial.cell.restart_on else {}
        self.lab.instances.start(name, release, {**make_config(upgrade_from), **switched})
        self._upgrade_from[name] = upgrade_from
        milliseconds = round((self.lab.now() - began) * 1_000)
        self._bounces.append(
            {
                "instance": name,
                "release": str(release),
                "upgrade_from": upgrade_from,
                "switched": switched,
                "away_ms": milliseconds,
            }
        )

    def _work_together(self) -> Iterator[bool]:
        """Wait until the group has settled and, if it has two releases, until its members have processed records."""
        deadline = self.lab.now() + AT_REST_WITHIN
        while not self._is_at_rest():
            if self.lab.now() > deadline:
                self._raise_stuck()
            yield False
        running = self.lab.instances.running
        if len(set(map(_release, running.values()))) < 2:
            return
        began = self.lab.now()
        before = {name: instance.processed for name, instance in running.items()}

        def count_processed() -> dict[str, int]:
            return {name: instance.processed - before[name] for name, instance in running.items()}

        workers = min(len(running), len(self._tasks))

        def is_enough() -> bool:
            long_enough = self.lab.now() >= began + TOGETHER_FOR
            return long_enough and sum(records >= WORKS for records in count_processed().values()) >= workers

        while self.lab.now() < began + WORKS_WITHIN and not is_enough():
            yield False
        if self._is_at_rest():
            self._together.append(
                {
                    "members": {name: _release(instance) for name, instance in running.items()},
                    "tasks": {name: instance.tasks("active") for name, instance in running.items()},
                    "processed": count_processed(),
                    "ms": round((self.lab.now() - began) * 1_000),
                }
            )

    def _is_at_rest(self) -> bool:
        """Whether all instances run, and each task is active in exactly one of them."""
        running = self.lab.instances.running.values()
        active = sorted(task for instance in running for task in instance.tasks("active"))
        # The fault may come in a rebalance, when a task is on its way and active in no instance or, by their reports,
        # in two.
        self._tasks.update(active)
        return active == sorted(self._tasks) and all(instance.state == "RUNNING" for instance in running)

    def _raise_stuck(self) -> None:
        running = self.lab.instances.running
        seen = "; ".join(f"{name} ({_release(i)}) {i.state} with {i.tasks('active')}" for name, i in running.items())
        message = (
            f"Waited {AT_REST_WITHIN:g} s for one instance each of {sorted(self._tasks)}, without success: {seen}."
        )
        raise KafkaFailedError("stuck", ", ".join(sorted(running)), "a group of two releases comes to rest", message)

    def heal(self) -> None:
        """Nothing is undone: the application stays on the release to which it went."""

    def has_recovered(self) -> bool:
        """Whether the group has settled."""
        return self._is_over and self._is_at_rest()

    def report_observed(self) -> tuple[Mapping[str, Any], Sequence[str], str]:
        """Each bounce, what two releases did together, and which release each instance ended on."""
        cell = self.lab.trial.cell
        last = str(cell.streams if self._back else cell.running)
        members = {name: _release(instance) for name, instance in self.lab.instances.running.items()}
        worked = [period for period in self._together if any(period["processed"].values())]
        proof = {
            "from": str(cell.streams),
            "to": str(cell.restart_on),
            "back": bool(self._back),
            "bounces": self._bounces,
            "together": self._together,
            "members": members,
        }
        missing = [f"{name} runs {release}, and not {last}" for name, release in members.items() if release != last]
        if not worked:
            missing.append("both releases were at no time members of one group that processed records")
        if not self._is_over:
            missing.append(f"it was not over after {PATIENCE:g} s")
        return proof, missing, self._description(worked)

    def _description(self, worked: Sequence[Mapping[str, Any]]) -> str:
        cell = self.lab.trial.cell
        by_release = dict.fromkeys((str(cell.streams), str(cell.restart_on)), 0)
        for period in worked:
            for name, records in period["processed"].items():
                by_release[period["members"][name]] += records
        records = " and ".join(f"{count:,} records on {release}" for release, count in by_release.items())
        together = sum(period["ms"] for period in worked)
        asked = next((b["upgrade_from"] for b in self._bounces if b["upgrade_from"]), None)
        back = " and back" if self._back else ""
        settings = " and ".join(f"{name}={value}" for name, value in self._parameters.switched.items())
        switched = f", with {settings} on the other release" if settings else ""
        bounces = f"{len(self._bounces)} {'bounce' if len(self._bounces) == 1 else 'bounces'}"
        bounces += f", with upgrade.from={asked} on the way" if asked else ""
        return (
            f"The group went from {cell.streams} to {cell.restart_on}{back} in {bounces}{switched}; for {together:,} "
            f"ms it had members of both releases, which processed {records}."
        )


def _release(instance: Instance) -> str:
    """The release that an instance reported to have loaded."""
    return str(instance.last["hello"]["streams_version"])


FAULT = Fault(
    name=NAME,
    effect="Each instance is closed and started again on another release, one after the other.",
    undone="Nothing is undone: the application stays on the release to which it went.",
    needs="it takes two instances, and a release to go to",
    new_run=RollingBounce,
    parameters=Parameters,
    config=config,
    lasts=20.0,
)
