"""The verbs of DAG `release_watch`: newly published releases get a run."""

from typing import Any

from onceproof.installation import Installation
from onceproof.model.errors import OnceproofError
from onceproof.model.release import Release
from onceproof.settings import get_settings

# As in `steps`: heavy modules are imported by the verb that needs them.


def look(*, matrix: str, pre_releases: bool, catch_up: bool) -> list[dict[str, Any]]:
    """Look at what is published; returns what is to be triggered, as arguments of `TriggerDagRunOperator`.

    A release was seen if it is recorded. The very first look records what is published and triggers nothing. A release
    whose artifacts cannot be resolved is reported once, and looked at again. The ids of the runs follow from
    the releases: whatever is repeated, no release gets a second run. One whose run has no verdict is reported at each
    look.

    Args:
        matrix: of the runs.
        pre_releases: also candidates; without it they are recorded as seen.
        catch_up: also what is published and recorded but was never judged.

    Raises:
        UsageError: there is no Maven.
        HarnessError: Maven could not reach its registry, or the database refuses.
    """
    from onceproof.lab.releases import list_published
    from onceproof.results.seen import SeenRelease, read_judged, read_seen, record_seen

    settings = get_settings()
    url, installation = settings.database_url, settings.installation
    published, known, judged = (
        list_published(installation, pre_releases=True),
        read_seen(url),
        read_judged(url),
    )
    due: list[Release] = []
    notes = []
    for release in published:
        before = known.get(release)
        if before is not None and before.triggered:
            if release not in judged:
                print(f"{release}: run {before.triggered} has no verdict (yet); trigger regression again if it failed.")
            continue
        is_waiting = before is not None and before.incomplete is not None
        is_new = bool(known) and (before is None or is_waiting)
        is_behind = catch_up and release not in judged
        if (release.is_candidate and not pre_releases) or not (is_new or is_behind):
            if before is None:
                notes.append(SeenRelease(release))
        elif reason := _incomplete(installation, release):
            if before is None or before.incomplete != reason:
                print(f"{release} is published, but cannot be run yet: {reason} It is tried again at the next look.")
            notes.append(SeenRelease(release, incomplete=reason))
        else:
            due.append(release)
    record_seen(notes, url)
    print(f"{len(published)} releases are published; to be run: {', '.join(map(str, due)) or 'none'}.")
    return [
        {"trigger_run_id": f"release_watch__{release}", "conf": {"matrix": matrix, "streams": [str(release)]}}
        for release in due
    ]


def of_its_release(run: dict[str, Any]) -> dict[str, object]:
    """The DAG runs triggered of `qualify` and `sensitivity` for a release that gets a run of `regression`."""
    return {"trigger_run_id": run["trigger_run_id"], "conf": {"streams": run["conf"]["streams"]}}


def record(triggered: list[dict[str, Any]]) -> None:
    """Record the releases whose runs were triggered.

    Raises:
        HarnessError: the database refuses.
    """
    from onceproof.results.seen import SeenRelease, record_seen

    seen = [SeenRelease(Release.parse(run["conf"]["streams"][0]), triggered=run["trigger_run_id"]) for run in triggered]
    record_seen(seen, get_settings().database_url)


def _incomplete(installation: Installation, release: Release) -> str | None:
    """Why the release cannot be run yet, if it cannot: Kafka Streams or the brokers cannot be resolved."""
    from onceproof.lab.artifacts import broker_class_path, streams_class_path

    try:
        streams_class_path(installation, release)
        broker_class_path(installation, release)
    except OnceproofError as error:
        return str(error)
    return None
