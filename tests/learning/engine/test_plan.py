"""The plan: which models have a fast way, and why others do not."""

import contextlib
from typing import Literal

import pytest

from tests import parts

parts.package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from sfumato.errors import InvalidInput, Unsupported  # noqa: E402
from sfumato.learning.engine import Engine  # noqa: E402
from sfumato.learning.paradigms.private_mean import _own, private_mean  # noqa: E402
from tests.learning.engine.models import WHOLE, batch  # noqa: E402


class Tied(nn.Module):
    """The embedding is used again as the last matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(5, 4)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(torch.tanh(self.tokens(x)).mean(1), self.tokens.weight)[:, :3]


class Shared(nn.Module):
    """Two layers with one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)
        self.other.weight = self.one.weight

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.other(torch.relu(self.one(x)))[:, :3]
        return found


class Own(nn.Module):
    """A parameter of the model itself."""

    def __init__(self) -> None:
        super().__init__()
        self.line, self.shift = nn.Linear(4, 3), nn.Parameter(torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.line(x) * self.shift
        return found


class Penalised(nn.Module):
    """A weight that also enters beside its layer."""

    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.line(x) + self.line.weight.square().sum()
        return found


class Turned(nn.Module):
    """Rows are not the first axis inside."""

    def __init__(self) -> None:
        super().__init__()
        self.line, self.last = nn.Linear(4, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.last(self.line(x.transpose(0, 1)).transpose(0, 1).sum(1))
        return found


class Overwriting(nn.Module):
    """A layer's input is changed after the layer has seen it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.line = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x).detach() + x
        y = self.line(x)
        x *= 2
        found: Tensor = (y + x)[:, :3]
        return found


def tokens() -> Tensor:
    return torch.randint(0, 5, (6, 4))


def floats(*shape: int) -> Tensor:
    return torch.randn(6, *shape)


CASES = [
    (Tied, tokens, "beside the forward pass"),
    (Shared, lambda: floats(4), "two names"),
    (Own, lambda: floats(4), "no rule for Own"),
    (Penalised, lambda: floats(4), "beside the forward pass"),
    (Turned, lambda: floats(2, 4), "one row a record"),
    (Turned, lambda: floats(3, 4), "disagree"),
    (lambda: nn.Sequential(nn.Linear(4, 4), nn.PReLU(), nn.Linear(4, 3)), lambda: floats(4), "no rule for PReLU"),
]


@pytest.mark.parametrize(("make", "data", "why"), CASES)
def test_what_has_no_fast_way_falls_back_and_says_why(make, data, why) -> None:  # type: ignore[no-untyped-def]
    torch.manual_seed(1)
    model, x, y = make(), data(), torch.randint(0, 3, (6,))
    engine = Engine(model, F.cross_entropy, clip=0.1)
    found = engine.sum(x, y)
    assert engine.plan.startswith("semantic")
    assert why in engine.plan
    assert torch.equal(found.flat, Engine(model, F.cross_entropy, clip=0.1, grad_mode="semantic").sum(x, y).flat)
    with pytest.raises(Unsupported, match="no fast way"):
        Engine(model, F.cross_entropy, grad_mode="fast").sum(x, y)


@pytest.mark.parametrize("case", [0, 1, 3])
def test_fallbacks_are_right(case: int) -> None:
    torch.manual_seed(1)
    make, data, _ = CASES[case]
    model, x, y = make(), data(), torch.randint(0, 3, (6,))
    found = Engine(model, F.cross_entropy, clip=1e3).sum(x, y)
    each = [F.cross_entropy(model(x[u : u + 1]), y[u : u + 1]) for u in range(6)]
    gradients = torch.autograd.grad(torch.stack(each).sum(), list(model.parameters()))
    for one, other in zip(found.sums.values(), gradients, strict=True):
        torch.testing.assert_close(one.float(), other, rtol=1e-4, atol=1e-5)


def test_inputs_that_are_overwritten_are_seen() -> None:
    with pytest.raises(Unsupported, match="in place"):
        Engine(Overwriting(), F.cross_entropy, grad_mode="fast").sum(floats(4), torch.zeros(6, dtype=torch.int64))


def test_the_plan_is_a_table() -> None:
    make, data = WHOLE["convolutions"]
    engine = Engine(make(), F.cross_entropy)
    assert "nothing is planned" in engine.plan
    engine.sum(*batch(data))
    lines = engine.plan.splitlines()
    assert lines[0].startswith("fast: every parameter has a rule")
    assert [line.split()[:3] for line in lines[1:4]] == [
        ["layer", "type", "way"],
        ["0", "Conv2d", "direct"],
        ["1", "GroupNorm", "direct"],
    ]
    assert lines[-1].split()[:3] == ["8", "Linear", "product"]


def test_planning_leaves_modes_and_chance_alone() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    model[1].eval()
    x, state = floats(4), torch.get_rng_state()
    Engine(model, F.cross_entropy).prepare(x, torch.zeros(6, dtype=torch.int64))
    assert model.training
    assert not model[1].training
    assert torch.equal(torch.get_rng_state(), state)


def test_dropout_has_a_fast_way() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    engine = Engine(model, F.cross_entropy, grad_mode="fast", clip=0.1)
    found = engine.sum(floats(4), torch.zeros(6, dtype=torch.int64))
    assert 0 < float(found.flat.norm()) <= 0.61


@pytest.mark.parametrize(
    "named", [{"clip": 0}, {"clip": 1e30}, {"unit": "person"}, {"grad_mode": "quick"}, {"batches": 0}]
)
def test_settings_are_checked(named: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="nothing was done"):
        Engine(nn.Linear(1, 1), F.mse_loss, **named)  # type: ignore[arg-type]


def test_the_clip_may_move() -> None:
    torch.manual_seed(0)
    engine, x, y = Engine(nn.Linear(4, 3), F.cross_entropy, clip=1e-2), floats(4), torch.zeros(6, dtype=torch.int64)
    before = engine.sum(x, y).flat
    engine.clip = 2e-2
    torch.testing.assert_close(engine.sum(x, y).flat, 2 * before)
    with pytest.raises(InvalidInput):
        engine.clip = -1.0


class Choosing(nn.Module):
    """One of two layers, by the values of the rows; it cannot do a row with a 9."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        if (x == 9).any():
            raise RuntimeError("cannot be computed")
        one, other = self.first(x), self.second(x)
        found: Tensor = one if (x > 5).any() else one + other
        return found


@pytest.mark.parametrize("way", ["auto", "fast"])
def test_a_plan_follows_from_shapes_whatever_the_rows_are(way: Literal["auto", "fast"]) -> None:
    ordinary, wanted = torch.zeros((6, 4)), torch.zeros(6, dtype=torch.int64)
    plans = set()
    for value in (0.0, 7.0, 9.0):
        model = Choosing()
        with torch.no_grad():
            for one in model.parameters():
                one.fill_(0.5)
        engine, rows = Engine(model, F.cross_entropy, grad_mode=way), ordinary.clone()
        rows[0] = value
        with contextlib.suppress(RuntimeError):
            engine.sum(rows, wanted)
        plans.add(engine.plan)
    assert len(plans) == 1
    assert [line.split()[:3] for line in plans.pop().splitlines()[2:]] == [
        ["first", "Linear", "product"],
        ["second", "Linear", "product"],
    ]


def test_an_engine_remembers_nothing_of_the_rows_of_a_private_mean() -> None:
    left = set()
    for value in (0.0, 7.0, 9.0):
        engine, rows = Engine(Choosing(), F.cross_entropy, grad_mode="fast"), torch.zeros((6, 4))
        rows[0] = value
        before = {name: id(held) for name, held in vars(engine).items()}
        private_mean(
            engine, rows, torch.zeros(6, dtype=torch.int64), moved=1, multiplier=1, over=6, max_physical_batch_size=16
        )
        assert {name: id(held) for name, held in vars(engine).items()} == before
        left.add((engine.plan, _own(engine).engine.plan, len(engine._plans)))  # type: ignore[union-attr]
    assert len(left) == 1
