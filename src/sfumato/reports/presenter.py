"""The presenter that the vault hands to each release."""

from typing import Any

from sfumato.core.release import Release
from sfumato.reports.explain import explain
from sfumato.reports.plots import intervals

__all__ = ["Reports"]


class Reports:
    """Words by :mod:`~sfumato.reports.explain`, pictures by :mod:`~sfumato.reports.plots`."""

    __slots__ = ()

    def explain(self, release: Release, language: str) -> str:
        """Put the release into plain language."""
        return explain(release, language)

    def plot(self, release: Release, language: str) -> Any:
        """Draw the release with its error bars."""
        return intervals(release, language)
