"""The adversary who knows the AR(1) model of a series gains nothing beyond the bound of the promise for a person."""

import math

import numpy as np
import pytest

import sfumato as sf
from sfumato.audit.filters import Filtering, advantage, allowed, delta_of, distance, mark, whitened
from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.demo.building import building
from sfumato.errors import InvalidInput
from sfumato.noise import SystemWords
from sfumato.streams.noise import SeriesNoise
from sfumato.streams.post.measurements import design
from sfumato.streams.total import RunningTotal

USER = sf.user("id", relation="add/remove")


def per_person(steps: int, *, epsilon: str = "1/10", delta: str = "1/1000", strategy: str = "best") -> SeriesNoise:
    query = RunningTotal(
        dataset=Dataset(name="occupancy", edition="1"),
        horizon=steps,
        told=steps,
        lower=0,
        upper=100,
        each=1,
        times=steps,
        separation=1,
        groups=(),
    )
    return query.mechanism(USER, Budget(epsilon=epsilon, delta=delta), strategy)


@pytest.mark.claim("S4-18")
def test_the_numbers_of_the_matched_filter() -> None:
    found = Filtering(steps=50, decay=0.9, deviation=30, epsilon=0.1)
    assert found.filtered == pytest.approx(0.0305, abs=5e-5)
    assert found.worst == pytest.approx(0.0938, abs=5e-5)
    assert found.delta == pytest.approx(0.0549, abs=5e-5)
    assert found.bound == pytest.approx(0.102, abs=5e-4)
    assert found.filtered <= found.worst <= found.bound
    assert found.filtered == pytest.approx(math.erf(math.sqrt((1 - 0.81**50) / 0.19) / 30 / math.sqrt(8)), rel=1e-12)


@pytest.mark.claim("S4-18")
def test_no_mark_and_no_model_passes_the_worst_user() -> None:
    """Any mark of at most 1 a step, known background or not: filtering is post-processing."""
    draw = np.random.default_rng()
    for _ in range(200):
        marked = draw.uniform(-1, 1, size=50) * draw.choice([0.1, 1.0])
        decay, push = draw.uniform(-0.99, 0.99), draw.choice([0.0, 1.0, 20.0])
        found = whitened(marked.tolist(), decay=decay, push=push, deviation=30)
        assert advantage(found) <= Filtering(steps=50, decay=0.9, deviation=30, epsilon=0.1).worst + 1e-12


def test_the_kalman_filter_whitens_as_the_covariance_does() -> None:
    marked, decay, push, deviation = mark(0.7, 20), 0.8, 3.0, 2.0
    lags = np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
    covariance = push**2 / (1 - decay**2) * decay**lags + deviation**2 * np.eye(20)
    exact = math.sqrt(np.array(marked) @ np.linalg.solve(covariance, np.array(marked)))
    assert whitened(marked, decay=decay, push=push, deviation=deviation) == pytest.approx(exact, rel=1e-10)
    assert exact < whitened(marked, decay=decay, push=0, deviation=deviation)  # what is not known hides


@pytest.mark.claim("S4-18")
def test_an_event_level_epsilon_is_no_bound_for_a_person() -> None:
    """The broken reading: the ε of one step, taken for a person, is passed by far."""
    found = Filtering(steps=200, decay=0.9, deviation=3, epsilon=1.0)
    one_step = found.event_epsilon(1e-6)
    assert advantage(1 / 3) <= allowed(one_step, 1e-6)  # it bounds what an event gives away,
    assert found.worst > 1.5 * allowed(one_step, 1e-6)  # and not what a person does;
    assert found.worst <= allowed(200 * one_step, 0.0)  # T·ε does, the reading that holds,
    assert found.worst <= found.bound  # and so does the (ε, δ) of all steps together


@pytest.mark.claim("S4-18")
@pytest.mark.claim("S4-16")
@pytest.mark.parametrize("strategy", ["best", "square root"])
@pytest.mark.alpha(4e-9)
def test_the_filter_played_against_a_real_stream_stays_within_its_promise(strategy: str) -> None:
    """A person of the building, looked for by the matched filter in the noise of a stream at user level; 4,000 draws,
    ±6.2 standard errors (α below 2e-9 for each of the two). A twin with a tenth of the noise passes the bound."""
    steps, draws = 48, 4000
    person = building(people=3, steps=240).present[1, 130:].astype(float)[:steps]
    assert person.sum() > 20
    mechanism = per_person(steps, epsilon="1", delta="1/1000000", strategy=strategy)
    unit, sigma = 2.0**mechanism.strategy.bits, float(mechanism.noise)
    shift = design(mechanism.strategy, steps) @ person * unit
    noise = mechanism.drawn(draws * steps, SystemWords()).reshape(draws, steps)
    expected = advantage(distance(mechanism, person.tolist()))
    error, bound = 6.2 / math.sqrt(draws), allowed(1.0, 1e-6)
    for fault, within in ((1.0, True), (0.1, False)):
        scores = (fault * noise) @ shift / np.linalg.norm(shift) / sigma
        half = np.linalg.norm(shift) / sigma / 2
        right = np.concatenate([scores[::2] + 2 * half > half, scores[1::2] < half]).mean()
        assert bool(2 * right - 1 <= bound + error) is within
        assert bool(abs(2 * right - 1 - expected) < error) is within
    assert expected <= bound


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(InvalidInput, match="between"):
        mark(1.0, 3)
    pure = per_person(4, delta="0")
    with pytest.raises(InvalidInput, match="Gaussian"):
        distance(pure, [1.0] * 4)
    assert delta_of(0, 1) == 0
