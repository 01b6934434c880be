"""Programs over blocks: how long runs take whatever a program does, and three analyses of public records beside ours.

Of each analysis the program runs in boxes over all blocks, once; noise is then drawn many times, by the mechanism of
the release, so that the error is measured and not only stated. Beside it the same question through the normal calls.
The records lie beside the project; without them, and in a smoke run, invented ones of the same columns are asked.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from benchmarks.harness import write
from sfumato.boxes import BlockMean
from sfumato.boxes.box import Box, BoxLimits
from sfumato.boxes.levels import BoxLevel, box_level, box_levels
from sfumato.boxes.person_blocks import blocks_of
from sfumato.boxes.slots import answers_of_blocks, changing_time
from sfumato.boxes.store import exact_numbers
from sfumato.boxes.trial import check_starts
from sfumato.core.question import Question
from sfumato.engines.person_blocks import rows_by_person
from sfumato.engines.sources import Source
from sfumato.noise import SystemWords

DATA = Path(__file__).parents[2] / "shared" / "data"
BLOCKS, EPSILON, DRAWS, RELEASES = 100, 1, 2_000, 30
OUTCOMES = {
    "answers": "def analyse(rows): return 1.0",
    "crashes": "import ctypes; ctypes.string_at(0)",
    "never ends": "def analyse(rows):\n  while True: pass",
    "takes all memory": "def analyse(rows):\n  kept = []\n  while True: kept.append(bytearray(1 << 24))",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A question, its program, and the same through the normal calls."""

    rows: Callable[[int], pa.Table]
    person: str
    code: str
    bounds: tuple[float, float]
    ours: Callable[[sf.Vault, pa.Table], tuple[Callable[[], float], float]]
    """One release, to be called many times, and what it would be without noise."""


def possible() -> bool:
    """Whether this host can shut boxes."""
    return box_level() is not None


def run(*, smoke: bool) -> Path:
    limits = BoxLimits(seconds=Fraction(1, 2), libraries=("numpy",)) if smoke else BoxLimits(libraries=("numpy",))
    measured: dict[str, object] = {
        f"times by outcome {level.value}": _outcomes(4 if smoke else 10, limits, level) for level in box_levels()
    }
    for name, analysis in ANALYSES.items():
        measured[name] = _analysed(analysis, 4 if smoke else BLOCKS, limits, smoke=smoke)
    return write("blocks", measured, smoke=smoke)


def _outcomes(blocks: int, limits: BoxLimits, level: BoxLevel) -> dict[str, object]:
    """How long a run takes, to the time when its answers are there, whatever its program does."""
    rows = [pa.table({"x": [1.0]})] * blocks
    taken, box = {}, _planned(limits, level)
    for name, code in OUTCOMES.items():
        start = time.monotonic()
        answers_of_blocks(box, code, rows)
        taken[name] = time.monotonic() - start
    apart = 1000 * (max(taken.values()) - min(taken.values()))
    return {"pairs": 1, "peers": {}, "blocks": blocks, "seconds": taken, "apart_ms": apart, "level": level.value}


def _planned(limits: BoxLimits, level: BoxLevel) -> Box:
    """Boxes whose time to start was seen before, as the product does it."""
    return Box(limits=limits, level=level, starts_in=check_starts(limits, level))


def _analysed(analysis: Analysis, blocks: int, limits: BoxLimits, *, smoke: bool) -> dict[str, object]:
    rows = analysis.rows(1_000 if smoke else 0)
    unit = sf.user(analysis.person, relation="add/remove")
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=10**6), name="benchmark")
    table = vault.table(rows, name="records", version="1")
    question = vault.block_mean(table, analysis.code, bounds=analysis.bounds, blocks=blocks, limits=limits)
    query = question.query
    assert isinstance(query, BlockMean)
    start = time.monotonic()
    found, hashes = rows_by_person(Source(rows), query.given, person=analysis.person, secret="a public key")  # noqa: S106
    several = blocks_of(found, hashes, blocks)
    read = time.monotonic()
    box = _planned(limits, BoxLevel(query.program.level))
    begun = time.monotonic()
    said = answers_of_blocks(box, analysis.code, several)
    ended = time.monotonic()
    preview, (answer,) = question.preview(epsilon=EPSILON), query.answers
    exact = exact_numbers(query, said)
    drawn = [preview.mechanism.draw(exact, SystemWords())[0][0] for _ in range(20 if smoke else DRAWS)]  # type: ignore[attr-defined]
    means = [float(answer.low + value * answer.step / blocks) for value in drawn]
    assert isinstance(exact, list)
    middle = float(answer.low + exact[0] * answer.step / blocks)
    release, truth = analysis.ours(sf.Vault(unit=unit, budget=sf.Budget(epsilon=10**6), name="ours"), rows)
    ours = [release() - truth for _ in range(2 if smoke else RELEASES)]
    return {
        "pairs": 1,
        "peers": {},
        "blocks": blocks,
        "level": query.program.level,
        "rows": rows.num_rows,
        "read_seconds": read - start,
        "beyond_slots_seconds": ended - begun - blocks * float(limits.seconds),
        "stated_beyond_seconds": changing_time(blocks),
        "failed_blocks": sum(each is None for each in said),
        "stated_deviation": float(query.expected_mse(preview.mechanism.law, rows=None)["answer"]) ** 0.5,
        "measured_deviation": statistics.fmean([(mean - middle) ** 2 for mean in means]) ** 0.5,
        "mean_of_blocks": middle,
        "all_rows": truth,
        "bias": middle - truth,
        "error_of_blocks": statistics.fmean([(mean - truth) ** 2 for mean in means]) ** 0.5,
        "error_of_normal_calls": statistics.fmean([error**2 for error in ours]) ** 0.5,
        "range": [float(answer.low), float(answer.high)],
    }


@cache
def _stays(invented: int) -> pa.Table:
    """Stays of diabetes-130."""
    path = DATA / "diabetes-130-us-hospitals" / "diabetic_data.parquet"
    names = ["patient_nbr", "time_in_hospital", "num_medications"]
    if path.is_file() and not invented:
        return pq.read_table(path, columns=names)
    rng = np.random.default_rng(1)
    medications = rng.integers(1, 40, invented or 50_000)
    days = np.clip(medications // 5 + rng.integers(0, 6, len(medications)), 1, 14)
    return pa.table([pa.array(rng.integers(0, len(days) * 7 // 10, len(days))), days, medications], names=names)


@cache
def _patients(invented: int) -> pa.Table:
    """Stays of the eICU demo, with whether the patient left alive."""
    path = DATA / "eicu-demo" / "patient.parquet"
    if path.is_file() and not invented:
        found = pq.read_table(path, columns=["uniquepid", "hospitaldischargestatus"])
        died = pa.array([float(each == "Expired") for each in found["hospitaldischargestatus"].to_pylist()])
        return pa.table({"uniquepid": found["uniquepid"], "died": died})
    rng = np.random.default_rng(1)
    many = invented or 2_500
    return pa.table(
        {"uniquepid": rng.integers(0, many * 3 // 4, many).astype(str), "died": 1.0 * (rng.random(many) < 0.1)}
    )


LONGEST = """
import numpy as np
def analyse(rows):
    days = np.asarray(rows["time_in_hospital"], dtype=float)
    who, place = np.unique(np.asarray(rows["patient_nbr"]), return_inverse=True)
    longest = np.zeros(len(who))
    np.maximum.at(longest, place, days)
    return longest.mean()
"""
SLOPE = """
import numpy as np
def analyse(rows):
    days, drugs = (np.asarray(rows[name], dtype=float) for name in ("time_in_hospital", "num_medications"))
    return np.polyfit(np.clip(drugs, 0, 40), days, 1)[0]
"""
DIED = """
import numpy as np
def analyse(rows):
    died = np.asarray(rows["died"], dtype=float)
    who, place = np.unique(np.asarray(rows["uniquepid"]).astype(str), return_inverse=True)
    ever = np.zeros(len(who))
    np.maximum.at(ever, place, died)
    return ever.mean()
"""


def _longest(vault: sf.Vault, rows: pa.Table) -> tuple[Callable[[], float], float]:
    days = {"time_in_hospital": (1, 14)}
    table = vault.table(rows, name="records", version="1", bounds=days)
    persons = table.per_person(longest=sf.max("time_in_hospital"))
    return _mean(persons.agg(x=sf.mean("longest"))), _of_all(LONGEST, rows)


def _died(vault: sf.Vault, rows: pa.Table) -> tuple[Callable[[], float], float]:
    table = vault.table(rows, name="records", version="1", bounds={"died": (0, 1)})
    return _mean(table.per_person(ever=sf.max("died")).agg(x=sf.mean("ever"))), _of_all(DIED, rows)


def _slope(vault: sf.Vault, rows: pa.Table) -> tuple[Callable[[], float], float]:
    """One stay of each patient counts; the slope without noise is that of all stays, as for the program."""
    facts = {"time_in_hospital": (1, 14), "num_medications": (0, 40)}
    table = vault.table(rows, name="records", version="1", bounds=facts, limit=sf.Limit(groups=1, rows_per_group=1))
    study = table.linear_regression("time_in_hospital ~ num_medications")

    def one() -> float:
        result = study.release(epsilon=EPSILON, fresh=True)
        return float(result.estimates[result.names.index("num_medications")])

    return one, _of_all(SLOPE, rows)


def _mean(question: Question) -> Callable[[], float]:
    return lambda: float(question.release(epsilon=EPSILON, fresh=True)["x"].values[0])


def _of_all(code: str, rows: pa.Table) -> float:
    """What a program says of all rows at once."""
    names: dict[str, object] = {}
    exec(code, names)  # noqa: S102 - ours
    return float(names["analyse"](rows))  # type: ignore[operator]


ANALYSES = {
    "diabetes-130: mean of the longest stay of a patient": Analysis(
        rows=_stays, person="patient_nbr", code=LONGEST, bounds=(1, 14), ours=_longest
    ),
    "diabetes-130: slope of days on medications": Analysis(
        rows=_stays, person="patient_nbr", code=SLOPE, bounds=(0, 1), ours=_slope
    ),
    "eICU demo: share of patients who died in hospital": Analysis(
        rows=_patients, person="uniquepid", code=DIED, bounds=(0, 1), ours=_died
    ),
}
