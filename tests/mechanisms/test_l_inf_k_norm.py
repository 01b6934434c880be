"""Cube noise: its loss is the largest move, its sampler draws exactly its law, and its law is what it says."""

from fractions import Fraction
from itertools import product
from math import comb, exp

import numpy as np
import pytest
from scipy.stats import chi2

from sfumato.core import enclosures
from sfumato.core.documents import canonical, encode, parse
from sfumato.core.guarantees import Pure
from sfumato.core.query import Mechanism
from sfumato.core.sensitivity import L1, LInf, Sensitivity
from sfumato.errors import InvalidInput, WrongNorm
from sfumato.laws import Cube, DiscreteLaplace
from sfumato.mechanisms import Laplace, LInfKNorm
from sfumato.noise import SystemWords
from sfumato.noise.cube import MOST_DIMENSIONS, _below, _ends, eulerian, sample_cube
from sfumato.noise.sums import wide
from sfumato.reports.declarations import DECLARATIONS
from tests.noise.replayed import ReplayedWordsForTests, enumerated

DRAWS = 200_000
ALPHA = 1e-9


def box(dimensions: int, reach: int) -> np.ndarray:
    grid = np.meshgrid(*[np.arange(-reach, reach + 1)] * dimensions, indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, dimensions)


# ------------------------------------------------------------------------------------------------------------- loss


@pytest.mark.claim("S0-03")
@pytest.mark.parametrize(("dimensions", "far"), [(1, 2), (2, 1), (2, 3), (3, 1), (3, 2)])
def test_the_loss_passes_the_exact_ratio_test(dimensions: int, far: int) -> None:
    """ln P(z)/P(z − d) = (‖z − d‖ − ‖z‖)/scale: over all z of a box and all moves d, at most the loss, and attained."""
    noise = LInfKNorm(dimensions=dimensions, linf=Fraction(1), scale=Fraction(3, 2))
    vectors, moves = box(dimensions, 5), box(dimensions, far)
    norms = np.abs(vectors).max(axis=1)
    worst = max(int(np.abs(np.abs(vectors - move).max(axis=1) - norms).max()) for move in moves)
    assert noise.loss(Sensitivity.of(linf=far)).guarantee == Pure(epsilon=worst / noise.scale)


def test_calibration_is_exact_and_asks_for_the_right_norm() -> None:
    noise = LInfKNorm.calibrated(dimensions=7, linf=LInf(Fraction(2)), epsilon="1/3")
    assert noise.scale == 6
    assert noise.event.guarantee == Pure(epsilon=Fraction(1, 3))
    assert noise == LInfKNorm.calibrated(dimensions=7, linf=2, epsilon="1/3")
    assert noise.loss(Sensitivity.of(linf=0)).guarantee == Pure(epsilon=Fraction(0))
    with pytest.raises(WrongNorm, match="given L1"):
        LInfKNorm.calibrated(dimensions=7, linf=L1(Fraction(2)), epsilon=1)
    with pytest.raises(WrongNorm, match="linf bound is needed"):
        noise.loss(Sensitivity.of(l1=2, l2_squared=4))
    for wrong in (0, -1, True, MOST_DIMENSIONS + 1):
        with pytest.raises(InvalidInput, match="dimensions"):
            LInfKNorm(dimensions=wrong, linf=Fraction(1), scale=Fraction(1))
    with pytest.raises(InvalidInput, match="scale = 0"):
        LInfKNorm(dimensions=2, linf=Fraction(1), scale=Fraction(0))


def test_it_is_a_document_and_a_mechanism() -> None:
    noise = LInfKNorm.calibrated(dimensions=3, linf=1, epsilon=1)
    again = DECLARATIONS.decode(parse(canonical(encode(noise))))
    assert again == noise
    assert isinstance(again, Mechanism)
    assert DECLARATIONS.decode(parse(canonical(encode(noise.law)))) == noise.law


@pytest.mark.alpha(1e-300)
def test_noise_is_added_to_whole_numbers_of_the_right_number() -> None:
    noise = LInfKNorm.calibrated(dimensions=3, linf=1, epsilon=1)
    noisy = noise.add_noise([10**6, 0, -5], SystemWords())
    assert {type(one) for one in noisy} == {int}
    assert abs(noisy[0] - 10**6) < 1000  # fails by chance with probability below e^-900
    for wrong in ([1, 1], [1.0, 1, 0], [True, True, False]):
        with pytest.raises(InvalidInput, match="3 whole numbers"):
            noise.add_noise(wrong, SystemWords())


# ---------------------------------------------------------------------------------------------------------- sampler


@pytest.mark.parametrize("dimensions", [1, 2, 3, 5, 8])
def test_radius_and_uniform_point_make_the_law(dimensions: int) -> None:
    """The identities of the proof, in whole numbers: B(d, ·) adds up to 2^d·d!, makes (2r + 1)^d, and is symmetric."""
    row = eulerian(dimensions)
    assert sum(row) == 2**dimensions * np.prod(range(1, dimensions + 1), dtype=object)
    assert row == row[::-1]
    assert min(row) == 1
    for r in range(20):
        made = sum(count * comb(r + dimensions - k, dimensions) for k, count in enumerate(row))
        assert made == (2 * r + 1) ** dimensions


@pytest.mark.parametrize(
    ("dimensions", "rate"), [(1, Fraction(1)), (4, Fraction(1, 7)), (6, Fraction(5)), (40, Fraction(2))]
)
@pytest.mark.parametrize("bits", [8, 64, 200])
def test_the_ends_of_the_first_choice_are_enclosed(dimensions: int, rate: Fraction, bits: int) -> None:
    weights = [count * enclosures.exp(-k * rate, bits=800) for k, count in enumerate(eulerian(dimensions))]
    total = enclosures.Enclosure(sum(w.low for w in weights), sum(w.high for w in weights))
    low, high = _ends(dimensions, rate, bits)
    assert low[-1] == high[-1] == 1 << bits
    reached = enclosures.Enclosure(Fraction(0), Fraction(0))
    for weight, down, up in zip(weights[:-1], low, high, strict=False):
        reached = reached + weight
        assert down <= (reached / total).low * 2**bits
        assert up >= int((reached / total).high * 2**bits)
        assert up - down <= 1


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 7, 8, 11, 16])
def test_every_number_below_a_bound_is_equally_likely(bound: int) -> None:
    masses, unresolved = enumerated(lambda words: int(_below(np.array([bound]), words)[0]), width=4, depth=3)
    assert set(masses) == set(range(bound))
    assert len(set(masses.values())) == 1
    assert unresolved < Fraction(1, 8)


@pytest.mark.long
@pytest.mark.alpha(1e-36)
def test_bounds_beyond_a_word_take_several() -> None:
    masses, _ = enumerated(lambda words: int(_below(np.array([21]), words)[0]), width=4, depth=4)
    assert set(masses) == set(range(21))
    assert len(set(masses.values())) == 1
    huge = _below(np.array([2**80] * 3, dtype=object), SystemWords())
    assert max(huge) > 2**40  # fails by chance with probability 2^-120


@pytest.mark.long
@pytest.mark.parametrize(
    ("dimensions", "scale"), [(1, Fraction(2)), (2, Fraction(1)), (3, Fraction(1, 2)), (2, Fraction(5, 2))]
)
@pytest.mark.alpha(3 * ALPHA)
def test_fresh_noise_has_the_law_and_neighbouring_laws_have_not(dimensions: int, scale: Fraction) -> None:
    """χ² at α = 1e-9 on the likeliest vectors. Twins: a scale 5% too small, and cubes taken as equally large."""
    vectors = box(dimensions, {1: 60, 2: 60, 3: 14}[dimensions])
    norms = np.abs(vectors).max(axis=1)
    weights = np.exp(-norms / float(scale))
    masses = weights / weights.sum()
    assert surprise(sample_cube(dimensions, scale, DRAWS, SystemWords()), vectors, masses) > ALPHA
    assert surprise(sample_cube(dimensions, scale * Fraction(19, 20), DRAWS, SystemWords()), vectors, masses) < ALPHA
    if dimensions > 1:
        wrong = np.array([sum(exp(-r / float(scale)) / (2 * r + 1) ** dimensions for r in range(n, 90)) for n in norms])
        assert surprise(sample_cube(dimensions, scale, DRAWS, SystemWords()), vectors, wrong / wrong.sum()) < ALPHA


def surprise(draws: np.ndarray, vectors: np.ndarray, masses: np.ndarray) -> float:
    likeliest = np.argsort(-masses, kind="stable")[:40]
    likeliest = likeliest[len(draws) * masses[likeliest] >= 100]  # where few are expected, χ² is larger than it says
    code = np.array([1000**i for i in range(vectors.shape[1])])
    counted = dict(zip(*(part.tolist() for part in np.unique(draws @ code, return_counts=True)), strict=True))
    seen = np.array([counted.get(int(one @ code), 0) for one in vectors[likeliest]])
    wanted = len(draws) * masses[likeliest]
    rest = (seen.sum() - wanted.sum()) ** 2 / (len(draws) - wanted.sum())
    return float(chi2.sf(((seen - wanted) ** 2 / wanted).sum() + rest, len(likeliest)))


@pytest.mark.alpha(1e-100)
def test_many_dimensions_and_scales_beyond_64_bits_are_drawn() -> None:
    assert sample_cube(200, Fraction(1, 10), 5, SystemWords()).shape == (5, 200)
    assert sample_cube(3, Fraction(1), 0, SystemWords()).shape == (0, 3)
    for scale in (Fraction(2**70), Fraction(2**60)):
        drawn = sample_cube(4, scale, 30, SystemWords())
        assert drawn.dtype == object
        assert 2**50 < max(map(abs, drawn.ravel())) < 2**80  # fails by chance with probability below 2^-400
    with pytest.raises(InvalidInput, match="at most 1,024"):
        sample_cube(1025, Fraction(1), 1, SystemWords())
    assert wide(np.array([-(2**63), 1]), 2).dtype == object
    assert wide(np.array([2**60 - 1]), 4).dtype == np.int64


def test_the_same_words_make_the_same_noise() -> None:
    words = np.arange(1, 200, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    one, two = (sample_cube(3, Fraction(5), 2, ReplayedWordsForTests(words)) for _ in range(2))
    assert (one == two).all()


# ------------------------------------------------------------------------------------------------------------- law


@pytest.mark.parametrize(
    ("dimensions", "scale"),
    [(1, Fraction(7, 3)), (2, Fraction(1)), (3, Fraction(1, 5)), (4, Fraction(2)), (9, Fraction(30))],
)
def test_tails_and_moments_are_those_of_the_sum_over_radii(dimensions: int, scale: Fraction) -> None:
    radius = np.arange(3000)
    weights = (2.0 * radius + 1) ** dimensions * np.exp(-radius / float(scale))
    weights /= weights.sum()
    law = Cube(dimensions=dimensions, scale=scale)
    assert float(law.variance) == pytest.approx((weights * radius * (radius + 1) / 3).sum(), rel=1e-9)
    mean = (weights * radius * (radius + 1) / (2 * radius + 1)).sum()
    assert float(law.mean_absolute_error) == pytest.approx(mean, rel=1e-9)
    for size, numbers in product((0, 1, 2, 10, 60), {1, 2, dimensions} - {0} if dimensions > 1 else {1}):
        inside = np.minimum(1.0, ((2 * size + 1) / (2 * radius + 1.0)) ** numbers)
        tail = law.largest_tail(size, numbers)
        assert float(tail.high) == pytest.approx((weights * (1 - inside)).sum(), rel=1e-7, abs=1e-14)
        assert tail.width <= tail.high * Fraction(1, 2**100)
    assert law.tail(3) == law.largest_tail(3, 1)


def test_one_dimension_is_laplace() -> None:
    for scale in (Fraction(1, 3), Fraction(2), Fraction(1000)):
        cube, laplace = Cube(dimensions=1, scale=scale), DiscreteLaplace(scale=scale)
        assert abs(cube.variance / laplace.variance - 1) < Fraction(1, 2**90)
        assert cube.margin(0.95) == laplace.margin(0.95)
        assert cube.quantile(0.01) == laplace.quantile(0.01)
        assert cube.quantile(0.99) == laplace.quantile(0.99)


@pytest.mark.alpha(3e-9)
def test_margins_are_the_least_that_cover_and_fresh_noise_keeps_them() -> None:
    """P(all within) is 1 − tail: 200,000 draws, Hoeffding at α = 1e-9; one step less covers too little."""
    law, limit = Cube(dimensions=4, scale=Fraction(2)), np.sqrt(np.log(2e9) / (2 * DRAWS))
    drawn = np.abs(sample_cube(4, Fraction(2), DRAWS, SystemWords()))
    for numbers in (1, 2, 4):
        margin = law.margin(0.95, numbers=numbers)
        assert law.covers(margin, 0.95, numbers=numbers)
        assert not law.covers(margin - 1, 0.95, numbers=numbers)
        within = (drawn[:, :numbers].max(axis=1) <= margin).mean()
        assert abs(within - (1 - float(law.largest_tail(margin, numbers).high))) < limit
    assert law.margin(0.95, numbers=4) < DiscreteLaplace(scale=Fraction(8)).margin(0.95, numbers=4)
    with pytest.raises(InvalidInput, match="has 4 numbers and not 5"):
        law.margin(0.95, numbers=5)
    with pytest.raises(InvalidInput, match="dimensions"):
        Cube(dimensions=1025, scale=Fraction(1))


@pytest.mark.long
def test_a_scale_so_small_that_there_is_no_noise_is_still_enclosed() -> None:
    law = Cube(dimensions=2, scale=Fraction(1, 10**6))
    assert 0 <= law.tail(0).low <= law.tail(0).high < Fraction(1, 2**1000)
    assert 0 < law.variance < Fraction(1, 2**1000)
    assert law.margin(0.999) == 0
    thin = Cube(dimensions=2, scale=Fraction(1, 100))
    assert float(thin.variance * 10**40) == pytest.approx(9 * 2 / 3 * exp(-100) * 1e40, rel=1e-9)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 10, 100])
def test_where_the_cube_beats_independent_noise(dimensions: int) -> None:
    """(d + 1)(d + 2)/3·b² against 2k²·b² where a unit moves k of d numbers; the lattice takes off less than 1/5."""
    b = Fraction(20)
    cube = LInfKNorm.calibrated(dimensions=dimensions, linf=1, epsilon=1 / b).law.variance
    assert 0 < Fraction((dimensions + 1) * (dimensions + 2), 3) * b**2 - cube < Fraction(1, 5)
    for moved in range(1, min(dimensions, 60) + 1):
        independent = Laplace.calibrated(l1=moved, epsilon=1 / b).law.variance
        if 6 * moved**2 != (dimensions + 1) * (dimensions + 2):
            assert (cube < independent) == (6 * moved**2 > (dimensions + 1) * (dimensions + 2))
