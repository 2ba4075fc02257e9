"""The promise `state`: after a restart a store holds what its changelog held as committed."""

from collections.abc import Iterator

from onceproof.model.anomaly import Comparison
from onceproof.model.place import Place
from onceproof.model.record import Facts, Record, Topics
from onceproof.readers.comparisons import by_place, value_text


def compare_state(store: str, topics: Topics, facts: Facts) -> Iterator[Comparison]:
    """The content of a store after the restart, compared with what its changelog held as committed when the process was
    killed.

    Nothing if the drive failed before that was read (there is no fact `<store>_end`).
    """
    end = facts.get(f"{store}_end")
    if end is None:
        return
    changelog = sorted(topics[f"{store}-changelog"], key=by_place)
    committed: dict[int | None, Record] = {record[2]: record for record in changelog if record[1] < end}
    held = {key: (line, value) for _, line, key, value, *_ in topics.get(f"{store}-contents", ())}
    for key in committed.keys() | held.keys():
        record, entry = committed.get(key), held.get(key)
        expected, observed = record[3] if record else None, entry[1] if entry else None
        if expected is None and observed is None:
            continue
        anomaly = None
        if observed is None:
            anomaly = "lost-state"
        elif observed != expected:
            anomaly = "uncommitted-state"
        place = (
            Place(f"{store}-changelog", 0, record[1])
            if record
            else Place(f"{store}-contents", 0, entry[0] if entry else 0)
        )
        yield Comparison("state", anomaly, 0, key, str(place), value_text(expected), value_text(observed))
