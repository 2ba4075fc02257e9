import pytest

from onceproof.model.errors import UsageError
from onceproof.model.matrix import MATRICES, Request, expand
from onceproof.scenarios import CATALOGUE


def keys(request):
    return [cell.key for cell in expand(request, CATALOGUE).cells]


def test_the_seed_matrix_has_nine_cells_bad_release_first():
    cells = expand(Request("seed"), CATALOGUE).cells
    assert len(cells) == 9
    assert str(cells[0].streams) == "3.3.1"
    assert {c.variant for c in cells} == {"DEFAULT_CONFIG", "CACHING_DISABLED", "NO_LAG_ACCEPTABLE"}


@pytest.mark.parametrize("name", MATRICES)
def test_every_matrix_can_be_expanded(name):
    cells = expand(Request(name), CATALOGUE).cells
    assert len(cells) == len(set(cells)) > 0


def test_axes_replace_those_of_the_matrix_in_release_order():
    assert keys(Request("seed", streams=("3.10.0", "3.9.1", "3.9.1"), variants=("DEFAULT_CONFIG",))) == [
        "enumerator-DEFAULT_CONFIG-s3.9.1-b3.9.1",
        "enumerator-DEFAULT_CONFIG-s3.10.0-b3.9.1",
    ]


def test_several_brokers_are_an_axis():
    assert len(keys(Request("seed", brokers=("3.9.1", "4.0.0")))) == 18


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request("weekly"), "There is no matrix 'weekly'"),
        (Request(streams=("3.3",)), "'3.3' is not a Kafka release"),
        (Request(scenarios=("enum",)), "There is no scenario 'enum'"),
        (Request(variants=("DEFAULT",)), "There is no variant 'DEFAULT'"),
        (Request(trials=0), "0 trials cannot be run"),
        (Request(trials=101), "101 trials cannot be run"),
    ],
)
def test_a_request_that_cannot_be_carried_out_is_refused(request_, said):
    with pytest.raises(UsageError, match=said):
        expand(request_, CATALOGUE)
