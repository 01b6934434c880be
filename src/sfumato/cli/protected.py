"""Who is protected and how much privacy loss is allowed, from the options of commands."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    from sfumato.core.units import Unit

__all__ = ["Delta", "Epsilon", "Reason", "Relation", "Who", "unit_of"]

FORMS = "record, user:COLUMN, family:SIZE:COLUMN, event, edge, node:DEGREE, weight:BOUND or client"

Who = Annotated[str, typer.Option("--unit", metavar="UNIT", help=f"Who is protected: {FORMS}.")]
Relation = Annotated[
    Literal["add/remove", "replace"], typer.Option(help="What makes neighbours: a unit more, or one replaced.")
]
Epsilon = Annotated[str, typer.Option(help="The cap: ε, as a decimal or a fraction such as 0.5 or 1/2.")]
Delta = Annotated[str, typer.Option(help="The δ of the cap, such as 1e-6.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why, in words that stay in the record.")]


def unit_of(text: str, relation: str) -> "Unit":
    """Read a unit.

    >>> from sfumato.core.units import describe
    >>> describe(unit_of("user:patient_id", "add/remove")), describe(unit_of("family:3:patient_id", "replace"))
    ('user (patient_id), add/remove', 'family of 3 (patient_id), replace')
    """
    from sfumato.core import units

    kind, _, more = text.partition(":")
    match kind:
        case "record" if not more:
            return units.record(relation=relation)
        case "event" if not more:
            return units.event(relation=relation)
        case "edge" if not more:
            return units.edge(relation=relation)
        case "client" if not more:
            return units.client(relation=relation)
        case "user" if more:
            return units.user(more, relation=relation)
        case "family":
            size, _, column = more.partition(":")
            if size.isdecimal() and column:
                return units.family(int(size), column, relation=relation)
        case "node" if more.isdecimal():
            return units.node(max_degree=int(more), relation=relation)
        case "weight" if more:
            return units.weight(bound=more, relation=relation)
    raise InvalidInput(f"{text!r} is not a unit; nothing was done. Say {FORMS}.")
