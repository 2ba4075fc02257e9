"""Take the pictures of the page for the documentation: `python docs/screenshots.py HOME RUN`.

Of the home, `results.db` and `runs/` are read. The cell and the timeline are those of the first red cell of the run.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from onceproof.model.files import VerdictRow
from onceproof.model.run_folder import RunFolder

IMAGES = Path(__file__).parent / "images"
LARGEST = 250_000  # bytes of a picture
WIDTH, HEIGHT = 1280, 800


def main() -> None:
    """Write the pictures."""
    home, run = Path(sys.argv[1]), sys.argv[2]
    red = next(v for v in VerdictRow.read_all(RunFolder(home / "runs" / run).verdicts_file) if v.red)
    pages = {
        "matrix": f"?run={run}",
        "cell": f"runs/{run}/cells/{red.cell}",
        "timeline": f"runs/{run}/{red.folders[0]}",
    }
    environment = {**os.environ, "ONCEPROOF_HOME": str(home), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "onceproof.cli", "page", "--port", "0"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = re.findall(r"http://\S+/", server.stdout.readline() if server.stdout else "")[0]
            with sync_playwright() as playwright:
                chromium = shutil.which("chromium") or shutil.which("chromium-browser")
                browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                for theme in ("light", "dark"):
                    for name, path in pages.items():
                        take(browser, url + path, theme, IMAGES / f"{name}-{theme}.png")
                browser.close()
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
    main()
