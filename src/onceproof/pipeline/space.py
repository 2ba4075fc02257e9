"""The room on the disks that runs write to."""

import shutil
from pathlib import Path

GIB = 2**30


def measure_free(folder: Path) -> int:
    """The bytes that are free on the disk of a folder, which need not be there yet."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    return shutil.disk_usage(there).free
