"""Sfumato: statistics about people, with a guarantee that can be checked and error bars that are honest.

The public face. Names are imported when they are first used, so that ``import sfumato`` stays light.
"""

import importlib
from typing import TYPE_CHECKING, Any

from sfumato import errors
from sfumato.core.data_kind import announce
from sfumato.version import __version__

if TYPE_CHECKING:
    from sfumato.core.budget import Budget
    from sfumato.core.limits import Limit
    from sfumato.core.units import client, edge, event, family, node, record, user, weight
    from sfumato.engines.expressions import coalesce, col, greatest, least, when
    from sfumato.governance.ledger import Ledger
    from sfumato.reports.verify import load
    from sfumato.tables.asking import (
        correlation,
        count,
        covariance,
        mean,
        persons,
        proportion,
        ratio,
        standard_deviation,
        variance,
    )
    from sfumato.tables.asking import sum_of as sum
    from sfumato.tables.schema import Schema
    from sfumato.vault import Vault

_HOME = {
    "Budget": ("sfumato.core.budget", "Budget"),
    "Ledger": ("sfumato.governance.ledger", "Ledger"),
    "Limit": ("sfumato.core.limits", "Limit"),
    "Schema": ("sfumato.tables.schema", "Schema"),
    "Vault": ("sfumato.vault", "Vault"),
    "client": ("sfumato.core.units", "client"),
    "coalesce": ("sfumato.engines.expressions", "coalesce"),
    "col": ("sfumato.engines.expressions", "col"),
    "correlation": ("sfumato.tables.asking", "correlation"),
    "count": ("sfumato.tables.asking", "count"),
    "covariance": ("sfumato.tables.asking", "covariance"),
    "edge": ("sfumato.core.units", "edge"),
    "event": ("sfumato.core.units", "event"),
    "family": ("sfumato.core.units", "family"),
    "greatest": ("sfumato.engines.expressions", "greatest"),
    "least": ("sfumato.engines.expressions", "least"),
    "load": ("sfumato.reports.verify", "load"),
    "mean": ("sfumato.tables.asking", "mean"),
    "node": ("sfumato.core.units", "node"),
    "persons": ("sfumato.tables.asking", "persons"),
    "proportion": ("sfumato.tables.asking", "proportion"),
    "ratio": ("sfumato.tables.asking", "ratio"),
    "record": ("sfumato.core.units", "record"),
    "standard_deviation": ("sfumato.tables.asking", "standard_deviation"),
    "sum": ("sfumato.tables.asking", "sum_of"),
    "user": ("sfumato.core.units", "user"),
    "variance": ("sfumato.tables.asking", "variance"),
    "weight": ("sfumato.core.units", "weight"),
    "when": ("sfumato.engines.expressions", "when"),
}

__all__ = [
    "Budget",
    "Ledger",
    "Limit",
    "Schema",
    "Vault",
    "__version__",
    "client",
    "coalesce",
    "col",
    "correlation",
    "count",
    "covariance",
    "edge",
    "errors",
    "event",
    "family",
    "greatest",
    "least",
    "load",
    "mean",
    "node",
    "persons",
    "proportion",
    "ratio",
    "record",
    "standard_deviation",
    "sum",
    "user",
    "variance",
    "weight",
    "when",
]


announce("sfumato.kinds")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    module, there = _HOME[name]
    return getattr(importlib.import_module(module), there)


def __dir__() -> list[str]:
    return __all__
