"""What is planned of a trial, from its scenario: all that seeding, driving and judging it go by."""

from onceproof.faults import chosen
from onceproof.lab.cluster import Cluster, EmbeddedCluster
from onceproof.lab.load import producer_config
from onceproof.lab.segments import why_no_segments
from onceproof.model.cell import Trial
from onceproof.model.files import TrialPlan
from onceproof.model.plants import plant
from onceproof.model.promise import TRANSACTION_ATOMICITY, least_of, promises_of
from onceproof.scenarios import scenario
from onceproof.scenarios.base import values_of
from onceproof.scenarios.liveness import PROMISE as LIVENESS

# What the lab adds to a scenario's own configuration, and why.
LAB_CONFIG = {
    # Members learn of a rebalance by their heartbeats; with Kafka's 3 s each step of a trial would take that long.
    "main.consumer.heartbeat.interval.ms": "200",
}
# What under `group.protocol=streams` is configuration of the group, on the brokers (KIP-1071); clients ignore it.
OF_GROUP = {
    "num.standby.replicas": "streams.num.standby.replicas",
    "main.consumer.session.timeout.ms": "streams.session.timeout.ms",
    "main.consumer.heartbeat.interval.ms": "streams.heartbeat.interval.ms",
}
ATOMICITY = tuple(promise.name for promise in promises_of(TRANSACTION_ATOMICITY))


def plan_of(trial: Trial, cluster: Cluster) -> TrialPlan:
    """The plan of a trial that is not provisioned yet: the brokers' files may still change."""
    what = scenario(trial.cell.scenario)
    system, partitions = what.system(trial), what.partitions(trial)
    values = values_of(trial, what.parameters, what.variants)
    fault = chosen(values)
    config = {**LAB_CONFIG, **what.config(trial), **(fault.config(values) if fault else {})}
    of_group = OF_GROUP if config.get("group.protocol") == "streams" else {}
    why_not = why_no_segments(cluster, config["processing.guarantee"])
    return TrialPlan(
        trial=trial,
        application_id=trial.application_id,
        description=what.variant(trial.cell.variant).description,
        parameters=trial.parameters,
        plant=plant(trial.plant).to_dict() if trial.plant else None,
        partitions=partitions,
        roles=system.topics,
        check=system.topology,
        promises=least_of([*system.promises, LIVENESS, *(ATOMICITY if why_not is None else ())]),
        not_looked_at={} if why_not is None else dict.fromkeys(ATOMICITY, why_not),
        stores=system.stores,
        partition_stores=system.stores * partitions,
        app=what.app(trial),
        streams_config={name: value for name, value in config.items() if name not in of_group},
        group_config={of_group[name]: value for name, value in config.items() if name in of_group},
        producer_config=producer_config(cluster),
        broker_config={},
        seconds={},
    )


def reads_segments(plan: TrialPlan) -> bool:
    """Whether the brokers' log segments are looked at."""
    return not plan.promises.keys().isdisjoint(ATOMICITY)


def needs_dead_broker(trial: Trial) -> bool:
    """Whether a topic of the trial must be able to refuse records."""
    return any(role.may_refuse for role in scenario(trial.cell.scenario).system(trial).roles.values())


def broker_config(cluster: Cluster) -> dict[str, str]:
    """Files of the embedded brokers, by name; nothing is known of external ones."""
    if not isinstance(cluster, EmbeddedCluster):
        return {}
    return {file.name: file.read_text() for file in sorted(cluster.folder.glob("*.properties"))}
