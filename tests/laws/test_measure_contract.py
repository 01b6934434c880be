"""The contract of every measure: no neighbours are further apart than it states of its sums, and some are as far.

A measure that is added in a file of its own is tried without a change here: :mod:`tests.laws.measure_trials` makes it
from its fields. Sums that cannot be tried fail, with what is missing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn

import ibis
import pytest

from sfumato.engines.expressions import columns_of
from sfumato.engines.lattice import Lattice
from sfumato.engines.operands import double, whole
from sfumato.errors import InvalidInput
from sfumato.tables.clamped import Clamped
from sfumato.tables.contribution import Move, Reach
from sfumato.tables.measure import Measure
from sfumato.tables.measures import MEASURES
from sfumato.tables.needs import OwnSums
from tests.laws.measure_trials import CannotBeChecked, faults, halved, too_little, tried

pytestmark = pytest.mark.no_cover  # hundreds of worlds for each measure: measuring coverage would double their time

STEPS = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Reciprocals:
    """Whether a row has a value, and the reciprocal of that; both from 0 to ``height``."""

    lattice: Lattice
    height: int = STEPS

    @property
    def lattices(self) -> tuple[Lattice, ...]:
        return (self.lattice,)

    @property
    def columns(self) -> frozenset[str]:
        return columns_of(self.lattice.value)

    def of_row(self, table: Any, places: Mapping[Lattice, Any]) -> list[Any]:
        place, of = places[self.lattice], self.lattice
        reached = place.cast("float64") * double(float((of.high - of.low) / of.steps)) + double(float(of.low))
        part = (double(float(of.low) * self.height) / reached).floor().cast("int64")
        held = ibis.greatest(ibis.least(part, whole(self.height)), whole(0))
        return [ibis.ifelse(place.isnull(), whole(0), it) for it in (whole(self.height), held)]

    def of_record(self, row: list[Any]) -> list[Any]:
        return row

    def of_person(self, sums: list[Any], rows: int) -> list[Any]:
        return [ibis.least(part, whole(rows * self.height)) for part in sums]


BOTH = Move(l1=2 * STEPS, l2_squared=2 * STEPS**2, linf=STEPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmonicMean(Measure):
    """The harmonic mean of a positive value: a measure with sums of its own, of which only these are tried."""

    KIND: ClassVar[str] = "measure.harmonic_mean"
    VERSION: ClassVar[int] = 1
    ASKED: ClassVar = {}
    GAUGE: ClassVar[type[Reciprocals]] = Reciprocals
    REACH: ClassVar[Reach] = Reach(numbers=2, alone=BOTH, met=BOTH)
    name: str
    of: Clamped

    def __post_init__(self) -> None:
        if self.of.low <= 0:
            raise InvalidInput("a harmonic mean needs values above 0; nothing was done.")

    @property
    def needs(self) -> tuple[OwnSums]:
        lattice = Lattice(value=self.of.value, low=self.of.low, high=self.of.high, steps=2**40)
        return (OwnSums(self.GAUGE(lattice=lattice), self.REACH),)

    def estimate(self, reader: object) -> NoReturn:
        raise NotImplementedError

    def margin(self, preview: object) -> None:
        return None

    @property
    def words(self) -> str:
        return "measure.mean"


@pytest.mark.parametrize("measure", [*MEASURES, HarmonicMean], ids=lambda it: it.__name__)
def test_no_unit_moves_the_sums_of_a_measure_further_than_stated_and_some_as_far(measure: type[Measure]) -> None:
    assert faults(measure) == []
    assert bounds_that_may_be_halved(measure) == []


def bounds_that_may_be_halved(measure: type[Measure]) -> list[tuple[object, str]]:
    """The bounds that could be half of what is stated, and no neighbours would show it."""
    caught: dict[tuple[object, str], bool] = {}
    for one in tried(measure):
        for block in one.blocks:
            for bound, less in halved(block.reach):
                if one.trial.public and bound.startswith("alone"):
                    continue  # nobody comes or goes, so nothing reads it
                here = block.gauge, bound
                caught[here] = bool(too_little(one, block.gauge, less)) or caught.get(here, False)
    assert caught
    return [here for here, seen in caught.items() if not seen]


# -------------------------------------------------------------------------------- deliberately broken copies are caught


def copy(gauge: type[Reciprocals] = Reciprocals, reach: Reach = HarmonicMean.REACH) -> type[Measure]:
    """The harmonic mean with another gauge, or with something else stated of it."""
    return type("Copy", (HarmonicMean,), {"__slots__": (), "GAUGE": gauge, "REACH": reach})


def test_a_copy_with_one_bound_halved_is_caught() -> None:
    for bound, less in halved(HarmonicMean.REACH):
        found = faults(copy(reach=less))
        side, norm = bound.split(".")
        case = f"a row, {'add/remove' if side == 'alone' else 'replace'}"
        assert [it for it in found if f"{case}: Reciprocals moves by {norm.replace('_', ' ')} " in it], bound
        assert [it for it in found if f"{case}: a question moves by {norm.replace('_', ' ')} " in it], bound


def test_a_copy_that_states_too_much_is_caught_unless_it_says_why() -> None:
    more = replace(HarmonicMean.REACH, met=replace(BOTH, l1=3 * STEPS))
    assert all("no reason: Reach(loose=...) takes one" in it for it in faults(copy(reach=more)))
    assert faults(copy(reach=more))
    assert faults(copy(reach=replace(more, loose="it is only for show"))) == []
    twice = replace(more, met=replace(BOTH, l1=4 * STEPS), loose="it is only for show")
    assert all("(it is only for show)" in it for it in faults(copy(reach=twice)))
    assert faults(copy(reach=twice))


class Unheld(Reciprocals):
    """All rows of a person count."""

    def of_person(self, sums: list[Any], rows: int) -> list[Any]:
        return sums


class Negative(Reciprocals):
    """A missing value lies below 0."""

    def of_row(self, table: Any, places: Mapping[Lattice, Any]) -> list[Any]:
        first, second = Reciprocals.of_row(self, table, places)
        return [first, ibis.ifelse(places[self.lattice].isnull(), whole(-1), second)]


@pytest.mark.parametrize(("gauge", "where"), [(Unheld, "a person, add/remove"), (Negative, "a row, replace")])
def test_a_copy_whose_sums_are_not_held_is_caught(gauge: type[Reciprocals], where: str) -> None:
    assert [it for it in faults(copy(gauge)) if it.startswith(f"{where}: {gauge.__name__} moves by l1 ")]


# ------------------------------------------------------------------------------- what cannot be checked says what to do


class Fractions(Reciprocals):
    """Parts that are not whole."""

    def of_row(self, table: Any, places: Mapping[Lattice, Any]) -> list[Any]:
        return [part.cast("float64") for part in Reciprocals.of_row(self, table, places)]


class Missing(Reciprocals):
    """Parts that are null."""

    def of_row(self, table: Any, places: Mapping[Lattice, Any]) -> list[Any]:
        return [part.nullif(whole(0)) for part in Reciprocals.of_row(self, table, places)]


class Relative(Reciprocals):
    """Parts that depend on other rows, which are those of all worlds where these stand side by side."""

    def of_row(self, table: Any, places: Mapping[Lattice, Any]) -> list[Any]:
        return [part - part.min() for part in Reciprocals.of_row(self, table, places)]


class Huge(Reciprocals):
    """Parts whose differences 64 bits do not hold."""

    def of_row(self, table: Any, places: Mapping[Lattice, Any]) -> list[Any]:
        return [part * whole(2**30) for part in Reciprocals.of_row(self, table, places)]


class Elsewhere(Reciprocals):
    """A column that the table does not have."""

    def of_row(self, table: Any, places: Mapping[Lattice, Any]) -> list[Any]:
        return [table.nowhere, table.nowhere]


@pytest.mark.parametrize(
    ("gauge", "why"),
    [
        (Fractions, "a part of Fractions is of type float64, not a whole number"),
        (Missing, "the engine cannot add them up .*a part of some row is null"),
        (Relative, "a part of Relative depends on more than its own row"),
        (Huge, "the engine cannot add them up .*64 bits do not hold"),
        (Elsewhere, "Elsewhere cannot be asked of a row .*nowhere"),
    ],
)
def test_sums_that_cannot_be_checked_fail(gauge: type[Reciprocals], why: str) -> None:
    with pytest.raises(CannotBeChecked, match=f"the sums of Copy cannot be checked: {why}"):
        faults(copy(gauge))


def test_a_reach_of_other_numbers_than_there_are_fails() -> None:
    with pytest.raises(CannotBeChecked, match="states 3 numbers, and Reciprocals has 2 of a row and 2 of a person"):
        faults(copy(reach=replace(HarmonicMean.REACH, numbers=3)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised(HarmonicMean):
    """A field of a kind that nothing is known of."""

    power: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OfThree(HarmonicMean):
    """More values than the rows have."""

    second: Clamped
    third: Clamped


@dataclass(frozen=True, slots=True, kw_only=True)
class Choosy(HarmonicMean):
    """No range is right."""

    def __post_init__(self) -> None:
        raise InvalidInput("a prime number of years is needed; nothing was done.")


@pytest.mark.parametrize(
    ("measure", "why"),
    [
        (Raised, "nothing says what to try for its field power: int"),
        (OfThree, "it is about of and second and third, and the rows of .* have 2 such columns"),
        (Choosy, "it refuses every range of .*RANGES, the last by: a prime number of years"),
    ],
)
def test_a_measure_that_cannot_be_made_fails(measure: type[Measure], why: str) -> None:
    with pytest.raises(CannotBeChecked, match=why):
        faults(measure)
