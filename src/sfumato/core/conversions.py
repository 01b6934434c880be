"""From a guarantee for one unit to a guarantee for another: free, by group privacy, or not at all."""

from dataclasses import dataclass, replace

from sfumato.core.exact import natural
from sfumato.core.guarantees import Guarantee
from sfumato.core.units import Edge, Event, Family, Node, Record, Relation, Unit, User, covers, describe
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

    Guarantee: unchanged where ``held`` covers ``wanted``; add/remove is read under replace as a group of two; a
    stronger unit gets group privacy over the enforced bound. Replace says nothing about add/remove.
    Assumes: ``enforced`` is true of the data because something holds it to be (a limit, a degree cap).

    >>> from fractions import Fraction
    >>> from sfumato.core.guarantees import Pure
    >>> from sfumato.core.units import record, user
    >>> convert(Pure(epsilon=Fraction(1, 4)), held=record(relation="add/remove"),
    ...         wanted=user("patient_id", relation="add/remove"), enforced=Enforced(count=5, by="a limit of 5 rows"))
    Pure(epsilon=Fraction(5, 4))
    """
    if held.relation is Relation.REPLACE and wanted.relation is Relation.ADD_REMOVE:
        raise Refused(
            f"a guarantee for {describe(held)} says nothing about {describe(wanted)}: replacing keeps the number of "
            "units fixed and public. Nothing was converted. Make the release under add/remove."
        )
    if held.relation is not wanted.relation:
        guarantee, held = guarantee.group(2), replace(held, relation=wanted.relation)
    if covers(held, wanted):
        return guarantee
    return guarantee.group(_multiplicity(held, wanted, enforced))


def _multiplicity(held: Unit, wanted: Unit, enforced: Enforced | None) -> int:
    match held, wanted:
        case User(), Family() if held.column == wanted.column:
            return wanted.size
        case Family(), Family() if held.column == wanted.column:
            return -(-wanted.size // held.size)
        case (Record() | Event(), User()) | (Edge(), Node()):
            members = 1
        case Record() | Event(), Family():
            members = wanted.size
        case _:
            raise Refused(
                f"{describe(held)} and {describe(wanted)} cannot be compared; nothing was converted. "
                "Make the release under the unit that is to be protected."
            )
    if enforced is None:
        raise NotDeclared(
            f"{describe(wanted)} is stronger than {describe(held)}: an enforced bound on how many of the latter belong "
            "to one of the former is needed. Nothing was converted. Pass enforced=Enforced(count=…, by=…)."
        )
    if isinstance(wanted, Node) and enforced.count < wanted.max_degree:
        return members * wanted.max_degree
    return members * enforced.count
