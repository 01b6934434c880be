"""Synthetic rows through ``table.synthesize``: how far their tables are from the real ones, and what it costs.

Errors are mean total variations over all tables of two and of three columns, cut as they were measured; every run draws
fresh noise. The tables are public: with private rows each of these comparisons would have to be charged. Beside them
stand resampled rows, which are not private, independent columns at the same cost, and other makers of synthetic rows
in environments of their own (``benchmarks/synthesis_peers.py``). CPU seconds are those of the whole call (charge,
reading, noise, certificate, fit, rows) on one thread of the linear algebra: set ``OMP_NUM_THREADS=1`` and
``OPENBLAS_NUM_THREADS=1``.

``SFUMATO_PARTS=acs,large python -m benchmarks synthesis`` measures some parts and keeps the others of the result file.
Parts of peers take minutes a run and keep the rows they made; ``SFUMATO_PEERS=kept`` takes those rows alone and counts
them, and ``SFUMATO_PEERS=added`` leaves the figures of other makers as the result file has them. Data are in the
folder ``SFUMATO_DATA``.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import RESULTS, commit, write
from benchmarks.synthesis_coverage import EPSILONS, FOUR, TWO, coverage
from benchmarks.synthesis_data import Cells, Source, acs, adult, generated
from benchmarks.synthesis_peers import MAKERS, kept_runs, made_by
from benchmarks.synthesis_persons import PERSONS, persons_with_stays
from benchmarks.synthesis_tasks import income, readmission

__all__ = ["PARTS", "SETTINGS", "run"]

RUNS = int(os.environ.get("SYNTHESIS_RUNS", "10"))
DELTA = "1/1000000"
SETTINGS: dict[str, tuple[str, Callable[[], Source], float, str]] = {
    "adult-8-1": ("Adult-8", lambda: adult(8), 1, DELTA),
    "adult-8-1-nine": ("Adult-8", lambda: adult(8), 1, "1/1000000000"),
    "adult-8-3": ("Adult-8", lambda: adult(8), 3, DELTA),
    "adult-14-1": ("Adult-14", lambda: adult(14), 1, DELTA),
    "acs": ("ACS, national", acs, 1, DELTA),
}
AIM = ("AIM, two-way (private-pgm)", "AIM, three-way (private-pgm)")
MST = "MST (private-pgm)"
PEERS: dict[str, dict[str, int]] = {
    "adult-8-1": {**dict.fromkeys(AIM, 3), MST: 3, **dict.fromkeys(set(MAKERS) - {*AIM, MST}, 1)},
    "adult-8-1-nine": {AIM[0]: 1, AIM[1]: 1, MST: 1},
    "adult-8-3": {AIM[0]: 1, AIM[1]: 1, MST: 1},
    "adult-14-1": {AIM[0]: 1, MST: 1, "CTGAN, not private": 1},
    "acs": {AIM[0]: 1, MST: 1},
}
CURVE = {1_000: 10, 10_000: 3, 100_000: 2, 1_000_000: 1}
"""Numbers of rows, and runs with each: the fewer rows, the more the error differs from run to run."""
CURVE_EPSILONS = (0.1, 0.3, 1, 3, 10)
COVERAGE = {TWO: 200, FOUR: 200}
"""Columns, and how many releases are simulated with them at each ε."""
LARGE = (1_000_000, 30)
Figures = dict[str, object]


def setting(source: Source, epsilon: float, delta: str, *, runs: int, alone_runs: int = 3, title: str = "") -> Figures:
    """Errors and CPU seconds of one setting, and beside them what resampling and independent columns give."""
    truth = source.cells()
    alone = [[name] for name in source.columns]
    ours, seconds, reasons = [], [], set()
    for _ in range(runs):
        made, spent, reason = source.synthesized(epsilon=epsilon, delta=delta)
        ours.append(_errors(truth, made))
        seconds.append(spent)
        reasons.add(reason)
    single = [
        _errors(truth, source.synthesized(epsilon=epsilon, delta=delta, workload=alone)[0])
        for _ in range(min(runs, alone_runs))
    ]
    return {
        **_told(title, source, epsilon, delta),
        "measured": sorted(reasons),
        **_listed(ours, seconds),
        "independent": _means(single),
        "independent_runs": len(single),
        "resampled": _errors(truth, truth.resampled(np.random.default_rng(9))),
    }


def beside(source: Source, epsilon: float, delta: str, makers: Mapping[str, int], *, title: str = "") -> Figures:
    """Other makers on the same cells at the same cost, each so often."""
    truth, found = source.cells(), _before(title, epsilon, delta)
    top, bottom = delta.split("/")
    for name, times in makers.items():
        maker, runs, why = MAKERS[name], [], ""
        asked = {"epsilon": epsilon, "delta": int(top) / int(bottom)}
        for number in kept_runs(maker, truth.codes, truth.sizes, times, **asked):
            made = made_by(maker, truth.codes, truth.sizes, run=number, **asked)
            if isinstance(made, str):
                why = made
                break
            runs.append((_errors(truth, Cells(made[0], truth.sizes)), made[1]))
        if runs:
            found[name] = _listed([errors for errors, _ in runs], [cost["cpu_seconds"] for _, cost in runs]) | {
                "peak_mb": max(cost["peak_mb"] for _, cost in runs),
                "settings": maker.settings,
            }
        elif why or name not in found:
            found[name] = {"runs": 0, "why": why or "not measured: no kept run"}
        print(name, found[name], flush=True)
    return {**_told(title, source, epsilon, delta), "makers": found}


def _before(title: str, epsilon: float, delta: str) -> Figures:
    """With ``SFUMATO_PEERS=added`` what the result file has of other makers in this setting; else nothing."""
    if os.environ.get("SFUMATO_PEERS") != "added":
        return {}
    same = {"title": title, "epsilon": epsilon, "delta": delta}
    parts = _kept(RESULTS / "synthesis.json").values()
    known = (part for part in parts if "makers" in part and all(part[name] == each for name, each in same.items()))
    found: Figures = next(known, {"makers": {}})["makers"]
    return found


def curve(rows: int, runs: int) -> Figures:
    """Two-way errors of Adult-8 with so many rows from a small ε to a large one, beside independent columns.

    Rows are drawn from Adult with replacement, and that sample is the truth.
    """
    whole, points = adult(8), []
    source = whole.some(np.random.default_rng(5).integers(0, len(whole.rows), rows))
    for epsilon in CURVE_EPSILONS:
        at = setting(source, epsilon, DELTA, runs=runs, alone_runs=runs)
        point = {name: at[name] for name in ("epsilon", "measured", "mean", "independent", "cpu_seconds")}
        points.append(point)
        print(rows, point, flush=True)
    return {"rows": rows, "runs": runs, "points": points}


def large() -> Figures:
    """A million invented rows of 30 columns in a process of its own, for its memory."""
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.synthesis", *map(str, LARGE)], capture_output=True, text=True, check=False
    )
    if answer.returncode != 0:
        said = answer.stderr.strip().splitlines()
        return {"rows": LARGE[0], "columns": LARGE[1], "why": said[-1] if said else f"status {answer.returncode}"}
    found: Figures = json.loads(answer.stdout.strip().splitlines()[-1])
    return found


def one_large(rows: int, columns: int) -> Figures:
    """Errors, CPU seconds and memory of one call on invented rows; errors are taken after the memory."""
    source = generated(rows, columns)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made, seconds, reason = source.synthesized(epsilon=1, delta=DELTA)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    truth = source.cells()
    return {
        **_told("generated", source, 1, DELTA),
        "cells": sum(truth.sizes),
        "measured": [reason],
        "cpu_seconds": round(seconds, 1),
        "peak_mb": round(peak / 1024),
        "before_mb": round(before / 1024),
        "two_way": round(truth.away(made, 2), 5),
        "resampled": round(truth.away(truth.resampled(np.random.default_rng(9)), 2), 5),
    }


def _told(title: str, source: Source, epsilon: float, delta: str) -> Figures:
    columns = len(source.columns)
    return {"title": title, "rows": len(source.rows), "columns": columns, "epsilon": epsilon, "delta": delta}


def _errors(truth: Cells, made: Cells) -> list[float]:
    return [round(truth.away(made, number), 5) for number in (2, 3)]


def _means(errors: Sequence[Sequence[float]]) -> list[float]:
    return [round(float(each), 5) for each in np.mean(errors, axis=0)]


def _listed(errors: Sequence[Sequence[float]], seconds: Sequence[float]) -> Figures:
    return {
        "runs": len(errors),
        "two_way": [each[0] for each in errors],
        "three_way": [each[1] for each in errors],
        "mean": _means(errors),
        "cpu_seconds": round(statistics.median(seconds), 2),
    }


PARTS: dict[str, Callable[[], Figures]] = {
    **{
        name: lambda name=name, title=title, source=source, epsilon=epsilon, delta=delta: setting(  # type: ignore[misc]
            source(), epsilon, delta, runs=RUNS, title=title
        )
        for name, (title, source, epsilon, delta) in SETTINGS.items()
    },
    **{f"curve-{rows}": lambda rows=rows, runs=runs: curve(rows, runs) for rows, runs in CURVE.items()},  # type: ignore[misc]
    **{
        f"persons-{number}": lambda number=number, runs=runs: persons_with_stays(number, runs)  # type: ignore[misc]
        for number, runs in PERSONS.items()
    },
    "large": large,
    **{
        f"coverage-{len(columns)}-{epsilon}": lambda epsilon=epsilon, columns=columns, runs=runs: coverage(  # type: ignore[misc]
            epsilon, columns, runs
        )
        for columns, runs in COVERAGE.items()
        for epsilon in EPSILONS
    },
    **{
        f"peers-{name}": lambda name=name: beside(  # type: ignore[misc]
            SETTINGS[name][1](), *SETTINGS[name][2:], PEERS[name], title=SETTINGS[name][0]
        )
        for name in PEERS
    },
    "income": income,
    "readmission": readmission,
}


def run(*, smoke: bool) -> Path:
    """Measure what ``SFUMATO_PARTS`` names, or all, and write after each part; a smoke run is small, without peers."""
    if smoke:
        few = setting(generated(1_000, 3), 1, DELTA, runs=2)
        return write("synthesis", {"smoke": _whole(few)}, smoke=True)
    chosen = [name for name in os.environ.get("SFUMATO_PARTS", "").split(",") if name] or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        raise SystemExit(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for name in chosen:
        figures = _whole(PARTS[name]())
        path = write("synthesis", _kept(RESULTS / "synthesis.json") | {name: figures}, smoke=False)
    return path


def _whole(figures: Figures) -> Figures:
    """With what a reader needs to know of a part that was measured by itself."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    return {**figures, "pairs": 0, "peers": {}, "measured on": {"when": when, "commit": commit()}}


def _kept(path: Path) -> dict[str, Any]:
    """What a result file has of the parts that there are."""
    if not path.exists():
        return {}
    measured = json.loads(path.read_text(encoding="utf-8"))["measured"]
    return {name: part for name, part in measured.items() if name in PARTS}


if __name__ == "__main__":
    print(json.dumps(one_large(int(sys.argv[1]), int(sys.argv[2]))))
