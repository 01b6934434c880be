"""Small releases for tests of pictures and pages."""

from functools import cache
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato.core.release import Release

__all__ = ["HOSTILE", "grouped", "release"]

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>&amp;</pre></style>',
    "a very long name " * 25,
    "שלום עולם",
    "line\none\ttwo\x00\x0b",
    "1\u202e2\u2066",
    "family 👩‍👩‍👧",
    "=HYPERLINK('x')",
)


def release(
    *,
    name: str = "visits",
    keys: tuple[str, ...] = ("north", "south"),
    column: str = "region",
    where: Any = None,
    relation: str = "add/remove",
) -> Release:
    """Counts by one column of two people; ε = 1/2 of 1."""
    vault = sf.Vault(unit=sf.user("id", relation=relation), budget=sf.Budget(epsilon=1), name=name)
    rows = pa.table({"id": ["a", "b"], column: [keys[0], keys[-1]], "age": [70, 20], "sick": [True, False]})
    limit = sf.Limit(groups=2, rows_per_group=3)
    table = vault.table(rows, name=name, version=name, limit=limit, keys={column: keys})
    return (table if where is None else table.where(where)).group_by(column).count().release(epsilon=0.5)


@cache
def grouped(groups: int, language: str) -> Release:
    """Counts by a region with so many values, named in a language."""
    word = {"en": "Region", "zh": "地区"}[language]
    return release(name={"en": "visits", "zh": "就诊"}[language], keys=tuple(f"{word} {n:03}" for n in range(groups)))
