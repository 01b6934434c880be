"""The law of an answer without additive noise: a choice, an alarm, a report, a list of keys."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NoReturn

from sfumato.core.exact import Exact
from sfumato.errors import Unsupported

__all__ = ["Unstated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unstated:
    """No error distribution can be stated from public facts alone; asking for a margin is refused.

    Mechanisms that choose err by what the data is like: their realised error is as private as the data.

    >>> Unstated().margin(0.95)
    Traceback (most recent call last):
    sfumato.errors.Unsupported: this answer is a choice, not a number with added noise: it has no margin of error.
    """

    KIND: ClassVar[str] = "law.unstated"
    VERSION: ClassVar[int] = 1

    def margin(self, confidence: Exact, *, numbers: int = 1) -> int:
        """Refused."""
        self._refuse()

    def covers(self, margin: int, confidence: Exact, *, numbers: int = 1) -> bool:
        """Refused."""
        self._refuse()

    @property
    def variance(self) -> Fraction:
        """Refused."""
        self._refuse()

    @property
    def mean_absolute_error(self) -> Fraction:
        """Refused."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise Unsupported("this answer is a choice, not a number with added noise: it has no margin of error.")
