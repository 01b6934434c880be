"""Privacy events: what happened to the data, in a closed and versioned vocabulary.

Accountants read events and nothing else. The meaning of an event never changes: a new meaning is a new event, or a
new version of its kind. Each docstring carries the exact mathematics.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.core.exact import natural, non_negative, positive, probability
from sfumato.core.guarantees import GDP, RDP, ZCDP, Approximate, Pure
from sfumato.core.hidden_runs import MOST_RUNS
from sfumato.errors import InvalidInput, Unsupported

__all__ = [
    "EVENTS",
    "MOST_OCCURRENCES",
    "BoundedRange",
    "Composed",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "FixedSizeSampled",
    "Gaussian",
    "PoissonSampled",
    "PrivacyEvent",
    "RandomizedResponse",
    "Repeated",
    "SampledOccurrences",
    "Skellam",
    "Stated",
    "Tuned",
    "from_json",
]

MOST_OCCURRENCES = 2**12  # each number of vectors that can be kept has a Gaussian law of its own


class _Written:
    """What all events share: their canonical JSON."""

    __slots__ = ()

    def to_json(self) -> str:
        """Write the event as canonical JSON.

        >>> DiscreteLaplace(l1=Fraction(1), scale=Fraction(2)).to_json()
        '{"kind":"event.discrete_laplace","l1":"1/1","scale":"2/1","version":1}'
        """
        return canonical(encode(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteLaplace(_Written):
    """An integer vector x is released as x + z, the z_i independent with P(z_i = k) ∝ exp(−|k|/scale).

    Neighbouring inputs differ by integers whose absolute values add up to at most ``l1``; so no output becomes more
    than e^(l1/scale) times likelier or less likely, and some output reaches that factor when l1 is attained.
    """

    KIND: ClassVar[str] = "event.discrete_laplace"
    VERSION: ClassVar[int] = 1
    l1: Fraction
    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "l1", non_negative(self.l1, "l1"))
        object.__setattr__(self, "scale", positive(self.scale, "scale"))


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussian(_Written):
    """An integer vector x is released as x + z, the z_i independent with P(z_i = k) ∝ exp(−k²/(2·sigma_squared)).

    Neighbouring inputs differ by integers whose squares add up to at most ``l2_squared``. Its Rényi divergence of order
    α is at most α·l2_squared/(2·sigma_squared), so ρ = l2_squared/(2·sigma_squared); its δ(ε) is *not* that of the
    continuous Gaussian and comes from the discrete loss.
    """

    KIND: ClassVar[str] = "event.discrete_gaussian"
    VERSION: ClassVar[int] = 1
    l2_squared: Fraction
    sigma_squared: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "l2_squared", non_negative(self.l2_squared, "l2 squared"))
        object.__setattr__(self, "sigma_squared", positive(self.sigma_squared, "sigma squared"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(_Written):
    """A real vector x is released as x + N(0, sigma_squared·I), or as any function of that.

    Neighbouring inputs differ by at most √l2_squared in Euclidean norm: μ-GDP with μ² = l2_squared/sigma_squared.
    """

    KIND: ClassVar[str] = "event.gaussian"
    VERSION: ClassVar[int] = 1
    l2_squared: Fraction
    sigma_squared: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "l2_squared", non_negative(self.l2_squared, "l2 squared"))
        object.__setattr__(self, "sigma_squared", positive(self.sigma_squared, "sigma squared"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Skellam(_Written):
    """An integer vector x is released as x + z, the z_i independent differences of two Poisson numbers of equal mean.

    Each z_i has variance ``variance``. Neighbouring inputs differ by integers whose absolute values add up to at most
    ``l1`` and whose squares add up to at most ``l2_squared``; for integers the first is at most the second.
    """

    KIND: ClassVar[str] = "event.skellam"
    VERSION: ClassVar[int] = 1
    l1: Fraction
    l2_squared: Fraction
    variance: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "l1", non_negative(self.l1, "l1"))
        object.__setattr__(self, "l2_squared", non_negative(self.l2_squared, "l2 squared"))
        object.__setattr__(self, "variance", positive(self.variance, "variance"))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedRange(_Written):
    """One candidate is chosen with probability ∝ exp(score), and between neighbours all scores move alike up to ε.

    That is: max over candidates of the move of the score, minus the min, is at most ``epsilon``. It is ε-DP and
    ε²/8-zCDP; softmax sampling (Gumbel noise) alone has it, permute-and-flip and Laplace noisy max have not.
    """

    KIND: ClassVar[str] = "event.bounded_range"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", non_negative(self.epsilon, "epsilon"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse(_Written):
    """One of ``categories`` values is reported: the true one with probability e^ε/(e^ε + categories − 1).

    All other values are equally likely. Neighbouring inputs are any two values.
    """

    KIND: ClassVar[str] = "event.randomized_response"
    VERSION: ClassVar[int] = 1
    epsilon: Fraction
    categories: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", non_negative(self.epsilon, "epsilon"))
        natural(self.categories, "categories", least=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonSampled(_Written):
    """Each unit is kept with probability ``rate``, independently and in secret; then ``event`` happens to those kept.

    Add/remove only: the inner event is stated for adding or removing one unit.
    """

    KIND: ClassVar[str] = "event.poisson_sampled"
    VERSION: ClassVar[int] = 1
    rate: Fraction
    event: "PrivacyEvent"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive(probability(self.rate, "rate"), "rate"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedSizeSampled(_Written):
    """A uniformly random set of ``size`` out of ``population`` units is kept, in secret; ``event`` happens to it.

    Replace only: the population is public and the inner event is stated for replacing one unit.
    """

    KIND: ClassVar[str] = "event.fixed_size_sampled"
    VERSION: ClassVar[int] = 1
    size: int
    population: int
    event: "PrivacyEvent"

    def __post_init__(self) -> None:
        natural(self.size, "size")
        natural(self.population, "population", least=self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledOccurrences(_Written):
    """Vectors of norm at most √l2_squared are kept with probability ``rate`` each and added up, with Gaussian noise.

    Each is kept independently and in secret; N(0, sigma_squared·I) goes onto the sum of those kept. Neighbouring inputs
    differ by one unit that comes or goes: ``gone`` of the vectors come or go with it, and ``changed`` others are there
    with it and without it, but as other vectors. Add/remove only.
    """

    KIND: ClassVar[str] = "event.sampled_occurrences"
    VERSION: ClassVar[int] = 1
    rate: Fraction
    gone: int
    changed: int
    l2_squared: Fraction
    sigma_squared: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive(probability(self.rate, "rate"), "rate"))
        natural(self.gone, "gone", least=0, most=MOST_OCCURRENCES)
        natural(self.changed, "changed", least=0, most=MOST_OCCURRENCES)
        object.__setattr__(self, "l2_squared", non_negative(self.l2_squared, "l2 squared"))
        object.__setattr__(self, "sigma_squared", positive(self.sigma_squared, "sigma squared"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated(_Written):
    """Something of which no more is known than the guarantee it has."""

    KIND: ClassVar[str] = "event.stated"
    VERSION: ClassVar[int] = 1
    guarantee: Pure | Approximate | ZCDP | RDP | GDP


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated(_Written):
    """The same event ``times`` times on the same units, the number fixed beforehand."""

    KIND: ClassVar[str] = "event.repeated"
    VERSION: ClassVar[int] = 1
    event: "PrivacyEvent"
    times: int

    def __post_init__(self) -> None:
        natural(self.times, "times", least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed(_Written):
    """Several events on the same units, in this order, each possibly chosen after seeing the outputs before it."""

    KIND: ClassVar[str] = "event.composed"
    VERSION: ClassVar[int] = 1
    events: tuple["PrivacyEvent", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned(_Written):
    """Of K independent runs the best output is released, by a public order of outputs, and nothing else; K is secret.

    P(K = k) ∝ (1 − gamma)^k·Π_(l=1)^(k−1) (l + eta)/(l + 1) for k = 1 … most: the truncated negative binomial law of
    Papernot and Steinke, given K ≤ most. All runs have one law. Between neighbours one run loses at each Rényi order no
    more than that of ``events`` which loses most there.
    """

    KIND: ClassVar[str] = "event.tuned"
    VERSION: ClassVar[int] = 1
    events: tuple["PrivacyEvent", ...]
    eta: Fraction
    gamma: Fraction
    most: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", non_negative(self.eta, "eta"))
        object.__setattr__(self, "gamma", positive(probability(self.gamma, "gamma"), "gamma"))
        natural(self.most, "most", most=MOST_RUNS)
        if not self.events:
            raise InvalidInput("a run has at least one event; nothing was done.")


PrivacyEvent = (
    DiscreteLaplace
    | DiscreteGaussian
    | Gaussian
    | Skellam
    | BoundedRange
    | RandomizedResponse
    | PoissonSampled
    | FixedSizeSampled
    | SampledOccurrences
    | Stated
    | Repeated
    | Composed
    | Tuned
)

EVENTS = (
    DiscreteLaplace,
    DiscreteGaussian,
    Gaussian,
    Skellam,
    BoundedRange,
    RandomizedResponse,
    PoissonSampled,
    FixedSizeSampled,
    SampledOccurrences,
    Stated,
    Repeated,
    Composed,
    Tuned,
)
_REGISTRY = Registry((*EVENTS, Pure, Approximate, ZCDP, RDP, GDP))


def from_json(text: str) -> PrivacyEvent:
    """Read an event; an unknown kind, a newer version or a foreign field is refused by name.

    >>> from_json('{"kind":"event.discrete_laplace","l1":"1/1","scale":"2/1","version":1}').scale
    Fraction(2, 1)
    """
    event = _REGISTRY.decode(parse(text), "event")
    if not isinstance(event, EVENTS):
        raise Unsupported(f"event.kind = {event.KIND!r} is not an event; it was not read.")
    return event
