"""The plan of a trial, from its scenario: everything that preloading, driving and judging it depend on."""

from collections.abc import Iterable

from onceproof.lab.cluster import Cluster
from onceproof.lab.load import producer_config
from onceproof.model.capability import Capability
from onceproof.model.cell import Trial
from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.files import TrialPlan
from onceproof.model.plants import plant
from onceproof.model.promise import PROMISES, TRANSACTION_ATOMICITY, least_of, promises_of
from onceproof.scenarios import scenario
from onceproof.scenarios.prepared import PreparedTrial

# What the lab adds to a scenario's own configuration, and why.
LAB_CONFIG = {
    # Members learn of a rebalance by their heartbeats; with Kafka's 3 s each step of a trial would take that long.
    "main.consumer.heartbeat.interval.ms": "200",
}
# What is group configuration on the brokers under `group.protocol=streams` (KIP-1071); clients ignore it.
OF_GROUP = {
    "num.standby.replicas": "streams.num.standby.replicas",
    "main.consumer.session.timeout.ms": "streams.session.timeout.ms",
    "main.consumer.heartbeat.interval.ms": "streams.heartbeat.interval.ms",
}
ATOMICITY = tuple(promise.name for promise in promises_of(TRANSACTION_ATOMICITY))
SESSION = "main.consumer.session.timeout.ms"


def plan_of(prepared: PreparedTrial, cluster: Cluster) -> TrialPlan:
    """The plan of a trial that is not provisioned yet: the brokers' files may still change.

    Raises:
        HarnessError: on brokers that are not ours, a topic does not bear the trial's id, or the trial another prefix.
    """
    trial, scenario_, system, fault = prepared.trial, prepared.scenario, prepared.system, prepared.fault
    partitions = scenario_.partitions(trial)
    app, config = scenario_.app(trial), dict(scenario_.config(trial))
    if "command" not in app:  # that of a black box is its own
        config = {**LAB_CONFIG, **config, **(fault.config(prepared.parameters) if fault else {})}
    of_group = OF_GROUP if config.get("group.protocol") == "streams" else {}
    if cluster.is_claimed:  # Kafka Streams closes without leaving the group, which can be deleted when all are missed
        config.setdefault(SESSION, "0")
    if SESSION in config:
        config[SESSION] = str(max(int(config[SESSION]), cluster.least_session_ms))
    wanted = [*system.all_promises, *ATOMICITY]
    not_looked_at = {**system.not_looked_at, **_not_looked_at(wanted, cluster, config["processing.guarantee"])}
    plan = TrialPlan(
        trial=trial,
        application_id=trial.application_id,
        description=scenario_.variant(trial.cell.variant).description,
        parameters=trial.parameters,
        plant=plant(trial.plant).to_dict() if trial.plant else None,
        partitions=partitions,
        roles=system.topics,
        check=system.topology,
        promises=least_of(promise for promise in wanted if promise not in not_looked_at),
        not_looked_at=not_looked_at,
        stores=system.stores,
        partition_stores=system.stores * partitions,
        entry_stores=sum(role.store is not None for role in system.roles.values()) * partitions,
        app=app,
        streams_config={name: value for name, value in config.items() if name not in of_group},
        later=scenario_.later(trial),
        group_config={of_group[name]: value for name, value in config.items() if name in of_group},
        producer_config=producer_config(cluster),
        broker_config={},
        broker_is_claimed=cluster.is_claimed,
        preloaded=len(prepared.workload.first),
    )
    if trial.prefix != cluster.prefix:
        raise HarnessError(
            f"The names of {trial.key} begin with {trial.prefix}., and those at {cluster.bootstrap_servers} with "
            f"{cluster.prefix}.: leave ONCEPROOF_PREFIX as it is while a run is under way."
        )
    bare = [topic for topic in map(plan.topic, plan.roles) if not topic.startswith(trial.topic(""))]
    if cluster.is_claimed and bare:  # an earlier one of that name would be deleted
        raise HarnessError(f"{bare[0]} may be in use at {cluster.bootstrap_servers}: it is left alone.")
    return plan


def reads_segments(plan: TrialPlan) -> bool:
    """Whether the brokers' log segments are looked at."""
    return not plan.promises.keys().isdisjoint(ATOMICITY)


def needs_dead_broker(trial: Trial) -> bool:
    """Whether a topic of the trial must be able to refuse records."""
    return Capability.REFUSE_RECORDS in scenario(trial.cell.scenario).needs(trial)


def check_capabilities(trial: Trial, cluster: Cluster) -> None:
    """Check, before anything is started, that the brokers allow what the trial needs.

    Raises:
        UsageError: they do not.
    """
    lacking = scenario(trial.cell.scenario).needs(trial) - cluster.capabilities
    if lacking:
        needed = " and ".join(sorted(capability.value for capability in lacking))
        raise UsageError(
            f"{trial.cell.scenario} {trial.cell.variant} needs {needed}, which the brokers at "
            f"{cluster.bootstrap_servers} do not allow: leave out --brokers, so that it has brokers of its own."
        )


def _not_looked_at(promises: Iterable[str], cluster: Cluster, guarantee: str) -> dict[str, str]:
    """The promises that cannot be checked, and why."""
    reasons = {}
    for name in promises:
        needs = PROMISES[name].needs
        if name in ATOMICITY and guarantee == "at_least_once":
            reasons[name] = "under at_least_once there are no transactions"
        elif needs is not None and needs not in cluster.capabilities:
            reasons[name] = f"it needs {needs.value}, which these brokers do not allow"
    return reasons
