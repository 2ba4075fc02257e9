"""Writes an archive for the page, in a process of its own: `python -m onceproof.results.evidence RUN_FOLDER CELL ZIP`.

The page may stand in Airflow's API server, on which the tasks of runs depend. So the process has a limit of memory and
yields to others. It prints one sentence if it cannot, and then ends with `ABSENT` or `FAILED`.
"""

import os
import resource
import sys
from pathlib import Path

from onceproof.model.errors import HarnessError, UsageError
from onceproof.model.run_folder import RunFolder
from onceproof.results.evidence.archive import write_evidence

FAILED, ABSENT = 3, 4  # exit codes that Python itself does not use
# Bytes of data, the stacks of threads included: a quarter of what the containers of the page may have. Libraries take
# 150 MiB of it with the environment that the page gives, and logs are read in blocks.
MEMORY = 512 * 1024 * 1024


def main(folder: str, cell: str, target: str) -> int:
    """Write the archive; returns the exit code."""
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    run = RunFolder(Path(folder))
    try:
        write_evidence(run, cell, Path(target))
    except UsageError as error:
        print(error)
        return ABSENT
    except HarnessError as error:
        print(error)
        return FAILED
    except MemoryError:
        print(
            f"The evidence of {cell} needs more than {MEMORY // 1024**2} MiB of memory, which is all that the page "
            f"gives it: `onceproof results evidence {run.run_id} {cell}` writes it without a limit."
        )
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
