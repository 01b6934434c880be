"""What a reader must know of the sums behind a regression."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.core.description import Description, Form, Listed, OneLine, Range, Word, phrase
from sfumato.core.exact import decimal_up
from sfumato.engines.expressions import Expression
from sfumato.mechanisms import Gaussian
from sfumato.tables.clamped import Clamped
from sfumato.tables.conditions import condition, value
from sfumato.tables.describe_persons import about_persons
from sfumato.tables.keys import Keys

if TYPE_CHECKING:
    from sfumato.core.statement import Statement

__all__ = ["gram"]


def gram(
    said: "Statement",
    outcome: Clamped,
    numbers: Sequence[Clamped],
    factors: Sequence[Keys],
    *,
    where: Expression | None,
    height: int,
    size: int,
) -> Description:
    """Sums of products of an outcome and its covariates."""
    covariates = Listed((*(OneLine(value(of.value)) for of in numbers), *(OneLine(keys.column) for keys in factors)))
    words: dict[str, Word] = {"outcome": OneLine(value(outcome.value)), "covariates": covariates}
    met: dict[str, Word] = {} if where is None else {"condition": OneLine(condition(where))}
    asked = phrase("page.gram_all" if where is None else "page.gram_where", **words, **met)
    moved, facts = said.sensitivity, dict[str, Word]()
    if isinstance(said.mechanism, Gaussian) and moved.l2 is not None:
        facts["sensitivity"] = phrase("fact.sensitivity_rows_l2", squared=decimal_up(moved.l2.squared / height**2, 7))
    elif moved.l1 is not None:
        facts["sensitivity"] = phrase("fact.sensitivity_rows_l1", l1=decimal_up(moved.l1.value / height, 7))
    description = Description(
        form=Form.TABLE,
        numbers=size,
        asked=asked,
        columns=("product",),
        measure="measure.gram" if where is None else "measure.gram_where",
        figures={**words, **met},
        paragraphs={"uncounted": (("limit.complete",),)},
        facts=facts,
        ranges=tuple(Range(value=OneLine(value(of.value)), low=of.low, high=of.high) for of in (outcome, *numbers)),
        counts=False,
        height=height,
    )
    return about_persons(said, description)
