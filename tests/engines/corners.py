# ruff: noqa: E501 - tables of cases
"""Columns full of corners, and the constants to meet them with."""

import datetime
import hashlib
import math
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow as pa

from sfumato.engines.expressions import Type
from tests.engines.truth import Cell, Row

WHOLES = [0, 1, -1, 2, -3, 65, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 3037000500, 2**62, 2**63 - 1, -(2**63), 1 - 2**63]
NUMBERS = [0.0, -0.0, 0.1, -0.1, 0.5, -2.5, 1.0, 3.0, 65.0, -1.0, 2.0**53, 16777216.0, 9.3e18, -9.3e18, 2.0**63]
TINY = [5e-324, -5e-324, 2.2250738585072014e-308, 1e-200, 2.0**-480, -(2.0**-480), 2.0**-481, 3 * 2.0**-429, 2.0**-428,
        math.nextafter(2.0**-427, 0), 1.1e-129, -7e-130, 1e-124]  # fmt: skip
HUGE = [1e300, -1e300, 1.7976931348623157e308, 2.0**480, -(2.0**480), math.nextafter(2.0**480, 0), 1e200, -3e143]
TEXTS = ["", " ", "a", "A", "a ", "ab", "é", "e\u0301", "区", "\U0001f600", "\U0001f469\u200d\u2695\ufe0f", "\ufb01", "it's", '"',
         "\\", "\\n", "\n", "\t", "%", "_", "$1", "?", "--", "/*", "\x1f", "\x7f", "\u2028", "\ufeff", "\ud7ff", "\ue000",
         "\uffff", "\U00010000", "\U0010ffff", "ß", "SS", "İ", "i"]  # fmt: skip
CODES = ["0", "-0", "007", "12", "-12", "999999999999999999", "-999999999999999999", "1000000000000000000", "", "-", "--1",
         "1-", "1-2", "+1", " 1", "1 ", "1\n", "\n1", "1.0", "1e3", "0x1", "١", "¹", "1_0", "1,000", "NaN", "9223372036854775807",
         "00000000000000000001", "000000000000000001", "1\u00a0", "−1", "a"]  # fmt: skip
DAYS = [
    *(datetime.date(1, 1, 1), datetime.date(1, 12, 31), datetime.date(4, 2, 29), datetime.date(1582, 10, 4)),
    *(datetime.date(1582, 10, 15), datetime.date(1752, 9, 3), datetime.date(1900, 2, 28), datetime.date(1900, 3, 1)),
    *(datetime.date(1969, 12, 31), datetime.date(1970, 1, 1), datetime.date(2000, 2, 29), datetime.date(2024, 12, 30)),
    *(datetime.date(2026, 4, 30), datetime.date(2026, 11, 29), datetime.date(2038, 1, 19), datetime.date(9999, 12, 31)),
]
MOMENTS = [
    *(datetime.datetime(1, 1, 1), datetime.datetime(1582, 10, 10, 12, 30)),
    *(datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), datetime.datetime(1970, 1, 1)),
    *(datetime.datetime(2000, 2, 29, 23, 59, 59), datetime.datetime(2026, 3, 29, 2, 30)),
    *(datetime.datetime(1883, 11, 18, 12, 3, 58), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)),
]
STAMPS = ["2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29 23:59:59.999999", "0001-01-01", "0000-12-31", "9999-12-31T23:59",
          "2026-11-29 07:05:00.5", "2026-11-31", "2026-13-01", "2026-00-10", "2026-04-00", "2026-01-01 24:00", "2026-01-01 12:60",
          "2026-01-01 12:00:60", "2026-01-01 ", "2026-01-01\n", "2026-01-01#", " 2026-01-01", "2026-1-1", "2026-01-01T12", "20260101",
          "2026-01-01 12:00:00.1234567", "2026-01-01 12:00Z", "x", "", "1.5", "-0.25", "12.", ".5", "1e3", "123456789012345.5"]  # fmt: skip
PRICES = [Decimal(text) for text in ("0.00", "0.10", "-0.10", "65.00", "12345678.91", "-99999999.99", "0.01", "2.50")]
SUMS = ["0.1", "-0.1", "9007199254740993", "9007199254740993.5", "1234567890123456789012345678.0123456789", "0.0000000001",
        "0.3", "-2.5"]  # fmt: skip
FLOATS: list[Cell] = [None, None, math.nan, math.inf, -math.inf, *NUMBERS, *TINY, *HUGE]
COLUMNS: dict[str, tuple[pa.DataType, list[Cell]]] = {
    "text": (pa.string(), [None, *TEXTS]),
    "word": (pa.string(), [None, *TEXTS]),
    "code": (pa.string(), [None, *CODES]),
    "whole": (pa.int64(), [None, *WHOLES]),
    "other": (pa.int64(), [None, *WHOLES]),
    "tiny": (pa.int8(), [None, 0, 1, -1, 30, 65, 127, -128]),
    "natural": (pa.uint32(), [None, 0, 1, 65, 2**32 - 1]),
    "number": (pa.float64(), FLOATS),
    "amount": (pa.float64(), FLOATS),
    "single": (pa.float32(), [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 0.5, 65.0, 16777216.0, 0.1, 1e-45, 3e38]),
    "truth": (pa.bool_(), [None, True, False]),
    "sure": (pa.bool_(), [None, True, False]),
    "day": (pa.date32(), [None, *DAYS]),
    "since": (pa.date32(), [None, *DAYS]),
    "moment": (pa.timestamp("us"), [None, *MOMENTS]),
    "later": (pa.timestamp("us"), [None, *MOMENTS]),
    "stamp": (pa.string(), [None, *STAMPS]),
    "price": (pa.decimal128(10, 2), [None, *PRICES]),
    "sum": (pa.decimal128(38, 10), [None, *map(Decimal, SUMS)]),
}
TYPES = {
    **dict.fromkeys(("text", "word", "code", "stamp"), Type.TEXT),
    **dict.fromkeys(("whole", "other", "tiny", "natural"), Type.WHOLE),
    **dict.fromkeys(("number", "amount", "single", "price", "sum"), Type.NUMBER),
    **dict.fromkeys(("truth", "sure"), Type.TRUTH),
    **dict.fromkeys(("day", "since"), Type.DATE),
    **dict.fromkeys(("moment", "later"), Type.TIME),
}
CLOCKS = {name: kind for name, kind in TYPES.items() if kind in (Type.DATE, Type.TIME)}
NUMERIC = frozenset(name for name, kind in TYPES.items() if kind is Type.NUMBER)
CONSTANTS: dict[str, Sequence[Any]] = {
    "text": TEXTS,
    "word": TEXTS,
    "code": CODES,
    "whole": WHOLES,
    "other": WHOLES,
    "tiny": [*WHOLES, 127, -128, 128, -129, 300],
    "natural": [*WHOLES, 2**32 - 1, 2**32],
    "number": [
        *NUMBERS,
        *TINY,
        *(huge for huge in HUGE if abs(huge) < 2.0**1000),
        *WHOLES,
        Fraction(1, 3),
        Fraction(1, 10**400),
        Fraction(2**53 + 1),
    ],
    "amount": [*NUMBERS, *WHOLES],
    "single": [*NUMBERS, 16777217, 16777216, 0.5],
    "truth": [True, False],
    "sure": [True, False],
    "day": DAYS,
    "since": DAYS,
    "moment": [*DAYS, *(moment.date() for moment in MOMENTS)],
    "later": MOMENTS,
    "stamp": STAMPS,
    "price": [Fraction(each) for each in PRICES],
    "sum": [Fraction(Decimal(each)) for each in SUMS],
}


@cache
def frame(length: int) -> pa.Table:
    """Each value of each column in turn, then many combinations of them; always the same."""
    columns = {"place": pa.array(range(length), pa.int64())}
    for name, (kind, values) in COLUMNS.items():
        columns[name] = pa.array([values[_which(name, place, len(values))] for place in range(length)], kind)
    return pa.table(columns)


@cache
def rows(length: int) -> list[Row]:
    """The same rows for the evaluator in plain Python."""
    return [Row(cells, NUMERIC, CLOCKS) for cells in frame(length).to_pylist()]


def _which(name: str, place: int, several: int) -> int:
    if place < several:
        return place
    return int.from_bytes(hashlib.blake2b(f"{name} {place}".encode(), digest_size=8).digest()) % several
