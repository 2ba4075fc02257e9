"""A statement and Python write a place in the same way, and what either wrote is read as the place that was meant."""

from onceproof.model.place import Place
from spark_jobs.questions import open_database

PLACES = [Place("input", 0, 0), Place("counter-changelog", 1, 62_999), Place("output", 32_767, 2**48 - 1)]


def test_a_place_is_written_alike_in_both_languages() -> None:
    with open_database() as database:
        for role, partition, offset in PLACES:
            [texts] = database.execute(
                "select place_text($1, $2, $3), text_of_place($1, place_of($2, $3))", [role, partition, offset]
            ).fetchall()
            assert set(texts) == {str(Place(role, partition, offset))}
            assert Place.parse(texts[0]) == Place(role, partition, offset)
