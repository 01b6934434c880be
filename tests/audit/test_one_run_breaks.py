"""Deliberately broken training runs are refuted at 99% by one audit each, and correct ones seldom."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import combine_pvalues

from sfumato import audit
from sfumato.audit import one_run
from sfumato.audit.one_run_demo import demonstrated
from sfumato.learning.noisy_sums import NoisySums
from tests.alpha import likely
from tests.parts import package

package("torch")

from sfumato.learning.course import SampledCourse  # noqa: E402
from tests.audit.test_one_run import axes  # noqa: E402

Patch = pytest.MonkeyPatch
FACTS: dict[str, Any] = {"confidence": "0.99"}


def everybody(patch: Patch) -> dict[str, Any]:
    """The certificate says that a unit is in a step with probability 1/10, and all are."""
    patch.setattr(SampledCourse, "places", lambda self, number, step: np.arange(number))
    return {"rate": 0.1}


def twice(patch: Patch) -> dict[str, Any]:
    """Each unit is drawn twice."""
    patch.setattr(SampledCourse, "places", lambda self, number, step: np.repeat(np.arange(number), 2))
    return {}


def unclipped(patch: Patch) -> dict[str, Any]:
    """Gradients four times as long as the clip are summed as they are."""
    from sfumato.learning.engine import Engine

    made = Engine.__init__

    def wide(self: Engine, *args: Any, clip: float, **rest: Any) -> None:
        made(self, *args, clip=4.0, **rest)

    patch.setattr(Engine, "__init__", wide)
    patch.setattr(SampledCourse, "clip", 4)
    return {"pull": 4.0}


def quiet(patch: Patch) -> dict[str, Any]:
    """The noise is 0.7 of what is stated; guesses of one run do not see it, the gap between Gaussian scores does."""
    pitch = NoisySums.pitch
    patch.setattr(NoisySums, "pitch", lambda self, moved: pitch(self, moved) * Fraction(7, 10))
    return {}


@pytest.mark.long
@pytest.mark.parametrize("fault", [everybody, twice, unclipped])
def test_faults_that_move_a_unit_further_are_refuted_by_guesses(
    fault: Callable[[Patch], dict[str, Any]], monkeypatch: Patch
) -> None:
    """Whatever the scores are, by Fisher's product of three runs: p-values of one were 0.0005 to 0.003."""
    facts = {**fault(monkeypatch), **FACTS}
    found = [audit.trained(axes(4_000, **facts)) for _ in range(3)]
    assert combine_pvalues([one.p_curve for one in found]).pvalue <= 0.01, [one.plain() for one in found]


@pytest.mark.long
def test_noise_that_is_too_small_is_refuted_by_the_gap_between_scores(monkeypatch: Patch) -> None:
    """At 4,000 canaries its p-value was below 1e-25 in three runs."""
    found = audit.trained(axes(4_000, **quiet(monkeypatch), **FACTS))
    assert found.refuted_if_gaussian, found.plain()


@pytest.mark.long
@pytest.mark.alpha(1e-9)
def test_correct_runs_are_refuted_in_five_of_a_hundred_at_most() -> None:
    """1,000 cheap runs, each through vault, charge and certificate: about 25 of them are refuted by the gap."""
    alarms = sum(one.refuted or one.refuted_if_gaussian for one in (audit.trained(axes(100)) for _ in range(1_000)))
    assert alarms <= 50 or likely(alarms, 1_000, 0.05, alpha=1e-9)


@pytest.mark.long
@pytest.mark.alpha(1e-8)
def test_a_white_box_audit_sees_half_of_the_loss() -> None:
    """ε = 4, 5,000 canaries, 20,000 weights: half is 2, which 418 right guesses of 500 show.

    Simulated Gaussian scores have 436.8 right with a deviation of 7.55, so the mean of six is below 418 with 2e-9.
    """
    runs = [audit.trained(demonstrated(canaries=5_000, weights=20_000)) for _ in range(6)]
    assert np.mean([one.by_curve for one in runs]) > 2


@pytest.mark.long
def test_an_audit_that_guesses_any_tenth_does_not_see_it(monkeypatch: Patch) -> None:
    """The broken copy: the first canaries are guessed, by the sign of their scores, and not those that stand out."""

    def first(scores: Any, coins: Any, guesses: int) -> int:
        return int(np.sum((scores[:guesses] > np.median(scores)) == coins[:guesses]))

    monkeypatch.setattr(one_run, "right_guesses", first)
    assert audit.trained(demonstrated(canaries=5_000, weights=20_000)).by_curve < 1.5
