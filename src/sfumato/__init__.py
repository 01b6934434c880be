"""Sfumato: statistics about people, with a guarantee that can be checked and error bars that are honest.

The public face. Names are imported when they are first used, so that ``import sfumato`` stays light.
"""

import importlib
from typing import TYPE_CHECKING, Any

from sfumato import errors
from sfumato.version import __version__

if TYPE_CHECKING:
    from sfumato.core.budget import Budget
    from sfumato.core.limits import Limit
    from sfumato.core.units import client, edge, event, family, node, record, user, weight
    from sfumato.engines.expressions import col
    from sfumato.reports.verify import load
    from sfumato.vault import Vault

_HOME = {
    "Budget": "sfumato.core.budget",
    "Limit": "sfumato.core.limits",
    "Vault": "sfumato.vault",
    "client": "sfumato.core.units",
    "col": "sfumato.engines.expressions",
    "edge": "sfumato.core.units",
    "event": "sfumato.core.units",
    "family": "sfumato.core.units",
    "load": "sfumato.reports.verify",
    "node": "sfumato.core.units",
    "record": "sfumato.core.units",
    "user": "sfumato.core.units",
    "weight": "sfumato.core.units",
}

__all__ = [
    "Budget",
    "Limit",
    "Vault",
    "__version__",
    "client",
    "col",
    "edge",
    "errors",
    "event",
    "family",
    "load",
    "node",
    "record",
    "user",
    "weight",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
