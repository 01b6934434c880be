"""Releases with several computed columns, for tests of words, pages, pictures and certificates."""

from functools import cache
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.core.release import Release

__all__ = ["KEYS", "asked", "five", "fresh_mean_of", "mean_of", "table"]

KEYS = ("F", "M")


def asked() -> dict[str, Any]:
    """The five measures."""
    return {
        "n": sf.count(),
        "sbp": sf.mean("sbp"),
        "total": sf.sum("sbp"),
        "sd": sf.standard_deviation("sbp"),
        "old": sf.proportion(sf.col("age") >= 65),
    }


def table(*, keys: tuple[str, ...] = KEYS, column: str = "sex", rows: int = 400, budget: int = 1000) -> Any:
    """Blood pressures of a hundred persons, a known pattern, without a chance in it."""
    data = pa.table(
        {
            "id": [place % 100 for place in range(rows)],
            column: [keys[place * 7 % 100 % len(keys)] for place in range(rows)],
            "sbp": [None if place % 20 == 0 else 90.0 + place * 13 % 110 for place in range(rows)],
            "age": [place * 17 % 100 for place in range(rows)],
        }
    )
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=budget), name="patients")
    return vault.table(
        data,
        name="visits",
        version="2026-10",
        limit=sf.Limit(groups=2, rows_per_group=5),
        bounds={"sbp": (80, 220), "age": (0, 110)},
        keys={column: keys},
    )


@cache
def five() -> Release:
    """Two groups, five measures."""
    return table().group_by("sex").agg(**asked()).release(epsilon=50)  # type: ignore[no-any-return]


@cache
def mean_of(groups: int) -> Release:
    """One mean in each of some groups, drawn once."""
    return fresh_mean_of(groups, epsilon=100)


def fresh_mean_of(groups: int, *, epsilon: int | str) -> Release:
    """The same, drawn anew at each call."""
    keys = tuple(f"R{place:02}" for place in range(groups))
    return table(keys=keys, column="region").group_by("region").mean("sbp").release(epsilon=epsilon)  # type: ignore[no-any-return]
