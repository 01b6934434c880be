"""Where rows come from: the columns that name the batch, the instrument, the site and the step of processing."""

from collections.abc import Mapping, Sequence

from sfumato.core.query import check_name
from sfumato.core.suggestion import did_you_mean
from sfumato.engines.expressions import Named
from sfumato.engines.person_values import Fold
from sfumato.errors import InvalidInput
from sfumato.tables.persons import PerPerson, Step

__all__ = ["FIELDS", "ProvenanceColumns", "is_still_declared", "provenance_of"]

PICKED = (Fold.FIRST, Fold.LAST, Fold.LEAST, Fold.GREATEST)
FIELDS = ("batch", "instrument", "site", "step")
ProvenanceColumns = tuple[tuple[str, str], ...]
"""Fields of :data:`FIELDS`, each with its column, in the order of that list."""


def provenance_of(given: Mapping[str, str] | Sequence[tuple[str, str]]) -> ProvenanceColumns:
    """The declared fields with their columns, in one order.

    >>> provenance_of({"site": "hospital", "batch": "lot"})
    (('batch', 'lot'), ('site', 'hospital'))
    """
    said = dict(given)
    for name, column in said.items():
        if name not in FIELDS:
            raise InvalidInput(
                f"provenance has no field {name!r}; nothing was done. It is one of {', '.join(FIELDS)}."
                f"{did_you_mean(str(name), FIELDS)}"
            )
        check_name(column, f"the column of the {name}")
    return tuple((name, said[name]) for name in FIELDS if name in said)


def is_still_declared(column: str, steps: Sequence[Step]) -> bool:
    """Whether a column is still the one that was declared: of one row a person it must be picked from that column.

    >>> is_still_declared("lot", ()), is_still_declared("lot", (PerPerson(person="id"),))
    (True, False)
    """
    return all(
        any(each.name == column and each.fold in PICKED and each.value == Named(column=column) for each in step.values)
        for step in steps
        if isinstance(step, PerPerson)
    )
