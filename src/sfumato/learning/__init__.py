"""Learning: models whose every trained weight is covered by one guarantee for the unit of the vault.

``QUERIES`` are all declarations that a certificate of a training run can hold; reading them needs neither data nor torch.
Names that need torch are imported when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.learning.engine import ClippedSum, Engine, clipped_sum

__all__ = ["QUERIES", "ClippedSum", "Engine", "clipped_sum"]

QUERIES: tuple[Any, ...] = ()

_HOME = {
    "ClippedSum": "sfumato.learning.engine",
    "Engine": "sfumato.learning.engine",
    "clipped_sum": "sfumato.learning.engine",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato.learning' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
