"""Many cases in one test: all are looked at, and a failure names each case that failed."""

import pytest

from tests.cases import check_each


def test_each_case_that_fails_is_named_and_all_are_looked_at() -> None:
    looked_at = []

    @check_each("number, word", [(1, "one"), (2, "two"), (3, "three"), (4, "four")], named=lambda case: case[1])
    def check(number: int, word: str, limit: int) -> None:
        looked_at.append(word)
        assert number != limit
        if number == 4:
            pytest.fail("It is four.")  # as `pytest.raises` does, where nothing is raised

    with pytest.raises(BaseExceptionGroup, match=r"^2 of 4 cases failed: two; four$") as failure:
        check(limit=2)
    assert looked_at == ["one", "two", "three", "four"]
    assert [error.__notes__ for error in failure.value.exceptions] == [
        ["It is the case two."],
        ["It is the case four."],
    ]
    with pytest.raises(BaseExceptionGroup, match=r"^1 of 4 cases failed: four$"):
        check(limit=0)


def test_without_a_case_there_is_no_test() -> None:
    with pytest.raises(ValueError, match=r"^There is no case of number\.$"):
        check_each("number", [])


@check_each("word", ["a", "b"])
def test_fixtures_are_shared(word: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert (tmp_path_factory.mktemp(word) / "x").parent.is_dir()
