"""Ratios in one run: interleaved pairs, the median ratio, and a bootstrap interval for it."""

import json
import os
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from random import Random

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("sfumato", "numpy", "scipy", "pyarrow", "duckdb", "ibis-framework", "statsmodels", "lifelines")
PAIRS = 7


def compare(
    ours: Callable[[], object], peers: Mapping[str, Callable[[], object]], *, pairs: int = PAIRS
) -> dict[str, object]:
    """Time ours and each peer alternately, after one warm-up each; ratios are time(peer) / time(ours)."""
    ours()
    for peer in peers.values():
        peer()
    own: list[float] = []
    others: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(pairs):
        own.append(_seconds(ours))
        for name, peer in peers.items():
            others[name].append(_seconds(peer))
    return {
        "pairs": pairs,
        "ours_seconds": statistics.median(own),
        "peers": {
            name: {
                "seconds": statistics.median(times),
                "ratio": ratio([b / a for a, b in zip(own, times, strict=True)]),
            }
            for name, times in others.items()
        },
    }


def write(
    name: str, measured: Mapping[str, object], *, smoke: bool, beside: Mapping[str, object] | None = None
) -> Path:
    """Write a result with what is needed to read it later; a smoke run writes to a temporary place.

    ``beside`` says more about the machine.
    """
    folder = Path(tempfile.mkdtemp()) if smoke else RESULTS
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    result = {
        "name": name,
        "commit": commit(),
        "smoke": smoke,
        "versions": {package: _version(package) for package in PACKAGES},
        "machine": {
            "processor": platform.machine(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            **(beside or {}),
        },
        "measured": measured,
    }
    path.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


def check_schema(path: Path) -> None:
    """Fail where a result lacks what a reader needs; the speed itself is never judged."""
    result = json.loads(path.read_text(encoding="utf-8"))
    for field in ("name", "commit", "smoke", "versions", "machine", "measured"):
        if field not in result:
            raise SystemExit(f"{path}: the result has no {field!r}")
    for name, measured in result["measured"].items():
        if measured["peers"] and measured["pairs"] < (2 if result["smoke"] else PAIRS):
            raise SystemExit(f"{path}: {name} has too few pairs")
        for peer, figures in measured["peers"].items():
            low, middle, high = (figures["ratio"][part] for part in ("low", "median", "high"))
            if not 0 < low <= middle <= high:
                raise SystemExit(f"{path}: the ratio of {name} to {peer} is malformed")


def _seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def ratio(ratios: list[float]) -> dict[str, float]:
    """The median of some ratios with a bootstrap interval of 95%."""
    chance = Random(0)  # a bootstrap of timings, nothing private
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(1000))
    return {"low": medians[25], "median": statistics.median(ratios), "high": medians[974]}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def commit() -> str:
    """The revision that is measured."""
    answer = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"
