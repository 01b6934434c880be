"""What it takes to add noise to any whole numbers, and to be found for it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, TypeGuard

from sfumato.core.documents import Document
from sfumato.core.exact import Exact
from sfumato.core.query import Answer, Mechanism
from sfumato.core.sensitivity import Sensitivity

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["AddedNoise", "adds_noise"]


class AddedNoise(Mechanism, Protocol):
    """A mechanism that adds noise of its law to each whole number of an answer, independently and whatever they are.

    A query whose numbers are read by that law alone can be answered by any of them. ``PURE``: it needs no δ.
    """

    PURE: ClassVar[bool]

    @classmethod
    def least(cls, moved: Sensitivity, *, epsilon: Exact, delta: Exact) -> Self | None:
        """The least noise that gives (ε, δ) to answers which one unit moves so far; None where there is none."""
        ...

    def draw(self, exact: Sequence[int], words: "Words") -> Answer:
        """The answer: what :meth:`add_noise` gives. Sensitive: ``exact``."""
        ...

    def add_noise(self, exact: Sequence[int], words: "Words") -> tuple[int, ...]:
        """Add fresh noise to each number. Sensitive: ``exact``."""
        ...


def adds_noise(kind: type[Document]) -> TypeGuard[type[AddedNoise]]:
    """Whether a mechanism says of itself that it is one of those.

    >>> from sfumato.mechanisms import Laplace, NoisyMax
    >>> adds_noise(Laplace), adds_noise(NoisyMax)
    (True, False)
    """
    return hasattr(kind, "PURE")
