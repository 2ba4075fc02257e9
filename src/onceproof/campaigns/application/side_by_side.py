"""Work that is done side by side by threads of this process, and ends together: if one fails, or Ctrl-C comes."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from typing import TypeVar

from onceproof.lab.world import REAL, World

T = TypeVar("T")


def side_by_side(works: Sequence[Callable[[World], T]]) -> list[T]:
    """Do several pieces of work at once, each in a world in which waiting ends if another one has failed.

    Args:
        works: each is given the world in which it waits.

    Returns:
        What each of them returned, in their order.

    Raises:
        BaseException: what the first one that failed raised, when all have ended; or what interrupted this thread.
    """
    over = threading.Event()

    def sleep(seconds: float) -> None:
        if over.wait(seconds):
            raise KeyboardInterrupt

    with ThreadPoolExecutor(len(works)) as pool:
        doing = [pool.submit(work, replace(REAL, sleep=sleep)) for work in works]
        try:
            done, _ = wait(doing, return_when=FIRST_EXCEPTION)
        finally:
            over.set()  # no thread waits any more, if all went well
        for future in done:
            future.result()
        return [future.result() for future in doing]
