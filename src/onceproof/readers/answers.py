"""The promises `answers` and `published`: a request to delete is answered once, in agreement with its deletion."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Facts, Record
from onceproof.readers.comparisons import by_place

CHANGELOG = "records-changelog"
DELETE = 0  # value of the input
TRUE, FALSE = 1, 0  # values of the output


def _deletes(inputs: Sequence[Record]) -> dict[int | None, Record]:
    """The request to delete each key."""
    return {record[2]: record for record in inputs if record[3] == DELETE}


def compare_answers(inputs: Sequence[Record], outputs: Sequence[Record]) -> Iterator[Comparison]:
    """Each key's answers: one, and true; and none without a request."""
    answers: dict[int | None, list[Record]] = defaultdict(list)
    for record in sorted(outputs, key=by_place):
        answers[record[2]].append(record)
    for key, request in _deletes(inputs).items():
        got = [record[3] for record in answers[key]]
        anomaly = None
        if not got:
            anomaly = "lost-record"
        elif FALSE in got:
            anomaly = "false-after-true"
        elif len(got) > 1:
            anomaly = "duplicate-output"
        p, offset = answers[key][-1][:2] if got else request[:2]
        place = str(Place("output" if got else "input", p, offset))
        yield Comparison("answers", anomaly, p, key, place, "true", _text(got))
    for key in answers.keys() - _deletes(inputs).keys():
        got, (p, offset, *_) = [record[3] for record in answers[key]], answers[key][-1]
        place = str(Place("output", p, offset))
        yield Comparison("answers", "unexpected-record", p, key, place, "nothing", _text(got))


def _text(answers: Sequence[int | None]) -> str:
    return ", ".join("true" if answer == TRUE else "false" for answer in answers) or "nothing"


def compare_published(
    inputs: Sequence[Record], outputs: Sequence[Record], changelog: Sequence[Record], facts: Facts
) -> Iterator[Comparison]:
    """Each key at the moment of the crash: its deletion and its answer are both published, or neither is."""
    answered = {r[2]: r[1] for r in reversed(outputs) if r[1] < facts["output_end"]}
    deleted = {r[2]: r[1] for r in reversed(changelog) if r[3] is None and r[1] < facts["changelog_end"]}
    for key, (p, offset, *_) in _deletes(inputs).items():
        answer, deletion = answered.get(key), deleted.get(key)
        parted = (answer is None) != (deletion is None)
        expected = "both or neither" if parted else "both" if answer is not None else "neither"
        observed = ", ".join(
            [
                *([] if deletion is None else [f"deletion {Place(CHANGELOG, p, deletion)}"]),
                *([] if answer is None else [f"answer {Place('output', p, answer)}"]),
            ]
        )
        anomaly = "changelog-output-mismatch" if parted else None
        yield Comparison("published", anomaly, p, key, str(Place("input", p, offset)), expected, observed or "neither")
