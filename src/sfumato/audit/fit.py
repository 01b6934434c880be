"""From draws to a verdict on their law: tests that hold for every number of draws, at the α that they state.

The stated law is cut into cells beforehand, and two things are looked at. One is a likelihood ratio: that of a mixture
of neighbours (other scales, other places) and of the best law of all in hindsight, each normalised so that its
expectation under the stated law is 1; by Markov's inequality it reaches 1/α with probability α at most. The other is
the largest gap between the two distribution functions (Dvoretzky–Kiefer–Wolfowitz, with Massart's constant).
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato import laws
from sfumato.core.foreign import Array
from sfumato.core.query import Law
from sfumato.errors import InvalidInput
from sfumato.laws.margins import WholeNumberLaw

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["SCALES", "Cells", "Played", "doubt", "finite", "numbers", "tabled"]

SCALES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.05, 1.1, 1.25, 1.5, 2.0)  # of the neighbours of a law of noise
HEATS = (0.0, 0.5, 0.7, 1.4, 2.0, 4.0)  # of the neighbours of a choice: its probabilities to this power
COARSE = 12  # cells of the mixture over all laws: each costs about half the logarithm of the draws
FINE = 16  # cells to a standard deviation, where the numbers are fine enough
REACH = 9  # standard deviations that are cut into cells; what is beyond is one cell on each side


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cells:
    """A stated distribution in cells, with the neighbours it is compared with. Everything here is public.

    ``stated`` are the probabilities of the cells, ``others`` those of the neighbours, and ``place`` says in which cell
    each draw lies.
    """

    stated: Array
    others: tuple[Array, ...]
    place: Callable[[Array], Array]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Played:
    """Draws, and the law that is stated for them: of the mechanism, or of the certificate that came with them."""

    cells: Cells
    draws: Array


def doubt(played: Played) -> float:
    """A p-value of the stated law: at most α with probability at most α, whatever the number of draws.

    >>> import numpy as np
    >>> coin = finite([0.5, 0.5])
    >>> doubt(Played(cells=coin, draws=np.array([0, 1] * 50))), doubt(Played(cells=coin, draws=np.zeros(100))) < 1e-20
    (1.0, True)
    """
    import numpy as np

    cells = played.cells
    placed = np.asarray(cells.place(np.asarray(played.draws)), dtype=np.int64)
    size = len(placed)
    if not size:
        raise InvalidInput("there are no draws to look at; no verdict was given.")
    counts = np.bincount(placed, minlength=len(cells.stated))
    if counts[cells.stated <= 0].any():
        return 0.0
    gap = float(np.abs(np.cumsum(counts) / size - np.cumsum(cells.stated)).max())
    ratio = _log_ratio(counts, cells)
    return min(1.0, 2 * min(math.exp(min(0.0, -ratio)), 2 * math.exp(-2 * size * gap**2)))


def finite(law: "Sequence[float] | Array", others: Sequence[Array] | None = None) -> Cells:
    """A law on 0, 1, 2, …; its neighbours are sharper and flatter choices, if not said."""
    import numpy as np

    stated = _whole(law)
    if others is None:
        heated = (np.where(stated > 0, stated ** np.float64(heat), 0.0) for heat in HEATS)
        others = tuple(one / one.sum() for one in heated)
    return Cells(stated=stated, others=tuple(_whole(one) for one in others), place=lambda draws: draws)


def tabled(outcomes: Sequence[Hashable], law: Sequence[float | Fraction]) -> Cells:
    """A law on a list of outcomes of any kind; one that is not in the list has probability 0."""
    import numpy as np

    places = {outcome: place for place, outcome in enumerate(outcomes)}
    stated = finite([*(float(one) for one in law), 0.0])

    def place(draws: Array) -> Array:
        return np.array([places.get(tuple(one) if isinstance(one, np.ndarray) else one, len(places)) for one in draws])

    return Cells(stated=stated.stated, others=stated.others, place=place)


def numbers(law: Law) -> Cells:
    """A law of noise on whole numbers: discrete Laplace, rounded or discrete Gaussian, or any by its tail.

    Cells are single numbers up to a standard deviation of 16, and a sixteenth of one beyond.
    """
    import numpy as np

    scale, below, deviation = _below(law)
    width = max(1, int(deviation / FINE))
    edges = width * np.arange(-math.ceil(REACH * deviation / width), math.ceil(REACH * deviation / width) + 1)
    moved = max(1, round(deviation / 4))

    def cut(size: float, shift: int = 0) -> Array:
        """P of each cell (−∞, e₀), [e₀, e₁), …, [e_k, ∞); by upper tails above 0, where they keep their digits."""
        under = np.concatenate([[0.0], below(edges - 1 - shift, size), [1.0]])
        over = np.concatenate([[1.0], below(shift - edges, size), [0.0]])
        lower = np.concatenate([[-np.inf], edges])
        return np.maximum(0.0, np.where(lower > 0, over[:-1] - over[1:], under[1:] - under[:-1]))

    return Cells(
        stated=cut(scale),
        others=(*(cut(scale * times) for times in SCALES), cut(scale, moved), cut(scale, -moved)),
        place=lambda draws: np.searchsorted(edges, draws, side="right"),
    )


def _below(law: Law) -> tuple[float, Callable[[Array, float], Array], float]:
    """The scale of a law, P(z ≤ x) for any scale, and the standard deviation."""
    import numpy as np
    from scipy.special import ndtr

    def laplace(at: Array, scale: float) -> Array:
        q, sizes = math.exp(-1 / scale), np.abs(at)
        return np.where(at >= 0, 1 - q ** (sizes + 1.0) / (1 + q), q**sizes / (1 + q))

    def discrete(at: Array, sigma: float) -> Array:
        reach = max(int(14 * 2 * sigma), int(np.abs(at).max())) + 2
        weights = np.exp(-(np.arange(-reach, reach + 1) ** 2.0) / (2 * sigma**2))
        return np.clip(np.cumsum(weights / weights.sum()), 0.0, 1.0)[np.asarray(at) + reach]

    def stretched(at: Array, times: float) -> Array:
        places = np.floor(np.where(at < 0, -at - 1, at) / times).astype(np.int64)  # P(z ≤ −x − 1) = P(z > x)
        sizes, where = np.unique(places, return_inverse=True)
        beyond = np.array([float(law.tail(size).high) / 2 for size in sizes.tolist()])[where]  # type: ignore[attr-defined]  # of laws with a tail alone
        return np.where(at < 0, beyond, 1 - beyond)

    match law:
        case laws.DiscreteLaplace():
            return float(law.scale), laplace, math.sqrt(law.variance)
        case laws.RoundedGaussian():
            return float(law.sigma), lambda at, sigma: ndtr((at + 0.5) / sigma), math.sqrt(law.variance)
        case laws.DiscreteGaussian():
            return math.sqrt(law.sigma_squared), discrete, math.sqrt(law.variance)
        case WholeNumberLaw() if _exact(law):
            return 1.0, stretched, math.sqrt(law.variance)
    raise InvalidInput(f"the draws of {type(law).__name__} are not tested by numbers; no verdict was given.")


def _exact(law: Law) -> bool:
    """Whether the tail of a law is known, and not bounded from above alone."""
    tail = law.tail(0)  # type: ignore[attr-defined]  # asked of laws with a tail alone
    return bool(tail.high - tail.low <= tail.high / 2**20)


def _log_ratio(counts: Array, cells: Cells) -> float:
    """The logarithm of the likelihood ratio whose expectation under the stated law is at most 1."""
    import numpy as np
    from scipy.special import gammaln, logsumexp

    seen = counts > 0
    with np.errstate(divide="ignore"):
        stated = np.log(cells.stated[seen])
        known = [float(counts[seen] @ (np.log(other[seen]) - stated)) for other in cells.others]
    owner = np.minimum((np.cumsum(cells.stated) - cells.stated / 2) * COARSE, COARSE - 1).astype(int)
    owner = np.unique(owner, return_inverse=True)[1]
    merged, coarse = np.bincount(owner, weights=counts), np.bincount(owner, weights=cells.stated)
    many = len(merged)
    any_law = float(
        (gammaln(merged + 0.5) - gammaln(0.5)).sum() + gammaln(many / 2) - gammaln(merged.sum() + many / 2)
    ) - float(merged[merged > 0] @ np.log(coarse[merged > 0]))
    parts = [*(one - math.log(2 * len(known)) for one in known), any_law - math.log(2)]
    return float(logsumexp(parts))


def _whole(law: "ArrayLike") -> Array:
    import numpy as np

    found = np.asarray(law, dtype=np.float64)
    if (found < 0).any() or not math.isclose(float(found.sum()), 1.0, rel_tol=1e-9):
        raise InvalidInput("probabilities are not negative and add up to 1; no verdict was given.")
    return found
