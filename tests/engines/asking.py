"""What an engine says of every row, for many expressions in one query, beside what plain Python says."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sfumato.engines.compile import predicate, value
from sfumato.engines.expressions import Expression, Term, check, columns_of, type_of, written
from sfumato.engines.expressions.grammar import form
from sfumato.engines.sources import Source
from sfumato.engines.totals import brought_out
from tests.engines.corners import rows as corners
from tests.engines.truth import Row, holds, value_of

Asked = Expression | Term
LENGTH, FEW = 1009, 211
KNOWN: dict[str, list[Any]] = {}


def ask(asked: Sequence[Asked], of: Source, *, at_once: int = 300) -> list[list[Any]]:
    """The engine's answers in the order of the column ``place``; so many expressions to a query."""
    columns = of.columns()
    answers: list[list[Any]] = []
    for start in range(0, len(asked), at_once):
        some = asked[start : start + at_once]
        with of.opened() as table:
            compiled = {}
            for number, one in enumerate(some):
                if isinstance(one, Term):
                    type_of(one, columns)
                    compiled[f"it{number}"] = value(one, table)
                else:
                    check(one, columns)
                    compiled[f"it{number}"] = predicate(one, table)
            found = brought_out(table.select("place", **compiled))
        order = sorted(range(len(found["place"])), key=found["place"].__getitem__)
        answers += [[found[name][at] for at in order] for name in compiled]
    return answers


def expected(one: Asked, rows: Sequence[Row]) -> list[Any]:
    """The same, worked out row by row in plain Python; once for all engines where the rows are the corners."""
    if len(rows) != LENGTH or rows is not corners(LENGTH):
        return _worked_out(one, rows)
    text = form(one.node if isinstance(one, Term) else one)
    if text not in KNOWN:
        KNOWN[text] = _worked_out(one, rows)
    return KNOWN[text]


def _worked_out(one: Asked, rows: Sequence[Row]) -> list[Any]:
    return [_counted(value_of(one, row)) if isinstance(one, Term) else holds(one, row) for row in rows]


def _counted(value: Any) -> Any:
    """Times and lengths of time in microseconds, as they leave the compiler."""
    if isinstance(value, datetime):
        value -= datetime.min
    return value // timedelta(microseconds=1) if isinstance(value, timedelta) else value


def differences(asked: Sequence[Asked], answers: Sequence[Sequence[Any]], rows: Sequence[Row]) -> list[str]:
    """What an engine says otherwise: the expression, the first such row, both answers. -0.0 and 0.0 are the same."""
    found = []
    for one, said in zip(asked, answers, strict=True):
        meant = expected(one, rows)
        assert len(said) == len(meant) == len(rows)
        for row, mine, true in zip(rows, said, meant, strict=True):
            if type(mine) is not type(true) or mine != true:
                text = written(one.node if isinstance(one, Term) else one)
                cells = {name: row[name] for name in sorted(columns_of(one))}
                found.append(f"{text} at {cells}: {mine!r}, and not {true!r}")
                break
    return found
