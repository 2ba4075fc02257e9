"""The cells of the matrix `atlas`, and the parts of it that several machines run."""

from itertools import chain

import pytest

from onceproof.atlas.plan import Shard, possible_cells, read_published, select_shard
from onceproof.model.errors import UsageError
from onceproof.model.known_issues import OF_BROKERS, registry
from onceproof.model.matrices import MATRICES, parse_matrices
from onceproof.model.matrix import Request, expand
from onceproof.model.published import Published
from onceproof.model.release import Release
from onceproof.scenarios import CATALOGUE
from onceproof.scenarios.cover import exact
from onceproof.settings import Settings

RELEASES = ("3.0.0", "3.0.2", "3.3.1", "3.4.0", "3.4.1", "3.9.0", "3.9.1", "4.0.0", "4.1.2", "4.2.0", "4.2.1", "4.4.0")
KNOWN = Published.of(map(Release.parse, RELEASES), "as the test says")


def cells_of(request):
    return expand(exact(request, lambda: KNOWN, registry(), CATALOGUE), CATALOGUE).cells


@pytest.fixture(scope="module")
def cells():
    return cells_of(Request("atlas"))


def test_each_scenario_has_its_default_and_variants_of_issues():
    named = MATRICES["atlas"].list_named()
    assert named.keys() == CATALOGUE.keys()
    for scenario, offer in CATALOGUE.items():
        provoking = {issue.provoked[scenario][0] for issue in registry().issues if issue.provoked.get(scenario)}
        assert {offer.variants[0], *provoking} <= set(named[scenario]), scenario
    rolling = {(scenario, "ROLLING") for scenario, offer in CATALOGUE.items() if "ROLLING" in offer.rolling}
    assert rolling <= {(scenario, variant) for scenario, variants in named.items() for variant in variants}


def test_each_release_is_measured_in_each_scenario_it_can_run(cells):
    scan = [str(cell.streams) for cell in cells if cell.scenario == "scan"]
    assert scan == list(RELEASES)
    assert {str(cell.broker) for cell in cells if cell.scenario != "migration"} == {"4.4.0"}


def test_upgrades_go_to_the_next_line_and_back_and_to_the_newest(cells):
    ways = [cell.releases for cell in cells if (cell.scenario, cell.variant) == ("enumerator", "ROLLING")]
    assert {"3.9.1 → 4.0.0", "3.9.1 → 3.4.1", "3.9.1 → 4.4.0", "4.2.1 → 4.4.0", "4.2.1 → 4.1.2"} <= set(ways)
    assert not {"4.0.0 → 3.9.1", "3.9.0 → 4.0.0", "3.4.1 → 4.0.0"} & set(ways)
    assert len(ways) == len(set(ways))


def test_a_new_release_enters_without_a_change_of_the_file(cells):
    newer = Published.of([*KNOWN.releases, Release.parse("4.5.0")], "as the test says")
    after = expand(exact(Request("atlas"), lambda: newer, registry(), CATALOGUE), CATALOGUE).cells
    assert {"4.5.0", "4.4.0 → 4.5.0", "4.5.0 → 4.4.0"} <= {cell.releases for cell in after}


def test_issues_of_brokers_are_looked_for_on_brokers():
    [scenario] = {scenario for issue in registry().issues if issue.culprit == OF_BROKERS for scenario in issue.provoked}
    assert {str(cell.broker) for cell in cells_of(Request("atlas", scenarios=(scenario,)))} > {"4.4.0"}


@pytest.mark.parametrize("of", [1, 2, 3, 8, 30])
def test_shards_are_all_of_it_and_each_cell_once(cells, of):
    parts = [Shard(number, of).cells(cells) for number in range(1, of + 1)]
    assert sorted(chain(*parts), key=lambda cell: cell.key) == sorted(cells, key=lambda cell: cell.key)
    groups = [{(cell.scenario, cell.variant, cell.broker) for cell in part} for part in parts]
    assert sum(map(len, groups)) == len(set().union(*groups))  # so that each has the controls of its variants


def test_a_shard_is_a_matrix_of_its_own_cells(cells):
    request = exact(Request("atlas", trials=2), lambda: KNOWN, registry(), CATALOGUE)
    own = select_shard(request, Shard(2, 5))
    assert list(expand(own, CATALOGUE).cells) == Shard(2, 5).cells(cells)
    assert (expand(own, CATALOGUE).trials, expand(own, CATALOGUE).plants) == (2, 1)


def test_a_shard_without_a_cell_is_refused():
    request = exact(Request("atlas", scenarios=("scan",)), lambda: KNOWN, registry(), CATALOGUE)
    with pytest.raises(UsageError, match="shard 2/2 of the matrix atlas has no cell"):
        select_shard(request, Shard(2, 2))


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "1/0", "-1/3", "1/3/5", "a/b", "1/99999", "٢/٣"])
def test_what_is_no_shard_is_refused(text):
    with pytest.raises(UsageError, match="is no shard"):
        Shard.parse(text)


@pytest.mark.parametrize("axes", ['streams = ["next-line"]', 'restarts = [["next-line", "newest"]]'])
def test_the_next_line_is_that_of_each_line(axes):
    text = f'[m]\ndescription = "d"\n[[m.blocks]]\nscenario = "scan"\nvariants = ["DEFAULT_CONFIG"]\n{axes}\n'
    with pytest.raises(UsageError, match="next-line has a meaning only together with each-line"):
        parse_matrices(text, "file")


def test_one_resolved_release_does_not_hide_registered_ones(tmp_path):
    installation = Settings(home=tmp_path, maven="no-such-maven").installation
    never_used = read_published(installation)
    cells = possible_cells(installation)
    installation.artifacts.mkdir(parents=True)
    (tmp_path / "a.jar").touch()
    (installation.artifacts / "kafka-streams-4.3.0.classpath").write_text(str(tmp_path / "a.jar"))
    known = read_published(installation)
    assert known.releases == never_used.releases
    assert "resolved here" in known.source
    assert possible_cells(installation) == cells
