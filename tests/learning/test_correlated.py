"""Correlated noise: who counts when, how far a unit moves the measurements, and what the noise of the sums is."""

import io
from fractions import Fraction
from itertools import pairwise, product
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core import events
from sfumato.core.budget import Budget
from sfumato.core.documents import Registry, encode
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import record
from sfumato.errors import InvalidInput, Refused
from sfumato.learning import AdaptiveClip, Units
from sfumato.learning.correlated import Correlated, CorrelatedSums, Cycle
from sfumato.learning.noisy_sums import WIDTH
from sfumato.learning.training import Training
from sfumato.noise import SystemWords
from tests.noise.replayed import ReplayedWordsForTests, enumerated, fresh
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import nn  # noqa: E402

ONE = Sensitivity.of(l2_squared=1)


def sums(*, steps: int, buckets: int, bands: int, size: int = 1, z: Fraction = Fraction(1)) -> CorrelatedSums:
    return CorrelatedSums(
        multiplier=z, steps=steps, rate=Fraction(1, buckets), parameters=size, clip=Fraction(1), bands=bands
    )


def strategy(said: CorrelatedSums) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """C, entry by entry."""
    found = np.zeros((said.steps, said.steps))
    for row, column in product(range(said.steps), repeat=2):
        if 0 <= row - column < said.bands:
            found[row, column] = said.column[row - column] / 1024
    return found


SMALL = [
    (steps, buckets, bands) for steps in (1, 4, 6) for buckets in (1, 2, 3) for bands in (1, 2, 4) if bands <= steps
]


def farthest(said: CorrelatedSums, places: list[list[int]]) -> float:
    """The largest ‖C·Δ‖² over all ways in which a unit counts by −1, 0 or 1 at these places; by enumeration."""
    mix, most = strategy(said), 0.0
    for mine in places:
        for signs in product((-1, 0, 1), repeat=len(mine)):
            moved = np.zeros(said.steps)
            moved[mine] = signs
            most = max(most, float(((mix @ moved) ** 2).sum()))
    return most


@pytest.mark.parametrize(("steps", "buckets", "bands"), SMALL)
def test_no_unit_of_the_cycle_moves_the_measurements_further(steps: int, buckets: int, bands: int) -> None:
    said = sums(steps=steps, buckets=buckets, bands=bands)
    places = [list(range(first, steps, buckets)) for first in range(min(buckets, steps))]
    assert farthest(said, places) == pytest.approx(float(said.squared), rel=1e-12)


def test_a_unit_that_counts_at_every_step_is_caught() -> None:
    """The broken twin: a sampler that does not keep to the cycle."""
    said = sums(steps=6, buckets=3, bands=4)
    assert farthest(said, [list(range(6))]) > 1.5 * float(said.squared)


def test_a_cycle_holds_every_unit_to_its_pattern() -> None:
    for steps, buckets in product((1, 5, 8), (1, 3, 8, 9)):
        pattern = Cycle(steps=steps, buckets=buckets).pattern
        for bucket in range(buckets):
            mine = [step for step in range(steps) if step % buckets == bucket]
            assert len(mine) <= pattern.times
            assert all(later - earlier >= pattern.separation for earlier, later in pairwise(mine))


@pytest.mark.alpha(1e-60)
def test_buckets_are_uniform_and_independent() -> None:
    """Exact: all sequences of words of three bits; what is open lies in words that were drawn again."""
    cycle = Cycle(steps=3, buckets=3)
    masses, left = enumerated(lambda words: tuple(cycle.drawn(2, words).tolist()), width=3, depth=5)
    assert len(masses) == 9
    assert len(set(masses.values())) == 1
    assert left == Fraction(1, 64)
    assert set(Cycle(steps=9, buckets=4).drawn(1000, SystemWords()).tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize("units", [1, 2])
def test_the_rounded_mixes_of_neighbours_stay_within_the_noise(units: int) -> None:
    """What is really computed, for sums of neighbours that differ by units at the places of the cycle."""
    said = sums(steps=6, buckets=2, bands=4, size=400, z=Fraction(2))
    moved = Sensitivity.of(l2_squared=units**2)
    allowed = WIDTH / float(said.multiplier)
    made = torch.Generator().manual_seed(5)
    most = 0.0
    for attempt in range(20):
        base = torch.randn((6, 400), generator=made, dtype=torch.float64) * 10
        here, there = (said.open(moved, SystemWords()) for _ in range(2))
        direction = torch.ones(400, dtype=torch.float64) if attempt % 2 else torch.eye(1, 400, dtype=torch.float64)[0]
        direction = units * direction / direction.norm()
        apart = 0.0
        for step, exact in enumerate(base):
            other = exact + direction if step % 2 == 0 else exact
            apart += float((here.mixed(exact) - there.mixed(other)).double().square().sum())
        most = max(most, sqrt(apart))
    assert 0.95 * allowed < most <= allowed


def test_the_twin_with_another_pattern_leaves_the_noise() -> None:
    said = sums(steps=6, buckets=2, bands=4, size=4, z=Fraction(2))
    here, there = (said.open(ONE, SystemWords()) for _ in range(2))
    apart = 0.0
    for _ in range(6):  # at every step, and not at every second
        apart += float((here.mixed(torch.zeros(4)) - there.mixed(torch.tensor([1.0, 0, 0, 0]))).double().square().sum())
    assert sqrt(apart) > 1.3 * WIDTH / float(said.multiplier)


def noise_of(said: CorrelatedSums) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """The noise of every step (steps, numbers), in standard deviations of a measurement."""
    run = said.open(ONE, SystemWords())
    sigma = float(said.pitch(ONE)) * WIDTH
    return np.stack([run.release(torch.zeros(said.parameters)).numpy() / sigma for _ in range(said.steps)])


@pytest.mark.alpha(2e-9)
def test_the_noise_of_the_sums_is_that_of_the_inverse() -> None:
    """Cov = C⁻¹·C⁻ᵀ, entry by entry. α below 2e-9 (±6.5 standard errors, 15 entries, 20,000 numbers).

    Noise that is 20% stronger lies 16 standard errors out, and is missed in fewer than 1 of 1e20 runs.
    """
    said = sums(steps=5, buckets=5, bands=4, size=20_000)
    drawn = noise_of(said)
    found = drawn @ drawn.T / said.parameters

    def fits(wanted: "np.ndarray[tuple[int, int], np.dtype[np.float64]]") -> bool:
        error = np.sqrt((np.outer(np.diag(wanted), np.diag(wanted)) + wanted**2) / said.parameters)
        return bool((np.abs(found - wanted) <= 6.5 * error).all())

    back = np.linalg.inv(strategy(said))
    assert fits(back @ back.T)
    assert not fits(np.eye(5))  # the twin: independent noise
    assert not fits(1.2 * back @ back.T)


def test_running_totals_carry_less_noise_than_with_independent_draws() -> None:
    """One pass over the units, 64 steps: the same promise, and the mean variance of the totals is less than a third."""

    def mean_variance(bands: int) -> float:
        said = sums(steps=64, buckets=64, bands=bands)
        back = np.tril(np.ones((64, 64))) @ np.linalg.inv(strategy(said))
        return float((back**2).sum() / 64 * said.squared)

    assert mean_variance(64) < mean_variance(1) / 3


@pytest.mark.alpha(1e-100)
def test_sums_come_back_and_runs_end() -> None:
    said = sums(steps=3, buckets=3, bands=2, size=2, z=Fraction(1, 1000))
    run = said.open(ONE, SystemWords())
    for step in range(3):
        exact = torch.tensor([100.0 * step, -7.0])
        assert torch.allclose(run.release(exact).float(), exact, atol=0.1)
    with pytest.raises(Refused, match="has had them"):
        run.release(exact)
    with pytest.raises(InvalidInput, match="3 numbers"):
        said.open(ONE, SystemWords()).release(torch.zeros(3))


def test_a_run_that_is_resumed_goes_on_as_it_would_have() -> None:
    said, random = sums(steps=6, buckets=2, bands=3, size=8), fresh(4000)
    exact = torch.arange(48.0).reshape(6, 8)
    whole = said.open(ONE, ReplayedWordsForTests(random))
    at_once = [whole.release(row) for row in exact]
    words = ReplayedWordsForTests(random)
    first = said.open(ONE, words)
    told = [first.release(row) for row in exact[:4]]
    later = said.open(ONE, words)
    later.load(first.state())
    told += [later.release(row) for row in exact[4:]]
    assert torch.equal(torch.stack(told), torch.stack(at_once))
    assert later.step == 6


def test_one_gaussian_pays_for_the_whole_run() -> None:
    training = Training(
        dataset=Dataset(name="visits", edition="1"),
        units="record",
        clip=Fraction(1),
        times=1,
        records=1,
        number=100,
        rate=Fraction(1, 4),
        steps=8,
        parameters=7,
    )
    said = CorrelatedSums.calibrated(training, Budget(epsilon=1, delta=1e-5), bands=4)
    assert said.loss(training.sensitivity(record(relation="add/remove"), None)).sigma_squared == said.multiplier**2
    assert 3.7306 < float(said.multiplier) < 3.7307
    with pytest.raises(InvalidInput, match="delta"):
        CorrelatedSums.calibrated(training, Budget(epsilon=1), bands=4)


def test_what_no_cycle_can_be_is_refused() -> None:
    for changed in ({"rate": Fraction(2, 5)}, {"bands": 9}, {"clip": Fraction(0)}):
        with pytest.raises(InvalidInput):
            CorrelatedSums(
                **{  # type: ignore[arg-type]
                    "multiplier": Fraction(1),
                    "steps": 8,
                    "rate": Fraction(1, 4),
                    "parameters": 7,
                    "clip": Fraction(1),
                    "bands": 2,
                    **changed,
                }
            )
    with pytest.raises(Refused, match="no room"):
        sums(steps=1024, buckets=4, bands=512, size=10**9)


def test_the_mechanism_can_be_written_down_and_read() -> None:
    said = sums(steps=6, buckets=2, bands=3, size=8)
    assert Registry((CorrelatedSums,)).decode(encode(said), "mechanism") == said


def trained(noise: Correlated, *, steps: int = 24) -> tuple[sf.Vault, Release, nn.Module]:
    here = sf.Vault(unit=record(relation="add/remove"), budget=Budget(epsilon=8, delta=1e-6), name="trial")
    made = torch.Generator().manual_seed(4)
    x = torch.randn((240, 3), generator=made)
    y = (x[:, 0] > 0).long()
    model = nn.Linear(3, 2)
    trainer = here.trainer(model, nn.functional.cross_entropy, data=Units(x, y, n_units=240, name="v", version="1"))
    release = trainer.fit(steps=steps, batch=40, epsilon=8, delta=1e-6, lr=0.5, noise=noise).release
    with torch.no_grad():
        assert float((model(x).argmax(1) == y).float().mean()) > 0.7
    return here, release, model


def test_a_run_with_correlated_noise_is_one_gaussian_event(tmp_path: Path) -> None:
    here, release, _ = trained(Correlated(bands=8))
    said = release.statement
    assert isinstance(said.mechanism, CorrelatedSums)
    assert said.mechanism.cycle == Cycle(steps=24, buckets=6)
    assert isinstance(said.event, events.Gaussian)
    assert here.left.epsilon == 0
    release.certificate.save(tmp_path / "run.json")
    assert sf.load(tmp_path / "run.json", key=here.public_key).statement == said


def test_every_unit_counts_at_the_steps_of_its_bucket_and_no_other() -> None:
    training = Training(
        dataset=Dataset(name="visits", edition="1"),
        units="record",
        clip=Fraction(1),
        times=1,
        records=1,
        number=50,
        rate=Fraction(1, 5),
        steps=12,
        parameters=3,
    )
    said = Correlated(bands=99).mechanism(training, Budget(epsilon=1, delta=1e-5), ONE)
    assert said.bands == 12
    first = said.course(training, ONE, SystemWords())
    seen: dict[int, list[int]] = {place: [] for place in range(50)}
    for step in range(12):
        if step == 7:  # a crash: the buckets are those of before
            second = said.course(training, ONE, SystemWords())
            second.load(first.state())
            first = second
        for place in first.places(50, step).tolist():
            seen[place].append(step)
        first.release(torch.zeros(3, dtype=torch.float64))
    assert all({step % 5 for step in steps} == {steps[0]} for steps in seen.values())
    assert all(len(steps) == len(range(steps[0], 12, 5)) for steps in seen.values())


def test_steps_out_of_turn_and_other_units_are_refused() -> None:
    said = sums(steps=6, buckets=2, bands=3)
    course = said.course(None, ONE, SystemWords())  # type: ignore[arg-type]
    course.places(10, 0)
    with pytest.raises(Refused, match="not the next one"):
        course.places(10, 1)
    with pytest.raises(Refused, match="began with"):
        course.places(11, 0)


def test_what_a_state_takes_hangs_on_no_number_of_units() -> None:
    said, lengths = sums(steps=6, buckets=2, bands=3), set()
    for units in (0, 1, 255, 256, 70_000):
        course = said.course(None, ONE, SystemWords())  # type: ignore[arg-type]
        course.places(units, 0)
        course.release(torch.zeros(1, dtype=torch.float64))
        room = io.BytesIO()
        torch.save(course.state(), room)
        lengths.add(len(room.getvalue()))
    assert len(lengths) == 1


def test_a_state_that_lists_the_bucket_of_each_unit_is_refused() -> None:
    said = sums(steps=6, buckets=2, bands=3)
    course = said.course(None, ONE, SystemWords())  # type: ignore[arg-type]
    with pytest.raises(Refused, match="earlier version"):
        course.load({"step": 1, "sums": [], "told": [], "buckets": torch.zeros(3, dtype=torch.int64)})


def test_a_batch_that_does_not_divide_the_units_is_refused() -> None:
    training = Training(
        dataset=Dataset(name="visits", edition="1"),
        units="record",
        clip=Fraction(1),
        times=1,
        records=1,
        number=50,
        rate=Fraction(3, 50),
        steps=12,
        parameters=3,
    )
    with pytest.raises(InvalidInput, match="divides the number"):
        Correlated().mechanism(training, Budget(epsilon=1, delta=1e-5), ONE)


@pytest.mark.few(1)
@pytest.mark.parametrize("noise", [Correlated(bands=4), AdaptiveClip(noise=Fraction(5))], ids=["cycle", "adaptive"])
def test_a_run_that_was_stopped_goes_on_from_its_sealed_state(noise: Correlated | AdaptiveClip, tmp_path: Path) -> None:
    here = sf.Vault(unit=record(relation="add/remove"), budget=Budget(epsilon=8, delta=1e-6), name="trial")
    x = torch.linspace(-1, 1, 60)[:, None]
    data = Units(x, (x[:, 0] > 0).long(), n_units=60, name="v", version="1")
    model = nn.Linear(1, 2)
    trainer = here.trainer(model, nn.functional.cross_entropy, data=data)
    said: dict[str, Any] = {"steps": 6, "batch": 60, "every": 2, "epsilon": 8, "delta": 1e-6, "noise": noise}

    class Stopped(Exception):
        pass

    def stop(step: int, weights: object) -> None:
        if step == 4:
            raise Stopped

    with pytest.raises(Stopped):
        trainer.fit(**said, checkpoint=tmp_path / "run.state", callback=stop)
    assert here.left.epsilon == 0
    release = trainer.fit(**said, checkpoint=tmp_path / "run.state", resume=True).release
    assert release.statement.query.done == 6  # type: ignore[attr-defined]
    assert here.left.epsilon == 0


def test_what_a_cycle_under_replace_is_refused_for_holds_for_cycles_too() -> None:
    """There is no sample in it: the reason must not say that there is one and no more."""
    vault = sf.Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=9, delta=1e-6), name="trial")
    data = Units(torch.zeros(20, 2), torch.zeros(20, dtype=torch.long), n_units=20, name="visits", version="1")
    trainer = vault.trainer(nn.Linear(2, 2), nn.functional.cross_entropy, data=data)
    with pytest.raises(Refused, match="buckets of a cycle"):
        trainer.plan(epsilon=1, delta=1e-6, steps=4, batch=10, noise=Correlated(bands=2))
    whole = trainer.plan(epsilon=1, delta=1e-6, steps=4, batch=20, noise=Correlated(bands=2))
    assert whole.query.rate == 1


def test_what_is_no_noise_or_no_copies_is_refused_in_words() -> None:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9, delta=1e-6), name="trial")
    data = Units(torch.zeros(20, 2), torch.zeros(20, dtype=torch.long), n_units=20, name="visits", version="1")
    trainer = vault.trainer(nn.Linear(2, 2), nn.functional.cross_entropy, data=data)
    with pytest.raises(InvalidInput, match="AdaptiveClip"):
        trainer.fit(epsilon=1, delta=1e-6, steps=4, batch=10, noise="x")
    with pytest.raises(InvalidInput, match="Multiplied"):
        vault.trainer(nn.Linear(2, 2), nn.functional.cross_entropy, data=data, augmentations="x")
    assert vault.left.epsilon == 9
