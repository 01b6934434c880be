"""What a reader must know of how a release is shown."""

from sfumato.core.release import Release
from sfumato.reports.catalogue import message

__all__ = ["view_notes"]


def view_notes(release: Release, language: str) -> list[str]:
    """That some of its rows are shown, and what their intervals allow for; nothing where all of it is shown."""
    notes = () if release.view is None else release.view.notes(release)
    return [message(language, key, **values) for key, values in notes]
