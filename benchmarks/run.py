"""The default matrix, from the command to the Data Docs, compared with nine runs of Kafka's own test of the scenario.

    .venv/bin/python benchmarks/run.py

The peer is run once and counted nine times: it is the same test each time.
"""

import json
import subprocess
import sys

from rich.console import Console
from rich.table import Table

from benchmarks.trial import peer


def main() -> None:
    """Run the matrix and print the figures."""
    done = subprocess.run([sys.executable, "-m", "onceproof.cli", "run", "--json"], stdout=subprocess.PIPE, check=False)
    result = json.loads(done.stdout)
    assert done.returncode == 0, result
    cells = len(result["verdicts"])
    trials = sum(verdict["seconds"] for verdict in result["verdicts"])
    table = Table("what", "seconds", title=f"{cells} cells")
    table.add_row("onceproof run: Airflow, trials, Spark, GX, Data Docs", f"{result['seconds']:.0f}")
    table.add_row("  of which trials", f"{trials:.0f}")
    table.add_row(f"{cells} times Kafka's integration test of 3.4.1", f"{cells * peer():.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
