"""Noise whose scale follows a noisy local sensitivity: the scale is released, so the error distribution is known."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, isqrt
from typing import TYPE_CHECKING, Any, ClassVar  # a count, its guide, and what other noise needs

from sfumato.core import enclosures, events
from sfumato.core.exact import Exact, natural, positive, probability
from sfumato.core.guarantees import Approximate
from sfumato.core.query import Answer
from sfumato.core.search import least_whole, over
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused
from sfumato.laws.discrete_laplace import DiscreteLaplace
from sfumato.mechanisms.norms import known

if TYPE_CHECKING:
    from sfumato.noise import Words

__all__ = ["NoisyLocalSensitivity", "usual_share"]

LEAST_DELTA = Fraction(1, 2**1000)
FINEST = 100  # shares of ε are whole hundredths


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyLocalSensitivity:
    """Add Laplace noise to an exact count, of a scale that follows a noisy bound of its local sensitivity.

    The count is of triangles, or of stars with ``leaves`` edges, in a graph of ``nodes`` public nodes. First a guide
    is drawn: the largest number of common neighbours for triangles, the largest sum of two degrees for wedges, the
    largest degree for other stars, with Laplace noise of ε = ``guide``, and raised by :attr:`shift`, so that it lies
    below the true one with probability ``delta`` at most. Then the count is drawn with noise of scale b/``epsilon``,
    where b is how far one edge can move it in a graph of that guide. Both numbers are released.

    Guarantee: (epsilon + guide, delta)-DP for one edge or weight, whether it comes, goes or is replaced. Given the
    guide that came out, the error of the count is discrete Laplace of a scale that everyone knows. Assumes: the exact
    guide is that of :mod:`sfumato.graphs.local_sensitivity`. Public: all fields, and the guide that came out.
    Sensitive: the count and its guide. Proof: docs/proofs/noisy-local-sensitivity.md

    >>> noise = NoisyLocalSensitivity.calibrated(nodes=4039, epsilon=1, delta=1e-6)
    >>> noise.shift, noise.scale(293 + noise.shift), noise.law_at(293 + noise.shift).margin(0.95)
    (73, Fraction(18300, 41), 1337)
    """

    KIND: ClassVar[str] = "mechanism.noisy_scale"
    VERSION: ClassVar[int] = 1
    nodes: int
    leaves: int | None
    epsilon: Fraction
    guide: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        natural(self.nodes, "nodes", least=3)
        if self.leaves is not None:
            natural(self.leaves, "leaves", least=2, most=self.nodes - 1)
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "guide", positive(self.guide, "guide"))
        object.__setattr__(self, "delta", probability(self.delta, "delta"))
        if self.delta < LEAST_DELTA:
            raise InvalidInput(
                "a scale that follows a noisy guide needs a δ above 0, and one below 2^−1000 is not supported; "
                "nothing was done. Give a δ such as 1e-6, or ask for a ladder, which needs none."
            )

    @classmethod
    def calibrated(
        cls, *, nodes: int, epsilon: Exact, delta: Exact, leaves: int | None = None, share: Exact | None = None
    ) -> "NoisyLocalSensitivity":
        """From the whole ε and δ; ``share`` is the part of ε that the guide gets, or that of :func:`usual_share`."""
        whole = positive(epsilon, "epsilon")
        if share is None:
            part = usual_share(nodes=nodes, leaves=leaves, epsilon=whole, delta=delta)
        else:
            part = positive(share, "share")
        if part >= 1:
            raise InvalidInput("the guide cannot have all of ε; nothing was done. Give a share below 1.")
        given = probability(delta, "delta")
        return cls(nodes=nodes, leaves=leaves, epsilon=whole * (1 - part), guide=whole * part, delta=given)

    @property
    def shift(self) -> int:
        """What the noisy guide is raised by: the least s with P(noise < −s) ≤ δ."""
        return _shift(self.guide, self.delta)

    @property
    def guides(self) -> tuple[int, int]:
        """The range that the noisy guide is held to: at its lower end the noise is that of one triangle or star."""
        match self.leaves:
            case None:
                return 1, self.nodes - 2
            case 2:
                return 1, 2 * (self.nodes - 2)
        return self.leaves - 1, self.nodes - 2

    def bound(self, guide: int) -> int:
        """How far one edge can move the count in a graph whose guide is at most this; it never falls as that grows.

        >>> [NoisyLocalSensitivity.calibrated(nodes=9, leaves=k, epsilon=1, delta=0.01).bound(5) for k in (None, 2, 3)]
        [5, 5, 20]
        """
        least, most = self.guides
        held = min(max(guide, least), most)
        return held if self.leaves in (None, 2) else 2 * comb(held, self.leaves - 1)

    @property
    def widest(self) -> int:
        """How far one edge can move the count in any graph; a public fact."""
        return self.bound(self.guides[1])

    def scale(self, guide: int) -> Fraction:
        """The scale of the noise of the count, once this guide came out."""
        return self.bound(guide) / self.epsilon

    def law_at(self, guide: int) -> DiscreteLaplace:
        """The error distribution of the count, once this guide came out."""
        return DiscreteLaplace(scale=self.scale(guide))

    @property
    def law(self) -> DiscreteLaplace:
        """The error of the count at the largest guide, which bounds that at every other; known before the release."""
        return self.law_at(self.guides[1])

    @property
    def numbers(self) -> int:
        """The count and its guide."""
        return 2

    def loss(self, moved: Sensitivity) -> events.Stated:
        """The event of one unit; ``moved`` must be what one unit can do to this very count in any graph."""
        if known(moved.l1, "l1").value != self.widest:
            raise Refused(
                f"this noise is for a count that an edge moves by up to {self.widest}; nothing was done. "
                "Make it for the nodes of this graph."
            )
        return events.Stated(guarantee=Approximate(epsilon=self.epsilon + self.guide, delta=self.delta))

    def draw(self, exact: Sequence[Any], words: "Words") -> Answer:
        """The answer: :meth:`add_noise`. Sensitive: ``exact``."""
        return self.add_noise(exact, words), ()

    def add_noise(self, exact: Sequence[Any], words: "Words") -> tuple[int, int]:
        """Draw the guide, then the count with noise of its scale; ``exact`` begins with the exact count and guide."""
        from sfumato.noise import sample_discrete_laplace, saturating_sum

        count, guide = exact[:2]
        least, most = self.guides
        (drawn,) = saturating_sum([guide + self.shift], sample_discrete_laplace(1 / self.guide, 1, words))
        held = min(max(drawn, least), most)
        (noisy,) = saturating_sum([count], sample_discrete_laplace(self.scale(held), 1, words))
        return noisy, held


@lru_cache(maxsize=64)
def _shift(guide: Fraction, delta: Fraction) -> int:
    """Half of the mass beyond ±s lies below −s."""
    law = DiscreteLaplace(scale=1 / guide)
    return least_whole(lambda s: over(law.tail(s).high / 2, delta))


def usual_share(*, nodes: int, leaves: int | None, epsilon: Exact, delta: Exact) -> Fraction:
    """The part of ε that the guide gets unless another is asked for: a function of public facts alone.

    With a guide g and L = ln(1/(2δ)), the mean error is about (g + L/(f·ε))/((1 − f)·ε) at the share f. It is least at
    f = √(q² + q) − q, q = L/(ε·g). As g is private, 4, 16 or 8 times √n stand for it (triangles, wedges, other stars):
    networks have about that, and the error hardly depends on it.

    >>> [str(usual_share(nodes=4039, leaves=None, epsilon=e, delta=1e-6)) for e in ("1/10", 1, 10)]
    ['37/100', '9/50', '7/100']
    """
    times = {None: 4, 2: 16}.get(leaves, 8)
    usual = max(1, times * isqrt(natural(nodes, "nodes", least=3)))
    allowed = min(max(probability(delta, "delta"), LEAST_DELTA), Fraction(1, 4))
    q = enclosures.log(1 / (2 * allowed)).high / (positive(epsilon, "epsilon") * usual)
    best = enclosures.sqrt(q * q + q).high - q
    return Fraction(min(max(round(FINEST * best), 1), FINEST // 2), FINEST)
