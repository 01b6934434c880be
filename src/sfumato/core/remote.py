"""Services that are reached by an address of the web: who connects to them is named from above, imported when used."""

import importlib
from collections.abc import Callable
from typing import Any  # the connection, of a class above core

from sfumato.errors import Unsupported

__all__ = ["announce_client", "client_for"]

WEB = ("http://", "https://")
_announced: list[str] = []


def announce_client(place: str) -> None:
    """Name the function that connects, as ``module:function``; the last one that is named is used."""
    _announced.append(place)


def client_for(address: object) -> Callable[..., Any] | None:
    """The function that connects to an address; None where it is no web address.

    >>> client_for("unix:/run/research.sock") is None
    True
    """
    if not isinstance(address, str) or not address.startswith(WEB):
        return None
    if not _announced:
        raise Unsupported("no client of services is known here; nothing was done. Import sfumato first.")
    module, _, name = _announced[-1].partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found
