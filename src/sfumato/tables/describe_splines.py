"""What a reader must know of rows that were spread over splines."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.core.description import Description, Form, Listed, OneLine, Range, Word, phrase
from sfumato.core.exact import fraction_text
from sfumato.engines.expressions import Expression
from sfumato.mechanisms import Gaussian
from sfumato.tables.clamped import Clamped
from sfumato.tables.conditions import condition, value
from sfumato.tables.describe_persons import about_persons
from sfumato.tables.keys import Keys

if TYPE_CHECKING:
    from sfumato.core.statement import Statement

__all__ = ["splines"]


def splines(
    said: "Statement",
    numbers: Sequence[Clamped],
    by: Sequence[Keys],
    *,
    where: Expression | None,
    height: int,
    size: int,
) -> Description:
    """Rows by group and by splines of some numbers."""
    words: dict[str, Word] = {"numbers": Listed(tuple(OneLine(value(of.value)) for of in numbers))}
    if by:
        words["groups"] = Listed(tuple(OneLine(keys.column) for keys in by))
    met: dict[str, Word] = {} if where is None else {"condition": OneLine(condition(where))}
    grouped = "_by" if by else ""
    chosen = "" if where is None else "_where"
    moved, facts = said.sensitivity, dict[str, Word]()
    if isinstance(said.mechanism, Gaussian) and moved.l2 is not None:
        facts["sensitivity"] = phrase("fact.sensitivity_rows_l2", squared=fraction_text(moved.l2.squared / height**2))
    elif moved.l1 is not None:
        facts["sensitivity"] = phrase("fact.sensitivity_rows_l1", l1=fraction_text(moved.l1.value / height))
    description = Description(
        form=Form.TABLE,
        numbers=size,
        asked=phrase(f"page.splines{grouped}{chosen}", **words, **met),
        columns=tuple(said.query.labels()),
        measure=f"measure.splines{grouped}{chosen}",
        figures={**words, **met},
        paragraphs={"uncounted": (("limit.complete",),)},
        facts=facts,
        ranges=tuple(Range(value=OneLine(value(of.value)), low=of.low, high=of.high) for of in numbers),
        counts=False,
        height=height,
        kept=True,
    )
    return about_persons(said, description)
