"""The tables that the sixty questions of a hospital statistician are asked of, declared as a steward would."""

import random
import tomllib
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import sfumato as sf
from tests.parts import dataset

__all__ = ["Asked", "declared", "questions", "tables"]

DIAGNOSES = ("influenza A", "heart failure", "hip fracture", "sepsis", "asthma", "appendicitis")
WARDS = {
    "A1": "medicine",
    "A2": "medicine",
    "B1": "surgery",
    "B2": "surgery",
    "C1": "geriatrics",
    "ICU": "intensive care",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question: of which tables, in words, and as it is typed."""

    on: str
    asks: str
    sql: str


def questions() -> list[Asked]:
    listed = tomllib.loads((Path(__file__).parent / "hospital.toml").read_text("utf-8"))["question"]
    return [Asked(**each) for each in listed]


def invented(persons: int = 400, seed: int = 7) -> dict[str, pa.Table]:
    """Stays and patients of a hospital in which no real person occurs."""
    chance = random.Random(seed)
    people: list[dict[str, Any]] = []
    stays: list[dict[str, Any]] = []
    for number in range(persons):
        born = date(1930, 1, 1) + timedelta(days=chance.randrange(33_000))
        sex = chance.choice("FM")
        people.append(
            {
                "patient_id": number,
                "born": born,
                "sex": sex,
                "postcode": f"{chance.choice((10, 20, 80))}{number % 997:03}",
            }
        )
        for _ in range(min(1 + int(chance.expovariate(1.2)), 6)):
            begun = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=chance.randrange(2 * 365 * 24 * 60))
            ended = begun + timedelta(hours=6 + chance.expovariate(1 / 96))
            words = chance.choice(DIAGNOSES)
            stays.append(
                {
                    "patient_id": number,
                    "stay_id": len(stays),
                    "admitted": begun,
                    "discharged": ended,
                    "ward": chance.choice(list(WARDS)),
                    "age": (begun.date() - born).days // 365,
                    "sex": sex,
                    "emergency": chance.random() < 0.4,
                    "died": chance.random() < 0.05,
                    "cost": Decimal(chance.randrange(50_000, 3_000_000)) / 100,
                    "diagnosis": chance.choice((words, words.upper(), f" {words}", None)),
                    "insurer": chance.choice(("AOK", "TK", "DAK", None)),
                    "weight_kg": chance.choice((None, chance.uniform(40, 120))),
                }
            )
    schema = pa.schema(
        [
            *(("patient_id", pa.int64()), ("stay_id", pa.int64())),
            *(("admitted", pa.timestamp("us", "UTC")), ("discharged", pa.timestamp("us", "UTC"))),
            *(("ward", pa.string()), ("age", pa.int64()), ("sex", pa.string())),
            *(("emergency", pa.bool_()), ("died", pa.bool_()), ("cost", pa.decimal128(10, 2))),
            *(("diagnosis", pa.string()), ("insurer", pa.string()), ("weight_kg", pa.float64())),
        ]
    )
    wards = {"ward": list(WARDS), "department": list(WARDS.values()), "beds": [30, 28, 25, 20, 40, 12]}
    return {
        "stays": pa.Table.from_pylist(stays, schema),
        "patients": pa.Table.from_pylist(people),
        "wards": pa.table(wards),
    }


def tables(on: str) -> dict[str, pa.Table]:
    """The rows that questions are asked of, by the names of their tables."""
    match on:
        case "stays":
            return invented()
        case "encounters":
            folder = "diabetes-130-us-hospitals"
            kinds = [
                line.split(",", 1) for line in dataset(f"{folder}/IDs_mapping.csv").read_text("utf-8").splitlines()
            ]
            first = kinds[1 : next(place for place, line in enumerate(kinds) if not line[0].strip())]
            named = {"admission_type_id": [int(one) for one, _ in first], "description": [name for _, name in first]}
            return {
                "encounters": pq.read_table(dataset(f"{folder}/diabetic_data.parquet")),
                "admission_types": pa.table(named),
            }
    names = ("admissions", "patients", "icustays", "diagnoses_icd", "labevents", "prescriptions", "d_icd_diagnoses")
    return {name: pq.read_table(dataset(f"mimic-iii-demo/{name}.parquet")) for name in names}


def declared(on: str, rows: dict[str, pa.Table], unit: Any = None) -> dict[str, Any]:
    """The same tables behind a vault: private ones with keys and bounds, public ones as they are.

    Persons are protected, unless another unit is said.
    """
    import pyarrow.compute as pc

    person = {"stays": "patient_id", "encounters": "patient_nbr", "mimic": "subject_id"}[on]
    protected = unit or sf.user(person, relation="add/remove")
    vault = sf.Vault(unit=protected, budget=sf.Budget(epsilon=10**6), name=on)
    found: dict[str, Any] = {}
    for name, table in rows.items():
        if person not in table.column_names:
            found[name] = vault.public(table, name=name)
            continue
        keys, bounds, zones = {}, {}, {}
        for column in table.column_names:
            values = table.column(column)
            if pa.types.is_string(values.type) or pa.types.is_integer(values.type):
                unique = [each for each in pc.unique(values).to_pylist() if each is not None]
                if len(unique) <= 100:
                    keys[column] = sorted(unique)
            if (
                pa.types.is_integer(values.type)
                or pa.types.is_floating(values.type)
                or pa.types.is_decimal(values.type)
            ):
                low, high = pc.min(values).as_py(), pc.max(values).as_py()
                if low is not None and column != person:
                    bounds[column] = (low, high)
            if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
                days = pc.min_max(pc.cast(values, pa.date32()))
                bounds[column] = (days["min"].as_py(), days["max"].as_py())
            if pa.types.is_timestamp(values.type) and values.type.tz is not None:
                zones[column] = values.type.tz
        most = sf.Limit(groups=10, rows_per_group=10) if on == "stays" else sf.Limit(groups=100, rows_per_group=10_000)
        limit = most if unit is None else None
        found[name] = vault.table(table, name=name, version="1", limit=limit, keys=keys, bounds=bounds, zones=zones)
    return found
