"""How good private models are at ε = 1, 3 and 8: pictures, tables and papers, each run charged to a vault.

Each part is three runs at each ε with δ = 10⁻⁵, beside models without privacy. ``benchmarks/accuracy_rules.py`` has the
rules for batch, steps, clip and learning rate, which read nothing of the data. All test rows are public here.

``SFUMATO_PARTS=mnist,adult python -m benchmarks accuracy`` measures some parts and keeps the others of the result
file; ``python -m benchmarks.accuracy FILE …`` takes into it what other files have measured later. Data are in the
folder ``SFUMATO_DATA``. Parts of pictures need no package for tables, and use a GPU where there is one: they take
some minutes there, and hours on two cores; tables take some minutes on two cores.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import accuracy_pictures, accuracy_tables
from benchmarks.accuracy_runs import data_folder
from benchmarks.harness import RESULTS, write

__all__ = ["PARTS", "merged", "run"]

PARTS: dict[str, Callable[[Path], dict[str, object]]] = {
    "mnist": lambda data: accuracy_pictures.scattered(data / "mnist"),
    "fashion-mnist": lambda data: accuracy_pictures.scattered(data / "fashion-mnist"),
    "mnist-cnn": lambda data: accuracy_pictures.pixels(data / "mnist"),
    "fashion-mnist-cnn": lambda data: accuracy_pictures.pixels(data / "fashion-mnist"),
    "mnist-cnn-copies": lambda data: accuracy_pictures.pixels(data / "mnist", copies=True),
    "fashion-mnist-cnn-copies": lambda data: accuracy_pictures.pixels(data / "fashion-mnist", copies=True),
    "adult": lambda data: accuracy_tables.adult(data / "adult"),
    "acs": lambda data: accuracy_tables.acs(data / "nist-acs-excerpts"),
    "readmissions": lambda data: accuracy_tables.stays(data / "diabetes-130-us-hospitals"),
    "cora": lambda data: accuracy_tables.papers(data / "planetoid-cora-citeseer" / "cora.npz"),
}


def run(*, smoke: bool) -> Path:
    """Train everything that ``SFUMATO_PARTS`` names, and write after each part; a smoke run invents small data."""
    if smoke:
        return write("accuracy", accuracy_pictures.smoke() | accuracy_tables.smoke(), smoke=True)
    chosen = [name for name in os.environ.get("SFUMATO_PARTS", "").split(",") if name] or list(PARTS)
    if unknown := set(chosen) - set(PARTS):
        raise SystemExit(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    measured = _kept(RESULTS / "accuracy.json")
    for name in chosen:
        measured[name] = PARTS[name](data_folder())
        path = write("accuracy", measured, smoke=False)
    return path


def merged(*results: Mapping[str, Any]) -> dict[str, Any]:
    """Of each part the one that was measured last; parts that no longer exist, or do not say when, are left out.

    >>> early, late = ({"measured on": {"when": f"2026-11-17T0{hour}"}} for hour in (1, 2))
    >>> merged({"mnist": late, "old": late}, {"mnist": early, "cora": early}) == {"mnist": late, "cora": early}
    True
    """
    found: dict[str, Any] = {}
    for result in results:
        for name, part in result.items():
            when = part.get("measured on", {}).get("when")
            if name in PARTS and when and (name not in found or when > found[name]["measured on"]["when"]):
                found[name] = part
    return found


def _kept(path: Path) -> dict[str, Any]:
    """What a result file has of the parts that there are."""
    return merged(json.loads(path.read_text(encoding="utf-8"))["measured"]) if path.exists() else {}


if __name__ == "__main__":
    files = [RESULTS / "accuracy.json", *map(Path, sys.argv[1:])]
    print(write("accuracy", merged(*map(_kept, files)), smoke=False))
