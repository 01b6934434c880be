"""Parameters of an exponential random graph from noisy statistics: Bayesian inference that knows of the noise.

The model: P(graph) ∝ exp(θ₁·edges + θ₂·2-stars + θ₃·triangles) over all graphs on the public nodes. The released
numbers are these statistics with noise of a known law. The posterior is of the parameters and the unseen graph; the
graph is integrated out by sampling. All of it is post-processing of a release: it reads no data and costs nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.exact import Exact, natural, probability
from sfumato.core.query import Mechanism
from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput
from sfumato.graphs.ergm.statistics import STATISTICS, NetworkStatistics
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.graphs.ergm.chains import ChainNoise

__all__ = ["Fit", "Prior", "fit", "fit_numbers"]

MOST_NODES = 1000  # the walk keeps a place for each pair
PILOT, ROUNDS = 60, 8  # draws that the first proposal is learned from; how often it is learned anew while warming up
AIM = 0.2  # the share of moves that should be accepted
OPTIMAL = 2.38**2 / 3  # the factor on the covariance of a target in three dimensions that moves fastest


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """Independent normal beliefs about the three parameters before the numbers are seen; choose them by public facts.

    The usual ones allow any density; within two deviations, each link that an end already has makes a further one up
    to e^0.4 times likelier or less likely, and each triangle that it closes up to e. Where the noise is large, it is
    the prior that decides.
    """

    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    deviation: tuple[float, float, float] = (5.0, 0.2, 0.5)

    def __post_init__(self) -> None:
        if len(self.mean) != 3 or len(self.deviation) != 3 or min(self.deviation) <= 0:
            raise InvalidInput("a prior has three means and three deviations above 0; nothing was computed.")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fit:
    """Draws from the posterior: of the parameters, and of the exact statistics that nobody saw.

    ``taken`` tells how often a move was accepted: (exchange, joint). ``latent`` is False where the noise was ignored.
    """

    parameters: "NDArray[np.float64]"
    statistics: "NDArray[np.float64]"
    taken: tuple[float, float]
    latent: bool

    def means(self) -> dict[str, float]:
        """The posterior mean of each parameter."""
        return {name: float(self.parameters[:, k].mean()) for k, name in enumerate(STATISTICS)}

    def intervals(self, confidence: Exact = Fraction(19, 20)) -> dict[str, tuple[float, float]]:
        """The central credible interval of each parameter."""
        return self._between(self.parameters, confidence)

    def latent_statistics(self, confidence: Exact = Fraction(19, 20)) -> dict[str, tuple[float, float]]:
        """The central credible interval of each exact statistic, by what the model and the noise say of it together."""
        return self._between(self.statistics, confidence)

    def effective(self) -> float:
        """How many independent draws the parameters are worth, by batches; of the worst parameter."""
        import numpy as np

        draws = len(self.parameters)
        width = max(1, int(draws**0.5))
        batches = self.parameters[: draws // width * width].reshape(-1, width, 3).mean(axis=1)
        spread = self.parameters.var(axis=0, ddof=1)
        return float(np.min(draws * spread / np.maximum(width * batches.var(axis=0, ddof=1), 1e-300)))

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name} {self.means()[name]:.3g} ({low:.3g} to {high:.3g})"
            for name, (low, high) in self.intervals().items()
        )
        return f"Fit({shown})"

    def _between(self, draws: "NDArray[np.float64]", confidence: Exact) -> dict[str, tuple[float, float]]:
        import numpy as np

        outside = float(1 - probability(confidence, "confidence")) / 2
        ends = np.quantile(draws, [outside, 1 - outside], axis=0)
        return {name: (float(ends[0, k]), float(ends[1, k])) for k, name in enumerate(STATISTICS)}


def fit(
    release: Release,
    *,
    prior: Prior | None = None,
    draws: int = 4000,
    steps: int | None = None,
    seed: int = 1,
    naive: bool = False,
) -> Fit:
    """Infer the parameters from a release of :meth:`sfumato.graphs.graph.Graph.ergm_statistics`.

    ``naive`` takes the noisy numbers for exact ones: for comparison only, since its intervals are wrong. ``steps`` is
    the length of each walk. Guarantee: none of its own; post-processing of the release. The draws are those of a Markov
    chain, right in the limit of long walks: look at :meth:`Fit.effective`, and repeat with more draws and another seed.
    ``seed`` is public and decides the draws; no noise comes from it.
    """
    said = only_release(release).statement
    query = said.query
    if not isinstance(query, NetworkStatistics):
        raise InvalidInput("parameters are inferred from edges, 2-stars and triangles alone; nothing was computed.")
    linear, quadratic = _rates(said.mechanism)
    return fit_numbers(
        nodes=query.shape.nodes or 0,
        released=[Fraction(value, weight) for value, weight in zip(said.values, query.weights, strict=True)],
        linear=[linear * weight for weight in query.weights],
        quadratic=[quadratic * weight**2 for weight in query.weights],
        prior=prior,
        draws=draws,
        steps=steps,
        seed=seed,
        naive=naive,
    )


def fit_numbers(
    *,
    nodes: int,
    released: Sequence[Exact],
    linear: Sequence[Exact],
    quadratic: Sequence[Exact] = (0, 0, 0),
    prior: Prior | None = None,
    draws: int = 4000,
    steps: int | None = None,
    seed: int = 1,
    naive: bool = False,
) -> Fit:
    """Infer from numbers and their error distributions: log P(error) = −linear·|error| − quadratic·error² + c."""
    import numpy as np

    from sfumato.graphs.ergm.chains import ChainNoise, empty_chain

    natural(nodes, "nodes", least=3, most=MOST_NODES)
    natural(draws, "draws", least=100)
    seed = natural(seed, "seed", least=0, most=2**63)
    known = Prior() if prior is None else prior
    pairs = nodes * (nodes - 1) // 2
    noise = ChainNoise(*(np.array([float(Fraction(x)) for x in row]) for row in (released, linear, quadratic)))
    if not naive and not (noise.linear + noise.quadratic > 0).all():
        raise InvalidInput("every statistic needs a noise distribution; nothing was computed.")
    edges = int(min(max(noise.released[0], 1), pairs - 1))
    long = natural(max(1000, 2 * pairs, 10 * edges) if steps is None else steps, "steps")
    chain = empty_chain(nodes, seed)
    chain.fill(edges)
    theta = np.array([np.log(edges / (pairs - edges)), 0.0, 0.0])
    prior_of = (np.array(known.mean), 1 / np.array(known.deviation) ** 2)
    root = _first_proposal(chain.trace(theta, PILOT, long), noise, prior_of[1], naive=naive)
    if not naive:
        chain.walk(theta, 5 * long, noise)
    warm = max(draws // 2, 50 * ROUNDS)
    seen: list[NDArray[np.float64]] = []
    for _ in range(ROUNDS):
        part, _, taken = chain.sample(theta, noise, prior_of, root, draws=warm // ROUNDS, steps=long, latent=not naive)
        seen.append(part)
        root = _next_proposal(np.concatenate(seen[len(seen) // 2 :]), root, taken)
    parameters, statistics, taken = chain.sample(
        theta, noise, prior_of, root, draws=draws, steps=long, latent=not naive
    )
    rates = float(taken[1] / max(taken[0], 1)), float(taken[3] / max(taken[2], 1))
    return Fit(parameters, statistics, rates, not naive)


def _rates(mechanism: Mechanism) -> tuple[Fraction, Fraction]:
    """The linear and the quadratic rate of the noise on a released number; rounded normal noise has the normal's own.

    >>> _rates(Laplace(l1=Fraction(2), scale=Fraction(4))), _rates(Gaussian(l2_squared=Fraction(2), sigma=Fraction(5)))
    ((Fraction(1, 4), Fraction(0, 1)), (Fraction(0, 1), Fraction(1, 50)))
    """
    match mechanism:
        case Laplace(scale=scale):
            return 1 / scale, Fraction(0)
        case Gaussian(sigma=sigma):
            return Fraction(0), 1 / (2 * sigma**2)
    raise InvalidInput("the noise of this release has no distribution that can be modelled here; nothing was computed.")


def _first_proposal(
    traced: "NDArray[np.float64]", noise: "ChainNoise", precision: "NDArray[np.float64]", *, naive: bool
) -> "NDArray[np.float64]":
    """The root of a covariance of steps, from the normal approximation.

    With C the covariance of the statistics and V that of the noise, the released numbers have mean μ(θ) with dμ/dθ = C
    and covariance C + V: their information is C(C + V)⁻¹C, to which the prior adds its own.
    """
    import numpy as np

    spread = np.cov(traced.T) + 1e-3 * np.eye(3)
    errors = np.zeros(3)
    if not naive:
        smooth = noise.linear > 0
        errors[smooth] = 2 / noise.linear[smooth] ** 2
        errors[~smooth] = 1 / (2 * noise.quadratic[~smooth])
    information = spread @ np.linalg.solve(spread + np.diag(errors), spread) + np.diag(precision)
    return np.asarray(np.linalg.cholesky(OPTIMAL * np.linalg.inv((information + information.T) / 2)))


def _next_proposal(
    seen: "NDArray[np.float64]", root: "NDArray[np.float64]", taken: "NDArray[np.int64]"
) -> "NDArray[np.float64]":
    """Half of what was, half the shape of what was seen; shorter steps where few were taken, longer where many were."""
    import numpy as np

    rate = float((taken[1] + taken[3]) / max(taken[0] + taken[2], 1))
    factor = min(max(rate / AIM, 0.5), 1.5)
    if rate < AIM / 4:
        return root * factor
    was, shape = root @ root.T, np.cov(seen.T) + 1e-12 * np.eye(3)
    size = (np.linalg.det(was) / np.linalg.det(shape)) ** (1 / 3)
    return np.asarray(np.linalg.cholesky(factor * (was + size * shape) / 2))
