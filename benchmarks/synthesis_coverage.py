"""How often the interval from several files of one release has the truth in it, in simulations with a known population.

Each run draws people of the population, asks ``table.synthesize`` with a vault of its own, makes five files and
combines numbers of them. With two columns their table is measured and a run takes less than a second; with four, all
pairs are, and one of the numbers is about three columns that no table has together. Each ε has people of its own, so
that what one of them has by chance the others need not have. Coverage of 95% intervals is said with the
Clopper–Pearson interval of its own at 95%: so many runs, and no more, stand behind it.
"""

import math
import os
import time
from datetime import date

import numpy as np
import pyarrow as pa
from scipy.stats import beta

import sfumato as sf

__all__ = ["EPSILONS", "FOUR", "TWO", "coverage"]

EPSILONS = (0.1, 0.3, 1, 3)
PEOPLE = 1_000
FILES = 5
SECONDS = float(os.environ.get("SYNTHESIS_SECONDS", "inf"))
"""After so many seconds no further release is begun, whatever has come out: those that there are are counted."""
DELTA = "1/1000000"
WARDS = ("A", "B", "C")
KEYS: dict[str, list[str | int | bool | date]] = {
    "sex": ["F", "M"],
    "ward": list(WARDS),
    "ill": [False, True],
    "stage": [0, 1, 2, 3],
}
TWO = ("ward", "ill")
FOUR = tuple(KEYS)
MEN, WARDS_OF_WOMEN, WARDS_OF_MEN = 0.4, (0.5, 0.3, 0.2), (0.2, 0.3, 0.5)
ILL_IN_C, ILL_ELSEWHERE = 0.6, 0.25
IN_C = (1 - MEN) * WARDS_OF_WOMEN[2] + MEN * WARDS_OF_MEN[2]
TRUE = {
    "share": IN_C * ILL_IN_C + (1 - IN_C) * ILL_ELSEWHERE,
    "cell": IN_C * ILL_IN_C,
    "difference": ILL_IN_C - ILL_ELSEWHERE,
    "three": MEN * WARDS_OF_MEN[2] * ILL_IN_C,
}
"""The share of the ill; of the ill in ward C; ill in ward C less ill elsewhere; men in ward C who are ill."""
ABOUT = {"share": ["ill"], "cell": ["ward", "ill"], "difference": ["ward", "ill"], "three": ["sex", "ward", "ill"]}


def people(number: int, random: np.random.Generator) -> pa.Table:
    """People of a population in which each column depends on the one before."""
    man = random.random(number) < MEN
    women, men = (random.choice(3, number, p=law) for law in (WARDS_OF_WOMEN, WARDS_OF_MEN))
    ward = np.where(man, men, women)
    ill = random.random(number) < np.where(ward == 2, ILL_IN_C, ILL_ELSEWHERE)
    low, high = (random.choice(4, number, p=law) for law in ((0.4, 0.3, 0.2, 0.1), (0.1, 0.2, 0.3, 0.4)))
    stage = np.where(ill, high, low)
    return pa.table({"sex": np.where(man, "M", "F"), "ward": np.array(WARDS)[ward], "ill": ill, "stage": stage})


def numbers(rows: pa.Table) -> dict[str, float]:
    """Of the rows of one file; not a number where no row is in ward C, or every one."""
    ward, ill = (rows[name].to_numpy(zero_copy_only=False) for name in TWO)
    there = ward == "C"
    found = {
        "share": ill.mean(),
        "cell": (there & ill).mean(),
        "difference": ill[there].mean() - ill[~there].mean() if there.any() and not there.all() else math.nan,
    }
    if "sex" in rows.column_names:
        found["three"] = (there & ill & (rows["sex"].to_numpy(zero_copy_only=False) == "M")).mean()
    return {name: float(each) for name, each in found.items()}


def coverage(epsilon: float, columns: tuple[str, ...], runs: int) -> dict[str, object]:
    """Of each number: how often its interval has the truth, in so many releases, and how wide it is."""
    random, start = np.random.default_rng([17, len(columns), round(1000 * epsilon)]), time.process_time()
    inside: dict[str, list[bool]] = {}
    widths: dict[str, list[float]] = {}
    together: dict[str, bool] = {}
    refused: dict[str, int] = {}
    until, done = time.monotonic() + SECONDS, 0
    for _ in range(runs):
        if time.monotonic() > until:
            break
        done += 1
        budget = sf.Budget(epsilon=epsilon, delta=DELTA)
        vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=budget, name="coverage")
        rows = people(PEOPLE, random).select(list(columns))
        table = vault.table(rows, name="people", version="1", keys={name: KEYS[name] for name in columns})
        made = table.synthesize(list(columns), epsilon=epsilon, delta=DELTA, workload=workload(columns))
        files = made.files(FILES)
        each = [numbers(file) for file in files.rows]
        for name in each[0]:
            if not all(math.isfinite(file[name]) for file in each):  # no row in ward C, say: refused by ``combined``
                refused[name] = refused.get(name, 0) + 1
                continue
            found = files.combined([file[name] for file in each], ABOUT[name])
            low, high = found.interval
            inside.setdefault(name, []).append(low <= TRUE[name] <= high)
            widths.setdefault(name, []).append(high - low)
            together[name] = found.measured_together
    return {
        "epsilon": epsilon,
        "people": PEOPLE,
        "columns": len(columns),
        "runs": done,
        "files": FILES,
        "numbers": {
            name: {
                "covered": round(sum(some) / len(some), 4),
                "between": clopper_pearson(sum(some), len(some)),
                "refused": refused.get(name, 0),
                "measured_together": together[name],
                "median_width": round(float(np.median(widths[name])), 4),
            }
            for name, some in inside.items()
        },
        "cpu_seconds": round(time.process_time() - start, 1),
    }


def workload(columns: tuple[str, ...]) -> list[list[str]]:
    """Of two columns their table, whatever the rule for few rows says; of more it is left to the rule."""
    return [list(columns)] if columns == TWO else []


def clopper_pearson(hits: int, runs: int) -> list[float]:
    """The exact interval of 95% for the chance of a hit.

    >>> clopper_pearson(190, 200)
    [0.91, 0.9758]
    """
    low = beta.ppf(0.025, hits, runs - hits + 1) if hits else 0.0
    high = beta.ppf(0.975, hits + 1, runs - hits) if hits < runs else 1.0
    return [round(float(low), 4), round(float(high), 4)]
