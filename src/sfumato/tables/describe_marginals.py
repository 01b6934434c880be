"""What a reader must know of tables that were counted together, each with a noise of its own."""

from typing import TYPE_CHECKING

from sfumato.core.description import Description, Form, Listed, OneLine, Word, phrase
from sfumato.core.exact import fraction_text
from sfumato.engines.expressions import Expression
from sfumato.mechanisms import Gaussian
from sfumato.tables.conditions import condition
from sfumato.tables.describe_persons import about_persons

if TYPE_CHECKING:
    from sfumato.core.statement import Statement

__all__ = ["marginals"]


def marginals(
    said: "Statement", columns: tuple[str, ...], *, tables: int, height: int, size: int, where: Expression | None
) -> Description:
    """Rows in each cell of several tables; ``height`` is the weight of the one with the largest noise."""
    words: dict[str, Word] = {"tables": f"{tables:,}", "columns": Listed(tuple(map(OneLine, columns)))}
    met: dict[str, Word] = {} if where is None else {"condition": OneLine(condition(where))}
    chosen = "" if where is None else "_where"
    moved, facts = said.sensitivity, dict[str, Word]()
    if isinstance(said.mechanism, Gaussian) and moved.l2 is not None:
        facts["sensitivity"] = phrase("fact.sensitivity_rows_l2", squared=fraction_text(moved.l2.squared / height**2))
    elif moved.l1 is not None:
        facts["sensitivity"] = phrase("fact.sensitivity_rows_l1", l1=fraction_text(moved.l1.value / height))
    description = Description(
        form=Form.TABLE,
        numbers=size,
        asked=phrase(f"page.marginals{chosen}", **words, **met),
        columns=tuple(said.query.labels()),
        measure=f"measure.marginals{chosen}",
        figures={**words, **met},
        paragraphs={"uncounted": (("limit.cells",),)},
        facts=facts,
        counts=False,
        height=height,
        kept=True,
    )
    return about_persons(said, description)
