"""The kind of machine: what makes trials comparable, and no name."""

import os
import platform
import socket
from pathlib import Path

import psutil
import pytest

from onceproof.installation import Installation
from onceproof.lab import machine as module
from onceproof.lab.machine import machine
from onceproof.model.cell import MARK

JAVA = Installation("/java", Path(), "", "", Path(), Path(), Path(), Path(), MARK)


@pytest.fixture
def box(monkeypatch, tmp_path):
    """A machine of 4 cores and 16 GiB, of which the kernel keeps some; control groups and CPU as in `tmp_path`."""
    monkeypatch.setattr(platform, "release", lambda: "6.8.0-1021-aws")
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(4))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: type("Memory", (), {"total": 15.4 * module.GIB}))
    monkeypatch.setattr(module, "java_version", {"/java": 17}.__getitem__)
    monkeypatch.setattr(module, "CGROUP", tmp_path)
    monkeypatch.setattr(module, "CPUINFO", tmp_path / "cpuinfo")
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: AMD EPYC\nmodel name\t: AMD EPYC\n")
    return tmp_path


def test_system_cores_memory_cpu_and_jdk(box):
    assert machine(JAVA) == "Linux 6.8 x86_64, 4 cores, 16 GiB or more, AMD EPYC, Java 17"


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"),
    [
        ("max 100000", "max", "4 cores, 16 GiB or more"),
        ("150000 100000", str(8 * 2**30), "1.5 cores, 8 GiB or more"),
        ("100000 100000", str(2**28), "1 core, 1 GiB or more"),
        ("900000 100000", str(2**40), "4 cores, 16 GiB or more"),
    ],
)
def test_in_a_container_its_limits_count(box, cpu, memory, expected):
    (box / "cpu.max").write_text(f"{cpu}\n")
    (box / "memory.max").write_text(f"{memory}\n")
    assert f", {expected}, " in machine(JAVA)


def test_without_a_model_the_cpu_is_what_python_knows_of_it(box, monkeypatch):
    (box / "cpuinfo").unlink()
    monkeypatch.setattr(platform, "processor", lambda: "aarch64")
    assert machine(JAVA).endswith(", aarch64, Java 17")


def test_this_machine_is_told_without_its_name(monkeypatch):
    monkeypatch.setattr(module, "java_version", lambda _: 17)
    assert socket.gethostname() not in machine(JAVA)
    assert machine(JAVA) == machine(JAVA)
