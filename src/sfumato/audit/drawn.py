"""Draws of every mechanism, from the method that releases call, against the law that the mechanism states.

Each comes with a copy that is broken on purpose. Attacks on whole releases are in :mod:`sfumato.audit.product`.

Over 600 lines because it is one table: every mechanism, its draws, its law and its broken copy, side by side.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, permutations
from typing import Any, Protocol, TypeVar  # what a ladder, or several, takes

from sfumato import laws as error_laws
from sfumato.audit import laws
from sfumato.audit.fit import SCALES, Cells, Played, finite, numbers, tabled
from sfumato.audit.keys import peeled, sets, stops
from sfumato.audit.ladders import climbed
from sfumato.audit.networks import around, scaled, some_cells
from sfumato.audit.verdict import Drawn
from sfumato.core.foreign import Array
from sfumato.core.ladder_widths import Rungs
from sfumato.core.query import Law
from sfumato.core.sensitivity import Sensitivity
from sfumato.learning.paradigms.voting import NO_ANSWER, ConfidentMax
from sfumato.mechanisms import (
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
from sfumato.mechanisms.k_norm import excess
from sfumato.mechanisms.matrix.steps.pattern import Pattern
from sfumato.mechanisms.matrix.steps.toeplitz import Toeplitz
from sfumato.mechanisms.matrix.steps.tree import Tree
from sfumato.noise import SystemWords
from sfumato.streams.noise import SeriesNoise

__all__ = ["DRAWN", "GAP", "half_shown", "noise", "shrunk", "watch_cells"]

Costly = TypeVar("Costly", Ladder, QuantileChoice, OptimalSelection, RandomizedResponse)

HALF = Fraction(1, 2)
WEAK = Fraction(7, 10)  # of the noise of broken copies
SCORES = (0, 1, 2, 4)
BEST = 3
FEW = 1_000  # draws of what is drawn one by one, a millisecond each
SOME = 4_000


class _Adds(Protocol):
    """A mechanism that adds noise to numbers."""

    def add_noise(self, exact: list[int], words: SystemWords) -> Sequence[int]:
        """The numbers with noise."""
        ...


def noise(
    name: str,
    kind: str,
    law: Law,
    draw: Callable[[int], Array],
    weak: Callable[[int], Array],
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    draws: int = 20_000,
) -> Drawn:
    """Noise on whole numbers, and a copy with 0.7 of it."""
    return Drawn(
        name=f"{name}: draws",
        kind=kind,
        epsilon=epsilon,
        delta=delta,
        play=lambda size: Played(cells=numbers(law), draws=draw(size)),
        flaw="0.7 of the noise",
        broken=lambda size: Played(cells=numbers(law), draws=weak(size)),
        draws=draws,
    )


def shrunk(played: Played) -> Played:
    """What a release would have been with 0.7 of its noise, where nothing but noise is in it."""
    import numpy as np

    return Played(cells=played.cells, draws=np.rint(float(WEAK) * np.asarray(played.draws, dtype=np.float64)))


def choice(
    name: str,
    kind: str,
    cells: Callable[[], Cells],
    draw: Callable[[SystemWords], object],
    flaw: str,
    wrong: Callable[[SystemWords], object],
    *,
    delta: float = 0.0,
    draws: int = FEW,
) -> Drawn:
    """One of finitely many outcomes, drawn one by one."""

    def repeated(one: Callable[[SystemWords], object]) -> Callable[[int], Played]:
        def play(size: int) -> Played:
            words = SystemWords()
            return Played(cells=cells(), draws=_listed([one(words) for _ in range(size)]))

        return play

    return Drawn(
        name=f"{name}: draws",
        kind=kind,
        epsilon=1.0,
        delta=delta,
        play=repeated(draw),
        flaw=flaw,
        broken=repeated(wrong),
        draws=draws,
    )


def _listed(outcomes: Sequence[object]) -> Array:
    import numpy as np

    if isinstance(outcomes[0], tuple | bytes):
        held = np.empty(len(outcomes), dtype=object)
        held[:] = outcomes
        return held
    return np.array(outcomes)


def _added(mechanism: _Adds, numbers_each: int = 1) -> Callable[[int], Array]:
    """What ``add_noise`` makes of zeros."""
    import numpy as np

    def draw(size: int) -> Array:
        words = SystemWords()
        if numbers_each == 1:
            return np.array(mechanism.add_noise([0] * size, words))
        rows = [mechanism.add_noise([0] * numbers_each, words) for _ in range(max(1, size // numbers_each))]
        return np.array(rows).ravel()

    return draw


def _buffered(mechanism: BufferedNoise) -> Callable[[int], Array]:
    """The noise of each step, worked out from the totals that a stream of zeros releases."""
    import numpy as np

    def draw(size: int) -> Array:
        found, unit = [], 2**mechanism.bits
        for _ in range(max(1, size // mechanism.horizon)):
            stream, shadow, before = mechanism.open(), mechanism.open(), 0
            for _ in range(mechanism.horizon):
                total = int(stream.add(0) * unit)
                correlated, before = total - before, total
                found.append(correlated + shadow.pulled())
                shadow.push(correlated)
        return np.array(found)

    return draw


def _series(mechanism: SeriesNoise) -> Callable[[int], Array]:
    return lambda size: mechanism.drawn(size, SystemWords())


def _vectors(mechanism: LInfKNorm | DegreeNoise, size: int) -> Array:
    """Whole vectors as ``add_noise`` makes them of zeros."""
    import numpy as np

    words, width = SystemWords(), mechanism.dimensions if isinstance(mechanism, LInfKNorm) else mechanism.nodes
    return np.array([mechanism.add_noise([0] * width, words) for _ in range(size)])


def _shape(vectors: Array, norm: Array) -> Array:
    """A vector by its norm, up to 23, and its first number, up to ±4."""
    import numpy as np

    return np.minimum(norm, 23) * 9 + np.clip(vectors[:, 0], -4, 4) + 4


def _enumerated(weights: Callable[[Array], Array], width: int, reach: int, code: Callable[[Array], Array]) -> Array:
    """The law of a code of whole vectors, by adding up the weights of all of them within reach."""
    import numpy as np

    axes = np.meshgrid(*[np.arange(-reach, reach + 1)] * width, indexing="ij")
    vectors = np.stack(axes, axis=-1).reshape(-1, width)
    found = np.bincount(code(vectors), weights=weights(vectors), minlength=24 * 9)
    return found / found.sum()


def _cube(mechanism: LInfKNorm) -> Drawn:
    import numpy as np

    def norm(vectors: Array) -> Array:
        return np.abs(vectors).max(axis=1)

    @cache
    def law(scale: float) -> Array:
        return _enumerated(
            lambda vectors: np.exp(-norm(vectors) / scale),
            mechanism.dimensions,
            40,
            lambda vectors: _shape(vectors, norm(vectors)),
        )

    return _by_shape("cube noise", mechanism, norm, law, float(mechanism.scale), replace(mechanism, scale=WEAK))


def _degrees(mechanism: DegreeNoise) -> Drawn:
    import numpy as np

    def norm(vectors: Array) -> Array:
        return np.abs(vectors).sum(axis=1) // 2 + excess(vectors)

    @cache
    def law(scale: float) -> Array:
        return _enumerated(
            lambda vectors: np.where(vectors.sum(axis=1) % 2 == 0, np.exp(-norm(vectors) / scale), 0.0),
            mechanism.nodes,
            36,
            lambda vectors: _shape(vectors, norm(vectors)),
        )

    broken = replace(mechanism, epsilon=mechanism.epsilon / WEAK)
    return _by_shape("degree noise", mechanism, norm, law, 1 / float(mechanism.epsilon), broken)


def _by_shape(
    name: str,
    mechanism: LInfKNorm | DegreeNoise,
    norm: Callable[[Array], Array],
    law: Callable[[float], Array],
    scale: float,
    broken: LInfKNorm | DegreeNoise,
) -> Drawn:
    def play(drawn_from: LInfKNorm | DegreeNoise) -> Callable[[int], Played]:
        def played(size: int) -> Played:
            vectors = _vectors(drawn_from, size)
            cells = finite(law(scale), [law(scale * times) for times in (0.5, 0.7, 0.9, 1.1, 1.5)])
            return Played(cells=cells, draws=_shape(vectors, norm(vectors)))

        return played

    return Drawn(
        name=f"{name}: draws",
        kind=mechanism.KIND,
        epsilon=1.0,
        delta=0.0,
        play=play(mechanism),
        flaw="0.7 of the noise",
        broken=play(broken),
        draws=2_000,
    )


GAP = 20


def _watched(run: SparseVector, words: SystemWords) -> int:
    """Two looks of one watch: how each came out, silent or with its gap."""
    watch = run.watch(0, words=words)
    told = [watch.check(value) for value in (0, 1)]
    first, second = (0 if one.gap is None else 1 + min(one.gap, GAP) for one in told)
    return first * (GAP + 2) + second


def _watch_law(run: SparseVector) -> Array:
    """The law of that, by adding up over the noise of the threshold, which both looks share."""
    import numpy as np

    reach = 250
    level = around(0, run.threshold_scale, -reach, reach)

    def looked(value: int) -> Array:
        single = around(0, run.query_scale, -2 * reach, 2 * reach)
        cells = np.zeros((2 * reach + 1, GAP + 2))
        for row, threshold in enumerate(range(-reach, reach + 1)):
            gaps = np.arange(-2 * reach, 2 * reach + 1) + value - threshold
            np.add.at(cells[row], np.where(gaps < 0, 0, 1 + np.minimum(gaps, GAP)), single)
        return cells

    first, second = looked(0), looked(1)
    return (level[:, None, None] * first[:, :, None] * second[:, None, :]).sum(axis=0).ravel()


@cache
def watch_cells(run: SparseVector) -> Cells:
    """That law, and those of watches with other amounts of noise."""
    others = (Fraction(1, 2), WEAK, Fraction(10, 7), Fraction(2))
    return finite(
        _watch_law(run), [_watch_law(replace(run, first=run.first / less, each=run.each / less)) for less in others]
    )


def _less_noise(run: LimitSearch, times: int) -> LimitSearch:
    """The same search at a multiple of its ε."""
    return replace(run, walks=tuple(replace(one, first=times * one.first, each=times * one.each) for one in run.walks))


def half_shown(scale: Fraction, top: int) -> Cells:
    """Laplace noise of which all below 0 is one cell and all above the top another; and other amounts of it."""
    return finite(around(0, scale, -1, top + 1), [around(0, scale * Fraction(times), -1, top + 1) for times in SCALES])


def _threshold(rule: NoisyThreshold, drawn_from: NoisyThreshold) -> Callable[[int], Played]:
    """Keys whose counts are the threshold: which are shown, and with which noise."""
    import numpy as np

    top = 30
    cells = half_shown(rule.scale, top)

    def play(size: int) -> Played:
        shown = drawn_from.show(dict.fromkeys(range(size), rule.threshold), SystemWords())
        noisy = np.zeros(size, dtype=np.int64)
        noisy[list(shown)] = 1 + np.minimum(np.array(list(shown.values())) - rule.threshold, top + 1)
        return Played(cells=cells, draws=noisy)

    return play


def _selected(rule: OptimalSelection, drawn_from: OptimalSelection, persons: int) -> Callable[[int], Played]:
    import numpy as np

    chance = float(rule.chance(persons))

    def play(size: int) -> Played:
        shown = drawn_from.show(dict.fromkeys(range(size), persons), SystemWords())
        return Played(cells=finite([1 - chance, chance]), draws=np.isin(np.arange(size), list(shown)).astype(int))

    return play


def _laddered(name: str, mechanism: Ladder | Ladders, wrong: Ladder | Ladders, reach: int = 6_000) -> Drawn:
    """The count of no wedge in a graph of one edge; ladders draw each part of it."""
    import numpy as np

    def play(drawn_from: Ladder | Ladders) -> Callable[[int], Played]:
        parts = mechanism.parts if isinstance(mechanism, Ladders) else (mechanism,)
        rungs: Rungs = parts[0].bounds(1, 1)[0]
        rate = float(parts[0].epsilon) / 2
        cells = finite(
            climbed(0, rungs, rate, reach=reach),
            [climbed(0, rungs, rate * times, reach=reach) for times in (0.5, 0.7, 1.4, 2.0)],
        )

        def played(size: int) -> Played:
            words, each = SystemWords(), len(parts)
            exact: Any = (0, 1, rungs) if isinstance(drawn_from, Ladder) else [(0, 1, rungs)] * each
            rows = [drawn_from.add_noise(exact, words)[:each] for _ in range(max(1, size // each))]
            return Played(cells=cells, draws=np.clip(np.array(rows).ravel(), -reach, reach) + reach)

        return played

    return Drawn(
        name=f"{name}: draws",
        kind=mechanism.KIND,
        epsilon=1.0,
        delta=0.0,
        play=play(mechanism),
        flaw="the rate of one that is not two-sided",
        broken=play(wrong),
        draws=FEW,
    )


def _capped(mechanism: ChosenCap) -> Drawn:
    """A cap, and a count of 0 behind it."""
    import numpy as np

    reach, ways = 400, [3, *([0] * (len(mechanism.caps) - 1))]
    chooser = PermuteAndFlip(epsilon=mechanism.choice, spread=Fraction(mechanism.spread))

    @cache
    def law(times: float) -> Array:
        chosen = laws.flipped(chooser.exponents(mechanism.scores(ways)))
        parts = [around(0, mechanism.scale(cap) * Fraction(times), -reach, reach) for cap in mechanism.caps]
        return np.concatenate([chance * part for chance, part in zip(chosen, parts, strict=True)])

    def play(drawn_from: ChosenCap) -> Callable[[int], Played]:
        def played(size: int) -> Played:
            words = SystemWords()
            told = np.array([drawn_from.add_noise((ways, lambda _: [0]), words) for _ in range(size)])
            place = np.searchsorted(mechanism.caps, told[:, 0])
            code = place * (2 * reach + 1) + np.clip(told[:, 1], -reach, reach) + reach
            return Played(cells=finite(law(1.0), [law(times) for times in (0.5, 0.7, 1.5)]), draws=code)

        return played

    return Drawn(
        name="chosen cap: draws",
        kind=ChosenCap.KIND,
        epsilon=1.0,
        delta=0.0,
        play=play(mechanism),
        flaw="0.7 of the noise",
        broken=play(replace(mechanism, epsilon=mechanism.epsilon / WEAK)),
        draws=1_200,
    )


def _celled(mechanism: NoisyCells) -> Drawn:
    """The noisy count and the set of cells that are shown, where no cell is 1."""
    import numpy as np

    @cache
    def law(times: Fraction) -> Array:
        found = some_cells("", mechanism, epsilon=1.0, scale=mechanism.scale * times).here(0)
        return np.asarray(found) / np.sum(found)

    def play(drawn_from: NoisyCells) -> Callable[[int], Played]:
        def played(size: int) -> Played:
            words, found = SystemWords(), []
            for _ in range(size):
                noisy, _, *shown = drawn_from.add_noise((0, ()), words)
                # of the sets, the one with cell k has it in place 2^k: as np.concatenate doubles them
                found.append((min(max(noisy, -120), 120) + 120) * 2**mechanism.cells + sum(2**cell for cell in shown))
            cells = finite(law(Fraction(1)), [law(times) for times in (HALF, WEAK, Fraction(3, 2))])
            return Played(cells=cells, draws=np.array(found))

        return played

    return Drawn(
        name="noisy cells: draws",
        kind=NoisyCells.KIND,
        epsilon=1.0,
        delta=0.0,
        play=play(mechanism),
        flaw="0.7 of the noise",
        broken=play(replace(mechanism, scale=mechanism.scale * WEAK)),
        draws=1_000,
    )


def _scaled(mechanism: NoisyLocalSensitivity, hub: tuple[int, int]) -> Drawn:
    """The guide and the count that are shown of one graph."""
    import numpy as np

    reach, (least, _) = 800, mechanism.guides

    @cache
    def law(drawn_from: NoisyLocalSensitivity) -> Array:
        return scaled("", drawn_from, hub, hub, epsilon=1.0, shift=mechanism.shift, reach=reach).here(0)

    weaker = replace(mechanism, epsilon=mechanism.epsilon / WEAK)

    def play(drawn_from: NoisyLocalSensitivity) -> Callable[[int], Played]:
        def played(size: int) -> Played:
            words = SystemWords()
            told = np.array([drawn_from.add_noise(hub, words) for _ in range(size)])
            code = (told[:, 1] - least) * (2 * reach + 1) + np.clip(told[:, 0], -reach, reach) + reach
            others = [law(weaker), law(replace(mechanism, epsilon=mechanism.epsilon * WEAK))]
            return Played(cells=finite(law(mechanism), others), draws=code)

        return played

    return Drawn(
        name="noisy scale: draws",
        kind=NoisyLocalSensitivity.KIND,
        epsilon=1.0,
        delta=float(mechanism.delta),
        play=play(mechanism),
        flaw="0.7 of the noise",
        broken=play(weaker),
        draws=1_200,
    )


def _voted(mechanism: ConfidentMax, weak: ConfidentMax) -> Drawn:
    """Questions with the same two counts, just at the threshold: silence, or one of two labels."""
    import numpy as np

    row = (mechanism.threshold, mechanism.threshold - 10)

    def law(times: float) -> Array:
        check, sigma = float(mechanism.check_sigma) * times, float(mechanism.sigma) * times
        reach = int(12 * max(check, sigma)) + 20
        sure = laws.gaussian(0, check, reach=reach)[reach:].sum()
        single = laws.gaussian(0, sigma, reach=reach)
        first = float((single * np.cumsum(laws.gaussian(-10, sigma, reach=reach))).sum())
        return np.array([1 - sure, sure * first, sure * (1 - first)])

    def play(drawn_from: ConfidentMax) -> Callable[[int], Played]:
        def played(size: int) -> Played:
            asked = replace(drawn_from, questions=size, answers=size)
            told = np.array(asked.choose([row] * size, SystemWords()))
            return Played(cells=finite(law(1.0), [law(times) for times in (0.5, 0.7, 1.5)]), draws=told - NO_ANSWER)

        return played

    return Drawn(
        name="confident votes: draws",
        kind=ConfidentMax.KIND,
        epsilon=1.0,
        delta=1e-5,
        play=play(mechanism),
        flaw="0.7 of the noise",
        broken=play(weak),
        draws=20_000,
    )


def _doubled(mechanism: Costly) -> Costly:
    return replace(mechanism, epsilon=2 * mechanism.epsilon)


_LAPLACE = Laplace.calibrated(l1=1, epsilon=1)
_GAUSSIAN = Gaussian.calibrated(l2=1, epsilon=1, delta=1e-5)
_SOFT = Exponential.calibrated(sensitivity=1, epsilon=1)
_FLIP = PermuteAndFlip.calibrated(sensitivity=1, epsilon=1)
_MAX = NoisyMax.calibrated(sensitivity=1, epsilon=1)
_RESPONSE = RandomizedResponse.calibrated(epsilon=1, categories=4)
_TOP = TopChoice.calibrated(choices=2, sensitivity=1, epsilon=1)
_TOP_SET = TopSet.calibrated(candidates=4, choices=2, moved=4, epsilon=1, monotone=False)
_SEARCH = LimitSearch.calibrated(candidates=[(1, 2, 4, 8)], epsilon=1, spend=[Fraction(1)])
_ABOVE = (12, 6, 1)
_WATCH = SparseVector.calibrated(sensitivity=1, alarms=2, epsilon=1)
_RULE = NoisyThreshold.calibrated(keys=3, most=1, epsilon=1, delta=1e-4)
_OPTIMAL = OptimalSelection.calibrated(keys=1, epsilon=1, delta=1e-4)
_MEDIAN = QuantileChoice.calibrated(quantiles=["1/2"], steps=12, sensitivity=Sensitivity.of(l0=1, linf=1), epsilon=1)
_ROWS = [3, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 1]
_GRID = ((4, 0, 0, 0), (2, 4, 0, 0), (2, 2, 4, 0), (1, 2, 2, 4))
_ROOT = MatrixNoise(strategy=_GRID, bits=2, norm="l2", noise=Fraction(225), workload="prefix", questions=())
_PURE = MatrixNoise(strategy=((2, 0), (1, 2)), bits=1, norm="l1", noise=Fraction(3), workload="prefix", questions=())
_STREAM = BufferedNoise(horizon=3, decays=(HALF,), weights=(HALF,), bits=2, noise=Fraction(225))
_EVENT = Pattern(times=1, separation=1, change="added")
_EVENTS = SeriesNoise(
    strategy=Toeplitz(form="square root", horizon=4, bits=2), pattern=_EVENT, norm="l2", noise=Fraction(18)
)
_BRANCHES = SeriesNoise(strategy=Tree(arity=2, horizon=4, bits=0), pattern=_EVENT, norm="l1", noise=Fraction(6))
_LADDER = Ladder.calibrated(nodes=12, leaves=2, epsilon=1)
_LADDERS = Ladders(parts=(Ladder.calibrated(nodes=12, leaves=2, epsilon=HALF),) * 2)
_STEEPER = Ladders(parts=tuple(_doubled(part) for part in _LADDERS.parts))
_CAPPED = ChosenCap(caps=(1, 4), choice=HALF, epsilon=HALF, spread=1, doubling=0, moves=(1, 4), numbers=1)
_CELLS = NoisyCells.calibrated(cells=3, l1=5, epsilon=1, count_step=2, cell_step=3)
_SCALED = NoisyLocalSensitivity(nodes=65, leaves=None, epsilon=HALF, guide=HALF, delta=Fraction(1, 1000))
_VOTES = ConfidentMax(questions=9, classes=2, answers=9, threshold=200, check_sigma=Fraction(20), sigma=Fraction(12))

DRAWN: tuple[Drawn, ...] = (
    noise("Laplace", Laplace.KIND, _LAPLACE.law, _added(_LAPLACE), _added(replace(_LAPLACE, scale=WEAK))),
    noise(
        "Gaussian",
        Gaussian.KIND,
        _GAUSSIAN.law,
        _added(_GAUSSIAN),
        _added(replace(_GAUSSIAN, sigma=WEAK * _GAUSSIAN.sigma)),
        delta=1e-5,
    ),
    choice(
        "exponential",
        Exponential.KIND,
        lambda: finite(laws.softmax([Fraction(score, 2) for score in SCORES])),  # exp(ε·u/(2Δ)) at ε = Δ = 1
        lambda words: _SOFT.choose(SCORES, words),
        "names the best",
        lambda _: BEST,
    ),
    choice(
        "permute and flip",
        PermuteAndFlip.KIND,
        lambda: finite(laws.flipped([Fraction(score - max(SCORES), 2) for score in SCORES])),
        lambda words: _FLIP.choose(SCORES, words),
        "names the best",
        lambda _: BEST,
    ),
    choice(
        "noisy max",
        NoisyMax.KIND,
        lambda: finite(
            laws.largest(SCORES, Fraction(2)), [laws.largest(SCORES, Fraction(2 * times)) for times in SCALES]
        ),
        lambda words: _MAX.choose(SCORES, words),
        "half of the noise",
        lambda words: replace(_MAX, scale=_MAX.scale / 2).choose(SCORES, words),
        draws=3_000,
    ),
    choice(
        "quantile choice",
        QuantileChoice.KIND,
        lambda: finite(laws.softmax(_ranked(_ROWS))),
        lambda words: _MEDIAN.choose(*_values(_ROWS), words)[0],
        "drawn at 2ε",
        lambda words: _doubled(_MEDIAN).choose(*_values(_ROWS), words)[0],
    ),
    choice(
        "sparse vector",
        SparseVector.KIND,
        lambda: watch_cells(_WATCH),
        lambda words: _watched(_WATCH, words),
        "drawn at 2ε",
        lambda words: _watched(replace(_WATCH, first=2 * _WATCH.first, each=2 * _WATCH.each), words),
        draws=800,
    ),
    choice(
        "limit search",
        LimitSearch.KIND,
        lambda: tabled([(limit,) for limit in _SEARCH.candidates[0]], stops(_SEARCH, _ABOVE).tolist()),
        lambda words: _SEARCH.search([_ABOVE], words),
        "drawn at 2ε",
        lambda words: _less_noise(_SEARCH, 2).search([_ABOVE], words),
        draws=1_500,
    ),
    Drawn(
        name="noisy threshold: draws",
        kind=NoisyThreshold.KIND,
        epsilon=1.0,
        delta=1e-4,
        play=_threshold(_RULE, _RULE),
        flaw="0.7 of the noise",
        broken=_threshold(_RULE, replace(_RULE, scale=WEAK * _RULE.scale)),
    ),
    Drawn(
        name="optimal selection: draws",
        kind=OptimalSelection.KIND,
        epsilon=1.0,
        delta=1e-4,
        play=_selected(_OPTIMAL, _OPTIMAL, _OPTIMAL.sure // 2 - 1),
        flaw="drawn at 2ε",
        broken=_selected(_OPTIMAL, _doubled(_OPTIMAL), _OPTIMAL.sure // 2 - 1),
    ),
    choice(
        "top choice",
        TopChoice.KIND,
        lambda: tabled(list(permutations(range(4), 2)), peeled(SCORES, _TOP.scale, 2)),
        lambda words: _TOP.choose(SCORES, words),
        "a quarter of the scale",
        lambda words: replace(_TOP, scale=_TOP.scale / 4).choose(SCORES, words),
    ),
    choice(
        "top set",
        TopSet.KIND,
        lambda: tabled(list(combinations(range(4), 2)), sets(SCORES, _TOP_SET.scale, 2)),
        lambda words: _TOP_SET.choose(SCORES, words),
        "a quarter of the scale",
        lambda words: replace(_TOP_SET, scale=_TOP_SET.scale / 4).choose(SCORES, words),
        draws=500,
    ),
    choice(
        "randomised response",
        RandomizedResponse.KIND,
        lambda: finite(laws.softmax([Fraction(0), Fraction(1), Fraction(0), Fraction(0)])),  # the truth is e^ε : 1
        lambda words: _RESPONSE.report(1, words),
        "drawn at 2ε",
        lambda words: _doubled(_RESPONSE).report(1, words),
    ),
    noise(
        "matrix, Gaussian noise",
        MatrixNoise.KIND,
        _ROOT.law,
        _added(_ROOT, 4),
        _added(replace(_ROOT, noise=WEAK**2 * _ROOT.noise), 4),
        delta=1e-5,
        draws=SOME,
    ),
    noise(
        "matrix, Laplace noise",
        MatrixNoise.KIND,
        _PURE.law,
        _added(_PURE, 2),
        _added(replace(_PURE, noise=WEAK * _PURE.noise), 2),
        draws=SOME,
    ),
    noise(
        "buffered stream",
        BufferedNoise.KIND,
        error_laws.DiscreteGaussian(sigma_squared=_STREAM.noise),
        _buffered(_STREAM),
        _buffered(replace(_STREAM, noise=WEAK**2 * _STREAM.noise)),
        delta=1e-5,
        draws=3_000,
    ),
    noise(
        "stream, Gaussian noise",
        SeriesNoise.KIND,
        _EVENTS.law,
        _series(_EVENTS),
        _series(replace(_EVENTS, noise=WEAK * _EVENTS.noise)),
        delta=1e-5,
    ),
    noise(
        "stream, Laplace noise",
        SeriesNoise.KIND,
        _BRANCHES.law,
        _series(_BRANCHES),
        _series(replace(_BRANCHES, noise=WEAK * _BRANCHES.noise)),
    ),
    _degrees(DegreeNoise(nodes=3, epsilon=Fraction(1))),
    _cube(LInfKNorm.calibrated(dimensions=2, linf=1, epsilon=1)),
    _laddered("ladder", _LADDER, _doubled(_LADDER)),
    _laddered("two ladders", _LADDERS, _STEEPER),
    _capped(_CAPPED),
    _celled(_CELLS),
    _scaled(_SCALED, (40, 40)),
    _voted(_VOTES, replace(_VOTES, check_sigma=WEAK * _VOTES.check_sigma, sigma=WEAK * _VOTES.sigma)),
)


def _ranked(counts: Sequence[int]) -> list[Fraction]:
    """The log-weights of a median at ε = 1: as far as half of the rows lies outside of the ranks of each value."""
    half, below, found = Fraction(sum(counts), 2), 0, []
    for count in counts:
        found.append(-max(below - half, half - below - count, Fraction(0)))
        below += count
    return found


def _values(counts: Sequence[int]) -> tuple[list[int], list[int]]:
    """The values that have rows, and how many each has."""
    held = [place for place, count in enumerate(counts) if count]
    return held, [counts[place] for place in held]
