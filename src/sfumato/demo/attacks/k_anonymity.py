"""k-anonymity: in each table everybody looks like two others, and the two tables together give people away.

A small region publishes its register twice. In both tables everybody shares age and sex, as coarse as these are shown,
with at least k − 1 others. An attacker who knows somebody's age and sex, as neighbours do, finds the class of that
person in each table; the diagnosis is one that occurs in both. One table alone fails too: where all of a class have the
same diagnosis (homogeneity), and where the attacker can rule one out (background knowledge).
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.core.exact import natural
from sfumato.demo.attacks.hospital import Register
from sfumato.demo.network import DIAGNOSES, REGIONS, SEXES, SMALL_REGION
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

__all__ = [
    "AnonymousTable",
    "Intersection",
    "KAnonymity",
    "age_bands",
    "by_age",
    "by_sex_and_age",
    "demonstrate_k_anonymity",
    "intersect",
]

K = 3
RULED_OUT = "ILI"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AnonymousTable:
    """A published table: for each row the class that it is shown as, and the diagnosis. Rows have no names.

    ``shown`` are the classes in words. Rows of two tables stand in the same order here, which no reader would know;
    the attack does not use it.
    """

    classes: "Integers"
    shown: tuple[str, ...]
    diagnosis: "Integers"

    @property
    def k(self) -> int:
        """The size of the smallest class: the table is k-anonymous."""
        import numpy as np

        return int(np.unique(self.classes, return_counts=True)[1].min())

    def held(self, place: int) -> frozenset[int]:
        """The diagnoses that occur in a class."""
        return frozenset(self.diagnosis[self.classes == place].tolist())

    @property
    def homogeneous(self) -> int:
        """How many people are in classes with one diagnosis alone."""
        return self.told_without(None)

    def told_without(self, diagnosis: int | None) -> int:
        """How many people have their diagnosis told to whoever knows that they do not have this one."""
        held = [self.held(place) - {diagnosis} for place in range(len(self.shown))]
        alone = {place for place, found in enumerate(held) if len(found) == 1}
        kept = [place in alone and has != diagnosis for place, has in self._rows()]
        return sum(kept)

    def _rows(self) -> list[tuple[int, int]]:
        return list(zip(self.classes.tolist(), self.diagnosis.tolist(), strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Intersection:
    """What two tables say of one person whose age and sex are known: the classes, their diagnoses, the common ones."""

    age: int
    sex: str
    first: str
    second: str
    of_first: tuple[str, ...]
    of_second: tuple[str, ...]
    common: tuple[str, ...]
    people: int
    """How many of the region fit both classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KAnonymity:
    """What was found. Public: an experiment on invented people."""

    people: int
    k: tuple[int, int]
    classes: tuple[int, int]
    homogeneous: int
    """How many of the whole hospital are in a class with one diagnosis, where each region publishes by sex and age."""
    ruled_out: str
    background: tuple[int, int]
    """How many are told to whoever can rule one diagnosis out."""
    alone: int
    """How many are the only ones of their region to fit their two classes."""
    told: int
    """Of how many one diagnosis alone is left when the tables are laid side by side."""
    example: Intersection


def age_bands(age: "Integers", *, k: int) -> tuple["Integers", tuple[str, ...]]:
    """Bands of at least ``k`` people, as narrow as they get from the youngest on; people of one age stay together.

    >>> import numpy as np
    >>> places, shown = age_bands(np.array([20, 31, 22, 20, 40, 35, 36]), k=3)
    >>> places.tolist(), shown
    ([0, 1, 0, 0, 1, 1, 1], ('20–22', '31–40'))
    """
    import numpy as np

    natural(k, "k")
    if len(age) < k:
        raise InvalidInput("a class needs as many people as k says, and there are fewer; no table was made.")
    ages, often = np.unique(age, return_counts=True)
    band, held = np.zeros(len(ages), dtype=np.int64), 0
    for place, number in enumerate(often.tolist()):  # a few dozen different ages
        if held >= k and often[place:].sum() >= k:
            band[place:] += 1
            held = 0
        held += number
    shown = tuple(f"{ages[band == each].min()}–{ages[band == each].max()}" for each in range(int(band[-1]) + 1))
    return band[np.searchsorted(ages, age)], shown


def by_age(people: Register, *, k: int = K) -> AnonymousTable:
    """A table that shows bands of ages and hides sex."""
    classes, shown = age_bands(people.age, k=k)
    return AnonymousTable(classes=classes, shown=shown, diagnosis=people.diagnosis)


def by_sex_and_age(people: Register, *, k: int = K) -> AnonymousTable:
    """A table that shows sex, and bands of ages within each."""
    import numpy as np

    classes = np.zeros(len(people), dtype=np.int64)
    shown: list[str] = []
    for place, sex in enumerate(SEXES):
        some = people.sex == place
        bands, words = age_bands(people.age[some], k=k)
        classes[some] = len(shown) + bands
        shown += [f"{sex} {each}" for each in words]
    return AnonymousTable(classes=classes, shown=tuple(shown), diagnosis=people.diagnosis)


def intersect(people: Register, first: AnonymousTable, second: AnonymousTable, place: int) -> Intersection:
    """What the tables say together of the person at a place, whose age and sex the attacker knows.

    Assumes: the attacker knows that the person is in both tables.
    """
    one, two = int(first.classes[place]), int(second.classes[place])
    held = first.held(one), second.held(two)
    return Intersection(
        age=int(people.age[place]),
        sex=SEXES[int(people.sex[place])],
        first=first.shown[one],
        second=second.shown[two],
        of_first=_named(held[0]),
        of_second=_named(held[1]),
        common=_named(held[0] & held[1]),
        people=int(((first.classes == one) & (second.classes == two)).sum()),
    )


def demonstrate_k_anonymity(hospital: Register, *, k: int = K, region: str = SMALL_REGION) -> KAnonymity:
    """Publish a region twice, each table k-anonymous, and intersect them for everybody."""
    people = hospital.within(region)
    first, second = by_age(people, k=k), by_sex_and_age(people, k=k)
    found = [intersect(people, first, second, place) for place in range(len(people))]
    clear = [each for each in found if each.people == len(each.common) == 1]
    if not clear:
        raise InvalidInput("these two tables single out nobody; nothing is shown. Leave out patients and seed.")
    without = DIAGNOSES.index(RULED_OUT)
    tables = (first, second)
    return KAnonymity(
        people=len(people),
        k=(first.k, second.k),
        classes=(len(first.shown), len(second.shown)),
        homogeneous=sum(by_sex_and_age(hospital.within(name), k=k).homogeneous for name in REGIONS),
        ruled_out=RULED_OUT,
        background=(tables[0].told_without(without), tables[1].told_without(without)),
        alone=sum(each.people == 1 for each in found),
        told=sum(len(each.common) == 1 for each in found),
        example=max(clear, key=lambda each: (len(each.of_first) + len(each.of_second), -each.age)),
    )


def _named(places: frozenset[int]) -> tuple[str, ...]:
    return tuple(DIAGNOSES[place] for place in sorted(places))
