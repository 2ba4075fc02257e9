"""Take the pictures of the documentation: `make pictures RUN=ID`, `RUN=ID NAME=six-releases`, or `RUN=atlas`.

Those of a run are the page's matrix, the cell and the timeline of the first red cell, in light and dark, and `run.svg`,
the table of verdicts that a run prints. With a name, only that table is drawn, as `NAME.svg`. Those of the atlas in the
package are the first page of its site and the page of the newest release.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright
from rich.console import Console

from onceproof.model.files import VerdictRow
from onceproof.model.release import Release
from onceproof.model.run_folder import RunFolder
from onceproof.results.table import verdict_table
from onceproof.settings import get_settings

IMAGES = Path(__file__).parent / "images"
LARGEST = 250_000  # bytes of a picture
WIDTH, HEIGHT = 1280, 800  # pixels of the page
COLUMNS = 150  # of the table
ATLAS = "atlas"  # in place of a run
ONCEPROOF = (sys.executable, "-m", "onceproof.cli")


def main(run_id: str, name: str = "") -> None:
    """Write the pictures of a run or of the atlas, or only the table of a run's verdicts under a name."""
    if run_id == ATLAS:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([*ONCEPROOF, "atlas", "site", folder], check=True)
            newest = max(Path(folder, "releases").iterdir(), key=lambda page: Release.parse(page.stem))
            take_all(f"file://{folder}/", {"atlas": "index.html", "atlas-release": f"releases/{newest.name}"})
        return
    run = RunFolder(get_settings().runs / run_id)
    verdicts = VerdictRow.read_all(run.verdicts_file)
    draw(run, verdicts, name or "run")
    if not name:
        with served() as url:
            take_all(url, pages(run_id, verdicts))


def draw(run: RunFolder, verdicts: Sequence[VerdictRow], name: str) -> None:
    """Draw the table of verdicts."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(verdict_table(verdicts, f"Run {run.run_id}: {len(verdicts)} cells"))
    svg = console.export_svg(title="onceproof run")
    # Its font would come from another host; the reader has a monospaced one.
    (IMAGES / f"{name}.svg").write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))


def pages(run_id: str, verdicts: Sequence[VerdictRow]) -> dict[str, str]:
    """The pages to be taken, by the names of their pictures."""
    red = next(verdict for verdict in verdicts if verdict.red)
    return {
        "matrix": f"?run={run_id}&only=run",
        "cell": f"runs/{run_id}/cells/{red.cell}",
        "timeline": f"runs/{run_id}/{red.folders[0]}",
    }


@contextmanager
def served() -> Iterator[str]:
    """The page on loopback, at this address."""
    command = [*ONCEPROOF, "page", "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield re.findall(r"http://\S+/", server.stdout.readline() if server.stdout else "")[0]
        finally:
            server.terminate()


def take_all(url: str, paths: Mapping[str, str]) -> None:
    """Take pictures of pages, in light and dark."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for theme in ("light", "dark"):
            context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme)
            for name, path in paths.items():
                take(context.new_page(), url + path, IMAGES / f"{name}-{theme}.png")
            context.close()
        browser.close()


def take(page: Page, url: str, target: Path) -> None:
    """Take one picture, when all of it is drawn."""
    page.goto(url)
    if "/trials/" in url:
        page.locator(".timeline .main-svg").first.wait_for()
        page.locator(".timeline").screenshot(path=target)
    else:
        page.screenshot(path=target)
    if target.stat().st_size > LARGEST:
        raise SystemExit(f"{target} has {target.stat().st_size:,} bytes: take less of it.")


if __name__ == "__main__":
    main(*sys.argv[1:])
