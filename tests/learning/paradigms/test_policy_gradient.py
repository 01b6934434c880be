"""S3-10: the mean policy gradient of N trajectories, and a small world in which a private update can be judged."""

from fractions import Fraction
from itertools import pairwise

import pytest

from sfumato.core.noise_multiplier import exact_multiplier
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput
from sfumato.learning.paradigms import occurrences
from tests.parts import package

package("torch")
import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from examples.toy_mdp import CLINIC, World, exact_return, policy, trajectories  # noqa: E402
from sfumato.learning import ClippedSum, Engine  # noqa: E402
from sfumato.learning.paradigms.group_losses import policy_gradient  # noqa: E402
from sfumato.learning.paradigms.private_mean import private_mean, private_mean_event  # noqa: E402

NUMBER, CLIP = 50, 0.5


def mean_gradient(states: Tensor, targets: Tensor) -> Tensor:
    engine = Engine(policy(3, 2), policy_gradient, clip=CLIP, unit="group")
    return engine.sum(states, targets).flat / NUMBER


def claimed(relation: Relation) -> float:
    bound = occurrences.sensitivity(relation, clip=CLIP, times=1, over=NUMBER).l2
    assert bound is not None
    return float(bound.squared) ** 0.5


def neighbours() -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Trajectories; the last one with all its rewards turned into their opposite; and without it."""
    states, targets = trajectories(CLINIC, policy(3, 2), NUMBER)
    targets[-1, :, 1] = 100.0
    turned = targets.clone()
    turned[-1, :, 1] = -100.0
    return (states, targets), (states, turned), (states[:-1], targets[:-1])


@pytest.mark.claim("S3-10")
def test_a_replaced_trajectory_moves_the_mean_by_twice_the_clip_over_n() -> None:
    here, replaced, _ = neighbours()
    moved = (mean_gradient(*here) - mean_gradient(*replaced)).norm().item()
    assert claimed(Relation.REPLACE) == 2 * CLIP / NUMBER
    assert moved == pytest.approx(2 * CLIP / NUMBER, rel=1e-5)
    assert moved > 1.9 * claimed(Relation.ADD_REMOVE), "C/N is no bound for a replaced trajectory"


@pytest.mark.claim("S3-10")
def test_a_trajectory_more_or_less_moves_it_by_the_clip_over_n_with_a_fixed_denominator() -> None:
    here, _, fewer = neighbours()
    moved = (mean_gradient(*here) - mean_gradient(*fewer)).norm().item()
    assert claimed(Relation.ADD_REMOVE) == CLIP / NUMBER
    assert moved == pytest.approx(CLIP / NUMBER, rel=1e-5)


@pytest.mark.claim("S3-10")
def test_over_the_number_that_is_there_it_moves_further() -> None:
    """Broken: the mean over as many trajectories as there are. All others agree, and one goes against them."""
    states, targets = trajectories(CLINIC, policy(3, 2), NUMBER)
    states, targets = states[:1].repeat(NUMBER, 1, 1), targets[:1].repeat(NUMBER, 1, 1)
    targets[:, :, 1] = 100.0
    targets[-1, :, 1] = -100.0
    engine = Engine(policy(3, 2), policy_gradient, clip=CLIP, unit="group")
    means = [engine.sum(states[:n], targets[:n]).flat / n for n in (NUMBER, NUMBER - 1)]
    assert (means[0] - means[1]).norm().item() > 1.9 * claimed(Relation.ADD_REMOVE)


def test_returns_go_backwards_through_the_visits() -> None:
    """The exact return is the mean of many invented ones: within 4.75 standard errors, and another policy is not."""
    model = policy(3, 2)
    _, targets = trajectories(CLINIC, model, 4000)
    returns = targets[:, 0, 1].double()
    error = returns.std().item() / 4000**0.5
    assert abs(returns.mean().item() - exact_return(CLINIC, model)) < 4.75 * error
    with torch.no_grad():
        model.weight[1] = 1.0
    assert abs(returns.mean().item() - exact_return(CLINIC, model)) > 4.75 * error


def test_the_best_policy_is_better_than_the_even_one() -> None:
    returns = {}
    for choice in range(8):
        model = policy(3, 2)
        with torch.no_grad():
            model.weight[1] = torch.tensor([20.0 if choice >> state & 1 else -20.0 for state in range(3)])
        returns[choice] = exact_return(CLINIC, model)
    assert max(returns, key=returns.__getitem__) == 0b101
    assert max(returns.values()) > exact_return(CLINIC, policy(3, 2)) + 0.5


def privately_updated(epsilon: float, updates: int, rate: float) -> tuple[nn.Module, list[float]]:
    """A few updates, each with a private mean over new patients: every patient is in one of them."""
    model, number = policy(3, 2), 1000
    returns = [exact_return(CLINIC, model)]
    multiplier = exact_multiplier(epsilon=epsilon, delta="1e-5")
    moved = occurrences.sensitivity(Relation.REPLACE, clip=1, times=1).l2
    assert moved is not None
    for update in range(updates):
        states, targets = trajectories(CLINIC, model, number, baseline=(1.5, 1.2, 1, 0.6, 0.3, 0), seed=f"{update}")
        engine = Engine(model, policy_gradient, clip=1.0, unit="group")
        noisy = private_mean(
            engine, states, targets, max_physical_batch_size=512, moved=Fraction(2), multiplier=multiplier, over=number
        )
        with torch.no_grad():
            for name, value in model.named_parameters():
                value -= rate * noisy[name].to(value)
        returns.append(exact_return(CLINIC, model))
    assert moved.squared == 4
    return model, returns


@pytest.mark.claim("S3-10")
def test_the_return_before_and_after_private_updates() -> None:
    """Noise of 2·3.73/1000 a number, on slopes ten times as large: one update gains, and a few gain most there is.

    Invented patients are the same each time; with fresh noise the first update gains 0.48 with a standard deviation of
    0.015, and all three 0.9 with less. The limits are more than ten of them away; without noise the gain is the same,
    and with the sign of the update turned it is a loss.
    """
    _, returns = privately_updated(epsilon=1, updates=3, rate=5.0)
    assert returns[1] > returns[0] + 0.1
    assert returns[-1] > returns[0] + 0.7
    _, backwards = privately_updated(epsilon=1, updates=1, rate=-5.0)
    assert backwards[1] < backwards[0]


@pytest.mark.claim("S3-10")
def test_the_update_has_the_noise_of_its_event() -> None:
    """The mean square of 4,000 noises is (2·3)² within 4.75 deviations, 2% of slack apart; 0.8 of the noise is seen."""
    engine = Engine(nn.Linear(2000, 2, bias=False), lambda out, y: out.sum() * 0, clip=1.0, unit="group")
    units = torch.zeros(1, 1, 2000), torch.zeros(1)
    noisy = private_mean(engine, *units, moved=2, multiplier=3, over=10)["weight"] * 10
    share = noisy.square().sum().item() / 4000
    wide = 4.75 * (2 / 4000) ** 0.5
    assert 36 * (1 - wide) < share < 36 * (1 + wide) * 1.02
    assert not 36 * (1 - wide) < 0.8**2 * share, "less noise would be seen"
    event = private_mean_event(3)
    assert event.l2_squared / event.sigma_squared == Fraction(1, 9)


def test_worlds_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InvalidInput, match="for each state and action"):
        World(moves=(((1.0,),),), rewards=(0.0, 1.0), visits=2)
    with pytest.raises(InvalidInput, match="add up to 1"):
        World(moves=(((0.5,),),), rewards=(0.0,), visits=2)


def test_a_private_mean_is_summed_in_parts_of_one_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels round otherwise for another number of units; here the sign of what is rounded decides each gradient."""
    draw, seen = torch.Generator().manual_seed(29), []
    half = torch.randn(392, generator=draw)
    model = nn.Linear(784, 10, bias=False)
    with torch.no_grad():
        for row in model.weight:
            row.copy_(torch.cat([half, -half])[torch.randperm(784, generator=draw)])

    def watched(self: Engine, inputs: Tensor, targets: Tensor, present: Tensor | None = None) -> ClippedSum:
        made = summed(self, inputs, targets, present)
        seen.append((tuple(inputs.shape), made.flat.clone()))
        return made

    engine = Engine(model, lambda out, _: out.abs().sum(), clip=1.0)
    private_mean(
        engine, torch.ones(1, 784), torch.zeros(1), moved=1, multiplier=1, over=9, max_physical_batch_size=9
    )  # the rehearsal
    summed, totals = Engine.sum, []
    monkeypatch.setattr(Engine, "sum", watched)  # a private mean sums with an engine of its own
    for number in range(21):
        seen.clear()
        private_mean(
            engine,
            torch.ones(number, 784),
            torch.zeros(number),
            moved=1,
            multiplier=1,
            over=9,
            max_physical_batch_size=9,
        )
        assert {shape for shape, _ in seen} == {(16, 784)}
        assert len(seen) == max(1, -(-number // 16))
        totals.append(sum(flat for _, flat in seen))
    assert max((b - a).norm().item() for a, b in pairwise(totals)) <= 1 + 1 / 128
    at_once = [summed(engine, torch.ones(n, 784), torch.zeros(n)).flat for n in range(1, 34)]
    assert max((b - a).norm().item() for a, b in pairwise(at_once)) > 1.1, "all units at once: the broken twin"
    for wrong in ({"moved": "1/2"}, {"max_physical_batch_size": 0}):
        how = {"moved": 1, "multiplier": 1, "over": 9, **wrong}
        with pytest.raises(InvalidInput):
            private_mean(engine, torch.ones(2, 784), torch.zeros(2), **how)  # type: ignore[arg-type]
