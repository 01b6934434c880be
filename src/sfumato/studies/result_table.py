"""One table of a result, and its numbers as people read them: rounded by their error, never more exact than that."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from sfumato.core.description import Joined, Phrase, Word
from sfumato.core.rounding import MISSING, fixed, places_of

__all__ = [
    "COLUMNS",
    "TABLES",
    "Cell",
    "ResultTable",
    "TextColumn",
    "column_key",
    "column_word",
    "finding",
    "has_interval",
    "text_columns",
    "value_word",
]

Cell = str | int | float | bool | None
"""What stands in a table of a result; a number that does not exist is ``nan``, an open end of an interval ``inf``."""

MOST_PLACES, PLACES = 8, 4
SMALL_P = 0.001
MOST_FOUND = 20

SAME = {
    "cumulative_hazard": "hazard",
    "df": "degrees_of_freedom",
    "jensen–shannon_divergence_(bits)": "jensen_shannon",
    "p": "p_value",
    "p(first_>_second)": "superiority",
    "se": "standard_error",
    "standard_deviation_(raised)": "raised_standard_deviation",
    "standard_error_of_the_logarithm": "log_standard_error",
    "std_err": "standard_error",
    "std_error": "standard_error",
    "χ²": "chi2",
}
"""Other names of columns, and the key that each is known by."""
ENDS = frozenset({"low", "high", "lower", "upper"})
ERRORS = frozenset({"standard_error"})
CHANCES = frozenset({"p_value", "p_adjusted", "adjusted_p", "adjusted_p_value"})
COUNTS = frozenset({"n", "rows", "events", "at_risk", "persons"})
"""Numbers of persons, which noise leaves with digits that nobody reads."""
STATISTICS = frozenset(
    {
        "z",
        "t",
        "f",
        "chi_square",
        "chi2",
        "statistic",
        "degrees_of_freedom",
        "df",
        "time",
        "at",
        "weight",
        "leverage",
    }
)
"""Numbers that have no interval of their own: an end that follows them belongs to an estimate before."""

COLUMNS = frozenset(
    {
        "adjusted_p_value",
        "arm",
        "at_risk",
        "auc",
        "batch",
        "batches",
        "bias",
        "chi2",
        "coefficient",
        "degrees_of_freedom",
        "difference",
        "difference_within_blocks",
        "epsilon",
        "estimate",
        "events",
        "excludes_null",
        "false_positive_rate",
        "group",
        "hazard",
        "hazard_ratio",
        "high",
        "instrument",
        "jensen_shannon",
        "log_standard_error",
        "loss",
        "loss_and_price",
        "low",
        "mean",
        "median",
        "method",
        "n",
        "noise_share_of_variance",
        "noise_variance_per_cell",
        "null",
        "observed",
        "odds_ratio",
        "others",
        "p_value",
        "power",
        "power_lost_to_noise",
        "power_without_noise",
        "price",
        "proportion",
        "quantity",
        "raised_standard_deviation",
        "rate_ratio",
        "ratio",
        "reference",
        "rejected",
        "replicates",
        "reported",
        "rmst",
        "rows",
        "rows_per_arm",
        "rows_standard_error",
        "sample",
        "score_from",
        "score_to",
        "share",
        "shift_in_standard_deviations",
        "simulated_copies",
        "site",
        "size",
        "slope",
        "standard_error",
        "statistic",
        "step",
        "superiority",
        "survival",
        "table",
        "term",
        "test",
        "time",
        "total",
        "total_variation",
        "true_positive_rate",
        "weight",
        "z",
    }
)
"""Names of columns that have words in other languages, in the group ``study_column`` of the catalogue."""

VALUES: Mapping[str, frozenset[str]] = {
    "sample": frozenset({"first", "second"}),
    "term": frozenset({"intercept"}),
    "test": frozenset(
        {
            "all_batches_have_the_same_mean",
            "blocks",
            "bounded",
            "chi_square",
            "counts",
            "exact",
            "rank",
            "score",
            "trend",
            "welch",
        }
    ),
}
"""Texts of columns that are no labels of anybody's data, and have words in the group ``study_value``."""

TABLES = frozenset(
    {
        "auc",
        "band",
        "batches",
        "bias",
        "calibration",
        "coefficients",
        "counts",
        "curve",
        "curves",
        "difference",
        "divergences",
        "estimates",
        "groups",
        "hazard",
        "hazard_ratio",
        "log_rank",
        "median",
        "medians",
        "power",
        "replication",
        "rmst",
        "rmst_difference",
        "strata",
        "survival",
        "survival_at",
        "test",
        "tests",
    }
)
"""Names of tables that have words in other languages, in the group ``study_table``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultTable:
    """One table of a result: columns of equal length by their names, which are words of the field in English."""

    name: str
    columns: Mapping[str, Sequence[Cell]]
    whole: bool = False
    """Whether its estimates and their ends are whole numbers, such as days, and are shown so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextColumn:
    """A column as it is read: its name, its texts, and whether it holds numbers, which stand on the right."""

    name: str
    texts: tuple[str, ...]
    number: bool


def column_key(name: str) -> str:
    """The name of a column as a key: ``p-value`` and ``p value`` are ``p_value``.

    >>> column_key("p-value"), column_key("Standard error")
    ('p_value', 'standard_error')
    """
    key = name.strip().lower().replace("-", "_").replace(" ", "_").replace(".", "")
    return SAME.get(key, key)


def column_word(name: str) -> Word:
    """The name of a column as people read it: frames call it ``standard_error``, a page standard error.

    Names that are not of the field are those of a table, and stay as they are.

    >>> column_word("odds_ratio"), column_word("ward")
    (Phrase(key='study_column.odds_ratio', words={}), 'ward')
    """
    key = column_key(name)
    if key in COLUMNS:
        return Phrase(f"study_column.{key}")
    stem, _, end = key.rpartition("_")
    if stem in COLUMNS and end in COLUMNS:
        return Phrase("study.end_of", {"stem": Phrase(f"study_column.{stem}"), "end": Phrase(f"study_column.{end}")})
    return name


def value_word(column: str, text: str) -> Word:
    """A text of a column as people read it, where the text is one of ours: which quantity, which test.

    >>> value_word("quantity", "odds ratio"), value_word("ward", "difference")
    (Phrase(key='study_column.odds_ratio', words={}), 'difference')
    """
    of, key = column_key(column), column_key(text)
    if of == "quantity" or (of == "sample" and key == "difference"):
        return column_word(text)
    ours = key in VALUES.get(of, ()) and text in (text.lower(), "Intercept")
    return Phrase(f"study_value.{key}") if ours else text


def text_columns(table: ResultTable, *, yes: str = "yes", no: str = "no") -> list[TextColumn]:
    """The columns of a table as texts.

    An estimate, its standard error and the ends of its interval have the same number of decimals, two significant
    digits of the standard error (or of the distance to the nearer end); ends are rounded
    outward. A p-value has three decimals, or is <0.001. What does not exist is –, an end that is open ∞.

    >>> table = ResultTable(name="t", columns={"estimate": [0.12346], "low": [-0.1], "high": [float("inf")]})
    >>> [column.texts for column in text_columns(table)]
    [('0.12',), ('-0.10',), ('∞',)]
    """
    belongs = _families(table)
    places = {
        estimate: _places(estimate, {name: table.columns[name] for name, one in belongs.items() if one == estimate})
        for estimate in dict.fromkeys(belongs.values())
    }
    found = []
    for name, cells in table.columns.items():
        number = any(_is_number(cell) for cell in cells)
        if number and column_key(name) in CHANCES:
            texts = [_chance(cell) if _is_number(cell) else _word(cell, yes, no) for cell in cells]
        elif number:
            decimals = [0] * len(cells) if table.whole else places[belongs[name]]
            texts = [
                _number(cell, decimals[place], _outward(name)) if _is_number(cell) else _word(cell, yes, no)
                for place, cell in enumerate(cells)
            ]
        else:
            texts = [_word(cell, yes, no) for cell in cells]
        found.append(TextColumn(name=name, texts=tuple(texts), number=number))
    return found


def has_interval(table: ResultTable) -> bool:
    """Whether some column is an end of an interval."""
    return any(_is_end(name) for name in table.columns)


def finding(table: ResultTable, percent: str) -> tuple[Word, ...]:
    """The first rows of a table in words: estimates with their intervals, and p-values.

    Of a row with several estimates all but the first are called by their columns, such as the odds ratio beside a
    coefficient.
    """
    columns = text_columns(table)
    belongs = _families(table)
    found: list[Word] = []
    for row in range(min(len(columns[0].texts) if columns else 0, MOST_FOUND)):
        parts = _named(columns, belongs, row)
        chances = [each.texts[row] for each in columns if column_key(each.name) in CHANCES]
        chance = chances[0] if len(chances) == 1 and chances[0] != MISSING else ""
        said = [(each.name, *one) for each in columns for one in _found_in(columns, belongs, each, row, percent)]
        for place, (of, key, words) in enumerate(said or ([("", "chance", {})] if chance else [])):
            with_chance = "_chance" if key == "found" and chance and not place else ""
            names = (*parts, column_word(of)) if place else parts
            facts: dict[str, Word] = {"name": Joined("study.both", names) if names else "", "chance": chance, **words}
            found.append(Phrase(f"study.{key}{with_chance}{'' if names else '_alone'}", facts))
    return tuple(found)


def _named(columns: Sequence[TextColumn], belongs: Mapping[str, str], row: int) -> tuple[Word, ...]:
    """What a row is about: its texts, and numbers such as a time that stand before the first estimate."""
    parts: list[Word] = []
    estimated = False
    for each in columns:
        estimated = estimated or sum(one == each.name for one in belongs.values()) > 1
        if not each.number:
            parts.append(value_word(each.name, each.texts[row]))
        elif not estimated and column_key(each.name) not in COUNTS | CHANCES | STATISTICS - {"time", "at"}:
            parts.append(Phrase("study.valued", {"name": column_word(each.name), "value": each.texts[row]}))
    return tuple(parts)


def _found_in(
    columns: Sequence[TextColumn], belongs: Mapping[str, str], each: TextColumn, row: int, percent: str
) -> Iterator[tuple[str, dict[str, Word]]]:
    """What is said of one number that has an interval."""
    ends = [one.texts[row] for one in columns if belongs[one.name] == each.name and _is_end(one.name)]
    if each.number and len(ends) == 2 and not _is_end(each.name):
        words: dict[str, Word] = {"value": each.texts[row], "percent": percent, "low": ends[0], "high": ends[1]}
        yield ("nothing", {}) if each.texts[row] == MISSING else ("found", words)


def _is_number(cell: Cell) -> TypeGuard[float]:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _is_end(name: str) -> bool:
    return column_key(name).split("_")[-1] in ENDS or column_key(name).split("_")[0] in ENDS


def _is_error(name: str) -> bool:
    key = column_key(name)
    return key in ERRORS or any(key.endswith(f"_{each}") for each in ERRORS)


def _families(table: ResultTable) -> dict[str, str]:
    """For each column the estimate that it belongs to: its stem where it has one, else the last one before it."""
    found: dict[str, str] = {}
    last = ""
    by_key = {column_key(name): name for name in table.columns}
    for name, cells in table.columns.items():
        key = column_key(name)
        if _is_end(name) or _is_error(name):
            stems = [
                by_key[stem]
                for stem in ("_".join(key.split("_")[:cut]) for cut in range(1, len(key.split("_"))))
                if stem in by_key
            ]
            found[name] = stems[-1] if stems else last or name
        else:
            found[name] = name
            if key not in STATISTICS | CHANCES | COUNTS and any(isinstance(cell, float) for cell in cells):
                last = name
    return found


def _places(estimate: str, family: Mapping[str, Sequence[Cell]]) -> list[int]:
    """Decimals of an estimate and all that belongs to it, in each row: two significant digits of its error."""
    common = _places_of_column([cell for cells in family.values() for cell in cells])
    common = 0 if column_key(estimate) in COUNTS else common
    errors = [cells for name, cells in family.items() if _is_error(name)]
    ends = [cells for name, cells in family.items() if _is_end(name)]
    values = family[estimate]
    return [
        _places_of_row(values[row], [each[row] for each in errors], [each[row] for each in ends], common)
        for row in range(len(values))
    ]


def _places_of_row(value: Cell, errors: Sequence[Cell], ends: Sequence[Cell], common: int) -> int:
    sizes = [cell for cell in errors if _is_number(cell)]
    if not any(0 < size < math.inf for size in sizes) and _is_number(value):
        sizes = [abs(end - value) for end in ends if _is_number(end)]
    known = [size for size in sizes if 0 < size < math.inf]
    return min(MOST_PLACES, places_of(min(known))) if known else common


def _places_of_column(cells: Sequence[Cell]) -> int:
    """Decimals of a column that stands alone: none for whole numbers, else four digits of the largest."""
    numbers = [abs(float(cell)) for cell in cells if isinstance(cell, float) and math.isfinite(cell)]
    if all(number.is_integer() for number in numbers):
        return 0
    return min(MOST_PLACES, max(1, places_of(max(numbers), PLACES)))


def _outward(name: str) -> int:
    """Which way an end of an interval is rounded: so that it holds no less than it did."""
    parts = column_key(name).split("_")
    low, high = {"low", "lower"}.intersection(parts), {"high", "upper"}.intersection(parts)
    return (-1 if low else 1 if high else 0) if _is_end(name) else 0


def _number(cell: float, places: int, outward: int = 0) -> str:
    return f"{cell:,}" if isinstance(cell, int) else fixed(cell, places, outward)


def _chance(cell: float) -> str:
    if math.isnan(cell):
        return MISSING
    return f"<{SMALL_P}" if cell < SMALL_P else f"{cell:.3f}"


def _word(cell: Cell, yes: str, no: str) -> str:
    if isinstance(cell, bool):
        return yes if cell else no
    if cell is None or cell == "":
        return MISSING
    return _number(cell, PLACES) if isinstance(cell, float | int) else cell
