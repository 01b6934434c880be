"""Random tables of the same persons: missing ids, missing values, NaN, 0.1, decimals, dates, moments with a zone."""

import random
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa

FIRST_DAY, LAST_DAY = date(2026, 1, 1), date(2026, 3, 31)
MONTHS = ("2026-01-01", "2026-02-01", "2026-03-01")
WARDS = ("x", "y", "", "é")
REGIONS = ("north", "south")
BOUNDS = {"beds": (-8, 8), "half": (-8, 8), "tenth": (0, 4), "money": (0, 64), "place": (0, 128)}
KEYS = {"ward": WARDS, "urgent": (True, False)}
PEOPLE: dict[str, list[Any]] = {
    "text": ["a", "A", "b", "c", "é", "e\u0301", "", " "],
    "whole": [0, 1, -1, 7, 8, 9, 2**63 - 1, -(2**63)],
}
OWN = {
    "ward": ("ward",),
    "code": ("code",),
    "whole": ("beds", "place"),
    "half": ("half",),
    "tenth": ("tenth",),
    "money": ("money",),
    "truth": ("urgent",),
    "day": ("day",),
    "moment": ("at", "seen"),
}
ZONES = (*[None] * 12, "UTC", "Europe/Berlin", "America/New_York")
PUBLIC = {"region": ("region",), "whole": ("level",), "truth": ("open",), "day": ("since",)}


@dataclass(frozen=True, slots=True)
class Scene:
    """The tables, and the zone whose clock the column `seen` is read by."""

    rows: dict[str, pa.Table]
    wards: pa.Table
    zone: str | None
    """None where there is no such column: reading it makes every question much longer."""
    people: tuple[Any, ...]

    @property
    def kinds(self) -> dict[str, tuple[str, ...]]:
        """The columns of both tables, by kind."""
        return OWN if self.zone else {**OWN, "moment": ("at",)}

    @classmethod
    def drawn(
        cls, chance: random.Random, *, zones: tuple[str | None, ...] = ZONES, most: int = 40, dense: bool = False
    ) -> "Scene":
        """Any tables, of so many rows each at the most; ``dense`` ones have as many, of few persons."""
        zone = chance.choice(zones)
        kind = chance.choice(list(PEOPLE))
        people = tuple(chance.sample(PEOPLE[kind], chance.randint(2, 4 if dense else len(PEOPLE[kind]))))
        rows = {
            name: _rows(chance, people, kind, [most] if dense else [0, 1, most // 3, most, most])
            for name in ("stays", "labs")
        }
        rows = rows if zone else {name: each.drop_columns(["seen"]) for name, each in rows.items()}
        listed = chance.sample([*WARDS, "Z"], chance.randint(2, 5))
        wards = pa.table(
            {
                "ward": pa.array(listed, pa.string()),
                "region": pa.array(_texts(chance, listed), pa.string()),
                "level": pa.array([chance.randint(-4, 4) for _ in listed], pa.int64()),
                "open": pa.array([chance.choice([True, False, None]) for _ in listed], pa.bool_()),
                "since": pa.array([FIRST_DAY + timedelta(days=chance.randrange(60)) for _ in listed], pa.date32()),
            }
        )
        return cls(rows, wards, zone, people)


def _texts(chance: random.Random, listed: list[str]) -> list[str | None]:
    """A region for each ward, each of them at least once."""
    return [REGIONS[place] if place < len(REGIONS) else chance.choice([*REGIONS, None]) for place in range(len(listed))]


def _rows(chance: random.Random, people: tuple[Any, ...], kind: str, sizes: list[int]) -> pa.Table:
    count = chance.choice(sizes)
    some = chance.choices([*people, None], weights=[chance.choice([1, 3, 9]) for _ in range(len(people) + 1)], k=count)

    def column(choices: list[Any], dtype: pa.DataType) -> pa.Array:
        return pa.array([chance.choice(choices) for _ in range(count)], dtype)

    days = [FIRST_DAY + timedelta(days=offset) for offset in (-7, -1, 0, 1, 17, 30, 31, 58, 59, 89, 90, 120)]
    moments = [datetime(2026, 1, 1) + timedelta(minutes=chance.randrange(-2000, 140_000)) for _ in range(5)]
    return pa.table(
        {
            "id": pa.array(some, pa.string() if kind == "text" else pa.int64()),
            "ward": column([*WARDS, "z", "xx", None], pa.string()),
            "code": column(["7", "-3", "12", "x", "", "Q1", "q2", None], pa.string()),
            "beds": column([None, -8, *range(-3, 9)], pa.int64()),
            "half": column([None, float("nan"), -8.0, -1.75, 0.0, 0.25, 0.5, 1.5, 8.0], pa.float64()),
            "tenth": column([None, float("nan"), 0.1, 0.2, 0.3, 0.7, 1.1, 4.0], pa.float64()),
            "money": column([None, *map(Decimal, ("0.00", "0.10", "0.30", "9.99", "64.00"))], pa.decimal128(10, 2)),
            "urgent": column([True, False, None], pa.bool_()),
            "day": column([*days, None], pa.date32()),
            "at": column([*moments, None], pa.timestamp("us")),
            "seen": column([*(each.replace(tzinfo=UTC) for each in moments), None], pa.timestamp("us", "UTC")),
            "place": pa.array(chance.sample(range(128), count), pa.int64()),
        }
    )


def on_clock(moments: pa.ChunkedArray, zone: str) -> pa.Array:
    """Moments as a clock in the zone shows them."""
    shown = [
        None if each is None else each.astimezone(ZoneInfo(zone)).replace(tzinfo=None) for each in moments.to_pylist()
    ]
    return pa.array(shown, pa.timestamp("us"))
