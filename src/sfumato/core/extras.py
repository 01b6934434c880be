"""Optional parts: imported when used, and named with the command that installs them when absent."""

import importlib
from types import ModuleType

from sfumato.errors import MissingExtra

__all__ = ["need"]


def need(module: str, command: str) -> ModuleType:
    """Import an optional module, or say how to get it.

    >>> need("json", "never shown").loads("1")
    1
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtra(f"this needs {module!r}, which is not installed. Install it: {command}") from None
