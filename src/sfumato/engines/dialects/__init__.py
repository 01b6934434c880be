"""The dialects of all engines. Each file here is one engine, found by itself: a new engine is a new file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sfumato.engines.dialect import Dialect
from sfumato.errors import Unsupported

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["DIALECTS", "dialect_of"]


def _found() -> Iterator[Dialect]:
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__)):
        module = importlib.import_module(f"{__name__}.{name}")
        yield from (found for found in vars(module).values() if isinstance(found, Dialect))


DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in _found()}


def dialect_of(table: ir.Table) -> Dialect:
    """Which engine a table lives on; one that is not pinned by tests is refused."""
    name = table.get_backend().name
    if name not in DIALECTS:
        raise Unsupported(f"expressions are not known to mean the same on {name!r}; nothing was read.")
    return DIALECTS[name]
