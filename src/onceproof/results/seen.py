"""Which published releases were seen before, and what came of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from onceproof.model.release import Release
from onceproof.model.verdict import Verdict
from onceproof.results.database import WRITING, CellRow, ReleaseRow, database, is_missing


@dataclass(frozen=True)
class SeenRelease:
    """A release that was seen: triggered by this DAG run, incomplete for this reason, or neither."""

    release: Release
    triggered: str | None = None
    incomplete: str | None = None
    first_seen: datetime | None = None  # UTC; None as long as it is not recorded

    @property
    def summary(self) -> str:
        """In a few words."""
        if self.incomplete:
            return f"incomplete: {self.incomplete}"
        return "run triggered" if self.triggered else "seen"

    def to_dict(self) -> dict[str, object]:
        """JSON form, without the release."""
        since = self.first_seen.replace(tzinfo=UTC).isoformat(timespec="seconds") if self.first_seen else None
        return {"first_seen": since, "triggered": self.triggered, "incomplete": self.incomplete}


def read_seen(url: str) -> dict[Release, SeenRelease]:
    """The releases that are recorded; none if there is no database yet.

    Raises:
        HarnessError: the database refuses.
    """
    if is_missing(url):
        return {}
    with database(url) as engine, Session(engine) as session:
        rows = session.scalars(select(ReleaseRow)).all()
        found = [SeenRelease(Release.parse(row.release), row.triggered, row.incomplete, row.first_seen) for row in rows]
    return {seen.release: seen for seen in found}


def record_seen(seen: Iterable[SeenRelease], url: str) -> None:
    """Record releases, all or none; one that is recorded already keeps the time when it was first seen.

    Raises:
        HarnessError: the database refuses.
    """
    now = datetime.now(UTC).replace(tzinfo=None)  # as in the other tables
    with database(url) as engine, Session(engine.execution_options(**WRITING)) as session, session.begin():
        for release in seen:
            row = session.get(ReleaseRow, str(release.release)) or ReleaseRow(
                release=str(release.release), first_seen=now
            )
            row.triggered, row.incomplete = release.triggered, release.incomplete
            session.add(row)


def read_judged(url: str) -> set[Release]:
    """The releases of Kafka Streams of which a run judged a cell; one whose trials failed says nothing about a release.

    Raises:
        HarnessError: the database refuses.
    """
    if is_missing(url):
        return set()
    query = select(CellRow.streams).where(CellRow.verdict != Verdict.ERROR).distinct()
    with database(url) as engine, Session(engine) as session:
        return set(map(Release.parse, session.scalars(query)))
