"""The parts of a trial, plugged in at one place."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from onceproof.installation import Installation
from onceproof.lab.application_state import compare_state
from onceproof.lab.black_box import BlackBox
from onceproof.lab.brokers import LabBrokers
from onceproof.lab.instance import InstanceProcess
from onceproof.lab.links import LabLinks
from onceproof.lab.load import LabBulk
from onceproof.lab.machine import machine
from onceproof.lab.quota import set_producer_quota
from onceproof.lab.reader import Reader
from onceproof.lab.task_directory import read_task_directory
from onceproof.lab.ticker import Ticker
from onceproof.lab.topics import ApplicationTopics


@dataclass(frozen=True)
class World:
    """The real things, and the real time; a test may take others."""

    topics: Callable[..., ApplicationTopics] = ApplicationTopics
    brokers: Callable[..., LabBrokers] = LabBrokers
    links: Callable[..., LabLinks] = LabLinks
    instance: Callable[..., InstanceProcess] = InstanceProcess
    black_box: Callable[..., InstanceProcess] = BlackBox
    bulk: Callable[..., LabBulk] = LabBulk
    reader: Callable[..., Reader] = Reader
    ticker: Callable[..., Ticker] = Ticker
    machine: Callable[[Installation], str] = machine
    set_producer_quota: Callable[..., None] = set_producer_quota
    read_task_directory: Callable[..., dict[str, Mapping[int, int]]] = read_task_directory
    compare_state: Callable[..., list[dict[str, Any]]] = compare_state
    now: Callable[[], float] = time.time  # epoch seconds, for events
    monotonic: Callable[[], float] = time.monotonic  # seconds, for waits
    sleep: Callable[[float], None] = time.sleep


REAL = World()
