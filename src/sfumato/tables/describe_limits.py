"""What a reader must know of answers about limits: how rows are spread, a suggestion, rows beyond the limit."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato import laws
from sfumato.core.description import (
    Counted,
    Description,
    Form,
    Listed,
    MeasuredColumn,
    OneLine,
    Word,
    phrase,
    plain,
)
from sfumato.core.exact import fraction_text
from sfumato.core.limits import Limit
from sfumato.engines.expressions import Expression
from sfumato.errors import Unsupported
from sfumato.mechanisms.limit_search import LimitSearch
from sfumato.tables.clamped import Clamped
from sfumato.tables.conditions import condition, value
from sfumato.tables.keys import Keys

if TYPE_CHECKING:
    from sfumato.core.statement import Statement

__all__ = ["contributions", "layered_count", "magnitudes", "suggestion"]

ONE_SIDE = Fraction(39, 40)  # each of two noises, so that both hold in 95 of 100


def contributions(said: "Statement", *, most: int, by: Sequence[Keys], where: Expression | None) -> Description:
    """How many persons have how many rows, and in how many groups."""
    grouped = "_groups" if by else ""
    return Description(
        form=Form.TABLE,
        numbers=len(said.values),
        asked=_asked(f"page.contributions{grouped}", where),
        columns=tuple(said.query.labels()),
        measure=f"measure.contributions{grouped}",
        figures={**_keys(by), "most": f"{most:,}", **_condition(where)},
        paragraphs={"what": (("what.table", *_where(where)),), "limits": (("limit.contributions",),)},
    )


def suggestion(
    said: "Statement", limit: Limit, *, most: int, by: Sequence[Keys], where: Expression | None
) -> Description:
    """A limit that was chosen; a mechanism that does not belong to it is refused."""
    search = said.mechanism
    if not isinstance(search, LimitSearch):
        raise Unsupported(f"there is no text for a {said.query.KIND} by a {search.KIND}; nothing was made.")
    walk = search.walks[0]
    slack = sum(
        int(laws.DiscreteLaplace(scale=scale).margin(ONE_SIDE)) for scale in (walk.threshold_scale, walk.query_scale)
    )
    rows, groups = Counted("row", limit.rows_per_group), Counted("group", limit.groups)
    chosen = phrase("fact.limit_person", groups=groups, rows=rows) if by else phrase("suggested.rows", rows=rows)
    noise = phrase(
        "fact.noise_alarms", threshold=fraction_text(walk.threshold_scale), query=fraction_text(walk.query_scale)
    )
    return Description(
        form=Form.NUMBERS if by else Form.NUMBER,
        numbers=len(said.values),
        asked=_asked("page.suggestion", where),
        measure=None,
        figures={
            "suggested": chosen,
            "threshold": f"{_threshold(search, said.values[-1]):,}",
            "slack": f"{slack:,}",
            "most": f"{most:,}",
            **_condition(where),
        },
        paragraphs={
            "what": (("what.suggestion", *_where(where)),),
            "error": (("accuracy.suggestion",),),
            "limits": (("limit.suggestion",),),
        },
        facts={"noise": noise, "sensitivity": phrase("fact.sensitivity_tails")},
        counts=False,
    )


def magnitudes(
    said: "Statement", of: Clamped, bounds: tuple[Fraction, Fraction], *, where: Expression | None
) -> Description:
    """How many persons' largest value lies where, and the bounds that follow."""
    low, high = bounds
    return Description(
        form=Form.TABLE,
        numbers=len(said.values),
        asked=_asked("page.magnitudes", where, value=OneLine(value(of.value))),
        columns=tuple(said.query.labels()),
        measure="measure.magnitudes",
        figures={
            "value": OneLine(value(of.value)),
            "most": plain(of.high),
            "bound_low": plain(low),
            "bound_high": plain(high),
            **_condition(where),
        },
        paragraphs={
            "what": (("what.table", *_where(where)), ("what.bounds",)),
            "limits": (("limit.magnitudes",),),
        },
    )


def layered_count(
    said: "Statement",
    *,
    within: int,
    uncut_to: int,
    steps: tuple[int, int],
    by: Sequence[Keys],
    where: Expression | None,
) -> Description:
    """Rows up to a number of each person, and rows within the limit."""
    numbers = len(said.values)
    figures: dict[str, Word] = {"uncut": Counted("row", uncut_to), "within": Counted("row", within)}
    grouped = "_groups" if by else ""
    words = {name: phrase(f"measure.{name}{grouped}", **figures) for name in ("uncut", "within")}
    named = dict(zip(said.query.names, words.values(), strict=True))
    listed = tuple(phrase("measure.named", measure=word, name=name) for name, word in named.items())
    own: dict[str, tuple[tuple[str, ...], ...]] = {
        "limits": ((f"limit.uncut{grouped}",),),
        "patient_limit": ((f"limit.uncut{grouped}",),),
        "manager_limit": ((f"limit.uncut{grouped}",),),
    }
    if by and not all(keys.other is not None for keys in by):
        own["limits"] = (("limit.keys",), *own["limits"])
    return Description(
        form=Form.TABLE if by else Form.NUMBERS,
        numbers=numbers,
        asked=_asked(f"page.uncut{grouped}", where, **figures, **_keys(by)),
        columns=tuple(keys.column for keys in by),
        measure="measure.of" if where is None else "measure.of_where",
        figures={**figures, "measures": Listed(listed), **_condition(where)},
        paragraphs=own,
        facts={"sensitivity": phrase("fact.sensitivity_layers", **figures)},
        measured={name: MeasuredColumn(words=word, counts=True) for name, word in named.items()},
        height=max(steps),
    )


def _keys(by: Sequence[Keys]) -> dict[str, Word]:
    return {"keys": " × ".join(keys.column for keys in by)} if by else {}


def _condition(where: Expression | None) -> dict[str, Word]:
    return {} if where is None else {"condition": OneLine(condition(where))}


def _where(where: Expression | None) -> tuple[str, ...]:
    return () if where is None else ("what.rows_where",)


def _asked(key: str, where: Expression | None, **words: Word) -> Word:
    asked = phrase(key, **words)
    return asked if where is None else phrase("page.asked_where", asked=asked, condition=condition(where))


def _threshold(search: LimitSearch, chosen: int) -> int:
    """What the persons above a chosen limit of rows were compared with."""
    listed = search.candidates[-1]
    return search.threshold(len(search.candidates) - 1, listed.index(chosen) if chosen in listed else 0)
