"""From a guarantee for one unit to a guarantee for another: free, by group privacy, or not at all."""

from dataclasses import dataclass

from sfumato.core.exact import natural
from sfumato.core.guarantees import Guarantee
from sfumato.core.units import Client, Edge, Event, Family, Node, Record, Relation, Unit, User, covers, describe
from sfumato.errors import NotDeclared, Refused

__all__ = ["Enforced", "convert"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Enforced:
    """At most ``count`` weaker units belong to one stronger unit, and ``by`` says what enforces it."""

    count: int
    by: str

    def __post_init__(self) -> None:
        natural(self.count, "count")


def convert(guarantee: Guarantee, *, held: Unit, wanted: Unit, enforced: Enforced | None = None) -> Guarantee:
    """Read a guarantee for ``held`` as one for ``wanted``.

    Guarantee: group privacy over the number of ``held`` steps that lead from a dataset to any ``wanted`` neighbour. One
    row less is *two* steps of persons (the person leaves and returns without it), so even a smaller unit costs a factor
    of two; replacing is removing and adding; replace says nothing about add/remove. Where steps of ``held`` cannot lead
    to every neighbour (the number of persons or nodes changes) the conversion is refused.
    Assumes: ``enforced`` is true of the data because something holds it to be (a limit, a degree cap).
    Proof: docs/proofs/guarantees.md

    >>> from fractions import Fraction
    >>> from sfumato.core.guarantees import Pure
    >>> from sfumato.core.units import record, user
    >>> convert(Pure(epsilon=Fraction(1, 4)), held=record(relation="add/remove"),
    ...         wanted=user("patient_id", relation="add/remove"), enforced=Enforced(count=5, by="a limit of 5 rows"))
    Pure(epsilon=Fraction(5, 4))
    """
    return guarantee.group(_steps(held, wanted, enforced))


def _steps(held: Unit, wanted: Unit, enforced: Enforced | None) -> int:
    """How many ``held`` neighbours lead from any dataset to any of its ``wanted`` neighbours."""
    if covers(held, wanted):
        return 1
    if held.relation is Relation.REPLACE and wanted.relation is Relation.ADD_REMOVE:
        raise Refused(
            f"a guarantee for {describe(held)} says nothing about {describe(wanted)}: replacing keeps the number of "
            "units fixed and public. Nothing was converted. Make the release under add/remove."
        )
    exchanged = 1 if held.relation is wanted.relation else 2
    match held, wanted:
        case (User(), User()) if held.column == wanted.column:
            return exchanged
        case (Record(), Record()) | (Event(), Event()) | (Client(), Client()) | (Edge(), Edge()):
            return exchanged
        case User(), Family() if held.column == wanted.column:
            return exchanged * wanted.size
        case Family(), (Family() | User()) if held.column == wanted.column:
            size = wanted.size if isinstance(wanted, Family) else 1
            return exchanged * -(-size // held.size)
        case (User() | Family() | Client(), Record() | Event()) if held.relation is Relation.ADD_REMOVE:
            return 2 * exchanged
        case (Record() | Event(), User()) if held.relation is Relation.ADD_REMOVE:
            return exchanged * _bound(held, wanted, enforced)
        case (Record() | Event(), Family()) if held.relation is Relation.ADD_REMOVE:
            return exchanged * wanted.size * _bound(held, wanted, enforced)
        case (Node(), Node()) if held.max_degree >= wanted.max_degree:
            return exchanged
        case (Node(), Edge()):
            return 2 * exchanged
        case (Edge(), Node()) if held.relation is Relation.ADD_REMOVE and wanted.relation is Relation.REPLACE:
            return 2 * max(wanted.max_degree, _bound(held, wanted, enforced))
    raise Refused(
        f"no number of steps of {describe(held)} leads to every neighbour under {describe(wanted)}; nothing was "
        "converted. Make the release under the unit that is to be protected."
    )


def _bound(held: Unit, wanted: Unit, enforced: Enforced | None) -> int:
    if enforced is None:
        raise NotDeclared(
            f"{describe(wanted)} is stronger than {describe(held)}: an enforced bound on how many of the latter belong "
            "to one of the former is needed. Nothing was converted. Pass enforced=Enforced(count=…, by=…)."
        )
    return enforced.count
