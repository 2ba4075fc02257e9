"""The corpus: trials that were kept, each a file of `tests/corpus`, which every change of a reader is tested on.

    python -m tests.kept_trials keep RUN_FOLDER [TRIAL]...   add trials of a run that kept its messages, all by default
    python -m tests.kept_trials judge                        write down what the independent reader makes of each: corpus.json

A change of a reader, a promise or the registry that alters what is found in a trial so alters `corpus.json`, where a
reviewer sees it. No trial is driven for it.
"""

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from onceproof.atlas.kept import SUFFIX, pack, unpack
from onceproof.lab.rejudging import judge_again
from onceproof.model.cell import Trial
from onceproof.model.files import Reading, TrialPlan
from onceproof.model.json_file import encode, read_json, write_json
from onceproof.model.run_folder import RunFolder

FOLDER = Path(__file__).with_name("corpus")
EXPECTED = Path(__file__).with_name("corpus.json")
RUN = "20261130T000000-c0de"  # of a run folder into which all are unpacked


def files() -> list[Path]:
    """The trials, in the order of their names."""
    return sorted(FOLDER.glob(f"*{SUFFIX}"))


def key_of(file: Path) -> str:
    """The key of the trial in a file."""
    return file.name.removesuffix(SUFFIX).rpartition(".")[0]


def lay_out(parent: Path, wanted: Iterable[Path]) -> tuple[RunFolder, list[Trial]]:
    """A run folder of kept trials, as if one run had driven them."""
    run = RunFolder(parent / RUN)
    trials = [unpack(file, run) for file in wanted]
    cells = dict.fromkeys(trial.cell for trial in trials)
    write_json(
        run.run_file,
        {
            "run": RUN,
            "matrix": "corpus",
            "created": "2026-11-30T00:00:00+00:00",
            "brokers": sorted({str(cell.broker) for cell in cells}),
            "cells": [{"key": cell.key, "title": cell.title, **cell.to_dict()} for cell in cells],
            "trials": [trial.to_dict() for trial in trials],
        },
    )
    return run, trials


def summarize(reading: Reading) -> dict[str, Any]:
    """What a change may not alter unseen: all counts, and a digest of the witnesses with all that they say."""
    summary: dict[str, Any] = encode(reading)
    witnesses = json.dumps(summary.pop("witnesses"), sort_keys=True)
    return summary | {"witnesses": hashlib.sha256(witnesses.encode()).hexdigest()[:12]}


def expected() -> Mapping[str, Mapping[str, Any]]:
    """By the key of each trial what the independent reader makes of it."""
    return dict(read_json(EXPECTED))


def _judge(wanted: Iterable[Path]) -> Iterator[tuple[str, dict[str, Any]]]:
    with TemporaryDirectory() as folder:
        run, trials = lay_out(Path(folder), wanted)
        for trial in trials:
            yield trial.key, summarize(judge_again(run.trial(trial)).reading)


def _keep(run: RunFolder, keys: Iterable[str]) -> Iterator[Path]:
    plans = (TrialPlan.read(file) for file in sorted(run.path.glob("trials/*/trial.json")))
    trials = {plan.trial.key: plan.trial for plan in plans}
    for key in keys or trials:
        for before in FOLDER.glob(f"{key}.*{SUFFIX}"):
            before.unlink()
        yield pack(run, trials[key], FOLDER)


def main() -> int:
    """Keep trials, or judge those that are kept."""
    match sys.argv[1:]:
        case ["keep", run, *keys]:
            for file in _keep(RunFolder(Path(run).resolve()), keys):
                print(f"{file.stat().st_size:>9,} bytes  {file.name}")
        case ["judge"]:
            write_json(EXPECTED, dict(sorted(_judge(files()))))
        case _:
            sys.stderr.write(__doc__ or "")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
