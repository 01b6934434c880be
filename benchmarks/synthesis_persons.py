"""Synthetic persons with their stays: errors and cost by the number of persons and ε.

Persons are invented: sex, age in six bins, and up to four stays in order, each with a ward that depends on age and on
the stay before, and nights that depend on age. The error is the mean total variation over all tables of two columns of
a stay with its person (sex, age, number of stays, ward, nights), cut as they were measured. Beside it stand files of
the same call with every column measured by itself, whatever the rule says.
"""

import time
from itertools import combinations
from unittest import mock

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import sfumato as sf
from sfumato.tables import related

__all__ = ["PERSONS", "persons_with_stays"]

PERSONS = {1_000: 4, 10_000: 1}
"""Persons, and runs with each."""
EPSILONS = (0.1, 0.3, 1, 3, 10)
DELTA = "1/1000000"
MOST = 4
WARDS = ("surgery", "medicine", "geriatrics")
AGES, NIGHTS = [30, 42, 54, 66, 78], [2, 4, 7, 14]
Codes = NDArray[np.int64]


def invented(number: int, seed: int = 6) -> tuple[pa.Table, pa.Table]:
    """Persons and their stays."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 90, number)
    times = np.minimum(random.poisson(0.3 + age / 60), MOST)
    person = np.repeat(np.arange(number), times)
    place = np.arange(len(person)) - np.repeat(np.cumsum(times) - times, times)
    ward = np.minimum(age[person] // 33 + random.integers(0, 2, len(person)), 2)
    stayed = (place > 0) & (random.random(len(person)) < 0.5)
    for later in range(1, MOST):
        same = np.flatnonzero(stayed & (place == later))
        ward[same] = ward[same - 1]
    nights = np.minimum(np.ceil(random.exponential(2 + age[person] / 20)), 30).astype(int)
    persons = {"id": np.arange(number), "sex": np.array(["F", "M"])[random.integers(0, 2, number)], "age": age}
    stays = {"id": person, "day": place, "ward": np.array(WARDS)[ward], "nights": nights}
    return pa.table(persons), pa.table(stays)


def cells(persons: pa.Table, stays: pa.Table) -> Codes:
    """Sex, age, number of stays, ward and nights of each stay, as cells."""
    known, owner = persons["id"].to_numpy(), stays["id"].to_numpy()
    order = np.argsort(known)
    place = order[np.searchsorted(known, owner, sorter=order)]
    times = np.bincount(place, minlength=len(known))
    sex = persons["sex"].to_numpy(zero_copy_only=False) == "M"
    age = np.searchsorted(AGES, persons["age"].to_numpy(), side="right")
    wards = stays["ward"].to_numpy(zero_copy_only=False)
    ward = np.stack([wards == name for name in WARDS], axis=1).argmax(axis=1)
    nights = np.searchsorted(NIGHTS, stays["nights"].to_numpy(), side="right")
    return np.stack([sex[place], age[place], times[place] - 1, ward, nights], axis=1).astype(np.int64)


SIZES = (2, len(AGES) + 1, MOST, len(WARDS), len(NIGHTS) + 1)


def tables(codes: Codes) -> list[NDArray[np.float64]]:
    """All tables of two columns, as shares."""
    found = []
    for one, two in combinations(range(len(SIZES)), 2):
        flat = codes[:, one] * SIZES[two] + codes[:, two]
        counts = np.bincount(flat, minlength=SIZES[one] * SIZES[two]).reshape(SIZES[one], SIZES[two])
        found.append(counts / max(len(codes), 1))
    return found


def away(truth: list[NDArray[np.float64]], made: list[NDArray[np.float64]]) -> float:
    """The mean total variation."""
    return float(np.mean([np.abs(one - two).sum() / 2 for one, two in zip(truth, made, strict=True)]))


def persons_with_stays(number: int, runs: int) -> dict[str, object]:
    """Errors at each ε, the mean of so many runs, and CPU seconds of a call."""
    persons, stays = invented(number)
    truth, points = tables(cells(persons, stays)), []
    for epsilon in EPSILONS:
        made = [synthesized(persons, stays, epsilon) for _ in range(runs)]
        with mock.patch.object(related, "TOO_FEW_PERSONS", 0.0):
            alone = [synthesized(persons, stays, epsilon) for _ in range(runs)]
        error, single = (np.mean([away(truth, tables(codes)) for codes, _, _ in some]) for some in (made, alone))
        point = {
            "epsilon": epsilon,
            "measured": sorted({reason for _, _, reason in made}),
            "error": round(float(error), 5),
            "independent": round(float(single), 5),
            "cpu_seconds": round(float(np.median([spent for _, spent, _ in made])), 2),
        }
        points.append(point)
        print(number, point, flush=True)
    return {
        "persons": number,
        "stays": stays.num_rows,
        "runs": runs,
        "points": points,
    }


def synthesized(persons: pa.Table, stays: pa.Table, epsilon: float) -> tuple[Codes, float, str]:
    """One call from a vault of its own: cells of stays with their persons, CPU seconds, what was measured."""
    budget = sf.Budget(epsilon=epsilon, delta=DELTA)
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=budget, name="benchmark")
    limit = sf.Limit(groups=1, rows_per_group=1)
    people = vault.table(
        persons, name="persons", version="1", limit=limit, keys={"sex": ["F", "M"]}, bounds={"age": (18, 90)}
    )
    below = vault.table(stays, name="stays", version="1", keys={"ward": list(WARDS)}, bounds={"nights": (1, 30)})
    start = time.process_time()
    made = people.synthesize_related(
        {"stays": sf.ChildRows(below, order="day", most=MOST, follow=["ward"], bins={"nights": NIGHTS})},
        epsilon=epsilon,
        delta=DELTA,
        persons=persons.num_rows,
        bins={"age": AGES},
    )
    spent = time.process_time() - start
    return cells(made.tables["persons"], made.tables["stays"]), spent, made.quality.reason
