"""Public tables for the benchmark of synthetic rows, cut into cells by their published descriptions.

Adult-8 has age in steps of 5 years, hours in steps of 10 and six columns as they are; Adult-14 has six more, weights,
gains and losses in 10 bins. Of NIST's ACS excerpts it is the national one, in 19 of its 24 columns: industry codes and
dollars are there in their groups, the density follows from the area, and weights are no answers of a person. Of
diabetes-130 it is one stay of each patient. Values are those of the code books; Adult has none in print for three
columns, whose values are public with the file.
"""

import csv
import gzip
import hashlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import parquet

import sfumato as sf
from benchmarks import readmissions

__all__ = ["Cells", "Source", "acs", "adult", "data_folder", "generated", "stays"]

EIGHT = ("age", "workclass", "education-num", "marital-status", "occupation", "sex", "hours-per-week", "income")
MORE = ("relationship", "race", "native-country", "fnlwgt", "capital-gain", "capital-loss")
ADULT_BOUNDS = {
    "age": (17, 101),
    "hours-per-week": (1, 100),
    "fnlwgt": (0, 1_500_000),
    "capital-gain": (0, 100_000),
    "capital-loss": (0, 4_400),
}
ADULT_EDGES = {
    "age": list(range(22, 101, 5)),
    "hours-per-week": list(range(11, 100, 10)),
    **{name: [ADULT_BOUNDS[name][1] * place // 10 for place in range(1, 10)] for name in MORE[3:]},
}
ACS_LISTED = (
    *("PUMA", "SEX", "MSP", "HISP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "INDP_CAT", "EDU", "PINCP_DECILE", "DVET"),
    *("DREM", "DPHY", "DEYE", "DEAR"),
)
ACS_COUNTS = {"NOC": 5, "NPF": 8}  # more are held to these
RICH = 501  # POVPIP says this for all above 500
STAYS = {
    "time_in_hospital": [2, 3, 4, 5, 7, 10],
    "num_medications": [5, 10, 15, 20, 25, 30],
    "number_outpatient": [1, 2, 4],
    "number_emergency": [1, 2, 4],
    "number_inpatient": [1, 2, 3, 4],
    "number_diagnoses": [4, 5, 6, 7, 8, 9],
}
MOST_DIAGNOSES = (1, 16)  # an edge at a bound is none: with a bound of 9 its bin would be one with 8
STAY_WORDS = (
    *("race", "gender", "age", "admission_type_id", "discharge_disposition_id", "A1Cresult", "insulin", "change"),
    *("diabetesMed", "diag_1"),
)


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows as cells of their columns."""

    codes: NDArray[np.int64]
    sizes: tuple[int, ...]

    def resampled(self, random: np.random.Generator, rows: int | None = None) -> "Cells":
        """Rows drawn from these: as many of them are what another sample of the same people would be."""
        return Cells(self.codes[random.integers(0, len(self.codes), rows or len(self.codes))], self.sizes)

    def away(self, other: "Cells", columns: int) -> float:
        """The mean total variation over all tables of this many columns."""
        errors = []
        for table in combinations(range(len(self.sizes)), columns):
            shape = [self.sizes[place] for place in table]
            one, two = (
                np.bincount(np.ravel_multi_index(list(each.codes[:, table].T), shape), minlength=int(np.prod(shape)))
                for each in (self, other)
            )
            errors.append(np.abs(one / one.sum() - two / two.sum()).sum() / 2)
        return float(np.mean(errors))


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A table and what is declared of it: values of columns in ``keys``, bounds and inner edges of the others."""

    rows: pa.Table
    keys: dict[str, list[object]]
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)
    edges: dict[str, list[int]] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """The columns in order."""
        names: list[str] = self.rows.column_names
        return names

    def some(self, places: NDArray[np.int64]) -> "Source":
        """The rows at these places."""
        return replace(self, rows=self.rows.take(pa.array(places)))

    def cells(self, rows: pa.Table | None = None) -> Cells:
        """Rows, of the table where none are given, cut as the question cuts them."""
        rows = self.rows if rows is None else rows
        codes, sizes = [], []
        for name in self.columns:
            if name in self.keys:
                codes.append(pc.index_in(rows[name], pa.array(self.keys[name])).to_numpy())
                sizes.append(len(self.keys[name]))
            else:
                codes.append(np.searchsorted(self.edges[name], rows[name].to_numpy(), side="right"))
                sizes.append(len(self.edges[name]) + 1)
        return Cells(np.stack(codes, axis=1).astype(np.int64), tuple(sizes))

    def synthesized(
        self, *, epsilon: float, delta: str, workload: Sequence[Sequence[str]] = ()
    ) -> tuple[Cells, float, str]:
        """As many synthetic rows from a vault of their own: cells, CPU seconds of the call, what was measured."""
        budget = sf.Budget(epsilon=epsilon, delta=delta)
        vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=budget, name="benchmark")
        table = vault.table(self.rows, name="rows", version="1", keys=self.keys, bounds=self.bounds)  # type: ignore[arg-type]  # lists of words are keys
        start = time.process_time()
        made = table.synthesize(
            self.columns,
            epsilon=epsilon,
            delta=delta,
            rows=len(self.rows),
            expected_rows=len(self.rows),
            bins=dict(self.edges),
            workload=[list(some) for some in workload],
        )
        return self.cells(made.rows), time.process_time() - start, made.quality.reason


def data_folder() -> Path:
    """The folder ``SFUMATO_DATA``, or the one beside the project."""
    return Path(os.environ.get("SFUMATO_DATA", Path(__file__).parents[2] / "shared" / "data"))


def adult(columns: int, part: str | None = None) -> Source:
    """Adult with 8 or 14 columns; ``part`` is the published one of ``train`` or ``test``."""
    names = list(EIGHT if columns == len(EIGHT) else EIGHT + MORE)
    book = parquet.read_table(data_folder() / "adult" / "adult.parquet")
    rows = book if part is None else book.filter(pc.equal(book["split"], part))
    return Source(
        rows=rows.select(names),
        keys={name: sorted(set(book[name].to_pylist())) for name in names if name not in ADULT_BOUNDS},
        bounds={name: ADULT_BOUNDS[name] for name in names if name in ADULT_BOUNDS},
        edges={name: ADULT_EDGES[name] for name in names if name in ADULT_EDGES},
    )


def acs() -> Source:
    """The national excerpt: 27,253 persons of 20 areas."""
    folder = data_folder() / "nist-acs-excerpts"
    told = json.loads((folder / "data_dictionary.json").read_text(encoding="utf-8"))
    with gzip.open(folder / "national2019.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    columns: dict[str, list[object]] = {name: [row[name] for row in rows] for name in ACS_LISTED}
    keys: dict[str, list[object]] = {name: list(told[name]["values"]) for name in ACS_LISTED}
    for name, most in ACS_COUNTS.items():
        columns[name] = [row[name] if row[name] == "N" else str(min(int(float(row[name])), most)) for row in rows]
        keys[name] = ["N", *(str(number) for number in range(most + 1))]
    columns["POVPIP"] = [_of_poverty(row["POVPIP"]) for row in rows]
    keys["POVPIP"] = ["N", *(str(step) for step in range(11))]
    columns["AGEP"] = [int(float(row["AGEP"])) for row in rows]
    return Source(rows=pa.table(columns), keys=keys, bounds={"AGEP": (0, 99)}, edges={"AGEP": list(range(5, 95, 5))})


def _of_poverty(word: str) -> str:
    """The ratio of income to poverty in steps of 50, the last of which is above 500.

    >>> _of_poverty("N"), _of_poverty("98"), _of_poverty("500"), _of_poverty("501")
    ('N', '1', '9', '10')
    """
    if word == "N":
        return word
    return "10" if int(float(word)) >= RICH else str(min(int(float(word)) // 50, 9))


def stays(*, held_out: bool) -> Source:
    """One stay of each patient, the one with the least hash; patients that are held out, or the others."""
    path = data_folder() / "diabetes-130-us-hospitals" / "diabetic_data.parquet"
    columns, targets, patients, held = readmissions.read(path)
    numbers = parquet.read_table(path, columns=["encounter_id"])["encounter_id"].to_pylist()
    order = np.argsort([hashlib.sha256(str(number).encode()).hexdigest() for number in numbers])
    _, first = np.unique(patients[order], return_index=True)
    chosen = np.sort(order[first])
    chosen = chosen[held[chosen] == held_out]
    keys: dict[str, list[object]] = {name: list(readmissions.WORDS[name]) for name in STAY_WORDS}
    table = pa.table({**{name: columns[name] for name in (*STAY_WORDS, *STAYS)}, "readmitted": targets == 1})
    for name in ("race", "gender"):
        keys[name].append("Unknown/Invalid" if name == "gender" else "?")
    return Source(
        rows=table.take(pa.array(chosen)),
        keys=keys | {"readmitted": [False, True]},
        bounds={name: readmissions.BOUNDS[name] for name in STAYS} | {"number_diagnoses": MOST_DIAGNOSES},
        edges=STAYS,
    )


def generated(rows: int, columns: int, seed: int = 4) -> Source:
    """Invented rows: 12 kinds of person, each with a law of its own for every column of 2 to 20 values."""
    random = np.random.default_rng(seed)
    kinds = random.choice(12, rows, p=random.dirichlet(np.full(12, 3.0)))
    held, keys = {}, {}
    for place in range(columns):
        size = (2, 3, 4, 6, 8, 12, 16, 20)[place % 8]
        laws = np.cumsum(random.dirichlet(np.full(size, 0.5), 12), axis=1)
        drawn = (random.random(rows)[:, None] > laws[kinds]).sum(axis=1)
        held[f"c{place}"] = pa.array(np.minimum(drawn, size - 1))
        keys[f"c{place}"] = list(range(size))
    return Source(rows=pa.table(held), keys=keys)
