"""Documents of every kind, made at random from the types of their fields: a new kind needs no code here."""

import dataclasses
import types
import typing
from enum import Enum
from fractions import Fraction
from functools import cache
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from sfumato.core.statement import Statement
from sfumato.engines.expressions.literals import Date
from sfumato.errors import SfumatoError
from sfumato.mechanisms.matrix import Matrix
from sfumato.reports.declarations import DECLARATIONS

CLASSES: dict[str, type] = DECLARATIONS._classes


@cache
def strategy(hint: Any, depth: int) -> st.SearchStrategy[Any]:
    """Values of a type: what a field of a document may hold."""
    if isinstance(hint, types.UnionType):
        options = [option for option in typing.get_args(hint) if _reachable(option, depth)]
        return st.one_of([strategy(option, depth) for option in options])
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)
        if inner[-1] is Ellipsis:
            return st.lists(strategy(inner[0], depth), max_size=3).map(tuple)
        return st.tuples(*(strategy(one, depth) for one in inner))
    if typing.get_origin(hint) is typing.Literal:
        return st.sampled_from(typing.get_args(hint))
    if hint is types.NoneType:
        return st.none()
    if hint is Fraction:
        return st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=10**6) | st.just(
            Fraction(1, 2)
        )
    if hint is int:
        return st.integers(1, 6) | st.integers(1, 6) | st.integers(1, 6) | st.integers(-(2**63), 2**63)
    if hint is bool:
        return st.booleans()
    if hint is str:
        return st.sampled_from(["visits", "2026-10", "北部", "a b", "ü", "x" * 40])
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    classes = [cls for cls in CLASSES.values() if _fits(cls, hint) and cls is not Statement]
    return st.sampled_from(sorted(classes, key=lambda cls: cls.KIND)).flatmap(lambda cls: built(cls, depth - 1))


def _fits(cls: type, hint: Any) -> bool:
    if getattr(hint, "_is_protocol", False):
        asked = {*vars(hint), *vars(hint).get("__annotations__", {})}
        return all(hasattr(cls, name) for name in asked if not name.startswith("_"))
    return isinstance(hint, type) and issubclass(cls, hint)


def _reachable(option: Any, depth: int) -> bool:
    """At the bottom only what holds no further document of its own sort is built."""
    if depth > 0 or not (isinstance(option, type) and dataclasses.is_dataclass(option)):
        return True
    return not any(
        isinstance(hint, types.UnionType) and any(dataclasses.is_dataclass(one) for one in typing.get_args(hint))
        for hint in typing.get_type_hints(option).values()
    )


# What is hardly ever met by chance: a text that is a day, a strategy whose rows have one length.
RARE: dict[str, st.SearchStrategy[Any]] = {
    "literal.date": st.dates().map(lambda day: Date(day.isoformat())),
    "mechanism.matrix": st.builds(
        lambda size, bits, noise: Matrix.square_root(size, bits=bits).measure(sigma_squared=noise).declaration,
        st.integers(1, 4),
        st.integers(0, 8),
        st.fractions(min_value=Fraction(1, 10), max_value=100, max_denominator=100),
    ),
}


@cache
def built(cls: type, depth: int = 2) -> st.SearchStrategy[Any]:
    """Instances of a document class; what the class refuses is left out."""
    if cls.KIND in RARE:
        return RARE[cls.KIND]
    hints = typing.get_type_hints(cls)
    names = [field.name for field in dataclasses.fields(cls)]

    @st.composite
    def make(draw: st.DrawFn) -> Any:
        values = {name: draw(strategy(hints[name], depth)) for name in names}
        try:
            return cls(**values)
        except (SfumatoError, ValueError, TypeError):
            assume(False)

    return make()
