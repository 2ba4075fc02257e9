"""What is published, as far as tests are concerned: a fixed list, so that they give the same on every day.

python -m tests.published    prints the newest release
"""

from datetime import UTC, datetime
from pathlib import Path

from onceproof.model.json_file import write_json
from onceproof.model.known_issues import registry
from onceproof.model.matrix import Expansion, Request, expand
from onceproof.model.published import NEWEST as NEWEST_WORD
from onceproof.model.published import Published
from onceproof.model.release import Release
from onceproof.scenarios import CATALOGUE
from onceproof.scenarios.cover import exact

NAMES = [
    "3.0.0",
    "3.0.1",
    "3.0.2",
    "3.1.0",
    "3.1.1",
    "3.1.2",
    "3.2.0",
    "3.2.1",
    "3.2.2",
    "3.2.3",
    "3.3.0",
    "3.3.1",
    "3.3.2",
    "3.4.0",
    "3.4.1",
    "3.5.0",
    "3.5.1",
    "3.5.2",
    "3.6.0",
    "3.6.1",
    "3.6.2",
    "3.7.0",
    "3.7.1",
    "3.7.2",
    "3.8.0",
    "3.8.1",
    "3.9.0",
    "3.9.1",
    "3.9.2",
    "4.0.0",
    "4.0.1",
    "4.0.2",
    "4.1.0",
    "4.1.1",
    "4.1.2",
    "4.2.0",
    "4.2.1",
    "4.2.2",
    "4.3.0",
    "4.3.1",
    "4.4.0",
]
SOURCE = "as tests say"
PUBLISHED = Published.of(map(Release.parse, NAMES), SOURCE)
NEWEST = PUBLISHED.resolve(NEWEST_WORD)  # no test types another one (model/test_published.py)
# On which each change tries the agent: the oldest, the newest, and one between them that other tests resolve anyway.
OF_EACH_CHANGE = (Release(3, 0, 0), Release(3, 4, 1), NEWEST)


def with_release(name: str) -> Published:
    """The same, on the day on which another release has appeared."""
    return Published.of([*PUBLISHED.releases, Release.parse(name)], SOURCE)


def exactly(request: Request, published: Published = PUBLISHED) -> Request:
    """A request without words."""
    return exact(request, lambda: published, registry(), CATALOGUE)


def expanded(request: Request, published: Published = PUBLISHED) -> Expansion:
    """The cells of a request."""
    return expand(exactly(request, published), CATALOGUE)


def keep_list(artifacts: Path, *more: str) -> None:
    """Keep the list, and more, among artifacts as one that Maven has just given, so that no test waits for Maven."""
    now = datetime.now(UTC).isoformat()
    (artifacts / "releases").mkdir(parents=True, exist_ok=True)
    write_json(artifacts / "releases" / "published.json", {"releases": [*NAMES, *more], "listed": now, "tried": now})


if __name__ == "__main__":
    print(NEWEST)
