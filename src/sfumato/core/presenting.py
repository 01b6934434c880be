"""Whoever turns results that have no release into words and pictures: named from above, imported when first used."""

import importlib
from typing import TYPE_CHECKING, cast

from sfumato.errors import Unsupported

if TYPE_CHECKING:
    from sfumato.core.release import Presenter

__all__ = ["announce_presenter", "default_presenter"]

_announced: list[str] = []


def announce_presenter(place: str) -> None:
    """Name the presenter as ``module:class``; the last one that is named is used."""
    _announced.append(place)


def default_presenter() -> "Presenter":
    """The presenter of results that were made without a release, such as a sample size.

    >>> import sfumato
    >>> type(default_presenter()).__name__
    'Reports'
    """
    if not _announced:
        raise Unsupported("no presenter is known here, so no words can be made; import sfumato first.")
    module, _, name = _announced[-1].partition(":")
    return cast("Presenter", getattr(importlib.import_module(module), name)())
