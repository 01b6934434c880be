"""What a training run states of itself, in exact numbers: sensitivities, noise, events, and whom it protects."""

from fractions import Fraction
from typing import Any

import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.events import Gaussian, PoissonSampled, Repeated
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.learning.noisy_sums import NoisySums, pitch_for
from sfumato.learning.rounding_error import SLACK, WIDTH
from sfumato.learning.training import Training

pytestmark = pytest.mark.kills


def run(**said: Any) -> Training:
    facts: dict[str, Any] = {
        "dataset": Dataset(name="visits", edition="1"),
        "units": "record",
        "clip": Fraction(1, 2),
        "times": 1,
        "records": 1,
        "number": 1000,
        "rate": Fraction(1),
        "steps": 10,
        "parameters": 7,
    }
    return Training(**{**facts, **said})


@pytest.mark.claim("S1-13")
def test_sampled_records_are_no_sampled_persons() -> None:
    """With a rate of 1% a person with 100 records is in 63.4% of the steps: no amplification is claimed for that."""
    many = run(times=100, rate=Fraction(1, 100))
    user = sf.user("id", relation="add/remove")
    with pytest.raises(errors.Refused, match=r"up to 0\.634 of the time, not 1/100"):
        many.sensitivity(user, many.limit(user))


def test_sampling_is_not_claimed_under_replace() -> None:
    unit = sf.record(relation="replace")
    with pytest.raises(errors.Refused, match="add/remove alone"):
        run(rate=Fraction(1, 2)).sensitivity(unit, None)
    assert run().sensitivity(unit, None) == Sensitivity.of(l2_squared=1)


@pytest.mark.parametrize(
    ("unit", "said", "words"),
    [
        (sf.edge(relation="add/remove"), {}, "protects records or users"),
        (sf.record(relation="add/remove"), {"units": "user"}, "the vault protects records"),
    ],
)
def test_others_are_not_protected(unit: Any, said: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.SfumatoError, match=words):
        run(**said).sensitivity(unit, None)


def test_the_limit_must_be_the_one_that_is_enforced() -> None:
    with pytest.raises(errors.Refused, match="the limit of this training"):
        run(units="user", records=5).sensitivity(
            sf.user("id", relation="add/remove"), sf.Limit(groups=1, rows_per_group=4)
        )


@pytest.mark.parametrize("z", [Fraction(1, 3), Fraction(2), Fraction(500)])
@pytest.mark.parametrize("parameters", [1, 1000, 10**5])
@pytest.mark.parametrize("moved", [Fraction(1, 10), Fraction(1), Fraction(77)])
def test_the_noise_is_the_multiplier_times_all_that_a_unit_moves(z: Fraction, parameters: int, moved: Fraction) -> None:
    pitch = pitch_for(moved, z, parameters)
    assert float(pitch) == pitch
    most = moved * (1 + SLACK) + Fraction(17, 16) * Fraction(int(parameters**0.5 * 2**40) - 1, 2**40) * pitch
    assert WIDTH * pitch >= z * most
    assert WIDTH * pitch <= z * most * (1 + Fraction(1, 10**6)) + z * pitch


def test_noise_that_leaves_no_room_for_rounding_is_refused() -> None:
    with pytest.raises(errors.Refused, match="no room for rounding"):
        NoisySums(multiplier=Fraction(300), steps=1, rate=Fraction(1), parameters=10**6)


def test_a_mechanism_is_for_its_run() -> None:
    noise = NoisySums(multiplier=Fraction(2), steps=10, rate=Fraction(1), parameters=7)
    unit = sf.record(relation="add/remove")
    assert run().mismatch(noise, unit) is None
    for name, other in (("steps", 9), ("rate", Fraction(1, 2)), ("parameters", 8)):
        assert name in (run(**{name: other}).mismatch(noise, unit) or "")
    assert run().misfit(noise, unit, ()) == "must have trained weights, identified by their digest"
    assert run(weights="0" * 64).misfit(noise, unit, ()) is None


def test_delta_is_needed() -> None:
    with pytest.raises(errors.InvalidInput, match="delta above 0"):
        NoisySums.calibrated(run(), sf.Budget(epsilon=1))


@pytest.mark.claim("S3-02")
@pytest.mark.parametrize(("relation", "swap"), [("add/remove", 1), ("replace", 2)])
@pytest.mark.parametrize("times", [1, 3])
def test_the_sum_moves_by_the_clip_for_each_unit(relation: str, swap: int, times: int) -> None:
    for unit in (sf.record(relation=relation), sf.user("id", relation=relation)):
        made = run(times=times)
        assert made.sensitivity(unit, made.limit(unit)) == Sensitivity.of(l2_squared=Fraction((swap * times) ** 2, 4))
    assert made.limit(unit) == sf.Limit(groups=times, rows_per_group=1)
    assert made.limit(sf.record(relation=relation)) is None


def test_a_person_is_one_unit_of_several_records() -> None:
    made, unit = run(units="user", records=9, rate=Fraction(1, 9)), sf.user("id", relation="add/remove")
    assert made.limit(unit) == sf.Limit(groups=1, rows_per_group=9)
    assert made.sensitivity(unit, made.limit(unit)) == Sensitivity.of(l2_squared=Fraction(1, 4))
    with pytest.raises(errors.InvalidInput, match="one unit"):
        run(units="user", times=2)


def test_what_is_sampled_once_may_be_sampled() -> None:
    with pytest.raises(errors.Refused, match="may be in 2 of them"):
        run(times=2, rate=Fraction(1, 2)).sensitivity(sf.record(relation="add/remove"), None)
    half = run(rate=Fraction(1, 2))
    assert half.sensitivity(sf.record(relation="add/remove"), None) == Sensitivity.of(l2_squared=Fraction(1, 4))


def test_the_event_is_that_of_all_steps_and_their_samples() -> None:
    moved = Sensitivity.of(l2_squared=9)
    noise = NoisySums(multiplier=Fraction(3, 2), steps=7, rate=Fraction(1, 3), parameters=4)
    step = Gaussian(l2_squared=Fraction(1), sigma_squared=Fraction(9, 4))
    assert noise.loss(moved) == Repeated(event=PoissonSampled(rate=Fraction(1, 3), event=step), times=7)
    whole = NoisySums(multiplier=Fraction(3, 2), steps=7, rate=Fraction(1), parameters=4)
    assert whole.loss(moved) == Repeated(event=step, times=7)
    with pytest.raises(errors.WrongNorm):
        noise.loss(Sensitivity.of(l1=3))
    assert noise.pitch(moved) == pitch_for(Fraction(3), Fraction(3, 2), 4)
    assert noise.law.sigma == WIDTH


@pytest.mark.parametrize(
    "said",
    [
        {"clip": 0},
        {"rate": 0},
        {"rate": Fraction(3, 2)},
        {"steps": 0},
        {"number": 0},
        {"parameters": 0},
        {"records": 0},
        {"times": 0},
        {"done": 11},
        {"done": -1},
        {"units": "triple"},
        {"weights": "0" * 63},
        {"weights": "g" * 64},
    ],
)
def test_malformed_runs_are_refused(said: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput):
        run(**said)
