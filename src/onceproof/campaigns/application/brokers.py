"""Brokers of the runs of an application: its releases share them, and two runs side by side have some each.

There an application's topics are called as it calls them, so two runs cannot have the same brokers at once.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from onceproof.campaigns.application.side_by_side import side_by_side
from onceproof.installation import Installation
from onceproof.lab.cluster import Cluster, EmbeddedCluster
from onceproof.lab.external_brokers import ExternalCluster, lend, needs_own_cluster, own_cluster
from onceproof.lab.world import World
from onceproof.model.cell import Trial
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder

LANES = 2  # runs that stand side by side


class ApplicationBrokers:
    """Starts brokers when they are needed, and stops them at the end of a `with` block."""

    def __init__(self, installation: Installation, run: RunFolder, external: ExternalCluster | None = None) -> None:
        """None are started yet.

        Args:
            installation: for brokers of our own.
            run: whose folder takes what they write.
            external: brokers to run on, asked before what they allow (`check_access`); None for brokers of our own.
        """
        self._installation, self._run, self.external = installation, run, external
        self._shared: dict[Release, tuple[Cluster, ...]] = {}
        self._lasting = ExitStack()

    def __enter__(self) -> "ApplicationBrokers":
        """External brokers are lent until the end."""
        if self.external is not None:
            self._lasting.enter_context(lend(self.external, self._run.run_id))
        return self

    def __exit__(self, *_: object) -> None:
        """Stop those of our own, and remove what the run left on others."""
        self._lasting.close()

    @contextmanager
    def of(self, trial: Trial) -> Iterator[tuple[Cluster, ...]]:
        """Brokers for the runs of which this is one: as many as may stand side by side.

        A trial that cannot share any has some of its own.

        Raises:
            UsageError, HarnessError: they did not start.
        """
        if self.external is not None:
            yield (self.external,)
        elif needs_own_cluster(trial):
            with own_cluster(self._installation, trial, self._run.trial(trial)) as own:
                yield (own,)
        else:
            yield self._lanes(trial.cell.broker)

    def _lanes(self, release: Release) -> tuple[Cluster, ...]:
        if release not in self._shared:
            numbers = range(1, LANES + 1)
            self._shared[release] = tuple(side_by_side([partial(self._start, release, n) for n in numbers]))
        return self._shared[release]

    def _start(self, release: Release, number: int, _world: World) -> Cluster:
        folder = self._run.path / f"cluster-{release}-{number}"
        cluster = EmbeddedCluster.start(self._installation, release, folder)
        self._lasting.callback(cluster.stop)
        return cluster
