"""Take the pictures of the page for the README: `python docs/screenshots.py HOME [RUN]`, the newest run by default.

Of the home, `results.db` and `runs/` are read. The cell and the timeline are those of the first red cell of the run.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from onceproof.page.app import create_app
from onceproof.results.evidence import find_run
from onceproof.results.matrix_query import known_at
from onceproof.settings import Settings
from tests.page.conftest import served

IMAGES = Path(__file__).parent / "images"
LARGEST = 250_000  # bytes of a picture
WIDTH, HEIGHT = 1280, 800


def main() -> None:
    """Write the pictures."""
    settings = Settings(home=Path(sys.argv[1]))
    run = find_run(settings.runs, sys.argv[2] if len(sys.argv) > 2 else "last").run_id
    known = known_at(settings.database_url, run)
    assert known is not None, f"Run {run} is not in the results database."
    [red, *_] = [judged.cell.key for judged in known.cells if judged.red]
    pages = {"matrix": f"/?run={run}", "cell": f"/runs/{run}/cells/{red}", "timeline": f"/runs/{run}/trials/{red}-t1"}
    with served(create_app(settings)) as url, sync_playwright() as playwright:
        chromium = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for theme in ("light", "dark"):
            for name, path in pages.items():
                _take(browser, f"{url}{path}", theme, IMAGES / f"{name}-{theme}.png")
        browser.close()


def _take(browser: Browser, url: str, theme: str, target: Path) -> None:
    context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=theme)
    page = context.new_page()
    page.goto(url)
    if "/cells/" in url:  # with the records around its first witness
        page.locator("details[data-load] summary").first.click()
        page.locator(".records table").first.wait_for()
    if "/trials/" in url:
        page.locator(".timeline .main-svg").first.wait_for()
        page.locator(".timeline").screenshot(path=target)
    else:
        page.screenshot(path=target)
    context.close()
    assert target.stat().st_size <= LARGEST, f"{target} has {target.stat().st_size:,} bytes: take less of it."


if __name__ == "__main__":
    main()
