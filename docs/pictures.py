"""Take the pictures of the documentation from a run: `make pictures RUN=ID`, or `RUN=ID NAME=six-releases`.

They are the page's matrix, the cell and the timeline of the first red cell, in light and dark, and `run.svg`, the table
of verdicts that a run prints. With a name, only that table is drawn, as `NAME.svg`.
"""

import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from rich.console import Console

from onceproof.model.files import VerdictRow
from onceproof.model.run_folder import RunFolder
from onceproof.results.table import verdict_table
from onceproof.settings import get_settings

IMAGES = Path(__file__).parent / "images"
LARGEST = 250_000  # bytes of a picture
WIDTH, HEIGHT = 1280, 800  # pixels of the page
COLUMNS = 150  # of the table


def main(run_id: str, name: str = "") -> None:
    """Write the pictures of a run, or only the table of its verdicts under a name."""
    run = RunFolder(get_settings().runs / run_id)
    verdicts = VerdictRow.read_all(run.verdicts_file)
    draw(run, verdicts, name or "run")
    if not name:
        with served() as url, sync_playwright() as playwright:
            chromium = shutil.which("chromium") or shutil.which("chromium-browser")
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for theme in ("light", "dark"):
                for page, path in pages(run_id, verdicts).items():
                    take(browser, url + path, theme, IMAGES / f"{page}-{theme}.png")
            browser.close()


def draw(run: RunFolder, verdicts: list[VerdictRow], name: str) -> None:
    """Draw the table of verdicts."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(verdict_table(verdicts, f"Run {run.run_id}: {len(verdicts)} cells"))
    svg = console.export_svg(title="onceproof run")
    # Its font would come from another host; the reader has a monospaced one.
    (IMAGES / f"{name}.svg").write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))


def pages(run_id: str, verdicts: list[VerdictRow]) -> dict[str, str]:
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
    command = [sys.executable, "-m", "onceproof.cli", "page", "--port", "0"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            yield re.findall(r"http://\S+/", server.stdout.readline() if server.stdout else "")[0]
        finally:
            server.terminate()


def take(browser: Browser, url: str, theme: str, target: Path) -> None:
    """Take one picture, when all of it is drawn."""
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme)
    page = context.new_page()
    page.goto(url)
    if "/trials/" in url:
        page.locator(".timeline .main-svg").first.wait_for()
        page.locator(".timeline").screenshot(path=target)
    else:
        page.screenshot(path=target)
    context.close()
    if target.stat().st_size > LARGEST:
        raise SystemExit(f"{target} has {target.stat().st_size:,} bytes: take less of it.")


if __name__ == "__main__":
    main(*sys.argv[1:])
