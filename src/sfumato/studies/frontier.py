"""The best ε where error and privacy both have a price: in closed form, with exponents that are given or fitted.

Loss L(n, ε) = A·n^(−a) + B/(ε^p·n^q) has a part that more data alone make smaller, and a part of the noise. Where one
unit of ε is worth β of loss, F = L + β·ε is least at ε = (pB/(β·n^q))^(1/(p+1)); there F = A·n^(−a) + (1 + 1/p)·β·ε.
Noise in a gradient or a fitted model has about q = 1, that of a mean or a share q = 2. Proof: docs/proofs/design.md
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.description import Word, phrase
from sfumato.core.exact import Exact, natural, non_negative, positive
from sfumato.core.picture import Picture, PictureRow
from sfumato.errors import InvalidInput
from sfumato.studies.design_result import DesignResult, Facts
from sfumato.studies.result import ResultTable
from sfumato.studies.result_table import column_word

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["BestEpsilon", "FittedFrontier", "best_epsilon", "fit_frontier"]

STARTS = (0.5, 1.0, 2.0)
FEWEST = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedFrontier:
    """L(n, ε) = floor·n^(−rate) + noise/(ε^epsilon_power·n^n_power).

    >>> FittedFrontier(floor=0.0, rate=1.0, noise=50.0, n_power=1.0).loss(1000, 1)
    0.05
    """

    floor: float
    rate: float
    noise: float
    n_power: float
    epsilon_power: float = 2.0
    residual: float = 0.0
    """The standard deviation of what the fit leaves, relative to the loss; 0 where nothing was fitted."""

    def loss(self, n: int, epsilon: float) -> float:
        """The loss at this size and ε."""
        return float(self.floor * n**-self.rate + self.noise / (epsilon**self.epsilon_power * n**self.n_power))

    def best(self, n: int, price: float) -> float:
        """The ε where loss and price together are least."""
        p = self.epsilon_power
        return float((p * self.noise / (price * n**self.n_power)) ** (1 / (p + 1)))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BestEpsilon(DesignResult):
    """The ε at which the sum of loss and price is least, and what other ε would cost."""

    frontier: FittedFrontier
    n: int
    price: float
    fitted: bool
    sources: tuple[()] = ()

    @property
    def epsilon(self) -> float:
        """The best ε."""
        return self.frontier.best(self.n, self.price)

    @property
    def loss(self) -> float:
        """The loss at the best ε."""
        return self.frontier.loss(self.n, self.epsilon)

    @property
    def total(self) -> float:
        """Loss and price at the best ε: A·n^(−a) + 1.5·β·ε where the noise falls with ε²."""
        return self.loss + self.price * self.epsilon

    @property
    def title(self) -> Word:
        """What was worked out."""
        return phrase("design.best_epsilon")

    def tables(self, confidence: Exact = Fraction(19, 20)) -> tuple[ResultTable, ...]:
        """The best ε, and a quarter, half, double and four times as much."""
        del confidence
        at = [self.epsilon * factor for factor in (0.25, 0.5, 1.0, 2.0, 4.0)]
        losses = [self.frontier.loss(self.n, each) for each in at]
        columns: dict[str, Sequence[float]] = {
            "epsilon": at,
            "loss": losses,
            "price": [self.price * each for each in at],
            "loss and price": [loss + self.price * each for loss, each in zip(losses, at, strict=True)],
        }
        fit = self.frontier
        names = ("floor", "rate", "noise", "n power", "epsilon power", "relative residual")
        values = (fit.floor, fit.rate, fit.noise, fit.n_power, fit.epsilon_power, fit.residual)
        return (
            ResultTable(name="frontier", columns=columns),
            ResultTable(name="model", columns={"figure": names, "value": values}),
        )

    def findings(self, confidence: Exact = Fraction(19, 20)) -> tuple[Word, ...]:
        """The best ε, and the loss there."""
        del confidence
        return (phrase("design.best_found", epsilon=f"{self.epsilon:.3g}", loss=f"{self.loss:.3g}"),)

    @property
    def facts(self) -> Facts:
        """The best ε and what it was worked out for."""
        return (
            (phrase("design.best"), f"{self.epsilon:.5g}"),
            (phrase("design.rows"), f"{self.n:,}"),
            (phrase("design.price"), f"{self.price:.4g}"),
        )

    @property
    def notes(self) -> tuple[Word, ...]:
        """Where the figures come from, and who sets a price."""
        return (phrase("design.fitted" if self.fitted else "design.given"), phrase("design.price_is_a_choice"))

    @property
    def drawn_names(self) -> Mapping[str, Word]:
        """What the two curves are called."""
        return {name: column_word(name) for name in ("loss", "loss and price")}

    def picture(self, confidence: Exact = Fraction(19, 20)) -> Picture | None:
        """Loss, and loss with price, against ε."""
        del confidence
        at = [self.epsilon * 2 ** (step / 8) for step in range(-16, 17)]
        rows = [PictureRow(at=each, value=self.frontier.loss(self.n, each), group="loss") for each in at]
        rows += [
            PictureRow(at=each, value=self.frontier.loss(self.n, each) + self.price * each, group="loss and price")
            for each in at
        ]
        return Picture(
            kind="lines",
            rows=rows,
            title=phrase("design.best_epsilon"),
            across="ε",
            upward=phrase("design.loss"),
            lines=(phrase("design.best_at", epsilon=f"{self.epsilon:.4g}"),),
            reference=self.total,
        )


def best_epsilon(
    *,
    n: int,
    price: Exact,
    noise: Exact | None = None,
    floor: Exact = 0,
    rate: Exact = 1,
    n_power: Exact = 1,
    epsilon_power: Exact = 2,
    points: Sequence[tuple[float, float, float]] | FittedFrontier | None = None,
) -> BestEpsilon:
    """The ε at which L + price·ε is least, for the loss L = floor·n^(−rate) + noise/(ε^epsilon_power·n^n_power).

    ``price`` is what one unit of ε is worth in units of the loss: a decision of people. Say ``noise`` (and the
    exponents), or give ``points``, pairs of size and ε with the loss that was seen there, and all of it is fitted
    (:func:`fit_frontier`). Noise of a mean has ``n_power=2``.

    Guarantee: nothing is read and nothing is spent. Assumes: points are public, such as previews or simulations.

    >>> round(best_epsilon(noise=50, n=1000, price=0.02).epsilon, 5)
    1.70998
    """
    size, worth = natural(n, "n"), float(positive(price, "price"))
    if (noise is None) == (points is None):
        raise InvalidInput("best_epsilon takes noise=… or points=[(n, ε, loss), …], one of them; nothing was computed.")
    if points is not None:
        frontier = points if isinstance(points, FittedFrontier) else fit_frontier(points)
        return BestEpsilon(frontier=frontier, n=size, price=worth, fitted=True)
    frontier = FittedFrontier(
        floor=float(non_negative(floor, "floor")),
        rate=float(positive(rate, "rate")),
        noise=float(positive(noise, "noise")),  # type: ignore[arg-type]  # not None: seen above
        n_power=float(positive(n_power, "n_power")),
        epsilon_power=float(positive(epsilon_power, "epsilon_power")),
    )
    return BestEpsilon(frontier=frontier, n=size, price=worth, fitted=False)


def fit_frontier(points: Sequence[tuple[float, float, float]], *, epsilon_power: float | None = None) -> FittedFrontier:
    """Fit the exponents and sizes of the loss to points (n, ε, loss), by least squares of its logarithm.

    ``epsilon_power`` fixes how the noise falls with ε; else it is fitted too. Points must have at least three sizes and
    three ε, and six in all: fewer cannot tell the two parts apart.

    >>> true = FittedFrontier(floor=2.0, rate=0.5, noise=30.0, n_power=2.0)
    >>> seen = [(n, e, true.loss(n, e)) for n in (50, 100, 400, 1600) for e in (0.1, 0.3, 1.0, 3.0)]
    >>> fitted = fit_frontier(seen)
    >>> round(fitted.n_power, 3), round(fitted.epsilon_power, 3), round(fitted.rate, 3)
    (2.0, 2.0, 0.5)
    """
    import numpy as np
    from scipy.optimize import least_squares

    table = np.asarray(points, dtype=float)
    if table.ndim != 2 or table.shape[1] != 3 or not np.isfinite(table).all() or (table <= 0).any():
        raise InvalidInput("points are triples (n, ε, loss), all above 0; nothing was fitted.")
    n, epsilon, loss = table.T
    if len(table) < FEWEST or len(np.unique(n)) < 3 or len(np.unique(epsilon)) < 3:
        raise InvalidInput(
            f"{len(table)} points at {len(np.unique(n))} sizes and {len(np.unique(epsilon))} ε cannot tell the noise "
            "from the rest; nothing was fitted. Give at least six, at three sizes and three ε."
        )
    fixed = epsilon_power is not None

    def modelled(given: "NDArray[np.float64]") -> "NDArray[np.float64]":
        floor, rate, noise, size = np.exp(given[:4])
        power = epsilon_power if fixed else np.exp(given[4])
        return np.asarray(floor * n**-rate + noise / (epsilon**power * n**size))

    def left(given: "NDArray[np.float64]") -> "NDArray[np.float64]":
        return np.asarray(np.log(modelled(given)) - np.log(loss))

    low, high = float(loss.min()), float(loss.max())
    tries = []
    for rate in STARTS:
        for size in STARTS:
            sizes = [low * np.median(n) ** rate, rate, high * np.min(epsilon) ** 2 * np.min(n) ** size, size]
            start = np.log([*sizes, *([] if fixed else [2.0])])
            tries.append(least_squares(left, start, max_nfev=2000, bounds=(-60.0, 60.0)))
    found = min(tries, key=lambda tried: tried.cost)
    figures = np.exp(found.x)
    spare = max(1, len(table) - len(found.x))
    return FittedFrontier(
        floor=float(figures[0]),
        rate=float(figures[1]),
        noise=float(figures[2]),
        n_power=float(figures[3]),
        epsilon_power=float(epsilon_power if epsilon_power is not None else figures[4]),
        residual=float(np.sqrt(2 * found.cost / spare)),
    )
