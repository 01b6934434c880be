"""What a run of the matrix mechanism declares, in whole numbers and without NumPy: what verify reads."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING, ClassVar, Literal

from sfumato import laws
from sfumato.core.events import DiscreteGaussian, DiscreteLaplace
from sfumato.core.exact import Exact, natural, non_negative, positive
from sfumato.core.guarantees import ZCDP
from sfumato.core.query import Answer
from sfumato.core.search import least_decimal, over
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput
from sfumato.mechanisms.matrix.rational import least_squares
from sfumato.mechanisms.norms import known

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["FORMS", "Form", "MatrixNoise", "Norm", "noise_event", "rows_of"]

Norm = Literal["l1", "l2"]
Form = Literal["given", "prefix", "all range", "identity", "degrees"]
Row = tuple[int, ...]

FORMS = ("given", "prefix", "all range", "identity", "degrees")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixNoise:
    """Release y = A·x + z in units of 2^−bits; answer the questions of a workload about x by least squares from y.

    ``strategy`` holds the rows of A in those units. ``norm`` says which noise z is: "l2" discrete Gaussian with
    σ² = ``noise``, "l1" discrete Laplace of scale ``noise``, each number independently. ``workload`` names the
    questions, and ``questions`` holds their coefficients where the name is "given".

    Guarantee: x at l1 distance d become whole numbers at distance d·(largest column of A) in the norm; the event states
    that exactly, for the A and the law that run. Assumes: x is a vector of whole numbers. Public: all of this.
    Sensitive: x. Proof: docs/proofs/matrix.md

    >>> two = MatrixNoise(
    ...     strategy=((1, 0), (0, 1), (1, 1)), bits=0, norm="l2", noise=Fraction(4), workload="prefix", questions=()
    ... )
    >>> two.loss(Sensitivity.of(l1=1))
    DiscreteGaussian(l2_squared=Fraction(2, 1), sigma_squared=Fraction(4, 1))
    """

    KIND: ClassVar[str] = "mechanism.matrix"
    VERSION: ClassVar[int] = 1
    strategy: tuple[Row, ...]
    bits: int
    norm: str
    noise: Fraction
    workload: str
    questions: tuple[Row, ...]

    def __post_init__(self) -> None:
        natural(self.bits, "bits", least=0, most=64)
        object.__setattr__(self, "noise", positive(self.noise, "noise"))
        if self.norm not in ("l1", "l2"):
            raise InvalidInput("the norm of a strategy must be 'l1' or 'l2'; nothing was done.")
        if self.workload not in FORMS:
            raise InvalidInput(f"the workload must be one of {', '.join(FORMS)}; nothing was done.")
        width = _width(self.strategy, "strategy")
        if not any(any(row) for row in self.strategy):
            raise InvalidInput("the strategy measures nothing: all of it is 0; nothing was done.")
        if (self.workload == "given") != bool(self.questions):
            raise InvalidInput("questions are written out where the workload is 'given', and only there.")
        if self.questions and _width(self.questions, "workload") != width:
            raise InvalidInput("strategy and workload must be about the same counts; nothing was done.")
        if self.workload == "degrees" and nodes_of(width) is None:
            raise InvalidInput(f"{width} counts are not the pairs of any number of nodes; nothing was done.")

    @classmethod
    def calibrated(
        cls,
        *,
        strategy: tuple[Row, ...],
        bits: int,
        questions: tuple[Row, ...],
        moved: Sensitivity,
        epsilon: Exact,
        delta: Exact = 0,
    ) -> "MatrixNoise":
        """The noise of the lower variance that (ε, δ) allows for a strategy: Laplace, or with a δ perhaps Gaussian.

        >>> MatrixNoise.calibrated(
        ...     strategy=((1, 0), (1, 1)), bits=0, questions=((0, 1),), moved=Sensitivity.of(l1=1), epsilon=1
        ... ).noise
        Fraction(2, 1)
        """
        asked, allowed = positive(epsilon, "epsilon"), non_negative(delta, "delta")
        far = known(moved.l1, "l1").value
        pure = cls(strategy=strategy, bits=bits, norm="l1", noise=Fraction(1), workload="given", questions=questions)
        pure = replace(pure, noise=far * pure.largest / asked)
        if not allowed:
            return pure
        spread = replace(pure, norm="l2")
        size = far**2 * spread.largest

        def excess(noise: Fraction) -> float:
            return over(ZCDP(rho=size / (2 * noise)).delta_at(asked), allowed)

        spread = replace(spread, noise=least_decimal(excess, digits=6, near=size / asked**2))
        return spread if spread.law.variance < pure.law.variance else pure

    @property
    def columns(self) -> int:
        """How many counts x has."""
        return len(self.strategy[0])

    @property
    def largest(self) -> int:
        """The largest column of A in its norm, exactly: Σ|a| for l1, Σa² for l2."""
        columns: Iterator[Row] = zip(*self.strategy, strict=True)
        if self.norm == "l1":
            return max(sum(abs(entry) for entry in column) for column in columns)
        return max(sum(entry * entry for entry in column) for column in columns)

    @property
    def law(self) -> laws.DiscreteLaplace | laws.DiscreteGaussian:
        """The distribution of the error of each number of y, in units of 2^−bits."""
        if self.norm == "l1":
            return laws.DiscreteLaplace(scale=self.noise)
        return laws.DiscreteGaussian(sigma_squared=self.noise)

    def loss(self, moved: Sensitivity) -> DiscreteGaussian | DiscreteLaplace:
        """The event for a unit that moves x, the vector of counts, by at most ``moved``; its l1 bound must be known."""
        far = known(moved.l1, "l1").value
        return noise_event(self.norm, (far if self.norm == "l1" else far**2) * self.largest, self.noise)

    def draw(self, exact: Sequence[int], words: "Words") -> Answer:
        """The answer: :meth:`add_noise`. Sensitive: ``exact``."""
        return self.add_noise(exact, words), ()

    def add_noise(self, exact: Sequence[int], words: "Words") -> tuple[int, ...]:
        """A·x + z for the exact counts x, in units of 2^−bits; beyond 64 bits the largest that fits is given."""
        from sfumato.noise import sample_discrete_gaussian, sample_discrete_laplace, saturating_sum

        if len(exact) != self.columns or any(isinstance(x, bool) or not isinstance(x, int) for x in exact):
            raise InvalidInput(f"this strategy is about {self.columns} whole numbers; nothing was drawn.")
        seen = [sum(a * x for a, x in zip(row, exact, strict=True)) for row in self.strategy]
        draw = sample_discrete_laplace if self.norm == "l1" else sample_discrete_gaussian
        return saturating_sum(seen, draw(self.noise, len(seen), words))

    def asked(self) -> Iterator[Row]:
        """The questions, one by one: the coefficients of each count."""
        return iter(self.questions) if self.workload == "given" else rows_of(self.workload, self.columns)

    def answer_law(self, question: Row) -> laws.Sum:
        """The distribution of the error of one answer, in units of 1: of independent errors, each times its factor.

        >>> total = MatrixNoise(
        ...     strategy=((1, 0), (0, 1), (1, 1)), bits=0, norm="l2", noise=Fraction(4), workload="prefix", questions=()
        ... ).answer_law((1, 1))
        >>> round(float(total.variance), 4), total.margin(0.95)
        (2.6667, Fraction(10, 3))
        """
        factors = least_squares(self.strategy, question)
        return laws.Sum(parts=tuple(laws.SumTerm(coefficient=one, law=self.law) for one in factors if one))


def noise_event(norm: str, size: Fraction, noise: Fraction) -> DiscreteGaussian | DiscreteLaplace:
    """The event of independent noise on whole numbers at a distance: Σ|d| for l1, Σd² for l2.

    >>> noise_event("l1", Fraction(3), Fraction(2))
    DiscreteLaplace(l1=Fraction(3, 1), scale=Fraction(2, 1))
    """
    if norm == "l1":
        return DiscreteLaplace(l1=size, scale=noise)
    return DiscreteGaussian(l2_squared=size, sigma_squared=noise)


def rows_of(form: str, columns: int) -> Iterator[Row]:
    """The questions of a workload that is known by its name, in their order.

    >>> list(rows_of("all range", 2)), list(rows_of("degrees", 3))
    ([(1, 0), (1, 1), (0, 1)], [(1, 1, 0), (1, 0, 1), (0, 1, 1)])
    """
    places = range(columns)
    match form:
        case "identity":
            return (tuple(int(j == i) for j in places) for i in places)
        case "prefix":
            return (tuple(int(j <= i) for j in places) for i in places)
        case "all range":
            return (tuple(int(i <= k <= j) for k in places) for i in places for j in range(i, columns))
    nodes = nodes_of(columns)
    if form != "degrees" or nodes is None:
        raise InvalidInput(f"there is no workload {form!r} of {columns} counts; nothing was done.")
    pairs = [(one, other) for one in range(nodes) for other in range(one + 1, nodes)]
    return (tuple(int(node in pair) for pair in pairs) for node in range(nodes))


def nodes_of(pairs: int) -> int | None:
    """The number of nodes that have this many pairs, if there is one.

    >>> nodes_of(6), nodes_of(5)
    (4, None)
    """
    nodes = (1 + isqrt(1 + 8 * pairs)) // 2
    return nodes if nodes * (nodes - 1) == 2 * pairs else None


def _width(rows: tuple[Row, ...], name: str) -> int:
    widths = {len(row) for row in rows}
    if len(widths) != 1 or not min(widths) or any(type(entry) is not int for row in rows for entry in row):
        raise InvalidInput(f"the {name} must be a non-empty matrix of whole numbers; nothing was done.")
    return widths.pop()
