"""A scan of a cached store finds no deleted key, also after a second start.

As in `scan` (KAFKA-18326), keys are put and committed, and then deleted one by one with a scan after each deletion.
Here the application starts again in the middle, so that its cache is cold a second time.
"""

from dataclasses import replace

from pydantic import Field

from onceproof.model.parameter import Share
from onceproof.scenarios import scan
from onceproof.scenarios.base import Exercise, ScenarioContext, Variant, behind, variants_of


class Parameters(scan.Parameters):
    """The parameters of `scan`, and one more."""

    early: Share = Field(0.5, description="share of the deletions that come before the second start")


VARIANTS = variants_of(
    Variant("DEFAULT_CONFIG", "A cached persistent store, scanned after each of two starts."),
    Variant("CACHING_DISABLED", "As DEFAULT_CONFIG; the store is not cached.", {"caching": False}),
)


def drive(lab: ScenarioContext) -> Exercise:
    """Put, start again, delete some and scan, start again, delete the rest and scan."""
    parameters = Parameters.of(lab.parameters)
    lab.measure(reach=parameters.reach, all_every=parameters.all_every)
    puts, deletes = lab.workload.first, lab.workload.second
    early = round(len(deletes) * parameters.early)
    with lab.phase("put"):
        lab.instances.start(scan.NAME)
        lab.await_(f"{len(puts):,} records to be committed", lambda: lab.count_committed() >= len(puts))
        lab.instances.stop(scan.NAME)
    with lab.phase("scan"):
        lab.instances.start(scan.NAME)
        lab.note("cold", open={"input": behind(puts, parameters.partitions)})
        lab.produce("deletes", deletes[:early])
        lab.await_(f"{early:,} deletions to be committed", lambda: lab.count_committed() >= len(puts) + early)
        lab.instances.stop(scan.NAME)
    with lab.phase("second scan"):
        lab.instances.start(scan.NAME)
        lab.produce("second deletes", deletes[early:])
        lab.await_drained()
    with lab.phase("leave"):
        lab.close_instances()
    scans = scan.scans_behind_others(puts, deletes, parameters) if parameters.caching else 0
    return Exercise(scans > 0, f"{scans:,} scans met a key that was not in the cache.", all_steps_tried=True)


SCENARIO = replace(
    scan.SCENARIO,
    name="second-scan",
    title="A scan of a cached store finds no deleted key, also after a second start (KAFKA-18326)",
    parameters=Parameters,
    variants=VARIANTS,
    drive=drive,
)
