"""What each scenario concludes from each way in which its drive can go, in a fake world (`tests/fakes`)."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from onceproof.lab.driver import Driver
from onceproof.model.errors import StoodStillError
from onceproof.scenarios import SCENARIOS
from onceproof.scenarios.liveness import compare_liveness
from tests.cases import check_each
from tests.conftest import a_trial
from tests.fakes.group import Nature
from tests.fakes.world import fake_driver

RETURN = {"program": "1 2 2"}


@dataclass(frozen=True)
class Way:
    """How a drive goes, and what the scenario must say of it."""

    scenario: str
    name: str
    exercised: bool
    reason: str  # a pattern
    variant: str = "DEFAULT_CONFIG"
    parameters: dict[str, Any] = field(default_factory=dict)
    nature: Nature = field(default_factory=Nature)
    all_steps_tried: bool | None = None  # None: it does not matter
    restart_on: str | None = None

    def driver(self, path: Path) -> Driver:
        """The driver in this world."""
        trial = a_trial("4.3.1", self.variant, 1, self.scenario, self.restart_on, **self.parameters)
        return fake_driver(trial, path, self.nature)


CAME_BACK = (
    r"^Task 0_\d+ was active, standby, active on instance-1-StreamThread-1.*: away for [\d,]+ ms, in which other "
)
STAYED = "^No task went active, standby, active on one thread while records flowed"
BIT_NOT = "^The fault pause did not take effect: "
KILL = {"fault": "broker-kill", "nodes": 3}
STOP = {"fault": "broker-pause", "nodes": 3}
MOVE = {"fault": "leader-election", "nodes": 3}
CUT = {"fault": "partition"}
ONE_TWO = {"program": "1 2"}
KILLED = r"^Node 1, which led {} and \d+ other partitions, was killed; node 2 led it after 1\d\d\d ms"
KILLED_NOT = "^The fault broker-kill did not take effect: .*"
STOPPED_NOT = "^The fault broker-pause did not take effect: .*"
LOSE: dict[str, Any] = {"fault": "lost-answer"}
LOST_NOT = "^The fault lost-answer did not take effect: .*"
CUT_NOT = "^The fault partition did not take effect: .*"
MOVED_NOT = "^The fault leader-election did not take effect: .*"
WAYS = [
    Way("enumerator", "a task comes back", True, CAME_BACK),
    Way("enumerator", "a task comes back after a restart", True, CAME_BACK, restart_on="4.2.1"),
    Way("enumerator", "no task moves", False, STAYED, nature=Nature(moves=False), all_steps_tried=True),
    Way(
        "enumerator",
        "the records last as long as the steps",
        False,
        STAYED,
        nature=Nature(moves=False, rebalance=4.0),
        all_steps_tried=True,
    ),
    Way(
        "enumerator",
        "a step has no effect in time",
        False,
        STAYED,
        nature=Nature(moves=False, rebalance=6.0),
        all_steps_tried=False,
    ),
    Way("enumerator", "a task comes back that was closed", False, STAYED, nature=Nature(recycles=False)),
    Way("enumerator", "a task comes back as instances come and go", True, CAME_BACK, "THIRD_INSTANCE"),
    Way("enumerator", "no task moves between instances", False, STAYED, "THIRD_INSTANCE", nature=Nature(moves=False)),
    Way("enumerator", "all is processed before the third joins", False, STAYED, "SEED_SCHEDULE", all_steps_tried=False),
    Way("enumerator", "a zombie is fenced", True, "^instance-. stood still for [789],.* it was fenced", "PAUSED"),
    Way(
        "enumerator",
        "a zombie is not missed",
        False,
        BIT_NOT + "no instance took over",
        "PAUSED",
        nature=Nature(misses=False),
    ),
    Way(
        "enumerator",
        "who stands still within its session is not missed",
        True,
        "^instance-. stood still for 1[123],.* within its session, .* 10,000 ms; it was not fenced when it woke, and works",
        "PAUSED_IN_SESSION",
    ),
    Way("enumerator", "a zombie is not told", False, BIT_NOT + ".* was fenced", "PAUSED", nature=Nature(fences=False)),
    *(
        Way(
            scenario,
            f"it rolls to {to}{' and back' if variant == 'ROLLING_BACK' else ''}",
            True,
            rf"The group went from 4\.3\.1 to {to}{how}; for [1-9][0-9,]* ms it had members of both .*{worked}",
            variant,
            {"static_membership": static} if static else {},
            restart_on=to,
        )
        for scenario, variant, to, how, static in (
            ("enumerator", "ROLLING", "4.2.1", " in 2 bounces", False),
            ("enumerator", "ROLLING", "4.1.2", " in 2 bounces", False),
            ("enumerator", "ROLLING", "4.2.1", " in 2 bounces", True),
            ("enumerator", "ROLLING", "3.4.1", " in 4 bounces, with upgrade.from=3.4 on the way", False),
            ("enumerator", "ROLLING_BACK", "4.2.1", " and back in 4 bounces", False),
            ("multirunner", "ROLLING", "3.9.1", " in 2 bounces", False),
            ("multirunner", "ROLLING_BACK", "3.9.1", " and back in 4 bounces", False),
            ("crash", "ROLLING", "4.4.0", " in 1 bounce", False),
        )
        for worked in [" and [1-9]" if scenario != "crash" else "[1-9][0-9,]* records on 4.4.0"]
    ),
    *(
        Way(
            "enumerator",
            f"the {name} dies",
            True,
            KILLED.format(rf"{log}-\d \({name}\)"),
            parameters={**KILL, "broker-kill_leads": name},
        )
        for name, log in (
            ("transaction-coordinator", "__transaction_state"),
            ("group-coordinator", "__consumer_offsets"),
            ("input", r"\S+-input"),
            ("changelog", r"\S+-changelog"),
        )
    ),
    Way(
        "enumerator",
        "a broker shuts down",
        True,
        "other partitions, was shut down; node 2 led it",
        parameters={**KILL, "broker-kill_orderly": True},
    ),
    Way(
        "enumerator",
        "nobody leads after the broker",
        False,
        KILLED_NOT + "no other broker led",
        parameters=KILL,
        nature=Nature(elects=False),
    ),
    Way(
        "enumerator",
        "the broker stays behind",
        False,
        KILLED_NOT + "node 1 was not in sync",
        parameters=KILL,
        nature=Nature(catches_up=False),
    ),
    Way(
        "enumerator",
        "a link is cut, and others take over",
        True,
        r"^The link of instance-1 to node 1, which led __consumer_offsets-\d \(group-coordinator\), was cut for [78],\d+ ms "
        r"and swallowed 500 bytes\. Others took over 0_\d; instance-1 was fenced and continued\.",
        parameters=CUT,
    ),
    Way(
        "enumerator",
        "a link is cut, and nobody misses the instance",
        True,
        "which led .*-input-. \\(input\\), was cut .* instance-1 kept its tasks and continued",
        parameters={**CUT, "partition_leads": "input"},
        nature=Nature(misses=False),
    ),
    Way(
        "enumerator",
        "connections are reset",
        True,
        r"^The connections of instance-1 to node 1.* were reset [56] times in 7,\d+ ms\. instance-1 kept",
        parameters={**CUT, "partition_kind": "reset"},
    ),
    Way(
        "enumerator",
        "a link is slow",
        True,
        r"^What instance-1 sent to node 1.* came 300 ms late for 7,\d+ ms\.",
        parameters={**CUT, "partition_kind": "latency"},
    ),
    *(
        Way("enumerator", name, False, CUT_NOT + why, parameters={**CUT, "partition_kind": kind}, nature=nature)
        for name, kind, why, nature in (
            ("the proxy does nothing", "cut", "the proxy did not report", Nature(disturbs=False)),
            ("what is cut passes", "cut", "through the cut link had an answer after 10 ms", Nature(disturbs=False)),
            ("nothing goes into a cut link", "cut", "nothing went into the cut link", Nature(disturbs=False)),
            ("nobody feels a cut", "cut", "not report a request that timed out", Nature(feels=False)),
            ("it does not come back", "cut", "did not process records again", Nature(comes_back=False)),
            ("nobody feels a reset", "reset", "not report a connection that ended", Nature(feels=False)),
            ("a slow link is quick", "latency", "slow link had an answer after 10 ms", Nature(disturbs=False)),
        )
    ),
    Way(
        "enumerator",
        "an answer is dropped",
        True,
        r"^The answer of node 1 to Heartbeat 77 of a was dropped, and given up after 3,000 ms; instance-1 continued\.",
        parameters=LOSE,
    ),
    Way(
        "enumerator",
        "an answer is late",
        True,
        r"^The answer of node 1 to EndTxn 77 of a came 2,000 ms late; instance-1 continued\.",
        parameters={**LOSE, "lost-answer_kind": "delay", "lost-answer_to": "EndTxn", "lost-answer_at_start": False},
    ),
    *(
        Way("enumerator", name, False, LOST_NOT + why, parameters=LOSE, nature=nature)
        for name, why, nature in (
            ("no answer comes by", "no answer to Heartbeat of instance-1 came by within 30 s", Nature(disturbs=False)),
            ("the client misses no answer", "instance-1 did not give the request up", Nature(feels=False)),
        )
    ),
    Way("multirunner", "a link is cut", True, "^The link of instance-1 to node 1", parameters={**CUT, **ONE_TWO}),
    Way(
        "enumerator",
        "a zombie broker stands down",
        True,
        r"^Node 1, which led .* stood still for [78],\d+ ms; node 2 led it after 1\d\d\d ms, and node 1 stood down 0 ms",
        parameters=STOP,
    ),
    *(
        Way("enumerator", name, False, STOPPED_NOT + why, parameters=STOP, nature=nature)
        for name, why, nature in (
            ("nobody leads after the zombie broker", "no other broker led __transaction_state-", Nature(elects=False)),
            ("the zombie broker stays behind", "node 1 was not in sync again", Nature(catches_up=False)),
            ("the zombie broker does not know it", "not report that it follows another", Nature(stands_down=False)),
        )
    ),
    Way(
        "enumerator",
        "leaders move and move back",
        True,
        r"^Node 1, which led .* gave them up; node 2 led it after 1\d\d\d ms, and node 1 led all of them again 1\d\d\d ms",
        parameters=MOVE,
    ),
    *(
        Way("enumerator", name, False, MOVED_NOT + why, parameters=MOVE, nature=nature)
        for name, why, nature in (
            ("leaders do not move", "no other broker led __transaction_state-", Nature(elects=False)),
            ("leaders do not move back", "node 1 did not lead again", Nature(catches_up=False)),
        )
    ),
    *(
        Way("multirunner", f"it survives {named['fault']}", True, "^Node 1, which led", parameters=named | ONE_TWO)
        for named in (KILL, STOP, MOVE)
    ),
    Way("multirunner", "a task comes back", True, CAME_BACK, "SEED_PROGRAM", RETURN),
    Way("multirunner", "a zombie is fenced", True, "^instance-. stood still for [789],", "PAUSED"),
    Way(
        "multirunner",
        "nobody is there to take over",
        False,
        BIT_NOT + "it takes an instance with an active task and another one besides it, but 1 ran",
        "PAUSED",
        {"program": "1"},
    ),
    Way("multirunner", "no task comes back", False, "^No task came back .* in 2 steps", parameters={"program": "1 2"}),
    Way("multirunner", "nobody is left to drain", False, "in 2 steps", parameters={"program": "1 1"}),
    Way(
        "multirunner",
        "a task comes back that was closed",
        False,
        "^No task came back .* in 3 steps",
        "SEED_PROGRAM",
        RETURN,
        Nature(recycles=False),
    ),
    Way("multirunner", "there is no standby", False, "^No task came back", "NO_STANDBY", RETURN, all_steps_tried=True),
    Way(
        "multirunner",
        "there is no standby, and nobody has anything to do",
        False,
        "^No task came back",
        "NO_STANDBY",
        {**RETURN, "records": 100},
        all_steps_tried=False,
    ),
    Way("crash", "killed in a transaction", True, "with [1-9][\\d,]+ processed .* on disk: [1-9][\\d,]+ in seen"),
    Way(
        "crash",
        "killed in a transaction of two stores",
        True,
        "on disk: 1 in counter, [1-9][\\d,]+ in ids",
        "ENUMERATOR",
    ),
    Way("crash", "killed twice", True, r"on disk: [1-9].* Killed while .* on disk: [1-9]", "TWO_KILLS"),
    Way("crash", "a window store", True, "on disk: [1-9]", "WINDOW"),
    Way("crash", "a cached store", True, "on disk: [1-9]", "CACHED"),
    Way("crash", "a store in memory", True, r"[1-9][\d,]+ processed records in the open transaction", "IN_MEMORY"),
    Way("crash", "in memory, between transactions", False, "with 0 processed", "IN_MEMORY", {"commit.interval.ms": 1}),
    Way("crash", "a punctuator writes, too", True, "on disk: [1-9]", "PUNCTUATOR"),
    Way("crash", "killed between transactions", False, "with 0 processed", parameters={"commit.interval.ms": 1}),
    Way("crash", "nothing was flushed", False, "on disk: 0 in seen", nature=Nature(flushes=False)),
    Way("crash", "nothing was to be flushed", False, "on disk: 0 in seen", "ROCKSDB_OWN_MEMORY", all_steps_tried=True),
    Way("crash", "killed while restoring", True, "not ended; entries on disk: [1-9]", "DURING_RESTORATION"),
    Way(
        "crash",
        "killed before anything is restored to disk",
        False,
        "not ended; entries on disk: 0 in seen",
        "DURING_RESTORATION",
        nature=Nature(restoration=40.0, flushes=False),
    ),
    Way(
        "crash",
        "restored before it is killed",
        False,
        "had ended before",
        "DURING_RESTORATION",
        nature=Nature(restoration=0.0),
    ),
    Way("quota", "throttled for long enough", True, "throttled for up to 120 ms, .* the load lasted for 4[0-9] s"),
    Way("quota", "never throttled", False, "throttled for up to 0 ms", nature=Nature(throttles=False)),
    Way("quota", "throttled too late", False, "the load lasted for 1[0-9] s", parameters={"seconds": 20}),
    Way(
        "quota",
        "no transaction met the throttle",
        False,
        r"\(AddOffsetsToTxn\) waited for 0 ms",
        nature=Nature(meets_throttle=False),
    ),
    Way("quota", "failed", True, "of which a failure takes 30", nature=Nature(fails_throttled=True)),
    Way("quota", "failed before it was throttled", False, "before it was throttled", nature=Nature(fails_early=True)),
    Way("at-least-once", "the changelog without the output", True, r"when [1-9][\d,]* records of the changelog and 0 "),
    Way("at-least-once", "the output without the changelog", True, "of the output and 0 of", "OUTPUT_FIRST"),
    Way(
        "at-least-once",
        "the same with transactions",
        True,
        "of the changelog and 0 of .* On disk were [1-9]",
        "EXACTLY_ONCE",
    ),
    Way(
        "at-least-once",
        "nothing was flushed",
        False,
        "On disk were 0 deletions",
        "EXACTLY_ONCE_OUTPUT_FIRST",
        nature=Nature(flushes=False),
    ),
    Way(
        "at-least-once",
        "a rebalance with transactions",
        True,
        "^Frozen when .* On disk were [1-9]",
        "EXACTLY_ONCE_REBALANCE",
    ),
    Way("at-least-once", "parted by a rebalance", True, r"^Frozen when [1-9].* and 0 of the output", "REBALANCE"),
    Way(
        "at-least-once",
        "its producer gives up",
        True,
        "^Its producer gave up when 0 records of the changelog and 0 of the output were published, and 0 of 3,000 requests "
        r"committed\.$",
        "TIMED_OUT",
    ),
    Way(
        "at-least-once",
        "its producer gives up, and the store is kept",
        True,
        r"\. Nothing of the changelog was restored, though the store on disk lacked 3,000 of its keys\.$",
        "TIMED_OUT",
        nature=Nature(wipes=False),
    ),
    Way(
        "at-least-once",
        "its producer gives up again and again",
        False,
        r" It gave up 2 times in all, so what it had sent again may come in addition to what it sent later\.$",
        "TIMED_OUT",
        nature=Nature(gives_up_again=True),
    ),
    Way(
        "at-least-once",
        "it gives up on the output alone",
        True,
        r"^Its producer gave up when [1-9][\d,]* records of the changelog and 0 of the output",
        parameters={"parted.by": "timeout"},
    ),
    Way("at-least-once", "deleted downstream", True, r"[1-9][\d,]* of the changelog were", "DELETE_DOWNSTREAM"),
    Way("global-join", "some ask for no key", True, "^Of 6,000 records .*, 1,[0-9]{3} asked for no key and [1-9]"),
    Way("global-join", "all ask for a key", False, ", 0 asked for no key", "NO_NULL_KEY", all_steps_tried=True),
    Way(
        "global-join",
        "a global store is restored",
        True,
        "adds 1,000,000; restored from the beginning: entries-0",
        "GLOBAL_STORE",
    ),
    Way("global-join", "its processor adds nothing", False, "adds 0", "GLOBAL_STORE_AS_IT_IS", all_steps_tried=True),
    Way(
        "global-join", "it is kept", False, "adds 1,000,000; it was not restored", "GLOBAL_STORE", {"stores": "rocksdb"}
    ),
    Way(
        "global-join",
        "killed",
        True,
        r"killed when [1-9][0-9,]* of its entries were on disk\.$",
        "KILLED",
        all_steps_tried=True,
    ),
    Way(
        "global-join",
        "nothing is on disk",
        False,
        "killed when 0 of its entries were on disk",
        "KILLED",
        nature=Nature(flushes=False),
        all_steps_tried=True,
    ),
    Way(
        "global-join",
        "killed without transactions",
        False,
        "killed when [1-9][0-9,]* of its entries were on disk",
        "KILLED_AT_LEAST_ONCE",
        all_steps_tried=True,
    ),
    Way("scan", "its cache is cold", True, r"scanned 3,000 times, 2,[0-9]{3} times with a key in the store before"),
    Way("scan", "its cache is warm", False, "times, 0 times with", "WARM_CACHE", all_steps_tried=True),
    Way("scan", "there is no cache", False, "times, 0 times with", "CACHING_DISABLED", all_steps_tried=True),
    Way("foreign-key-join", "keys change", True, "^[1-9][0-9,]* foreign keys came from null and [1-9][0-9,]* became"),
    Way("foreign-key-join", "to the left", True, "^[1-9][0-9,]* foreign keys changed to .* of 2 partitions", "LEFT"),
    Way("foreign-key-join", "no race", False, " of 1 partition,", "LEFT_ONE_PARTITION", all_steps_tried=True),
    Way("foreign-key-join", "none is null", False, "^0 foreign keys", "NO_NULL_KEY", all_steps_tried=True),
    Way("foreign-key-join", "rows race", True, "^1,000 rows .* twice; 7 answers were dropped", "SAME_KEY"),
    Way("foreign-key-join", "rows race in two commits", True, "7 answers were dropped", "SAME_KEY_CACHED"),
    Way(
        "foreign-key-join",
        "no answer met a changed row",
        False,
        "; 0 answers were dropped",
        "REINSERTED",
        nature=Nature(drops=0),
        all_steps_tried=True,
    ),
    Way(
        "stream-join",
        "a task is ahead",
        True,
        r"^One instance had 2 tasks of a join \(outer\); when 1,[0-9]{3} records",
    ),
    Way("stream-join", "an inner join", False, r"2 tasks of a join \(inner\)", "INNER", all_steps_tried=True),
    Way(
        "stream-join",
        "records are out of order",
        True,
        r" 1,\d{3} were out of order by up to 80 ms, the grace, and \d{3} by more\.$",
        "OUT_OF_ORDER",
        all_steps_tried=True,
    ),
    Way(
        "stream-join",
        "they are so in an inner join",
        True,
        r"\(inner\).* by up to 500 ms",
        "LONG_GRACE_INNER",
        all_steps_tried=True,
    ),
    Way("stream-join", "no other task", False, "^One instance had 1 task of a join", "ONE_TASK", all_steps_tried=True),
    *(
        Way(scenario, "an instance is killed", True, r"^instance-\d was killed with 0_", "KILLED", all_steps_tried=True)
        for scenario in ("stream-join", "foreign-key-join")
    ),
    Way("table-join", "an instance is killed", True, r"^instance-\d was killed with 0_", all_steps_tried=True),
    Way("table-join", "tasks move", True, "^instance-2 joined and took over .* while records flowed", "REBALANCED"),
    Way("table-join", "no task moves", False, "took no task over", "REBALANCED", nature=Nature(moves=False)),
    *(
        Way(
            "table-join",
            f"changelogs are compacted, {over}",
            True,
            rf"continued \({over}\)\. .* no record left of [1-9][\d,]* keys",
            variant,
            all_steps_tried=True,
        )
        for over, variant in (("state lost", "COMPACTED"), ("state kept", "COMPACTED_KEPT"))
    ),
    Way(
        "table-join",
        "no deletion is forgotten",
        False,
        "no record left of 0 keys",
        "COMPACTED",
        {"keys": 500, "records": 3_000},
        nature=Nature(forgets=False),
        all_steps_tried=True,
    ),
    Way("table-join", "bounced", True, r"^instance-\d was closed in .* others processed [1-9]", "BOUNCED"),
    *(
        Way(
            scenario,
            "it rolls",
            True,
            r"The group went from 4\.3\.1 to 4\.4\.0 in 2 bounces; for [1-9]",
            "ROLLING",
            restart_on="4.4.0",
        )
        for scenario in ("stream-join", "foreign-key-join", "global-join", "table-join")
    ),
    Way("global-join", "bounced", True, r"^instance-\d was closed in .* others processed [1-9]", "BOUNCED"),
    *(
        Way(
            scenario,
            "its tasks do not move",
            False,
            "did not take effect: ",
            parameters={"fault": fault},
            nature=nature,
        )
        for scenario in ("stream-join", "foreign-key-join", "global-join", "table-join")
        for fault, nature in (("pause", Nature(misses=False)), ("topology-pause", Nature(pauses=False)))
    ),
    Way("idle-task", "the idle task moves", True, r"kept task 0_0; .* was idle, was revoked\. 5,000 records .* killed"),
    Way("idle-task", "cleanly", True, r"5,000 records .* not committed when the process was closed", "CLOSED"),
    Way("idle-task", "both are busy", False, r"which was busy, was revoked", "NOT_IDLE", all_steps_tried=True),
    Way(
        "split-batch",
        "a batch is split",
        True,
        r"^Batches were split [1-9]\d* times; .* 0 of 5,000 records were committed and 0 published",
        all_steps_tried=True,
    ),
    Way("split-batch", "the batch is taken", False, "split 0 times; .* 5,000 of", nature=Nature(refuses=False)),
    Way(
        "corrupted-task",
        "it is closed in a restoration",
        True,
        r"^The application was closed while [1-9][0-9,]* records of a store were restored, its task having been corr",
        all_steps_tried=True,
    ),
    Way(
        "corrupted-task",
        "nothing is restored",
        False,
        r"^The application was closed after 0 records of a store were restored, its task having been corrupted",
        parameters={"guarantee": "at_least_once"},
        nature=Nature(wipes=False),
        all_steps_tried=False,
    ),
    Way("corrupted-task", "not corrupted", False, "closed while .* at a start", "NOT_CORRUPTED", all_steps_tried=True),
    Way(
        "grouped-table",
        "the older release keeps sums",
        True,
        r"^The group went from 4\.3\.1 to 4\.4\.0 in 2 bounces; .* The older release kept sums of what the newer one wrote",
        all_steps_tried=True,
        restart_on="4.4.0",
    ),
    Way(
        "grouped-table",
        "the newer release keeps all sums",
        False,
        " in 4 bounces, with upgrade.from=3.4 on the way; .* The older release kept no sums",
        "UPGRADE_FROM",
        {"stores": "in-memory"},
        all_steps_tried=True,
        restart_on="3.4.1",
    ),
    Way(
        "grouped-table",
        "an instance is killed",
        True,
        r"^instance-\d was killed with ",
        "OPTIMIZED",
        all_steps_tried=True,
    ),
    Way(
        "grouped-table",
        "an operator is added",
        True,
        r"^The group processed [1-9][\d,]+ records while instance-1 had a task of the longer topology and instance-2 one ",
        "PROCESSOR_ADDED",
        all_steps_tried=True,
    ),
    Way(
        "grouped-table",
        "the optimization is switched on",
        True,
        r"^instance-1 was started optimized after instance-2 had processed 10,000 records without it, when 10,000 were not",
        "SWITCHED_ON",
        all_steps_tried=True,
    ),
    Way(
        "grouped-table",
        "nothing comes in meanwhile",
        False,
        "when 0 were not committed",
        "SWITCHED_ON",
        {"records": 1},
        all_steps_tried=True,
    ),
    Way("grouped-table", "no other release", False, "did not take effect: .* kept no sums", all_steps_tried=False),
    Way(
        "grouped-stream",
        "an instance is killed",
        True,
        r"^instance-\d was killed with ",
        all_steps_tried=True,
    ),
    Way(
        "far-future", "it goes on", True, r"^The punctuator was called once .* later it is 999 ms after the end of time"
    ),
    Way(
        "far-future",
        "next century",
        False,
        r"975,807 ms before the end of time\.$",
        "NEXT_CENTURY",
        all_steps_tried=True,
    ),
    Way("dead-letters", "some are skipped", True, r"^6,150 of 13,100 records were skipped, in runs of 40\.$"),
    Way("dead-letters", "an instance is killed", True, r"^instance-\d was killed with 0_", "KILLED"),
    Way(
        "dead-letters",
        "killed once all is committed",
        True,
        r"^Killed when 300 of 300 records were committed, by request alone; poison was the last\.$",
        "COMMITTED_AHEAD",
        all_steps_tried=True,
    ),
    Way(
        "dead-letters",
        "the time of a commit comes first",
        False,
        r"^Killed when 300 of 300 records were committed, also by time; poison was the last\.$",
        "COMMITTED_AHEAD",
        nature=Nature(rebalance=65.0),
    ),
    Way(
        "dead-letters",
        "a good record is the last",
        False,
        r"by request alone; a good record was the last\.$",
        "COMMITTED_AHEAD",
        parameters={"records": 280},
    ),
    Way("two-topics", "an instance is killed", True, r"^instance-\d was killed with \d_\d.* processed [1-9]"),
    Way("two-topics", "tasks do not wait", True, r"^instance-\d was killed with \d_\d", "UNORDERED"),
    Way(
        "two-topics",
        "a second instance joins a backlog",
        True,
        r"^instance-2 joined and took over \d_\d.* while records were left\.$",
        parameters={"fault": "none", "records": 100_000},
    ),
    Way("two-topics", "a second instance joins", True, r"^instance-2 joined and took over \d_\d", "LAGGING"),
    Way("two-topics", "no task moves", False, "took no task over", "LAGGING", nature=Nature(moves=False)),
    Way("two-topics", "an instance is killed while it lags", True, r"^instance-\d was killed", "LAGGING_KILLED"),
    Way("two-topics", "it rolls", True, "The group went from 4.3.1 to 4.2.1", "ROLLING", restart_on="4.2.1"),
    Way(
        "interactive-queries", "tasks move", True, "^4 of 4 times all tasks went to one instance", all_steps_tried=True
    ),
    Way(
        "interactive-queries",
        "no task moves",
        False,
        "^0 of 4 times",
        nature=Nature(moves=False),
        all_steps_tried=False,
    ),
    Way("interactive-queries", "an instance is killed", True, r"^instance-\d was killed with 0_", "KILLED"),
    Way("interactive-queries", "it rolls", True, "The group went from 4.3.1 to 4.2.1", "ROLLING", restart_on="4.2.1"),
    Way("endings", "a member leaves", True, "^instance-2 closed with 0_.* to leave, while", all_steps_tried=True),
    Way("endings", "no task is there to take", False, "no task to leave", nature=Nature(moves=False)),
    Way("endings", "a member stays", True, "^instance-2 closed with 0_.* to stay, while", "STAYING"),
    *(
        Way("endings", f"a member closes amid a rebalance, {variant}", True, text, variant, nature=Nature(waits=True))
        for variant, text in (
            ("REBALANCING", "^instance-2 closed during a rebalance with 0_.* to leave, while"),
            ("REBALANCING_THREADS", "^instance-2 closed during a rebalance with 0_.* to leave, while"),
            ("REBALANCING_STAYING", "^instance-2 closed during a rebalance with 0_.* to stay, while"),
        )
    ),
    Way("endings", "the rebalance is over", False, "closed not during a rebalance and", "REBALANCING_FENCED"),
    Way(
        "endings",
        "it is not fenced",
        False,
        "closed during a rebalance and not fenced with",
        "REBALANCING_FENCED",
        nature=Nature(waits=True),
    ),
    Way(
        "endings",
        "standbys catch up and are promoted",
        True,
        r"^instance-2 was killed with 0_.* standby; at last its standbys of 0_\d.* were promoted, while",
        "KILLED",
    ),
    Way("endings", "state is cleaned up", True, "cleaned up with state of 2 of its tasks", "CLEANED_UP"),
    Way("endings", "it is terminated amid a restoration", True, r"SIGTERM during [\d,]+ records", "TERMINATED"),
    Way(
        "endings",
        "it is terminated when all is restored",
        False,
        "SIGTERM during no restoration",
        "TERMINATED",
        nature=Nature(restoration=0.0),
    ),
    *(
        Way("endings", f"a handler answers {answer}", True, f"2 threw, and its handler answers {answer}, while", answer)
        for answer in ("SHUTDOWN_APPLICATION", "SHUTDOWN_CLIENT", "REPLACE_THREAD")
    ),
    Way("leaks", "tasks stay", True, "^10 rounds; 0 of 0 times all tasks moved", all_steps_tried=True),
    Way("leaks", "tasks move", True, "^10 rounds; 10 of 10 times all tasks moved", "MOVED", all_steps_tried=True),
    Way("leaks", "windows come out when they close", True, "^10 rounds", "ON_CLOSE", all_steps_tried=True),
    Way("dead-letters", "it rolls", True, "The group went from 4.3.1 to 4.2.1", "ROLLING", restart_on="4.2.1"),
    Way(
        "windows",
        "an instance is killed",
        True,
        r"was killed with .* \d,\d{3} of 30,004 records were committed before, so that windows were open",
        all_steps_tried=True,
    ),
    Way("windows", "a zombie is fenced", True, "^instance-. stood still for .* it was fenced.* were open", "PAUSED"),
    Way(
        "windows",
        "a zombie is not missed",
        False,
        BIT_NOT + "no instance took over",
        "PAUSED",
        nature=Nature(misses=False),
    ),
    Way("windows", "tasks move", True, "^instance-2 joined and took over 0_.* were open", "REBALANCED"),
    Way("windows", "no task moves", False, "took no task", "REBALANCED", nature=Nature(moves=False)),
    Way("windows", "windows come out when they close", True, "^instance-2 joined and took .* were open", "ON_CLOSE"),
    Way("windows", "a second topic stays empty", True, "^instance-2 joined and took .* were open", "ON_CLOSE_MERGED"),
    Way(
        "windows",
        "a segment is half deleted",
        True,
        "^instance-1 was killed while it deleted a segment; half deleted: 0_0 windowed-sums.0. Started again it died of",
        "HALTED",
    ),
    Way(
        "windows",
        "no segment is deleted",
        False,
        "^instance-1 deleted no segment within 20 s; half deleted: none",
        "HALTED",
        nature=Nature(halts_in_deletion=False),
    ),
    Way("windows", "it rolls", True, "The group went from 4.3.1 to 4.2.1 in 2", "ROLLING", restart_on="4.2.1"),
    Way("windows", "no other release", False, "did not take effect", "ROLLING", all_steps_tried=False),
    *(
        Way("as-of-join", name, True, r"^instance-\d was killed with 0_", variant, all_steps_tried=True)
        for name, variant in (("an instance is killed", "DEFAULT_CONFIG"), ("a standby takes over", "STANDBY"))
    ),
    Way("as-of-join", "a zombie is fenced", True, "^instance-. stood still for .* it was fenced", "PAUSED"),
    Way(
        "as-of-join",
        "a zombie is not missed",
        False,
        BIT_NOT + "no instance took over",
        "PAUSED",
        nature=Nature(misses=False),
    ),
    Way(
        "as-of-join",
        "it starts again",
        True,
        r"opened as it had left them\. Of 20,000 that followed, 1.,... asked for a version, and 0 w",
        "RESTARTED",
    ),
    *(
        Way(
            "as-of-join",
            f"it has lost its store, {variant}",
            False,
            "again: restored from the beginning: versions-0, ver",
            variant,
            nature=Nature(leaves_checkpoint=False),
        )
        for variant in ("RESTARTED", "LATE")
    ),
    Way(
        "as-of-join",
        "in memory it is restored",
        True,
        "again: restored from the beginning: versions-0, ver",
        "RESTARTED",
        {"stores": "in-memory"},
    ),
    Way("as-of-join", "it is late", True, "asked for a version, and 1.,... were too old", "LATE", all_steps_tried=True),
    Way("as-of-join", "nobody asks", False, "1 that followed, 0 asked", "RESTARTED", {"first": 1, "records": 1}),
    Way("as-of-join", "it rolls", True, "The group went from 4.3.1 to 4.2.1 in 2", "ROLLING", restart_on="4.2.1"),
    Way(
        "punctuators", "an instance is killed", True, r"was killed with .*processed \d", "KILLED", all_steps_tried=True
    ),
    Way("punctuators", "by the wall clock", True, "was killed with", "KILLED_WALL_CLOCK"),
    Way("punctuators", "a zombie is fenced", True, "^instance-. stood still for .* it was fenced", "PAUSED"),
    Way(
        "punctuators",
        "a zombie is not missed",
        False,
        BIT_NOT + "no instance took over",
        "PAUSED",
        nature=Nature(misses=False),
    ),
    *(
        Way(
            "punctuators",
            "closed and started again",
            True,
            r"instance-2 \(0_1\) released 1[12],\d+ rec.* beginning: buffer-1",
            variant,
        )
        for variant in ("DEFAULT_CONFIG", "WALL_CLOCK")
    ),
    Way(
        "punctuators",
        "nothing moves",
        False,
        r"instance-2 \(no task\) .* no buffer was rest",
        parameters={"partitions": 1},
    ),
    Way("punctuators", "it rolls", True, "The group went from 4.3.1 to 4.2.1 in 2", "ROLLING", restart_on="4.2.1"),
    Way("punctuators", "no other release", False, "did not take effect", "ROLLING", all_steps_tried=False),
    *(
        Way("migration", name, exercised, f"^When its broker .*: {held}", variant, nature=nature, all_steps_tried=True)
        for name, exercised, held, variant, nature in (
            ("it is forgotten", True, "1 position, 1 streams", "DEFAULT_CONFIG", Nature()),
            ("nothing is compacted", False, "1 position, 1 classic", "NOT_COMPACTED", Nature()),
            ("nothing is forgotten", False, "1 position, 1 classic", "DEFAULT_CONFIG", Nature(forgets=False)),
        )
    ),
    Way("at-least-once", "no topic refuses", False, r"[1-9][\d,]* of the output were", nature=Nature(refuses=False)),
]


def named(way: Way) -> str:
    return f"{way.scenario}: {way.name}"


@contextmanager
def stopped(driver: Driver) -> Iterator[Driver]:
    """The driver, which is stopped in the end."""
    try:
        yield driver
    finally:
        driver.stop()


@pytest.fixture
def driver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Driver]:
    """The driver in the world of a way."""
    with stopped(request.param.driver(tmp_path)) as driver:
        yield driver


@pytest.mark.parametrize(("driver", "way"), [(way, way) for way in WAYS], ids=map(named, WAYS), indirect=["driver"])
def test_what_is_concluded(driver: Driver, way: Way) -> None:
    exercise = driver.scenario.drive(driver.lab)
    assert (exercise.exercised, bool(re.search(way.reason, exercise.reason))) == (way.exercised, True), exercise.reason
    assert way.all_steps_tried in (None, exercise.all_steps_tried)
    *_, last = [event for event in driver.context.events if event["event"] == "instance"]
    assert last["action"] == "closed"
    *_, drained = [event for event in driver.context.events if event["event"] == "drained"]
    assert drained["committed"] == driver.lab.end("input") > 0


@pytest.mark.parametrize(
    ("driver", "expected"),
    [
        (Way("at-least-once", "", False, "", "TIMED_OUT", nature=Nature(gives_up_again=again)), exercise)
        for again, exercise in ((True, [(2, {"input": {"0": [3_000, None]}})]), (False, []))
    ],
    indirect=["driver"],
)
def test_what_was_open_when_a_producer_gave_up_again_is_told(driver: Driver, expected: list[Any]) -> None:
    driver.drive()
    found = [(e["times"], e["open"]) for e in driver.context.events if e["event"] == "gave-up-again"]
    assert found == expected


@pytest.mark.parametrize("driver", [Way("far-future", "", False, "", nature=Nature(halts_after=700))], indirect=True)
def test_a_thread_that_spins_is_distinguished_from_an_idle_one(driver: Driver) -> None:
    exercise = driver.drive()
    assert exercise.reason.startswith("stuck: instance-1: Waited 10 s for 5,001 records to be committed")
    [spinning] = [event for event in driver.context.events if event["event"] == "spinning"]
    assert (spinning["instance"], spinning["at"], spinning["times"]) == ("instance-1", 2**63 - 2, 10)


THROWS = [
    Way(
        scenario,
        "a thread dies",
        False,
        r"^thread-died: instance-\d: .*IllegalStateException: There is no",
        # Else threads of two instances would die.
        {"as-of-join": "RESTARTED", "two-topics": "LAGGING"}.get(scenario, "DEFAULT_CONFIG"),
        nature=Nature(throws_after=1_000),
    )
    for scenario in SCENARIOS
    if scenario != "quota"  # which replaces threads
]
HALTS = [
    Way(
        scenario,
        "nobody goes on",
        scenario in ("far-future", "dead-letters"),  # which are about just that
        r"^stuck: instance-1.*: Waited \d+ s for .* without success",
        nature=Nature(halts_after=halts),
    )
    for scenario, halts in zip(
        SCENARIOS,
        (
            *(10_000, 2_000, 2_000, 300, 2_000, 1_000, 2_000, 1_000, 1_000),
            *(2_000, 1_000, 2_000, 2_000, 2_000, 700, 2_000, 2_000),
            *(2_000, 2_000, 4_000, 1_000, 2_000, 600, 150, 10_000),
        ),
        strict=True,
    )
]
UNCLEAN = [
    Way(scenario, "unclean", False, r"^unclean-close: instance-\d", nature=Nature(closes=False))
    for scenario in SCENARIOS
]


@check_each("way", [*THROWS, *HALTS, *UNCLEAN], named=named)
def test_a_failure_is_named_and_what_was_committed_is_read(way: Way, tmp_path_factory: pytest.TempPathFactory) -> None:
    with stopped(way.driver(tmp_path_factory.mktemp("trial"))) as driver:
        exercise = driver.drive()
        assert exercise.exercised is way.exercised
        assert re.search(way.reason, exercise.reason)
        assert "drained" not in {event["event"] for event in driver.context.events} or way in UNCLEAN
        [breach] = [c for c in compare_liveness(driver.context.events) if c.anomaly]
        assert breach.anomaly == way.reason.removeprefix("^").partition(":")[0]
        inputs = driver.context.plan.inputs
        committed = [end for name, end in driver.context.facts.items() if name.partition("_end/")[0] in inputs]
        assert sum(committed) == driver.lab.count_committed()


@check_each("way", [replace(way, nature=replace(way.nature, starves=True)) for way in HALTS], named=named)
def test_an_application_that_gets_no_cpu_is_not_stuck(way: Way, tmp_path_factory: pytest.TempPathFactory) -> None:
    with stopped(way.driver(tmp_path_factory.mktemp("trial"))) as driver:
        with pytest.raises(StoodStillError, match="too few CPUs"):
            driver.drive()
        assert not [c for c in compare_liveness(driver.context.events) if c.anomaly]


@pytest.mark.parametrize(
    "driver", [Way("at-least-once", "", False, "", nature=Nature(throws_after=3_500))], indirect=True
)
def test_topics_of_a_drive_that_failed_take_records_again(driver: Driver) -> None:
    driver.drive()
    group = driver.context.topics.group  # type: ignore[attr-defined]
    assert group.refusing
    driver.stop()
    assert not group.refusing


@pytest.mark.parametrize(
    ("driver", "locked"),
    [(Way("enumerator", "", False, "", nature=Nature(halts_after=10_000, keeps_lock=it)), it) for it in (True, False)],
    indirect=["driver"],
)
def test_why_a_trial_is_stuck_is_told_if_it_is_a_lock(driver: Driver, locked: bool) -> None:
    driver.drive()
    exercise = {(event["instance"], event["task"]) for event in driver.context.events if event["event"] == "locked"}
    assert exercise == ({("instance-1", "0_0"), ("instance-2", "0_0")} if locked else set())


@check_each("scenario", SCENARIOS)
def test_a_machine_that_stood_still_voids_the_trial(scenario: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    nature = Nature(stands_still_after=0.5, stands_still_for=SCENARIOS[scenario].stalled / 1_000 + 0.2)
    way = Way(scenario, "", False, "", nature=nature)
    with (
        stopped(way.driver(tmp_path_factory.mktemp("trial"))) as driver,
        pytest.raises(StoodStillError, match=r"^The machine stood still for (1|15)\.2 s \(driver\)"),
    ):
        driver.drive()


@pytest.mark.parametrize(
    "driver",
    [Way("leaks", "", False, "", nature=Nature(stands_still_after=0.5, stands_still_for=14.9))],
    indirect=True,
)
def test_stalls_are_allowed_where_nothing_depends_on_time(driver: Driver) -> None:
    assert driver.drive().exercised
    assert driver.context.void is None


@pytest.mark.parametrize(
    "driver",
    [Way("quota", "", False, "", nature=Nature(overloaded=True, fails_throttled=fails)) for fails in (True, False)],
    indirect=True,
)
def test_a_machine_that_has_too_much_to_do_accuses_no_quota(driver: Driver) -> None:
    with pytest.raises(StoodStillError, match=r"the generator, which has no quota, fell \d\.\d s behind its pace"):
        driver.drive()


@pytest.mark.parametrize("driver", [Way("quota", "", True, "", nature=Nature(throws_after=100))], indirect=True)
def test_a_replaced_thread_does_not_end_the_drive(driver: Driver) -> None:
    driver.scenario.drive(driver.lab)
    [exercise] = [c for c in compare_liveness(driver.context.events) if c.anomaly]
    assert exercise.anomaly == "thread-died"
    assert "died of java.lang.IllegalStateException: There is no such task., at org.apache" in exercise.observed


@pytest.mark.parametrize(
    ("driver", "how"),
    [
        (Way("crash", "", True, ""), "wiped"),
        (Way("crash", "", True, "", nature=Nature(keeps_checkpoint=True)), "trusted"),
        (Way("crash", "", True, "", nature=Nature(flushes=False)), "kept"),
    ],
    indirect=["driver"],
)
def test_how_the_store_was_initialised_after_the_crash_is_told(driver: Driver, how: str) -> None:
    driver.scenario.drive(driver.lab)
    assert [event["how"] for event in driver.context.events if event["event"] == "initialised"] == [how]
    observed = driver.scenario.observe(driver.context.trial, driver.context.events)
    assert {comparison.anomaly for comparison in observed} - {None} == {
        "wiped": set(),
        "kept": set(),
        "trusted": {"skipped-wipe", "stale-checkpoint"},
    }[how]


@pytest.mark.parametrize("driver", [Way("quota", "", True, "", nature=Nature(fails_throttled=True))], indirect=True)
def test_a_failed_throttled_producer_ends_the_load(driver: Driver) -> None:
    driver.scenario.drive(driver.lab)
    [exercise] = [c for c in driver.scenario.observe(driver.context.trial, driver.context.events) if c.anomaly]
    assert (exercise.anomaly, exercise.expected) == ("aborted-by-throttle", "no InvalidProducerEpochException")
    [held] = [event for event in driver.context.events if event["event"] == "held"]
    assert (held["request"], held["ms"] >= 30_000) == ("AddOffsetsToTxn", True)
    assert driver.lab.end("input") < len(driver.lab.workload.second)


def test_a_quota_that_a_drive_left_is_lifted_at_the_end(tmp_path: Path) -> None:
    driver = fake_driver(a_trial("3.9.1", scenario="quota"), tmp_path)
    driver.lab.limits.set_producer_quota("a", 1_000)
    driver.lab.limits.set_producer_quota("b", 1_000)
    driver.lab.limits.set_producer_quota("b", None)
    driver.stop()
    quotas = [(e["client"], e["bytes_per_second"]) for e in driver.context.events if e["event"] == "quota"]
    assert quotas == [("a", 1_000), ("b", 1_000), ("b", None), ("a", None)]
