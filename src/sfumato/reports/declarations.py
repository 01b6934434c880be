"""The one list of everything that can be written into a certificate, by kind.

Reading it needs no data, no engine and no optional part. A new query, mechanism, law or unit is added here, or its
certificates cannot be read; a test compares this list with what the areas export.
"""

from sfumato import graphs, laws, learning, mechanisms, streams, tables
from sfumato.core import events, guarantees, sensitivity, units
from sfumato.core.budget import Budget
from sfumato.core.documents import Registry
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.statement import Account, Statement
from sfumato.engines.expressions import EXPRESSIONS

__all__ = ["DECLARATIONS"]

DECLARATIONS = Registry(
    (
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
        *(Budget, Limit, Dataset, Account, Statement),
        *events.EVENTS,
        *EXPRESSIONS,
        *mechanisms.MECHANISMS,
        *tables.QUERIES,
        *graphs.QUERIES,
        *streams.QUERIES,
        *learning.QUERIES,
        *laws.LAWS,
    )
)
