"""The kind of machine that drives trials, which they share wherever they have the same chance of finding a bug.

It has no name of a host: results are shared.
"""

import os
import platform
from math import floor, log2
from pathlib import Path

import psutil

from onceproof.installation import Installation
from onceproof.lab.java import java_version

GIB = 2**30
CGROUP = Path("/sys/fs/cgroup")  # version 2; in a container its limits count, not what the host has
CPUINFO = Path("/proc/cpuinfo")


def machine(installation: Installation) -> str:
    """System and its line, architecture, cores, class of memory, model of the CPU, and the JDK of the installation.

    For example `Linux 6.8 x86_64, 2 cores, 16 GiB or more, AMD EPYC, Java 17`. A variant may have another JDK for its
    instances: that belongs to the variant.

    Raises:
        UsageError: there is no Java.
    """
    line = ".".join(platform.release().split(".")[:2])
    system = f"{platform.system()} {line} {platform.machine()}"
    return f"{system}, {_cores()}, {_memory()} GiB or more, {_cpu()}, Java {java_version(installation.java)}"


def _cores() -> str:
    cores = float(len(os.sched_getaffinity(0)))
    quota, _, period = _limit("cpu.max").partition(" ")
    if quota.isdigit():
        cores = min(cores, int(quota) / int(period))
    return "1 core" if cores == 1 else f"{cores:g} cores"


def _memory() -> int:
    """The largest power of two that the memory reaches but for a tenth, which firmware and kernel may keep."""
    total, limit = psutil.virtual_memory().total, _limit("memory.max")
    if limit.isdigit():
        total = min(total, int(limit))
    return int(2 ** max(0, floor(log2(1.1 * total / GIB))))


def _limit(name: str) -> str:
    """The limit of the control group; `max`, or nothing, if it has no limit."""
    try:
        return (CGROUP / name).read_text().strip()
    except OSError:
        return ""


def _cpu() -> str:
    try:
        lines = CPUINFO.read_text().splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or "unknown CPU"
