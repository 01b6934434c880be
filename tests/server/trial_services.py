"""A trial in a service: persons with a time, an event, an arm and a few measurements, and a canary among them."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from sfumato.core.budget import Budget
from sfumato.engines.expressions import Type
from sfumato.tables.column_facts import ColumnFacts
from sfumato.tables.schema import Schema
from tests.server.asked_services import CANARY, AskedService

PERSONS = 1_200
TRIAL = Schema(
    name="trial",
    edition="2026-11",
    unit="patient_id",
    limit=sf.Limit(groups=2, rows_per_group=2, row="visit", person="patient"),
    population=100_000,
    columns=(
        ColumnFacts(name="patient_id", type=Type.TEXT),
        ColumnFacts(name="arm", type=Type.TEXT, keys=("control", "treated")),
        ColumnFacts(name="week", type=Type.WHOLE, bounds=(Fraction(1), Fraction(26))),
        ColumnFacts(name="relapsed", type=Type.TRUTH),
        ColumnFacts(name="age", type=Type.WHOLE, bounds=(Fraction(18), Fraction(90))),
        ColumnFacts(name="sbp", type=Type.NUMBER, bounds=(Fraction(80), Fraction(220))),
    ),
)


def rows() -> pa.Table:
    """Relapses come later under treatment; pressure rises with age."""
    draw = np.random.default_rng(3)
    treated = draw.integers(0, 2, PERSONS)
    relapse = np.ceil(draw.exponential(np.where(treated == 1, 30, 12))).astype(int)
    lost = draw.integers(4, 27, PERSONS)
    age = draw.integers(18, 91, PERSONS)
    return pa.table(
        {
            "patient_id": [f"{CANARY}-{place}" for place in range(PERSONS)],
            "arm": np.array(["control", "treated"])[treated],
            "week": np.minimum(relapse, lost),
            "relapsed": relapse <= lost,
            "age": age,
            "sbp": np.clip(100 + 0.5 * age + draw.normal(0, 12, PERSONS), 80, 220),
        }
    )


ROWS = rows()


def declare(made: AskedService) -> None:
    """Declare the trial in a service."""
    place = made.service.data / "trial.parquet"
    pq.write_table(ROWS, place)
    cap = Budget(epsilon=30, delta="1/10000")
    made.service.datasets.declare(TRIAL, place, population="patients", relation="add/remove", cap=cap, by="stella")
