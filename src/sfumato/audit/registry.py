"""The attacks on every shipped mechanism, and deliberately broken ones that the same attacks must refute.

Three kinds: ε proven on neighbouring inputs, from exact distributions or from samples; draws of each mechanism against
its distribution; and whole releases of invented data against their certificates. A mechanism whose draws no attack
checks fails the suite. The broken mechanisms (``TWINS``) repeat mistakes that have been made elsewhere.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

from sfumato.accounting import epsilon as accounted
from sfumato.audit import laws
from sfumato.audit.added_noise import attacks_on
from sfumato.audit.drawn import DRAWN
from sfumato.audit.keys import grown, searched, selected, top, top_set
from sfumato.audit.ladders import wedges, wedges_twice
from sfumato.audit.networks import capped, scaled, some_cells
from sfumato.audit.numbers import (
    by_likelihood,
    choice,
    drawn_gaussian,
    gaps,
    gaussian,
    laplace,
    mean_of_gradients,
    median,
    noisy,
    shown,
    sparse,
    threshold,
    touched,
)
from sfumato.audit.product import PRODUCT, PRODUCT_BOUNDS
from sfumato.audit.product_federated import FEDERATED, WEAK_FEDERATED
from sfumato.audit.product_sites import SITES, WEAK_SITES
from sfumato.audit.searches import SEARCHES
from sfumato.audit.series import claimed, series, told
from sfumato.audit.supports import float_laplace, support
from sfumato.audit.synthetic_rows import MEMBERSHIP, RESAMPLED
from sfumato.audit.vectors import (
    cube,
    degree_vector,
    gaussian_matrix,
    laplace_matrix,
    linear,
    measured,
    moved,
    totals,
    without_volume,
)
from sfumato.audit.verdict import Attack, Drawn, Verdict
from sfumato.core.events import DiscreteGaussian
from sfumato.core.sensitivity import Sensitivity
from sfumato.mechanisms import (
    ADDED_NOISE,
    BufferedNoise,
    ChosenCap,
    DegreeNoise,
    Exponential,
    Gaussian,
    Ladder,
    Ladders,
    Laplace,
    LimitSearch,
    LInfKNorm,
    MatrixNoise,
    NoisyCells,
    NoisyLocalSensitivity,
    NoisyMax,
    NoisyThreshold,
    OptimalSelection,
    PermuteAndFlip,
    QuantileChoice,
    RandomizedResponse,
    SparseVector,
    TopChoice,
    TopSet,
)
from sfumato.mechanisms.matrix.steps.buffers import Buffers
from sfumato.mechanisms.matrix.steps.pattern import Pattern
from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz
from sfumato.mechanisms.matrix.steps.tree import Tree
from sfumato.streams.noise import SeriesNoise

__all__ = ["ATTACKS", "TWINS", "audit"]

_GAUSSIAN = Gaussian.calibrated(l2=1, epsilon=1, delta=1e-5)
_VECTOR = SparseVector.calibrated(sensitivity=1, alarms=2, epsilon=1)
_RULE = NoisyThreshold.calibrated(keys=3, most=1, epsilon=1, delta=1e-4)
_OPTIMAL = OptimalSelection.calibrated(keys=1, epsilon=1, delta=1e-4)
_THIRD = OptimalSelection.calibrated(keys=3, epsilon=1, delta=1e-4)
_TOP = TopChoice.calibrated(choices=2, sensitivity=1, epsilon=1)
_TOP_SET = TopSet.calibrated(candidates=4, choices=2, moved=4, epsilon=1, monotone=False)
_SEARCH = LimitSearch.calibrated(candidates=[tuple(range(1, 9))], epsilon=1, spend=[Fraction(1, 10)])
_MAX = NoisyMax.calibrated(sensitivity=1, epsilon=1)
_SOFT = Exponential.calibrated(sensitivity=1, epsilon=1)
_FLIP = PermuteAndFlip.calibrated(sensitivity=1, epsilon=1)
_MEDIAN = QuantileChoice.calibrated(quantiles=["1/2"], steps=700, sensitivity=Sensitivity.of(l0=1, linf=1), epsilon=1)
_RESPONSE = RandomizedResponse.calibrated(epsilon=1, categories=4)
HALF = Fraction(1, 2)
_LAPLACE = Laplace.calibrated(l1=1, epsilon=1)
_DEGREES = DegreeNoise(nodes=4, epsilon=Fraction(1))
_CUBE = LInfKNorm.calibrated(dimensions=3, linf=1, epsilon=1)
# The square root of prefix sums of four counts in quarters, and the same for pure privacy in halves.
_ROOT = MatrixNoise(
    strategy=((4, 0, 0, 0), (2, 4, 0, 0), (2, 2, 4, 0), (1, 2, 2, 4)),
    bits=2,
    norm="l2",
    noise=Fraction(225),
    workload="prefix",
    questions=(),
)
_PURE = MatrixNoise(strategy=((2, 0), (1, 2)), bits=1, norm="l1", noise=Fraction(3), workload="prefix", questions=())
# One event moves three steps by 4, 2 and 1; no buffer is rounded.
_STREAM = BufferedNoise(horizon=3, decays=(HALF,), weights=(HALF,), bits=2, noise=Fraction(225))
_EVENT = Pattern(times=1, separation=1, change="added")
_TWICE = Pattern(times=2, separation=2, change="added")  # a person who counts in two steps, not next to each other
_ROOTS = Toeplitz(form="square root", horizon=4, bits=2)
_EVENTS = SeriesNoise(strategy=_ROOTS, pattern=_EVENT, norm="l2", noise=Fraction(18))
_PERSONS = SeriesNoise(strategy=_ROOTS, pattern=_TWICE, norm="l2", noise=Fraction(30))
_LONGER = SeriesNoise(
    strategy=Buffers(horizon=3, decays=(HALF,), weights=(HALF,), bits=4, largest=1),
    pattern=_EVENT,
    norm="l2",
    noise=Fraction(60),
)
_BRANCHES = SeriesNoise(strategy=Tree(arity=2, horizon=4, bits=0), pattern=_TWICE, norm="l1", noise=Fraction(6))
_LADDER = Ladder.calibrated(nodes=100, leaves=2, epsilon="1/4")
_LADDERS = Ladders(parts=(Ladder.calibrated(nodes=12, leaves=2, epsilon="1/2"),) * 2)
_CAPPED = ChosenCap(caps=(1, 4), choice=HALF, epsilon=HALF, spread=1, doubling=0, moves=(1, 4), numbers=1)
_CELLS = NoisyCells.calibrated(cells=3, l1=5, epsilon=1, count_step=2, cell_step=3)
# Three nodes with 40 common neighbours, two of them linked: one link more makes 40 triangles, and the guide 41.
_HUBS = (40, 40), (80, 41)
_SCALED = NoisyLocalSensitivity(nodes=65, leaves=None, epsilon=HALF, guide=HALF, delta=Fraction(1, 1000))
_ONE = Sensitivity.of(l1=1)
_ROOT_CLAIM = float(accounted([_ROOT.loss(_ONE)], delta=1e-5))
_PURE_CLAIM = float(accounted([_PURE.loss(_ONE)], delta=0, method="basic"))
_STREAM_CLAIM = float(accounted([_STREAM.loss(_ONE)], delta=1e-5, method="zcdp"))

_BY_HAND: tuple[Attack, ...] = (
    laplace("Laplace", _LAPLACE.scale),
    gaussian("Gaussian", 1, float(_GAUSSIAN.sigma), 1.0, 1e-5),
    drawn_gaussian("Gaussian, as drawn", _GAUSSIAN, 1.0, 1e-5),
    by_likelihood(
        "exponential, as drawn",
        Exponential.KIND,
        (laws.softmax(_SOFT.exponents((2, 0, 2))), laws.softmax(_SOFT.exponents((1, 1, 1)))),
        (lambda words: _SOFT.choose((2, 0, 2), words), lambda words: _SOFT.choose((1, 1, 1), words)),
        share=0.02,
    ),
    by_likelihood(
        "randomised response, as drawn",
        RandomizedResponse.KIND,
        (laws.softmax(_RESPONSE.exponents(0)), laws.softmax(_RESPONSE.exponents(1))),
        (lambda words: _RESPONSE.report(0, words), lambda words: _RESPONSE.report(1, words)),
        share=0.3,
    ),
    choice("exponential", Exponential.KIND, 1.0, lambda scores: laws.softmax(_SOFT.exponents(scores))),
    choice("permute and flip", PermuteAndFlip.KIND, 1.0, lambda scores: laws.flipped(_FLIP.exponents(scores))),
    choice("noisy max", NoisyMax.KIND, 1.0, lambda scores: laws.largest(scores, _MAX.scale)),
    median("quantile choice", _MEDIAN),
    sparse("sparse vector", _VECTOR),
    searched("limit search", _SEARCH),
    threshold("noisy threshold", _RULE, 3, 1e-4),
    selected(
        "optimal selection",
        lambda n: float(_OPTIMAL.chance(n)),
        persons=_OPTIMAL.sure // 2 - 1,
        keys=1,
        epsilon=1.0,
        delta=1e-4,
    ),
    selected(
        "optimal selection, three keys",
        lambda n: float(_THIRD.chance(n)),
        persons=_THIRD.sure // 2,
        keys=3,
        epsilon=1.0,
        delta=1e-4,
    ),
    top("top choice", _TOP, epsilon=1.0),
    top_set("top set", _TOP_SET, epsilon=1.0),
    Attack(
        name="randomised response",
        kind=RandomizedResponse.KIND,
        epsilon=1.0,
        delta=0.0,
        here=lambda _: laws.softmax(_RESPONSE.exponents(0)),
        there=lambda _: laws.softmax(_RESPONSE.exponents(1)),
        exact=True,
    ),
    linear(
        "matrix, Gaussian noise",
        MatrixNoise.KIND,
        (4, 2, 2, 1),
        _ROOT.noise,
        epsilon=_ROOT_CLAIM,
        delta=1e-5,
    ),
    gaussian_matrix("matrix, Gaussian noise, as drawn", _ROOT, epsilon=_ROOT_CLAIM, delta=1e-5),
    laplace_matrix("matrix, Laplace noise", _PURE, epsilon=_PURE_CLAIM),
    linear(
        "buffered stream",
        BufferedNoise.KIND,
        (4, 2, 1),
        _STREAM.noise,
        epsilon=_STREAM_CLAIM,
        delta=1e-5,
    ),
    degree_vector("degree noise", _DEGREES, (1, 1, 0, 0), epsilon=1.0),
    cube("cube noise", _CUBE),
    wedges("ladder", _LADDER),
    replace(wedges_twice("two ladders", _LADDERS, epsilon=1.0), share=0.8),
    capped("chosen cap", _CAPPED, epsilon=1.0),
    some_cells("noisy cells", _CELLS, epsilon=1.0),
    scaled("noisy scale", _SCALED, *_HUBS, epsilon=1.0),
    series("stream of events, square root", _EVENTS, (1, 0, 0, 0), delta=1e-5),
    series("stream of persons, square root", _PERSONS, (1, 0, 1, 0), delta=1e-5),
    replace(series("stream of events, buffers", _LONGER, (1, 0, 0), delta=1e-5), share=0.5),  # rounding is charged too
    series("stream of persons, tree with Laplace noise", _BRANCHES, (1, 0, 1, 0)),
    support(
        "stream of persons",
        SeriesNoise.KIND,
        epsilon=claimed(_PERSONS, delta=1e-5),
        delta=1e-5,
        here=told(_PERSONS, (0, 0, 0, 0)),
        there=told(_PERSONS, (1, 0, 1, 0)),
    ),
    support("Laplace", Laplace.KIND, epsilon=1.0, here=noisy(_LAPLACE, 0), there=noisy(_LAPLACE, 1)),
    support("Gaussian", Gaussian.KIND, epsilon=1.0, delta=1e-5, here=noisy(_GAUSSIAN, 0), there=noisy(_GAUSSIAN, 1)),
    support(
        "noisy threshold", NoisyThreshold.KIND, epsilon=1.0, delta=1e-4, here=shown(_RULE, 99), there=shown(_RULE, 100)
    ),
    support("sparse vector", SparseVector.KIND, epsilon=1.0, here=gaps(_VECTOR, 0), there=gaps(_VECTOR, 1)),
    support(
        "matrix",
        MatrixNoise.KIND,
        epsilon=_PURE_CLAIM,
        here=measured(_PURE, (0, 0)),
        there=measured(_PURE, (1, 0)),
    ),
    support(
        "buffered stream",
        BufferedNoise.KIND,
        epsilon=_STREAM_CLAIM,
        delta=1e-5,
        here=totals(_STREAM, 0),
        there=totals(_STREAM, 1),
    ),
    support(
        "degree noise",
        DegreeNoise.KIND,
        epsilon=1.0,
        here=moved(_DEGREES, (1, 1, 0, 0)),
        there=moved(_DEGREES, (2, 1, 1, 0)),
    ),
    support(
        "cube noise",
        LInfKNorm.KIND,
        epsilon=1.0,
        here=moved(_CUBE, (0, 0, 0)),
        there=moved(_CUBE, (1, 1, 1)),
    ),
)

_WRITTEN = {*(attack.kind for attack in _BY_HAND), *(attack.kind for attack in DRAWN)}
_MADE = [attacks_on(kind) for kind in ADDED_NOISE if kind.KIND not in _WRITTEN]  # with their broken copies

ATTACKS: tuple[Attack | Drawn, ...] = (
    *_BY_HAND,
    *DRAWN,
    *PRODUCT,
    *SITES,
    *FEDERATED,
    *SEARCHES,
    *PRODUCT_BOUNDS,
    MEMBERSHIP,
    *(attack for sound, _ in _MADE for attack in sound),
)

# Σ(2·C(2k, k)/4^k)² over k < 4, where halves make it 4 + 1 + 1 + 1.
_UNROUNDED = DiscreteGaussian(l2_squared=Fraction(381, 64), sigma_squared=Fraction(64))
_OWN_STEP = DiscreteGaussian(l2_squared=Fraction(16), sigma_squared=_STREAM.noise)

_BROKEN: tuple[Attack, ...] = (
    laplace("Laplace, scale 5% too small", Fraction(95, 100)),
    support(
        "Laplace in floating point",
        Laplace.KIND,
        epsilon=1.0,
        here=lambda size: float_laplace(size, 0),
        there=lambda size: float_laplace(size, 1),
    ),
    gaussian("classical Gaussian at ε = 20", 100, 100 * 4.844805262605389 / 20, 20.0, 1e-5),
    median("quantile choice, its score taken for a monotone one", replace(_MEDIAN, epsilon=2 * _MEDIAN.epsilon)),
    sparse("sparse vector, monotone noise on general queries", _VECTOR, query_scale=_VECTOR.query_scale / 2),
    sparse("sparse vector that does not halt", _VECTOR, alarms=16),
    searched("limit search with half of its noise", _SEARCH, less=HALF),
    mean_of_gradients("policy gradient, replaced trajectory counted once", claimed=1, moved=2),
    mean_of_gradients("contrastive loss, random negatives counted as k + 2", claimed=4 + 2, moved=touched(64, 4)),
    Attack(
        name="noisy max that reports its value with one-sided noise",
        kind=NoisyMax.KIND,
        epsilon=1.0,
        delta=0.0,
        here=lambda _: laws.one_sided(0, _MAX.scale),
        there=lambda _: laws.one_sided(1, _MAX.scale),
        exact=True,
    ),
    threshold(
        "threshold with the δ of one key, for three",
        NoisyThreshold.calibrated(keys=1, most=1, epsilon="1/3", delta="1/200"),
        3,
        0.005,
    ),
    selected(
        "optimal selection with the ε of one key, for three",
        lambda n: float(_OPTIMAL.chance(n)),
        persons=_OPTIMAL.sure // 2,
        keys=3,
        epsilon=1.0,
        delta=1e-4,
    ),
    selected("optimal selection that only grows", grown(1.0, 1e-4), persons=9, keys=1, epsilon=1.0, delta=1e-4),
    top(
        "top choice, calibrated for add/remove under replace",
        TopChoice(choices=2, scale=_TOP.scale / 2, monotone=True),
        epsilon=1.0,
    ),
    top_set(
        "top set, calibrated for an edge more or less where one is replaced",
        TopSet.calibrated(candidates=4, choices=2, moved=2, epsilon=1, monotone=True),
        epsilon=1.0,
    ),
    linear(
        "matrix, the columns measured before they were rounded",
        MatrixNoise.KIND,
        (2, 1, 1, 1),
        Fraction(64),
        epsilon=float(accounted([_UNROUNDED], delta=1e-5)),
        delta=1e-5,
    ),
    linear(
        "buffered stream, an event counted in its own step alone",
        BufferedNoise.KIND,
        (4, 2, 1),
        _STREAM.noise,
        epsilon=float(accounted([_OWN_STEP], delta=1e-5)),
        delta=1e-5,
    ),
    series("stream of persons, each counted as one event", _EVENTS, (1, 0, 1, 0), delta=1e-5),
    series("stream of swapped events, counted as added", _EVENTS, (1, 0, 0, -1), delta=1e-5),
    series("tree, a person's steps counted as one", replace(_BRANCHES, pattern=_EVENT), (1, 0, 1, 0)),
    degree_vector("degree noise, a replaced edge counted once", _DEGREES, (1, 1, -1, -1), epsilon=1.0),
    support(
        "degree noise on counts that are no degrees",
        DegreeNoise.KIND,
        epsilon=1.0,
        here=moved(_DEGREES, (1, 1, 0, 0)),
        there=moved(_DEGREES, (2, 1, 0, 0)),
    ),
    wedges("ladder with the rate of one that is not two-sided", _LADDER, rate=float(_LADDER.epsilon)),
    wedges("ladder of the local sensitivity alone", _LADDER, still=True),
    wedges_twice("two ladders, charged as one", _LADDERS, epsilon=0.5),
    capped("chosen cap, the choice not charged", _CAPPED, epsilon=0.5),
    capped("chosen cap, with the noise of the smallest", _CAPPED, epsilon=1.0, scale_at=lambda _: _CAPPED.scale(1)),
    some_cells("noisy cells, the count not charged", _CELLS, epsilon=1.0, scale=Fraction(3)),
    scaled("noisy scale, the guide not raised", _SCALED, *_HUBS, epsilon=1.0, shift=0),
    scaled("noisy scale, from the exact guide", _SCALED, *_HUBS, epsilon=1.0, bare=True),
    scaled("noisy scale, the guide not charged", _SCALED, *_HUBS, epsilon=0.5),
    cube("cube noise, all cubes taken as equally large", _CUBE, without_volume(_CUBE)),
)


_SEEN = {attack.kind for attack in DRAWN}
# Of whole releases, those are broken here whose mechanism has no broken copy yet; the suite breaks all of them.
TWINS: tuple[Attack | Drawn, ...] = (
    *_BROKEN,
    RESAMPLED,
    *(attack.twin for attack in DRAWN),
    *(attack.twin for attack in (*PRODUCT, *SEARCHES) if attack.kind not in _SEEN),
    *WEAK_SITES,
    *WEAK_FEDERATED,
    *(attack.twin for attack in (*SITES, *FEDERATED) if isinstance(attack, Drawn)),
    *(attack for _, broken in _MADE for attack in broken),
)


def audit(
    attacks: tuple[Attack | Drawn, ...] = ATTACKS, *, samples: int = 400_000, alpha: float = 0.01
) -> Iterator[Verdict]:
    """Run attacks one by one; each sampling attack errs with probability at most α."""
    for attack in attacks:
        yield attack.run(samples=samples, alpha=alpha)
