"""Draw a picture of the documentation from the verdicts of a run: `python docs/picture.py RUN_FOLDER NAME`.

NAME.svg in docs/images/ is written: `run` is of `make run`, `six-releases` of the section with this name.
"""

import io
import re
import sys
from pathlib import Path

from rich.console import Console

from onceproof.model.files import VerdictRow
from onceproof.model.run_folder import RunFolder
from onceproof.results.table import verdict_table

IMAGES = Path(__file__).parent / "images"


def main() -> None:
    """Write the picture."""
    run, name = RunFolder(Path(sys.argv[1])), sys.argv[2]
    verdicts = VerdictRow.read_all(run.verdicts_file)
    console = Console(record=True, width=150, file=io.StringIO())
    console.print(verdict_table(verdicts, f"Run {run.run_id}: {len(verdicts)} cells"))
    svg = console.export_svg(title="onceproof run")
    # Its font would come from another host; whoever looks has a monospaced one.
    (IMAGES / f"{name}.svg").write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL))


if __name__ == "__main__":
    main()
