"""Lay out the documentation as a site: `python docs/site.py`, or `make docs`.

Zensical builds a site from one folder. The pages lie in `docs/` and, where people and forges look for them, at the root
of the repository. So all pages are copied into one folder, and their links follow. A link to a file that is no page
becomes its name: the site knows no address of the repository.
"""

import re
import shutil
import sys
from os.path import relpath
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SITE = ROOT / ".onceproof" / "site"
# Pages outside of `docs/`, and where the site has them.
ELSEWHERE = {
    "README.md": "index.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "RELEASING.md": "project/releasing.md",
    "SECURITY.md": "project/security.md",
    "streams_app/README.md": "project/streams-app.md",
}
LINK = re.compile(r"(!?)\[((?:[^][]|\[[^]]*\])*)\]\(([^)\s]+)\)")
KINDS = {".md", ".png", ".svg", ".json", ".patch", ".java", ".xml"}


def places() -> dict[Path, Path]:
    """Of each file of the repository that the site has, its place there."""
    pages = {path: path.relative_to(DOCS) for path in DOCS.rglob("*") if path.suffix in KINDS}
    return pages | {ROOT / name: Path(place) for name, place in ELSEWHERE.items()}


def relinked(text: str, source: Path, known: dict[Path, Path]) -> str:
    """A page whose links lead from its place in the site to others.

    Args:
        text: the page.
        source: where it lies in the repository.
        known: `places()`.
    """

    def link(found: re.Match[str]) -> str:
        image, label, target = found.groups()
        name, mark, anchor = target.partition("#")
        if "://" in target or target.startswith(("#", "mailto:")):
            return found[0]
        file = (source.parent / name).resolve()
        file = file / "README.md" if file.is_dir() else file
        if file in known:
            return f"{image}[{label}]({relpath(known[file], known[source].parent)}{mark}{anchor})"
        inside = str(file.relative_to(ROOT)).removesuffix("/README.md")
        return label if inside in label or label.startswith("`") else f"{label} (`{inside}`)"

    return LINK.sub(link, text)


def main(site: Path) -> None:
    """Copy all pages into a folder, which is emptied first."""
    known = places()
    shutil.rmtree(site, ignore_errors=True)
    for source, place in known.items():
        target = site / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if place.suffix == ".md":
            target.write_text(relinked(source.read_text(), source, known))
        else:
            shutil.copyfile(source, target)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else SITE)
