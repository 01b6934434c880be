"""Sensitivity: how far one unit can move an answer, with the norm as part of the type.

A Laplace mechanism asks for an :class:`L1`, a Gaussian one for an :class:`L2`; handing over the other is an error
and never a guess. The l2 bound is kept as its square, so that √2 stays exact.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, TypeVar

from sfumato.core.exact import Exact, natural, non_negative
from sfumato.errors import InvalidInput, WrongNorm

__all__ = ["L0", "L1", "L2", "LInf", "Sensitivity"]


@dataclass(frozen=True, slots=True, order=True)
class L0:
    """At most ``count`` numbers of the answer move."""

    KIND: ClassVar[str] = "sensitivity.l0"
    VERSION: ClassVar[int] = 1
    count: int

    def __post_init__(self) -> None:
        natural(self.count, "l0", least=0)


@dataclass(frozen=True, slots=True, order=True)
class L1:
    """The absolute moves add up to at most ``value``."""

    KIND: ClassVar[str] = "sensitivity.l1"
    VERSION: ClassVar[int] = 1
    value: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", non_negative(self.value, "l1"))

    def as_l2(self) -> "L2":
        """Read an l1 bound as an l2 bound: valid, rarely tight, and never done unasked.

        >>> L1(Fraction(3)).as_l2()
        L2(squared=Fraction(9, 1))
        """
        return L2(self.value**2)


@dataclass(frozen=True, slots=True, order=True)
class L2:
    """The squared moves add up to at most ``squared``."""

    KIND: ClassVar[str] = "sensitivity.l2"
    VERSION: ClassVar[int] = 1
    squared: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "squared", non_negative(self.squared, "l2 squared"))


@dataclass(frozen=True, slots=True, order=True)
class LInf:
    """No number of the answer moves by more than ``value``."""

    KIND: ClassVar[str] = "sensitivity.linf"
    VERSION: ClassVar[int] = 1
    value: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", non_negative(self.value, "linf"))


Bound = TypeVar("Bound", L0, L1, L2, LInf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """How far one unit can move an answer, in each norm that is known.

    Guarantee: stated for one unit, relation and limit by the query that returns it; brute-forced over neighbours.

    >>> Sensitivity.of(l1=2, l2_squared=2, linf=1, l0=2).l1
    L1(value=Fraction(2, 1))
    """

    KIND: ClassVar[str] = "sensitivity"
    VERSION: ClassVar[int] = 1
    l0: L0 | None = None
    l1: L1 | None = None
    l2: L2 | None = None
    linf: LInf | None = None

    def __post_init__(self) -> None:
        for name, bound, cls in (
            ("l0", self.l0, L0),
            ("l1", self.l1, L1),
            ("l2", self.l2, L2),
            ("linf", self.linf, LInf),
        ):
            if bound is not None and type(bound) is not cls:
                raise WrongNorm(f"{name} was given as {type(bound).__name__}; nothing was done. Give {cls.__name__}.")
        if (self.l0, self.l1, self.l2, self.linf) == (None,) * 4:
            raise InvalidInput("a sensitivity needs at least one norm: l0, l1, l2 or linf.")

    @classmethod
    def of(
        cls,
        *,
        l0: int | None = None,
        l1: Exact | None = None,
        l2_squared: Exact | None = None,
        linf: Exact | None = None,
    ) -> "Sensitivity":
        """Build from plain numbers, each under the name of its norm."""
        return cls(
            l0=None if l0 is None else L0(l0),
            l1=None if l1 is None else L1(non_negative(l1, "l1")),
            l2=None if l2_squared is None else L2(non_negative(l2_squared, "l2 squared")),
            linf=None if linf is None else LInf(non_negative(linf, "linf")),
        )

    @staticmethod
    def joint(parts: Iterable["Sensitivity"]) -> "Sensitivity":
        """Bound the concatenation of several answers, all of which the same unit may move.

        Guarantee: l0 and l1 add, l2 adds in squares, linf is the largest; an upper bound that a joint analysis may
        undercut. A norm that one part does not know is unknown for all.

        >>> Sensitivity.joint([Sensitivity.of(l1=1, l2_squared=1), Sensitivity.of(l1=4, l2_squared=8)]).l2
        L2(squared=Fraction(9, 1))
        """
        several = list(parts)
        l0 = _known(part.l0 for part in several)
        l1 = _known(part.l1 for part in several)
        l2 = _known(part.l2 for part in several)
        linf = _known(part.linf for part in several)
        return Sensitivity(
            l0=None if l0 is None else L0(sum(bound.count for bound in l0)),
            l1=None if l1 is None else L1(sum((bound.value for bound in l1), Fraction(0))),
            l2=None if l2 is None else L2(sum((bound.squared for bound in l2), Fraction(0))),
            linf=None if linf is None else max(linf),
        )


def _known(bounds: Iterable[Bound | None]) -> list[Bound] | None:
    several = list(bounds)
    known = [bound for bound in several if bound is not None]
    return known if known and len(known) == len(several) else None
