"""A view of a release: what is shown of it, in which order, and what is computed from its columns."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from sfumato.core.columns import ResultColumn

if TYPE_CHECKING:
    from sfumato.core.release import Release

__all__ = ["View"]


class View(Protocol):
    """Post-processing of one release: it costs nothing, and the certificate stays that of all that was released."""

    def labels(self, release: "Release") -> Mapping[str, Sequence[str | int | bool]]:
        """What each row that is shown is about."""
        ...

    def columns(self, release: "Release") -> Mapping[str, ResultColumn]:
        """The columns that are shown, by name."""
        ...

    def notes(self, release: "Release") -> tuple[tuple[str, Mapping[str, str]], ...]:
        """What a reader must know of the view: keys of messages, with what stands in them."""
        ...
