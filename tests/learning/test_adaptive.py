"""Adaptive clipping: what the count below the clip costs, how far a unit moves it, and where the clip goes."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement
from math import inf, nan

import pytest
from scipy.stats import chi2

import sfumato as sf
from sfumato.core import events
from sfumato.core.budget import Budget
from sfumato.core.documents import Registry, encode
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import record
from sfumato.errors import InvalidInput, Refused
from sfumato.learning import Units, adaptive
from sfumato.learning.adaptive import AdaptiveClip, AdaptiveCourse, AdaptiveSums, below, together, units_moved
from sfumato.learning.training import Training
from sfumato.noise import SystemWords
from tests.parts import package

package("torch")

import torch  # noqa: E402

from sfumato.learning.engine import Engine  # noqa: E402
from sfumato.learning.engine.bounds import LARGEST, SMALLEST  # noqa: E402

UNIT = 2**20
CLIP = 2.0
NORMS = (0.0, 1.75, 1.9, 2.25, 9.0, inf, nan)
Count = Callable[[list[float]], int]


def centred(norms: list[float]) -> int:
    return below(torch.tensor(norms, dtype=torch.float64), CLIP)


def uncentred(norms: list[float]) -> int:
    """The broken twin: a bit of 0 or 1."""
    return centred(norms) + len(norms) * UNIT // 2


def farthest(count: Count, *, replaced: bool) -> Fraction:
    """The largest move of a count over all pairs of neighbours with up to three units."""
    most = 0
    for others in combinations_with_replacement(NORMS, 2):
        for one in NORMS:
            here = count([*others, one])
            swapped = [count([*others, other]) for other in NORMS] if replaced else [count([*others])]
            most = max(most, *(abs(here - there) for there in swapped))
    return Fraction(most, UNIT)


def run(*, steps: int = 10, rate: Fraction = Fraction(1, 4)) -> Training:
    return Training(
        dataset=Dataset(name="visits", edition="1"),
        units="record",
        clip=Fraction(3),
        times=1,
        records=1,
        number=100,
        rate=rate,
        steps=steps,
        parameters=7,
    )


def test_a_unit_moves_the_count_by_half_and_reaches_it() -> None:
    assert farthest(centred, replaced=False) == Fraction(1, 2)
    assert farthest(centred, replaced=True) == 1


@pytest.mark.parametrize("moved", [1, 2])
def test_no_neighbours_are_further_apart_than_the_cost_says(moved: int) -> None:
    """The squared distance of two Gaussians with these means is what their multiplier promises: 1/z²."""
    follow, for_sums = AdaptiveClip(noise=Fraction(3)), Fraction(2)
    allowed = 1 / follow.squared(for_sums, moved=moved)
    by_sums = 1 / for_sums**2
    for count, holds in ((centred, True), (uncentred, moved == 2)):  # a swap hides the missing half
        apart = by_sums + (farthest(count, replaced=moved == 2) / follow.noise) ** 2
        assert (apart <= allowed) is holds
        if holds:
            assert apart > allowed * Fraction(98, 100)


def test_the_cost_is_that_of_both_together() -> None:
    follow = AdaptiveClip(noise=Fraction(5))
    bit = Fraction(129, 128) / 10
    assert follow.squared(Fraction(2), moved=1) == 1 / (Fraction(1, 4) + bit**2)
    assert follow.squared(Fraction(2), moved=3) == 1 / (Fraction(1, 4) + (3 * bit) ** 2)
    assert together(Fraction(3), Fraction(4)) == Fraction(144, 25)


@pytest.mark.parametrize("z", [Fraction(1, 2), Fraction(1), Fraction(7, 3)])
@pytest.mark.parametrize("moved", [1, 2, 5])
def test_the_sums_pay_for_the_count_rounded_up(z: Fraction, moved: int) -> None:
    follow = AdaptiveClip(noise=Fraction(20))
    for_sums = follow.for_sums(z, moved=moved)
    assert z**2 <= follow.squared(for_sums, moved=moved) < z**2 * Fraction(10**5 + 1, 10**5)
    assert for_sums > z


def test_a_count_that_eats_the_whole_guarantee_is_refused() -> None:
    follow = AdaptiveClip(noise=Fraction(129, 256))  # of multiplier 1 for one unit
    assert follow.for_sums(Fraction(99, 100), moved=1) > 7
    with pytest.raises(Refused, match="nothing is left"):
        follow.for_sums(Fraction(1), moved=1)
    with pytest.raises(Refused, match="nothing is left"):
        follow.for_sums(Fraction(99, 100), moved=2)


@pytest.mark.parametrize("changed", [{"noise": 0}, {"quantile": 0}, {"quantile": 1}, {"rate": 2}, {"widest": 0}])
def test_what_cannot_be_followed_is_refused(changed: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        AdaptiveClip(**{"noise": Fraction(1), **changed})  # type: ignore[arg-type]


def test_places_that_are_not_there_count_nothing() -> None:
    norms = torch.tensor([0.0, 0.0, nan, 9.0])
    assert below(norms, CLIP, torch.tensor([True, False, False, False])) == UNIT // 2
    assert below(norms, CLIP, torch.zeros(4, dtype=torch.bool)) == 0
    assert below(torch.empty(0), CLIP) == 0


def test_a_hair_in_a_norm_moves_a_bit_by_a_hair() -> None:
    """A thousand norms at the clip, each rounded otherwise: a hard bit would flip a thousand times."""
    here = torch.full((1000,), CLIP, dtype=torch.float64)
    assert abs(below(here * (1 + 2**-24), CLIP) - below(here, CLIP)) <= UNIT / 256


def spread(noise: Fraction, draws: int = 1500) -> float:
    follow, words = AdaptiveClip(noise=noise), SystemWords()
    return sum((follow.told(0, words) / UNIT) ** 2 for _ in range(draws)) / draws


@pytest.mark.alpha(1e-9)
def test_the_count_carries_the_noise_that_it_says() -> None:
    """The mean of 1,500 squares by the χ² law: α = 1e-9; noise that is 25% less passes with probability 1e-23."""
    low, high = (float(chi2.ppf(share, 1500)) / 1500 for share in (5e-10, 1 - 5e-10))
    assert low <= spread(Fraction(3)) / 9 <= high
    assert not low <= spread(Fraction(9, 4)) / 9 <= high  # the twin


def test_the_clip_goes_where_the_quantile_is_and_is_the_same_everywhere() -> None:
    norms = torch.arange(1, 201, dtype=torch.float64) / 20  # 0.05 … 10
    follow = AdaptiveClip(noise=Fraction(1), quantile=Fraction(1, 4), rate=Fraction(1))
    clip = first = Fraction(1, 10)
    for _ in range(100):
        clip = follow.follow(clip, below(norms, float(clip)), first=first, expected=Fraction(200))
        assert Fraction(float(torch.tensor(float(clip), dtype=torch.float32))) == clip
    assert abs(float(clip) - 2.5) < 0.1
    assert follow.follow(Fraction(1), -(10**9), first=first, expected=Fraction(200)) > 1


def test_the_clip_stays_within_its_bounds() -> None:
    follow, first = AdaptiveClip(noise=Fraction(1), rate=Fraction(1), widest=2), Fraction(3)
    high = low = first
    for _ in range(5):
        high = follow.follow(high, -(2**40), first=first, expected=Fraction(10))
        low = follow.follow(low, 2**40, first=first, expected=Fraction(10))
    assert (low, high) == (Fraction(3, 2), Fraction(6))


@pytest.mark.claim("S3-02")
def test_a_run_states_the_event_of_both() -> None:
    moved = run().sensitivity(record(relation="add/remove"), None)
    follow = AdaptiveClip(noise=Fraction(10))
    noise = AdaptiveSums.calibrated(run(), Budget(epsilon=1, delta=1e-5), follow, moved=moved)
    event = noise.loss(moved)
    assert isinstance(event, events.Repeated)
    assert event.times == 10
    assert isinstance(event.event, events.PoissonSampled)
    assert event.event.rate == Fraction(1, 4)
    assert event.event.event == events.Gaussian(
        l2_squared=Fraction(1), sigma_squared=follow.squared(noise.multiplier, moved=1)
    )
    full = AdaptiveSums(
        multiplier=Fraction(1), steps=2, rate=Fraction(1), parameters=7, clip=Fraction(3), follow=follow
    ).loss(moved)
    assert isinstance(full, events.Repeated)
    assert isinstance(full.event, events.Gaussian)
    with pytest.raises(InvalidInput, match="delta"):
        AdaptiveSums.calibrated(run(), Budget(epsilon=1), follow, moved=moved)


def test_the_sensitivity_must_be_whole_clips() -> None:
    assert units_moved(Sensitivity.of(l2_squared=36), Fraction(2)) == 3
    for squared in (Fraction(0), Fraction(8), Fraction(1)):
        with pytest.raises(Refused, match="whole number of clips"):
            units_moved(Sensitivity.of(l2_squared=squared), Fraction(2))


def test_the_mechanism_can_be_written_down_and_read() -> None:
    noise = AdaptiveSums(
        multiplier=Fraction(1),
        steps=2,
        rate=Fraction(1, 2),
        parameters=7,
        clip=Fraction(3),
        follow=AdaptiveClip(noise=Fraction(1)),
    )
    assert Registry((AdaptiveSums, AdaptiveClip)).decode(encode(noise), "mechanism") == noise


@pytest.mark.long
def test_a_run_follows_its_clip_and_states_what_it_cost() -> None:
    """End to end: the clip begins far too large and comes down; the certificate holds the whole mechanism."""
    here = sf.Vault(unit=record(relation="add/remove"), budget=Budget(epsilon=4, delta=1e-6), name="trial")
    made = torch.Generator().manual_seed(4)
    x = torch.randn((300, 3), generator=made)
    y = (x[:, 0] > 0).long()
    model = torch.nn.Linear(3, 2)
    trainer = here.trainer(
        model, torch.nn.functional.cross_entropy, data=Units(x, y, n_units=300, name="v", version="1"), clip=100
    )
    follow = AdaptiveClip(noise=Fraction(4), rate=Fraction(1))
    clips: list[Fraction] = []
    original = AdaptiveCourse.release

    def released(course: AdaptiveCourse, total: torch.Tensor) -> torch.Tensor:
        noisy: torch.Tensor = original(course, total)
        clips.append(course.clip)
        return noisy

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(AdaptiveCourse, "release", released)
        trained = trainer.fit(steps=20, batch=300, epsilon=4, delta=1e-6, noise=follow)
    assert len(clips) == 20
    assert clips[-1] < 5
    said = trained.release.statement
    assert isinstance(said.mechanism, AdaptiveSums)
    assert said.mechanism.follow == follow
    assert said.event == said.mechanism.loss(said.sensitivity)
    assert here.left.epsilon == 0


@pytest.mark.alpha(1e-20)
def test_a_course_that_is_resumed_keeps_its_clip() -> None:
    moved = run().sensitivity(record(relation="add/remove"), None)
    noise = AdaptiveClip(noise=Fraction(5)).mechanism(run(), Budget(epsilon=1, delta=1e-5), moved)
    first, second = (noise.course(run(), moved, SystemWords()) for _ in range(2))
    first.observe(torch.zeros(100), torch.ones(100, dtype=torch.bool))  # 50 less noise of 5: the clip stays with e^−50
    first.release(torch.zeros(7, dtype=torch.float64))
    second.load(first.state())
    assert second.clip == first.clip != noise.clip


def test_a_mechanism_for_another_clip_is_told_from_that_of_the_run() -> None:
    moved, unit = run().sensitivity(record(relation="add/remove"), None), record(relation="add/remove")
    noise = AdaptiveClip(noise=Fraction(5)).mechanism(run(), Budget(epsilon=1, delta=1e-5), moved)
    assert run().mismatch(noise, unit) is None
    assert "clip" in str(run().mismatch(replace(noise, clip=Fraction(1)), unit))


def test_the_clip_never_leaves_what_the_engine_takes() -> None:
    """Else a run would fail after its charge. The twin without these bounds leaves them."""
    assert (float(adaptive.LEAST), float(adaptive.MOST)) == (SMALLEST, LARGEST)
    follow = AdaptiveClip(noise=Fraction(1), rate=Fraction(1), widest=2**30)
    for first, told in ((Fraction(1, 2**39), 10**9), (Fraction(2**39), -(10**9))):
        clip, free = first, first
        for _ in range(12):
            clip = follow.follow(clip, told, first=first, expected=Fraction(10))
            free = replace(follow).follow(Fraction(1), told, first=Fraction(1), expected=Fraction(10)) * free
            assert SMALLEST <= float(clip) <= LARGEST
        assert not SMALLEST <= float(free) <= LARGEST
        Engine(torch.nn.Linear(1, 1), torch.nn.functional.mse_loss, clip=float(clip))


def test_a_first_clip_beyond_the_engine_is_refused() -> None:
    with pytest.raises(InvalidInput, match="2\\^40"):
        AdaptiveSums(
            multiplier=Fraction(1),
            steps=1,
            rate=Fraction(1),
            parameters=1,
            clip=Fraction(2**41),
            follow=AdaptiveClip(noise=Fraction(9)),
        )


def test_a_unit_without_a_gradient_counts_as_below() -> None:
    """The engine gives it the norm 0: it adds nothing to the sum."""
    engine = Engine(torch.nn.Linear(1, 1), torch.nn.functional.mse_loss, clip=1.0)
    norms = engine.sum(torch.tensor([[nan]]), torch.zeros(1, 1)).norms
    assert norms.tolist() == [0.0]
    assert below(norms, 1.0) == UNIT // 2
