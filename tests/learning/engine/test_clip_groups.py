"""Groups of layers are clipped each by itself: in both ways, to the bit for one group, and no unit moves more."""

import math
from fractions import Fraction
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.errors import InvalidInput
from sfumato.learning import AdaptiveClip, Training, Units
from sfumato.learning.clip_groups import clips_of
from sfumato.reports.verify import verify
from tests import parts

parts.package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from sfumato.learning.engine import SLACK, Engine  # noqa: E402
from sfumato.learning.engine.groups import ClipGroups  # noqa: E402
from tests.learning.engine.models import LAYERS, WHOLE, batch, users  # noqa: E402

ALL = LAYERS | WHOLE
SPEND: dict[str, Any] = {"epsilon": 2, "delta": 1e-7}


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(7)


def halves(model: nn.Module, clip: float) -> dict[str, float]:
    """The last layer with parameters by itself, all others together."""
    layers = [name.rpartition(".")[0] for name, _ in model.named_parameters()]
    return {"": clip, layers[-1]: clip / 3} if layers[-1] != layers[0] else {"": clip}


def of_one(engine: Engine, x: Tensor, y: Tensor, at: int) -> dict[str, Tensor]:
    """What one unit adds: all places are taken, and the others are absent."""
    here = torch.zeros(len(x), dtype=torch.bool)
    here[at] = True
    return {name: value.double() for name, value in engine.sum(x, y, here).sums.items()}


@pytest.mark.few(6)
@pytest.mark.parametrize("name", list(ALL))
def test_both_ways_agree_and_each_group_keeps_its_clip(name: str) -> None:
    make, data = ALL[name]
    model, (x, y) = make(), batch(data)
    clip = float(Engine(model, F.cross_entropy).sum(x, y).norms.min()) / 50
    clips = halves(model, clip)
    fast, slow = (
        Engine(model, F.cross_entropy, clips=clips, grad_mode=mode)  # type: ignore[arg-type]
        for mode in ("auto", "semantic")
    )
    one, other = fast.sum(x, y), slow.sum(x, y)
    assert (one.flat - other.flat).norm() < 1e-5 * other.flat.norm()
    torch.testing.assert_close(one.norms, other.norms, rtol=1e-5, atol=1e-12)
    groups, reached = ClipGroups.of(clips), set()
    for at in range(len(x)):
        added = of_one(fast, x, y, at)
        for place, most in enumerate(groups.clips):
            mine = [value for each, value in added.items() if groups.place(each.rpartition(".")[0]) == place]
            length = math.sqrt(sum(float(value.square().sum()) for value in mine))
            assert length <= most * float(1 + SLACK)
            reached |= {place} if length > 0.99 * most else set()
    assert reached == set(range(len(clips)))  # each group has units that are clipped


@pytest.mark.parametrize("mode", ["auto", "semantic"])
def test_one_group_is_the_flat_clip_bit_by_bit(mode: Any) -> None:
    make, data = ALL["transformer"] if "transformer" in ALL else next(iter(WHOLE.values()))
    model, (x, y) = make(), batch(data)
    clip = float(Engine(model, F.cross_entropy).sum(x, y).norms.median())
    flat = Engine(model, F.cross_entropy, clip=clip, grad_mode=mode).sum(x, y)
    group = Engine(model, F.cross_entropy, clips={"": clip}, grad_mode=mode).sum(x, y)
    assert torch.equal(flat.flat, group.flat)
    assert torch.equal(flat.norms, group.norms)


def towards(outputs: Tensor, targets: Tensor) -> Tensor:
    """A loss whose gradient points where its target says."""
    return (outputs * targets).sum()


@pytest.mark.parametrize("unit", ["record", "user"])
def test_neighbours_move_the_sum_by_the_length_of_all_clips_and_attain_it(unit: Any) -> None:
    """Units added, removed and exchanged; the twin clips each group to the length of the whole, and is caught."""
    model = nn.Sequential(nn.Linear(6, 4), nn.Linear(4, 2))
    axes = (20,) if unit == "record" else (20, 3)
    x, y = torch.randn(*axes, 6) * 30, torch.randn(*axes, 2) * 30
    clips = {"0": 0.3, "1": 0.4}
    engine = Engine(model, towards, clips=clips, unit=unit)
    assert engine.clip == pytest.approx(0.5)
    twin = Engine(model, towards, clips={"0": 0.5, "1": 0.5}, unit=unit)
    most = 0.5 * float(1 + SLACK)
    here = torch.ones(axes, dtype=torch.bool)
    whole, broken = engine.sum(x, y, here).flat, twin.sum(x, y, here).flat
    far = wrong = 0.0
    for at in range(20):
        gone = here.clone()
        gone[at] = False
        far = max(far, float((whole - engine.sum(x, y, gone).flat).norm()))
        wrong = max(wrong, float((broken - twin.sum(x, y, gone).flat).norm()))
        other = y.clone()
        other[at] = -y[at]
        assert float((whole - engine.sum(x, other, here).flat).norm()) <= 2 * most
    assert 0.999 * 0.5 <= far <= most
    assert wrong > 1.3 * most


def test_a_unit_that_is_not_finite_in_one_group_counts_in_none() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    x, y = torch.randn(4, 3), torch.randn(4, 2)
    x[1] = 1e38  # the first layer overflows, the second sees what overflowed
    for mode in ("auto", "semantic"):
        engine = Engine(model, towards, clips={"0": 1.0, "1": 1.0}, grad_mode=mode)  # type: ignore[arg-type]
        found = engine.sum(x, y)
        assert found.flat.isfinite().all()
        assert float(found.norms[1]) == 0
        here = torch.tensor([True, False, True, True])
        assert torch.equal(found.flat, engine.sum(x, y, here).flat)


def test_groups_hold_whole_layers_and_leave_none_out() -> None:
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    for clips, words in (
        ({"0": 1.0}, "in no group"),
        ({"": 1.0, "head": 1.0}, "no trained layer is in the group 'head'"),
        ({"": 1.0, "0.weight": 1.0}, "whole layers"),
        ({"": 0.0}, "between 2"),
    ):
        with pytest.raises(InvalidInput, match=words):
            Engine(model, towards, clips=clips)
    assert Engine(model, towards, clips={"": 3.0, "1": 4.0}).clip == 5


def trainer(**said: Any) -> tuple[sf.Vault, Any]:
    home = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=8, delta=1e-6), name="clinic")
    inputs = torch.sin(torch.arange(600.0) * 1.7).reshape(200, 3)
    data = Units(inputs, (inputs.sum(1) > 0).long(), n_units=200, name="visits", version="1")
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    return home, home.trainer(model, F.cross_entropy, data=data, **said)


def test_a_run_states_its_groups_and_is_charged_for_their_whole_length() -> None:
    home, made = trainer(clip={"0": "3/10", "2": "4/10"})
    found = made.fit(steps=3, batch=200, **SPEND)
    said = found.release.statement
    assert said.query.clips == (("0", Fraction(3, 10)), ("2", Fraction(2, 5)))
    assert said.query.clip == Fraction(1, 2)
    assert said.sensitivity.l2.squared == Fraction(1, 4)
    document = found.release.certificate.document
    assert verify(document, key=home.public_key).authenticated
    assert "2 groups of layers" in found.release.explain("en", "board")
    assert "2 组网络层" in found.release.explain("zh-Hans", "board")
    document["statement"]["query"]["clips"][0][1] = "4/5"
    outcome = verify(document)
    assert any("together longer than the clip" in finding.problem for finding in outcome.findings)


def test_what_does_not_go_with_groups_is_refused_before_the_charge() -> None:
    home, made = trainer(clip={"": 1})
    with pytest.raises(InvalidInput, match="one clip for the whole gradient"):
        made.fit(steps=3, batch=20, noise=AdaptiveClip(noise=10, quantile=0.5), **SPEND)
    for clip in ({}, {"": 0}, {"head": 1}):
        with pytest.raises(InvalidInput):
            trainer(clip=clip)
    assert home.spent.epsilon == 0


def test_the_whole_length_is_rounded_up_and_old_runs_are_written_as_they_were() -> None:
    clip, groups = clips_of({"a": 1, "b": 1})
    assert groups == (("a", Fraction(1)), ("b", Fraction(1)))
    assert 2 < clip**2 < 2 + Fraction(1, 10**6)
    assert clips_of("1/3") == (Fraction(1, 3), None)
    facts: dict[str, Any] = {"units": "record", "times": 1, "records": 1, "number": 9, "rate": 1, "steps": 2}
    run = Training(dataset=Dataset(name="visits", edition="1"), clip=clip, parameters=3, **facts)
    from sfumato.core.documents import encode

    assert "clips" not in encode(run)
    with pytest.raises(InvalidInput, match="together longer"):
        Training(dataset=Dataset(name="visits", edition="1"), clip=Fraction(7, 5), parameters=3, clips=groups, **facts)


def test_users_are_clipped_by_group_in_both_ways() -> None:
    make, data = next(iter(WHOLE.values()))
    model, (x, y, present) = make(), users(data)
    clips = halves(model, 0.05)
    fast = Engine(model, F.cross_entropy, clips=clips, unit="user").sum(x, y, present)
    slow = Engine(model, F.cross_entropy, clips=clips, unit="user", grad_mode="semantic").sum(x, y, present)
    assert (fast.flat - slow.flat).norm() < 1e-5 * slow.flat.norm()
