"""The one list of everything that can be written into a certificate, by kind.

Reading it needs no data, no engine and no optional part. What belongs to no kind of data is listed here; each kind
brings the rest (:class:`sfumato.core.data_kind.DataKind`), or its certificates cannot be read. A test compares this
list with what the areas export.
"""

from functools import cache

from sfumato import laws, mechanisms
from sfumato.core import events, guarantees, sensitivity, units
from sfumato.core.budget import Budget
from sfumato.core.data_kind import DataKind, kinds
from sfumato.core.documents import Registry, by_kind
from sfumato.core.limits import Limit, Noun
from sfumato.core.query import Dataset
from sfumato.core.statement import Account, Statement

__all__ = ["DECLARATIONS"]

COMMON: tuple[type, ...] = (
    *(
        units.Record,
        units.User,
        units.Family,
        units.Event,
        units.Edge,
        units.Node,
        units.Weight,
        units.Client,
    ),
    *(sensitivity.L0, sensitivity.L1, sensitivity.L2, sensitivity.LInf, sensitivity.Sensitivity),
    *(guarantees.Pure, guarantees.Approximate, guarantees.ZCDP, guarantees.RDP, guarantees.GDP),
    *(Budget, Limit, Noun, Dataset, Account, Statement),
    *events.EVENTS,
    *mechanisms.MECHANISMS,
    *laws.LAWS,
)


class _Declarations(Registry):
    """The declarations of all kinds that are registered when it is asked."""

    def __init__(self) -> None:
        """Nothing is read yet: kinds may be registered later."""
        super().__init__(())

    @property
    def _classes(self) -> dict[str, type]:
        return _classes_of(kinds())


@cache
def _classes_of(known: tuple[DataKind, ...]) -> dict[str, type]:
    return by_kind((*COMMON, *(declared for kind in known for declared in kind.declarations)))


DECLARATIONS = _Declarations()
