"""The columns of a regression, and the products of them that are added up: bounded variables multiplied exactly.

A number is centred and scaled by its public bounds to [−1, 1]; a factor with two levels is −1 or 1; one with more has
an indicator for each level but the first. Products of such columns repeat each other: a sign times itself is 1, an
indicator times itself is itself, two levels of one factor exclude each other. Each different product is added up once.
Proof: docs/proofs/regression.md
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, product
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "BoundedNumber",
    "CodedFactor",
    "ColumnProduct",
    "Design",
    "ProductTable",
    "check_terms",
    "level_name",
    "product_table",
]

MOST_COLUMNS = 60
MOST_TOGETHER = 3
INTERCEPT = "Intercept"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedNumber:
    """A column of numbers with the public range that its values are held to."""

    name: str
    low: Fraction
    high: Fraction

    @property
    def middle(self) -> Fraction:
        """What becomes 0."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> Fraction:
        """What becomes 1 above the middle."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CodedFactor:
    """A column of groups with the public list of its levels; the first is the reference."""

    name: str
    levels: tuple[str, ...]

    @property
    def signed(self) -> bool:
        """Whether it is coded as −1 and 1: with two levels that is as large as 0 and 1, and says twice as much."""
        return len(self.levels) == 2


@dataclass(frozen=True, slots=True)
class ColumnProduct:
    """A product of coded variables: powers of numbers, signs, and levels that must be met; without any it is 1."""

    powers: tuple[tuple[str, int], ...] = ()
    signs: tuple[str, ...] = ()
    levels: tuple[tuple[str, int], ...] = ()

    def times(self, other: "ColumnProduct") -> "ColumnProduct | None":
        """Both together; None where they are never both different from 0.

        >>> sex = ColumnProduct(signs=("sex",))
        >>> sex.times(sex)
        ColumnProduct(powers=(), signs=(), levels=())
        >>> ColumnProduct(levels=(("ward", 1),)).times(ColumnProduct(levels=(("ward", 2),))) is None
        True
        """
        powers = dict(self.powers)
        for name, power in other.powers:
            powers[name] = powers.get(name, 0) + power
        levels = dict(self.levels)
        for name, level in other.levels:
            if levels.setdefault(name, level) != level:
                return None
        signs = set(self.signs) ^ set(other.signs)
        return ColumnProduct(tuple(sorted(powers.items())), tuple(sorted(signs)), tuple(sorted(levels.items())))

    @property
    def never_negative(self) -> bool:
        """Whether it is a product of squares and indicators."""
        return not self.signs and all(power % 2 == 0 for _, power in self.powers)

    @property
    def constant(self) -> bool:
        """Whether it is 1 wherever its levels are met."""
        return not self.signs and not self.powers

    @property
    def written(self) -> str:
        """It in a few letters, such as ``age²·sex``."""
        marks = {1: "", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶"}
        parts = [f"{name}{marks.get(power, f'^{power}')}" for name, power in self.powers]
        return "·".join([*parts, *self.signs, *(f"{name}[{level}]" for name, level in self.levels)]) or "1"


ONE = ColumnProduct()


def level_name(factor: str, level: str) -> str:
    """What the coefficient of a level is called; a level that is a bin has its brackets already.

    >>> level_name("sex", "M"), level_name("age", "[40, 65)")
    ('sex[M]', 'age[40, 65)')
    """
    return f"{factor}{level}" if level.startswith("[") else f"{factor}[{level}]"


def check_terms(terms: Sequence[tuple[str, ...]]) -> None:
    """Refuse terms that stand twice, are of too many covariates, or are products without their parts.

    >>> check_terms([(), ("age",), ("sex",), ("age", "sex")])
    """
    for term in terms:
        if tuple(sorted(set(term))) != term or list(terms).count(term) > 1 or len(term) > MOST_TOGETHER:
            raise InvalidInput(
                f"a term is of at most {MOST_TOGETHER} different covariates and stands once, and one is "
                f"{':'.join(term)}; nothing was done."
            )
        for size in range(1, len(term)):
            for part in combinations(term, size):
                if part not in terms:
                    raise InvalidInput(
                        f"{':'.join(term)} is asked without {':'.join(part)}, and then its coefficient would depend on "
                        f"where a column has its 0 or which level is the reference; nothing was done. Say "
                        f"{'*'.join(term)}."
                    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """An outcome, covariates, and the terms of a regression: each a list of covariates that are multiplied.

    The first term is (), the intercept. Assumes: with a product all its parts are terms, so that shifting a column
    changes nothing but the coefficients.

    >>> age = BoundedNumber(name="age", low=Fraction(0), high=Fraction(100))
    >>> sex = CodedFactor(name="sex", levels=("F", "M"))
    >>> sbp = BoundedNumber(name="sbp", low=Fraction(80), high=Fraction(200))
    >>> Design(outcome=sbp, numbers=(age,), factors=(sex,), terms=((), ("age",), ("sex",))).names
    ('Intercept', 'age', 'sex[M]')
    """

    outcome: BoundedNumber
    numbers: tuple[BoundedNumber, ...]
    factors: tuple[CodedFactor, ...]
    terms: tuple[tuple[str, ...], ...]

    def __post_init__(self) -> None:
        names = [self.outcome.name, *(each.name for each in self.numbers), *(each.name for each in self.factors)]
        if len(set(names)) != len(names):
            raise InvalidInput(
                f"the outcome and the covariates must be different columns, and were {', '.join(names)}; nothing was "
                "done."
            )
        if not self.terms or self.terms[0] != ():
            raise InvalidInput("the first term is the intercept; nothing was done. Leave 0 and -1 out of the formula.")
        if set(names[1:]) != {name for term in self.terms for name in term}:
            raise InvalidInput("every covariate stands in a term, and every term is of covariates; nothing was done.")
        check_terms(self.terms)
        if any(len(each.levels) < 2 for each in self.factors):
            raise InvalidInput("a factor needs two levels or more; nothing was done. Declare its keys.")
        if len(self.names) > MOST_COLUMNS:
            raise InvalidInput(
                f"these terms make {len(self.names)} coefficients, and noise would leave nothing of more than "
                f"{MOST_COLUMNS}; nothing was done. Use fewer terms, or factors with fewer levels."
            )

    @property
    def columns(self) -> tuple[ColumnProduct, ...]:
        """The coded columns, the intercept first."""
        return tuple(column for term in self.terms for _, column in self._of_term(term))

    @property
    def names(self) -> tuple[str, ...]:
        """What the coefficients are called, the intercept first."""
        return tuple(name for term in self.terms for name, _ in self._of_term(term))

    def _of_term(self, term: tuple[str, ...]) -> Iterator[tuple[str, ColumnProduct]]:
        if not term:
            yield INTERCEPT, ONE
            return
        for parts in product(*(self._of_covariate(name) for name in term)):
            column: ColumnProduct | None = ONE
            for _, part in parts:
                column = None if column is None else column.times(part)
            if column is not None:
                yield ":".join(name for name, _ in parts), column

    def _of_covariate(self, name: str) -> list[tuple[str, ColumnProduct]]:
        factor = next((each for each in self.factors if each.name == name), None)
        if factor is None:
            return [(name, ColumnProduct(powers=((name, 1),)))]
        if factor.signed:
            return [(level_name(name, factor.levels[1]), ColumnProduct(signs=(name,)))]
        return [
            (level_name(name, label), ColumnProduct(levels=((name, place),)))
            for place, label in enumerate(factor.levels)
            if place
        ]

    @property
    def to_natural(self) -> "NDArray[np.float64]":
        """What turns coefficients of coded columns into those of the columns as they were declared.

        The outcome is still coded: its half range scales all of them, its middle is added to the intercept.
        """
        import numpy as np

        at = {column: place for place, column in enumerate(self.columns)}
        coded = np.zeros((len(at), len(at)))
        for row, column in enumerate(self.columns):
            for made, weight in self._decoded(column).items():
                coded[row, at[made]] += float(weight)
        return np.asarray(np.linalg.inv(coded.T))

    def _decoded(self, column: ColumnProduct) -> Mapping[ColumnProduct, Fraction]:
        """A column as it was declared, in terms of coded ones."""
        ranges = {each.name: each for each in self.numbers}
        sums = [
            {ONE: ranges[name].middle, ColumnProduct(powers=((name, 1),)): ranges[name].half}
            for name, _ in column.powers
        ]
        sums += [{ONE: Fraction(1, 2), ColumnProduct(signs=(name,)): Fraction(1, 2)} for name in column.signs]
        found = {ColumnProduct(levels=column.levels): Fraction(1)}
        for each in sums:
            both: dict[ColumnProduct, Fraction] = {}
            for (one, a), (two, b) in product(found.items(), each.items()):
                together = one.times(two)
                if together is not None:
                    both[together] = both.get(together, Fraction(0)) + a * b
            found = both
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProductTable:
    """Which product each entry of the matrix of products is: of all columns, and the outcome last.

    ``places`` has −1 where an entry is 0 whatever the data.
    """

    products: tuple[ColumnProduct, ...]
    places: tuple[tuple[int, ...], ...]

    def matrix(self, values: "NDArray[np.float64]") -> "NDArray[np.float64]":
        """The matrix of products from the sum of each; any number of answers at once."""
        import numpy as np

        places = np.array(self.places)
        return np.asarray(np.where(places < 0, 0.0, values[..., np.maximum(places, 0)]))

    def weights(self, vector: "NDArray[np.float64]") -> "NDArray[np.float64]":
        """How the matrix times a vector depends on each sum: a row for each entry, a column for each sum."""
        import numpy as np

        found = np.zeros((*vector.shape[:-1], len(self.places), len(self.products)))
        for row, places in enumerate(self.places):
            for column, place in enumerate(places):
                if place >= 0:
                    found[..., row, place] += vector[..., column]
        return found


@lru_cache(maxsize=64)
def product_table(design: Design) -> ProductTable:
    """The different products of a design; the first is the number of rows."""
    columns = [*design.columns, ColumnProduct(powers=((design.outcome.name, 1),))]
    known: dict[ColumnProduct, int] = {}
    places = []
    for one in columns:
        row = [one.times(two) for two in columns]
        places.append(tuple(-1 if each is None else known.setdefault(each, len(known)) for each in row))
    return ProductTable(products=tuple(known), places=tuple(places))
