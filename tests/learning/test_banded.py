"""Correlated noise over samples that are taken in turn: who counts when, how far a unit moves, and what it costs."""

from fractions import Fraction
from itertools import product
from math import exp, sqrt
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import accounting
from sfumato.accounting import banded_plan
from sfumato.core.sensitivity import Sensitivity
from sfumato.errors import InvalidInput, Refused
from sfumato.learning import BandedSums, Correlated, Units
from sfumato.learning.noisy_sums import WIDTH
from sfumato.noise import SystemWords
from sfumato.reports.verify import verify
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

ONE = Sensitivity.of(l2_squared=1)
SPEND: dict[str, Any] = {"epsilon": 2, "delta": 1e-7}


def sums(**said: Any) -> BandedSums:
    facts: dict[str, Any] = {"sigma": Fraction(2), "steps": 8, "rate": Fraction(1, 40), "parameters": 1}
    return BandedSums(**{**facts, "clip": Fraction(1), "bands": 3, "groups": 4, **said})


def units(number: int = 400) -> Units:
    inputs = torch.sin(torch.arange(number * 3.0) * 1.7).reshape(number, 3)
    return Units(inputs, (inputs.sum(1) > 0).long(), n_units=number, name="visits", version="1")


def trained(**said: Any) -> Any:
    home = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=8, delta=1e-6), name="clinic")
    run = home.trainer(nn.Linear(3, 2), nn.functional.cross_entropy, data=units())
    return home, run.fit(**{"steps": 10, "batch": 20, "noise": Correlated(bands=3, groups=4), **SPEND, **said})


def test_a_run_is_charged_what_the_plan_says_and_less_than_without_samples() -> None:
    home, found = trained()
    said = found.release.statement
    noise = said.mechanism
    assert type(noise) is BandedSums
    assert noise.sampling == Fraction(1, 5)  # of 100 units in a group, 20 are expected
    column = [Fraction(one, 1024) for one in noise.column]
    plan = banded_plan(column=column, sigma=noise.sigma, steps=10, groups=4, sampling="1/5")
    assert said.event == plan
    assert plan.times == 3
    assert home.spent == sf.Budget(**SPEND)
    assert 1.99 < accounting.epsilon(plan, delta=1e-7) <= 2
    whole = banded_plan(column=column, sigma=noise.sigma, steps=10, groups=4, sampling=1)
    assert accounting.epsilon(whole, delta=1e-7) > 4  # the same noise without samples
    assert verify(found.release.certificate.document, key=home.public_key).authenticated
    assert [step for step, _ in found.curve][-1] == 10
    assert found.curve[-1][1] == found.epsilon == 2
    for language in ("en", "zh-Hans"):
        for reader in ("public", "patient", "clinician", "manager", "board"):
            assert "{" not in found.release.explain(language, reader)
    assert "one of 4 groups" in found.release.explain("en", "board")
    assert "4 个组之一" in found.release.explain("zh-Hans", "board")


def test_a_changed_certificate_does_not_verify() -> None:
    document = trained()[1].release.certificate.document
    for name, value in (("groups", 2), ("bands", 2), ("sigma", "1/2"), ("groups", 40), ("bands", 5)):
        changed = {**document, "statement": {**document["statement"]}}
        changed["statement"]["mechanism"] = {**document["statement"]["mechanism"], name: value}
        outcome = verify(changed)
        assert any(finding.field != f"statement.mechanism.{name}" for finding in outcome.findings)


def test_a_unit_counts_in_steps_of_its_group_alone() -> None:
    said = sums(steps=40, rate=Fraction(1, 8), bands=3)
    course = said.course(None, ONE, SystemWords())  # type: ignore[arg-type]
    seen: list[set[int]] = []
    for step in range(40):
        seen.append(set(course.places(300, step).tolist()))
        course.release(torch.zeros(1))
    for unit in range(300):
        turns = [step for step in range(40) if unit in seen[step]]
        assert len({step % 4 for step in turns}) <= 1
    groups = [set().union(*seen[first::4]) for first in range(4)]
    assert sum(map(len, groups)) == len(set().union(*groups))


@pytest.mark.alpha(1e-9)
def test_a_unit_of_the_group_is_drawn_as_often_as_is_stated() -> None:
    """About 250 of 1,000 units are in each group, each drawn half of the time, in 40 steps; α by six errors."""
    said = sums(steps=40, rate=Fraction(1, 8), bands=3)
    course = said.course(None, ONE, SystemWords())  # type: ignore[arg-type]
    drawn = 0
    for step in range(40):
        drawn += len(course.places(1000, step))
        course.release(torch.zeros(1))
    assert abs(drawn - 5000) < 6.2 * sqrt(10_000 * 0.25 + 40 * 1000 * 0.25 * 0.75 * 0.25)


def farthest(said: BandedSums, turn: list[int]) -> float:
    """How far a unit with these turns moves the mixes that are really computed, in steps of the lattice."""
    made, most = torch.Generator().manual_seed(5), 0.0
    for attempt in range(20):
        base = torch.randn((said.steps, said.parameters), generator=made, dtype=torch.float64) * 10
        here, there = (said.open(ONE, SystemWords()) for _ in range(2))
        direction = torch.ones(said.parameters, dtype=torch.float64)
        if attempt % 2:
            direction = torch.eye(1, said.parameters, dtype=torch.float64)[0]
        direction = direction / direction.norm()
        apart = 0.0
        for step, exact in enumerate(base):
            other = exact + direction if step in turn else exact
            apart += float((here.mixed(exact) - there.mixed(other)).double().square().sum())
        most = max(most, sqrt(apart))
    return most


def test_one_turn_of_a_unit_stays_within_the_noise_and_two_that_overlap_do_not() -> None:
    said = sums(steps=6, parameters=400, bands=3, groups=3)
    energy = sum(one * one for one in said.column) / 4**10
    allowed = WIDTH * sqrt(energy) / float(said.sigma)
    assert 0.95 * allowed < farthest(said, [0]) <= allowed
    assert farthest(said, [2]) <= allowed
    assert farthest(said, [0, 1]) > 1.5 * allowed  # the broken twin: one unit in two groups


def detected(said: BandedSums, *, present: bool, always: bool = False) -> int:
    """In how many of 300 runs the first turn of one unit shows: by its whole block, where noise is small."""
    column, shown = np.array(said.column) / 1024, 0
    for _ in range(300):
        course = said.course(None, ONE, SystemWords())  # type: ignore[arg-type]
        told = []
        for step in range(2):
            there = len(course.places(1, step)) if present else 0
            if always and present:
                there = int(step == 0)
            told.append(float(course.release(torch.tensor([float(there)]))[0]))
        shown += bool(max(told) * column[0] > 0.5)
    return shown


@pytest.mark.alpha(1e-9)
def test_a_unit_is_seen_no_more_often_than_its_guarantee_allows_and_a_twin_without_coins_is() -> None:
    """Noise so small that a unit that counts is always seen: what protects it is that it mostly does not count.

    At ε = 1 a set of outputs is at most δ(1) likelier than e times as likely; δ(1) is about 0.19 for two of two turns.
    """
    said = sums(sigma=Fraction(1, 20), steps=2, rate=Fraction(1, 20), bands=1, groups=2)
    allowed = float(accounting.delta(said.loss(ONE), epsilon=1))
    assert allowed < 0.2
    without, real, twin = (
        detected(said, present=False),
        *(detected(said, present=True, always=b) for b in (False, True)),
    )
    error = 6.2 * sqrt(300 * 0.2)
    assert real <= exp(1) * without + 300 * allowed + error
    assert twin > exp(1) * without + 300 * allowed + error


@pytest.mark.parametrize(("bands", "groups", "steps"), [(1, 1, 3), (2, 2, 5), (3, 4, 9), (2, 5, 4)])
def test_turns_and_mixes_are_those_of_the_plan(bands: int, groups: int, steps: int) -> None:
    """By enumeration: blocks of different turns share no measurement, and none moves further than the column."""
    said = sums(bands=bands, groups=groups, steps=steps, rate=Fraction(1, 10 * groups))
    column = [one / 1024 for one in said.column]
    mix = np.zeros((steps, steps))
    for row, place in product(range(steps), repeat=2):
        if 0 <= row - place < bands:
            mix[row, place] = column[row - place]
    for first in range(min(groups, steps)):
        turns = list(range(first, steps, groups))
        assert len(turns) <= said.loss(ONE).times
        blocks = [set(np.flatnonzero(mix[:, turn])) for turn in turns]
        assert sum(map(len, blocks)) == len(set().union(*blocks))
        assert max(float((mix[:, turn] ** 2).sum()) for turn in turns) <= sum(one * one for one in column) + 1e-12


def test_what_cannot_be_sampled_in_turn_is_refused_before_the_charge() -> None:
    for said, words in (
        ({"noise": Correlated(bands=4, groups=3)}, "bands overlap"),
        ({"noise": Correlated(bands=2, groups=30)}, "fewer units than a batch"),
        ({"noise": Correlated(bands=2, groups=0)}, "groups"),
        ({"delta": 0}, "delta above 0"),
    ):
        with pytest.raises(InvalidInput, match=words):
            trained(**said)
    with pytest.raises(Refused, match="added or removed"):
        sums().loss(Sensitivity.of(l2_squared=4))
    with pytest.raises(Refused, match="no room for rounding"):
        sums(parameters=10**12 // 4, sigma=Fraction(3))


def test_a_run_is_resumed_with_its_groups() -> None:
    said = sums(steps=8, rate=Fraction(1, 4), bands=3, groups=4)
    first = said.course(None, ONE, SystemWords())  # type: ignore[arg-type]
    seen: list[Tensor] = []
    for step in range(4):
        seen.append(first.places(100, step))
        first.release(torch.zeros(1))
    later = said.course(None, ONE, SystemWords())  # type: ignore[arg-type]
    later.load(first.state())
    for step in range(4, 8):  # a chance of 1: all of the group, the same group
        assert set(later.places(100, step).tolist()) == set(seen[step - 4].tolist())
        later.release(torch.zeros(1))
