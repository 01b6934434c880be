"""Old names: they do what the new ones do, and warn at the line of the caller."""

import inspect
import warnings
from dataclasses import dataclass

import pytest

from sfumato.core.deprecation import GONE, renamed, warn_renamed, withdrawn


@renamed(number="n_units")
def share(count: int, *, n_units: int = 1) -> float:
    """A share."""
    return count / n_units


@renamed(number="n_units")
@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    n_units: int
    name: str = "x"


@withdrawn(gate="the vault")
class Handle:
    def __init__(self) -> None:
        self._gate = object()


def test_an_old_name_does_what_the_new_one_does_and_warns_at_the_callers_line() -> None:
    with pytest.warns(DeprecationWarning, match=r"share\(number=…\) is now share\(n_units=…\)") as heard:
        found, line = share(1, number=4), inspect.currentframe().f_lineno  # type: ignore[call-arg, union-attr]
    assert found == share(1, n_units=4)
    assert [(one.filename, one.lineno) for one in heard] == [(__file__, line)]
    assert GONE in str(heard[0].message)


def test_new_names_do_not_warn_and_are_what_signatures_show() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert share(1, n_units=2) == 0.5
        assert Held(n_units=3).n_units == 3
    assert list(inspect.signature(share).parameters) == ["count", "n_units"]
    assert list(inspect.signature(Held).parameters) == ["n_units", "name"]
    assert share.__doc__ == "A share."


def test_both_names_and_unknown_ones_are_refused() -> None:
    with pytest.raises(TypeError, match=r"given number= and n_units=.*Say n_units= alone"):
        share(1, number=4, n_units=4)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="given number= and n_units="):
        Held(number=4, n_units=4)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword"):
        share(1, numbers=4)  # type: ignore[call-arg]


def test_an_attribute_is_read_and_set_by_its_old_name() -> None:
    with pytest.warns(DeprecationWarning, match=r"Held\.number is now Held\.n_units"):
        assert Held(n_units=3).number == 3  # type: ignore[attr-defined]

    @renamed(number="n_units")
    class Loose:
        def __init__(self, *, n_units: int) -> None:
            self.n_units = n_units

    loose = Loose(n_units=1)
    with pytest.warns(DeprecationWarning, match="is now"):
        loose.number = 2
    assert loose.n_units == 2


def test_a_private_attribute_is_still_read_by_the_name_it_had() -> None:
    handle = Handle()
    with pytest.warns(DeprecationWarning, match=r"Handle\.gate is private\. Use the vault"):
        assert handle.gate is handle._gate  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = handle.gates  # type: ignore[attr-defined]


def test_a_new_name_that_a_function_does_not_have_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="cannot take new names for n_unit"):

        @renamed(number="n_unit")
        def odd(*, n_units: int) -> int:
            return n_units

    with pytest.raises(TypeError, match="cannot take new names for number"):

        @renamed(number="n_units")
        def both(*, number: int, n_units: int) -> int:
            return n_units + number


def test_a_warning_of_a_name_points_here() -> None:
    with pytest.warns(DeprecationWarning, match=r"^a is now b\.") as heard:
        warn_renamed("a", "b")
    assert heard[0].filename == __file__
