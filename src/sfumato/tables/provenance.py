"""Where rows come from: the columns that name the batch, the instrument, the site and the step of processing."""

from collections.abc import Mapping, Sequence

from sfumato.core.query import check_name
from sfumato.core.suggestion import did_you_mean
from sfumato.errors import InvalidInput

__all__ = ["FIELDS", "ProvenanceColumns", "provenance_of"]

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
