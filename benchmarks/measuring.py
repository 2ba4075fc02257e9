"""Seconds, CPU and memory of a piece of work."""

import os
import resource
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Generic, TypeVar

import psutil

T = TypeVar("T")
EVERY = 0.5  # seconds between two looks at the memory, for which the kernel goes over all pages


@dataclass(frozen=True)
class Measured(Generic[T]):
    """What a piece of work came to, and what it took."""

    result: T
    seconds: float
    cpu: float  # seconds, user and system, of its process and of those that this one waited for
    memory: int  # bytes (PSS): the most that its process and all below it had in memory at once


def measure(work: Callable[..., T], *arguments: object) -> Measured[T]:
    """Do the work in a process of its own; what this takes to start does not count."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        process = psutil.Process(pool.submit(os.getpid).result())
        done = pool.submit(_time, work, *arguments)
        memory = _memory_of(process)
        while not wait([done], timeout=EVERY).done:
            memory = max(memory, _memory_of(process))
        return Measured(*done.result(), memory)


def _time(work: Callable[..., T], *arguments: object) -> tuple[T, float, float]:
    def cpu() -> float:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    begin, begin_cpu = time.monotonic(), cpu()
    result = work(*arguments)
    return result, time.monotonic() - begin, cpu() - begin_cpu


def _memory_of(process: psutil.Process) -> int:
    """Shared pages count once: a JVM that forks has all of its own twice for a moment."""
    memory = 0
    for member in (process, *process.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            memory += member.memory_full_info().pss
    return memory
