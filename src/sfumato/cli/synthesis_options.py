"""The options of ``sfumato synthesize`` that are its own, and what they say of columns, bins, rules and tables."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Annotated, cast

import typer

from sfumato.core.suggestion import did_you_mean
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.tables.keys import KeyValue
    from sfumato.tables.synthesized import Synthesis
    from sfumato.tables.table import Table

__all__ = ["SynthesisOptions", "bins_of", "cells_of", "names_of", "workload_of"]

NOTHING = "Nothing was read and nothing was spent."
ROWS, TABLES = "The rows", "What is measured and what holds"


@dataclass(frozen=True, slots=True, kw_only=True)
class SynthesisOptions:
    """Columns, bins, rules and tables."""

    columns: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,…",
            help="The columns, by commas; all that have keys or bounds in the schema if not given.",
            rich_help_panel=ROWS,
        ),
    ] = None
    rows: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many rows to write; the noisy number of rows if not given.", rich_help_panel=ROWS
        ),
    ] = None
    expected_rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="About how many rows the data have, a public number: which tables are measured follows from it.",
            rich_help_panel=TABLES,
        ),
    ] = None
    bins: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=…",
            help="The bins of a column with bounds: how many (age=8), or their inner edges (stay=2,4,7; one edge: "
            "age=65,). 16 if not given; repeat it.",
            rich_help_panel=ROWS,
        ),
    ] = None
    missing: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B,…", help="Columns in which rows may have no value; by commas.", rich_help_panel=ROWS),
    ] = None
    never: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A=…,B=…",
            help="Values of two columns that do not occur together: sex=M,pregnant=true; several by commas, and the "
            "word missing for no value; repeat it.",
            rich_help_panel=TABLES,
        ),
    ] = None
    at_least: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B", help="Two columns, the first at least the second in each row; repeat it.",
            rich_help_panel=TABLES,
        ),
    ] = None  # fmt: skip
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="Columns whose table must be right, up to three; with its importance: ward,age=5; repeat it. A rule "
            "of public facts chooses if not given.",
            rich_help_panel=TABLES,
        ),
    ] = None
    where: Annotated[
        str | None,
        typer.Option(
            metavar="SQL", help="The condition of the rows that count, such as: age >= 65.", rich_help_panel=TABLES
        ),
    ] = None

    def of(self, table: "Table") -> "Synthesis":
        """What is asked of a table; everything is checked, and nothing is read."""
        table = table if self.where is None else table.where(self.where)
        known = [*table.keys, *(name for name in table.bounds if name not in table.keys)]
        columns = None if self.columns is None else list(_named(self.columns, known, "--columns"))
        within = known if columns is None else columns
        missing = list(_named(self.missing or (), within, "--missing"))
        bins = bins_of(self.bins or (), within)
        for name, edges in bins.items():
            _check_inside(name, edges, table)
        return table.synthesis(
            columns,
            rows=self.rows,
            expected_rows=self.expected_rows,
            bins=bins,
            missing=missing,
            workload=workload_of(self.workload or (), within),
            never=[
                {name: _values(name, texts, table, missing) for name, texts in cells_of(text, within).items()}
                for text in self.never or ()
            ],
            at_least=[_pair(text, within) for text in self.at_least or ()],
        )


def names_of(text: str, known: Iterable[str], option: str) -> list[str]:
    """The names of columns that stand in a text, by commas; a name that has a comma itself is found too.

    >>> names_of("age,stay, in days", ["age", "stay, in days"], "--columns")
    ['age', 'stay, in days']
    """
    listed = list(known)
    parts = text.split(",")
    found: list[str] = []
    while parts:
        for end in range(len(parts), 0, -1):
            name = ",".join(parts[:end])
            hits = [each for each in (name, name.strip()) if each in listed]
            if hits:
                found.append(hits[0])
                parts = parts[end:]
                break
        else:
            first = parts[0].strip()
            raise InvalidInput(
                f"{option} names {first!r}, which is none of the columns {', '.join(listed)}. {NOTHING}"
                f"{did_you_mean(first, listed)} A column needs keys or bounds in the schema."
            )
    return found


def _named(texts: Iterable[str], known: Sequence[str], option: str) -> Iterator[str]:
    for text in texts:
        yield from names_of(text, known, option)


def _split(text: str, known: Sequence[str], option: str, form: str) -> tuple[str, str]:
    """A column and what is said of it; the longest name that fits."""
    for name in sorted(known, key=len, reverse=True):
        if text.startswith(f"{name}="):
            return name, text[len(name) + 1 :]
    name, sign, _ = text.partition("=")
    if not sign:
        raise InvalidInput(f"{option} {text!r} is not of the form {form}. {NOTHING}")
    raise InvalidInput(
        f"{option} names {name!r}, which is none of the columns {', '.join(known)}. {NOTHING}"
        f"{did_you_mean(name, known)}"
    )


def bins_of(texts: Iterable[str], known: Sequence[str]) -> dict[str, int | list[str | date]]:
    """Bins of columns: a number of them, or edges where there is a comma.

    >>> bins_of(["age=8", "stay=2,4.5", "day=2026-04-01,"], ["age", "stay", "day"])
    {'age': 8, 'stay': ['2', '4.5'], 'day': [datetime.date(2026, 4, 1)]}
    """
    found: dict[str, int | list[str | date]] = {}
    for text in texts:
        name, said = _split(text, known, "--bins", "age=8 or stay=2,4,7")
        if name in found:
            raise InvalidInput(f"--bins says {name!r} twice. {NOTHING} Say it once.")
        edges = [edge.strip() for edge in said.removesuffix(",").split(",")]
        if not all(edges):
            raise InvalidInput(f"--bins {text!r} has an empty edge. {NOTHING} Say age=8, or stay=2,4,7.")
        if "," in said:
            found[name] = [_day(edge) for edge in edges]
        elif edges[0].isascii() and edges[0].isdecimal() and len(edges[0]) < 10:
            found[name] = int(edges[0])
        else:
            raise InvalidInput(
                f"--bins {text!r} says neither how many bins nor their edges. {NOTHING} Say {name}=8 for eight bins; a "
                f"single edge ends with a comma: {name}={edges[0]},"
            )
    return found


def _day(text: str) -> str | date:
    """An edge that is a day as one; anything else is read as a number later."""
    try:
        return date.fromisoformat(text) if text.count("-") == 2 else text
    except ValueError:
        raise InvalidInput(f"{text!r} is not a day; {NOTHING.lower()} Write days as 2026-04-01.") from None


def _check_inside(name: str, edges: int | list[str | date], table: "Table") -> None:
    """Refuse an edge beyond the bounds of its column, which is a slip: no value lies there."""
    from sfumato.core.exact import rational

    if isinstance(edges, int) or name not in table.bounds:
        return
    low, high = table.bounds[name]
    for edge in edges:
        place = edge if isinstance(edge, date) else rational(edge, f"the edge of {name!r}")
        if isinstance(place, date) is isinstance(low, date) and not low <= place <= high:  # type: ignore[operator]  # both are days, or both numbers
            raise InvalidInput(
                f"--bins says {edge} for {name!r}, which has bounds {low} to {high} in the schema. {NOTHING}"
            )


def workload_of(texts: Sequence[str], known: Sequence[str]) -> dict[tuple[str, ...], str]:
    """Tables that must be right, each with its importance.

    >>> workload_of(["ward,age=5", "sex"], ["ward", "age", "sex"])
    {('ward', 'age'): '5', ('sex',): '1'}
    """
    found: dict[tuple[str, ...], str] = {}
    for text in texts:
        front, sign, importance = text.rpartition("=")
        names = tuple(names_of(front, known, "--workload") if sign else names_of(text, known, "--workload"))
        if names in found:
            raise InvalidInput(f"--workload lists {', '.join(names)} twice. {NOTHING} List it once.")
        found[names] = importance.strip() if sign else "1"
    return found


def _pair(text: str, known: Sequence[str]) -> tuple[str, str]:
    names = names_of(text, known, "--at-least")
    if len(names) != 2:
        raise InvalidInput(
            f"--at-least {text!r} does not name two columns. {NOTHING} Say died,born: the first is at least the second."
        )
    return names[0], names[1]


def cells_of(text: str, known: Sequence[str]) -> dict[str, list[str]]:
    """The columns of a rule, each with its values as texts; a value with a comma stands in quotes.

    >>> cells_of('ward="a, b",c,pregnant=true', ["ward", "pregnant"])
    {'ward': ['a, b', 'c'], 'pregnant': ['true']}
    """
    found: dict[str, list[str]] = {}
    name, rest = "", text
    form = "sex=M,pregnant=true"
    while True:
        if not name or any(rest.startswith(f"{other}=") for other in known):
            name, rest = _split(rest, known, "--never", form)
            if name in found:
                raise InvalidInput(f"--never {text!r} names {name!r} twice. {NOTHING} Say {form}.")
            found[name] = []
        if rest.startswith('"') and '"' in rest[1:]:
            value, _, rest = rest[1:].partition('"')
            if rest and not rest.startswith(","):
                raise InvalidInput(f"--never {text!r} goes on after a quote. {NOTHING} Say {form}.")
            sign, rest = rest[:1], rest[1:]
        else:
            value, sign, rest = rest.partition(",")
        found[name].append(value)
        if not sign:
            break
    if len(found) != 2:
        raise InvalidInput(f"--never {text!r} does not name two columns. {NOTHING} Say {form}.")
    return found


def _values(name: str, texts: Sequence[str], table: "Table", missing: Sequence[str]) -> "list[KeyValue | None]":
    """Values as the column has them, from how they are written."""
    from sfumato.engines.expressions import Date, Time

    if name not in table.keys:
        raise InvalidInput(
            f"--never names {name!r}, which has no keys in the schema, and takes columns with keys. {NOTHING}"
        )
    written: dict[str, object] = {"missing": None} if name in missing else {}
    for key in table.keys[name].values:
        if isinstance(key, Date):
            written[str(key.value)] = date.fromisoformat(str(key.value))
        elif isinstance(key, Time):
            written[str(key.value)] = str(key.value)
        else:
            written[str(key).lower() if isinstance(key, bool) else str(key)] = key
    found: list[object] = []
    for text in texts:
        spelled = next((each for each in (text, text.strip(), text.strip().lower()) if each in written), None)
        if spelled is None:
            raise InvalidInput(
                f"--never says {text!r}, which {name!r} does not have; it has {', '.join(list(written)[:20])}"
                f"{', …' if len(written) > 20 else ''}. {NOTHING}"
            )
        found.append(written[spelled])
    return cast("list[KeyValue | None]", found)
