"""Columns as a model reads them: by the public facts that make numbers of them, and by nothing else."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.query import check_name
from sfumato.engines.expressions import Type
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.tables.keys import Keys, KeyValue

__all__ = ["FeatureColumn", "feature_column"]

NUMBERS = (Type.WHOLE, Type.NUMBER)
LISTED = (Type.TEXT, Type.WHOLE, Type.TRUTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureColumn:
    """A column, and the public facts by which it becomes numbers: ``bounds`` of a number, or the list of its ``keys``.

    A number is held to its bounds and scaled to −1 to 1; keys are a place each, and with ``rest`` there is one more
    place for whatever is not listed. Public: every field.

    >>> FeatureColumn(name="age", bounds=(Fraction(0), Fraction(100))).width
    1
    >>> FeatureColumn(name="sex", keys=("F", "M")).width
    2
    """

    KIND: ClassVar[str] = "table.feature_column"
    VERSION: ClassVar[int] = 1
    name: str
    bounds: tuple[Fraction, Fraction] | None = None
    keys: tuple[str | int | bool, ...] = ()
    rest: bool = False

    def __post_init__(self) -> None:
        check_name(self.name, "the name of a column")
        if (self.bounds is None) is not bool(self.keys) or (self.rest and not self.keys):
            raise InvalidInput(f"column {self.name!r} has bounds or keys, and one of them alone; nothing was done.")
        if self.bounds is not None and not _floats(*self.bounds):
            raise InvalidInput(
                f"the bounds of column {self.name!r} are not two numbers that floats tell apart; nothing was done."
            )
        if self.keys:
            Keys(column=self.name, values=self.keys)

    @property
    def width(self) -> int:
        """How many numbers it becomes as an input; as a target, how many classes it has."""
        return 1 if self.bounds is not None else len(self.keys) + self.rest

    @property
    def pair(self) -> tuple[float, float] | None:
        """The bounds as floats."""
        return None if self.bounds is None else (float(self.bounds[0]), float(self.bounds[1]))


def feature_column(
    name: str, kind: Type, *, bounds: object | None, keys: "Keys | tuple[KeyValue, ...] | None", as_class: bool
) -> FeatureColumn:
    """The column by what was declared of it: by bounds where it has some, as a class by its keys.

    Truth values need no keys: there are two, whatever the rows hold.

    >>> feature_column("died", Type.TRUTH, bounds=None, keys=None, as_class=True).keys
    (False, True)
    """
    number = isinstance(bounds, tuple) and isinstance(bounds[0], Fraction) and kind in NUMBERS
    listed = (False, True) if not keys and kind is Type.TRUTH else keys
    found = listed if isinstance(listed, Keys) else Keys(column=name, values=listed) if listed else None
    if found is not None and found.value is None and kind in LISTED and (as_class or not number):
        return FeatureColumn(name=name, keys=found.values, rest=found.other is not None)  # type: ignore[arg-type]  # no dates in these types
    if number and isinstance(bounds, tuple):
        return FeatureColumn(name=name, bounds=(bounds[0], bounds[1]))
    raise NotDeclared(
        f"column {name!r} needs public facts to become numbers: bounds of a number, or keys of texts, whole "
        "numbers or truth values. Nothing was read and nothing was spent. Declare them with the table."
    )


def _floats(low: Fraction, high: Fraction) -> bool:
    try:
        ends = float(low), float(high)
    except OverflowError:
        return False
    return ends[0] < ends[1] and math.isfinite(ends[1] - ends[0]) and (ends[1] - ends[0]) / 2 > 1e-300
