"""The parts that several commands share: options, and the cell, the seed and the run that follow from them."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from onceproof.cli.completion import complete_plant, complete_scenario
from onceproof.cli.terminal import err
from onceproof.model.cell import Cell, Trial
from onceproof.model.errors import UsageError
from onceproof.model.matrices import Block, Matrix
from onceproof.model.matrix import Request, expand
from onceproof.scenarios import CATALOGUE, parse_settings, scenario
from onceproof.settings import get_settings

StreamsOption = Annotated[
    str,
    typer.Option(
        "--streams",
        metavar="V|DIR",
        help="Kafka Streams release, e.g. 3.3.1, newest, previous, or 4.3 for its newest patch; or the folder of a "
        "build.",
    ),
]
JunitOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the verdicts as JUnit XML, a test case for each cell.")
]
SummaryOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the run as Markdown, for a pull request or a job summary.")
]
BrokerOption = Annotated[
    str, typer.Option("--broker", metavar="V|DIR", help="Broker release, as for --streams, or a build.")
]
MavenRepoOption = Annotated[
    list[str],
    typer.Option("--maven-repo", metavar="URL|DIR", help="Maven repository of builds: docs/builds.md; repeatable."),
]
_BROKERS = typer.Option("--brokers", metavar="FILE", help="Your own brokers, as a client.properties: docs/brokers.md.")
BrokersOption = Annotated[Path | None, _BROKERS]
RequiredBrokersOption = Annotated[Path, _BROKERS]
VariantOption = Annotated[str, typer.Option("--variant", metavar="NAME", help="See `onceproof scenario list`.")]
SeedOption = Annotated[
    int | None, typer.Option("--seed", min=0, help="Seed of the first trial; by default a random one.")
]
ScenariosOption = Annotated[
    list[str], typer.Option("--scenario", metavar="S", help="Repeatable.", autocompletion=complete_scenario)
]
PlantOption = Annotated[
    str | None,
    typer.Option(
        "--plant",
        metavar="NAME",
        help="Put this bug into the release: `onceproof check plants`.",
        autocompletion=complete_plant,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


def new_run_id() -> str:
    """An id for a run that begins now."""
    from onceproof.pipeline import steps

    return steps.random_run_id()


def exact_releases(texts: Iterable[str]) -> tuple[str, ...]:
    """Texts with releases in place of words; the error stream has what they mean (`lab.releases.exact`)."""
    from onceproof.lab.releases import exact

    return exact(get_settings().installation, texts, partial(err.print, markup=False, soft_wrap=True, highlight=False))


def resolve_streams(texts: Iterable[str], repositories: Sequence[str]) -> tuple[str, ...]:
    """The names of releases and builds of Kafka Streams, words resolved; a build is taken in (`lab.builds`)."""
    from onceproof.lab.artifacts import STREAMS
    from onceproof.lab.builds import name_release

    named = exact_releases(texts)
    return tuple(name_release(get_settings().installation, text, repositories, STREAMS) for text in named)


def resolve_brokers(texts: Iterable[str], repositories: Sequence[str]) -> tuple[str, ...]:
    """As `resolve_streams`, of brokers."""
    from onceproof.lab.artifacts import BROKER
    from onceproof.lab.builds import name_release

    named = exact_releases(texts)
    return tuple(name_release(get_settings().installation, text, repositories, BROKER) for text in named)


def check_own_nodes(brokers: Path | None, nodes: int | None) -> None:
    """Check that it is not said how many brokers are to be started where none is.

    Raises:
        UsageError: it is.
    """
    if brokers is not None and nodes is not None:
        raise UsageError(
            "--nodes says how many brokers are started, and with --brokers none is; leave out one of them."
        )


def cell_of(
    name: str, variant: str, streams: str, broker: str, restart_on: str | None, settings: list[str]
) -> tuple[Cell, dict[str, Any]]:
    """The cell, and the parameters that are asked for and differ from its variant's, when all of it can be run here.

    Raises:
        UsageError: it does not, or cannot.
    """
    from onceproof.lab.artifacts import check_published, streams_class_path
    from onceproof.lab.java import require_javas

    restarts = (restart_on,) if restart_on else ()
    matrix = Matrix("one", "A cell alone.", (Block(name, (variant,), (streams,)),), brokers=(broker,))
    wanted = Request(matrix, scenarios=(name,), variants=(variant,), restarts=restarts)
    # Whether it can be run depends on the trial's own values, not on its variant's.
    [cell] = expand(wanted, {name: replace(offer, refuse=lambda _: None) for name, offer in CATALOGUE.items()}).cells
    values = scenario(name).values(Trial("", cell, 1, 0))
    parameters = {name_: value for name_, value in parse_settings(name, settings).items() if value != values[name_]}
    trial, installation = Trial("", cell, 1, 0, parameters), get_settings().installation
    scenario(name).validate(trial)
    require_javas(installation, [trial])
    check_published(installation, {cell.streams, cell.running, cell.broker})
    for release in {cell.streams, cell.running}:
        streams_class_path(installation, release)
    return cell, parameters


def seed_or_random(seed: int | None) -> int:
    """The seed that is given, else a random one."""
    return random.SystemRandom().randrange(2**31) if seed is None else seed
