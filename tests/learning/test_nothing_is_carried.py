"""No state that a forward pass or a loss can reach carries a record out of a step, and no record changes another's.

Each model writes something where it sees one word that a single record has. With a learning rate near 0 no learning and
no noise can be seen: whatever differs after a run was carried past the noise.
"""

import functools
import io
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import sfumato as sf
from sfumato import errors
from sfumato.vault import Vault
from tests.parts import package

package("torch")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from sfumato.learning import Units  # noqa: E402
from sfumato.learning.engine import Engine  # noqa: E402
from sfumato.learning.unchanged import Unchanged  # noqa: E402

SPEND: dict[str, Any] = {"epsilon": 1, "delta": 1e-7}
NUMBER, WORDS, ODD = 20, 50, 42


def vault() -> Vault:
    return Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9, delta=1e-6), name="clinic")


class Base(nn.Module):
    """Words of a vocabulary, a frozen table, and things that a forward pass can write to."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        table = torch.randn(WORDS, 4)
        self.table = nn.Parameter(2 * table / table.norm(dim=1, keepdim=True))
        self.end = nn.Linear(4, 2)
        self.frozen = nn.Parameter(torch.zeros(WORDS), requires_grad=False)
        self.register_buffer("kept", torch.zeros(WORDS))
        self.plain = torch.zeros(WORDS)
        self.listed = [torch.zeros(WORDS), {"inside": torch.zeros(WORDS)}]
        self.array = np.zeros(WORDS)
        self.calls = 0
        self.seen: list[Tensor] = []

    def forward(self, words: Tensor) -> Tensor:
        self.write(words)
        return self.end(F.embedding(words, self.table).mean(1))  # type: ignore[no-any-return]

    def write(self, words: Tensor) -> None:
        """Carry something of the words out of this pass."""


def odd(words: Tensor) -> Tensor:
    """Ones at the odd word if it was seen, as a function of tensors that works for many units at once."""
    return (words == ODD).any().float() * torch.ones(WORDS)


class Renormalised(Base):
    """The rows of the table that are looked up are made shorter, in place."""

    def forward(self, words: Tensor) -> Tensor:
        return self.end(F.embedding(words, self.table, max_norm=1.0).mean(1))  # type: ignore[no-any-return]


class Added(Base):
    """A trained weight is written to, past the graph and past the version of the tensor."""

    def write(self, words: Tensor) -> None:
        with torch.no_grad():
            self.end.bias.add_(odd(words)[:2])
            self.end.weight.data.add_(odd(words)[0])


class Rebound(Base):
    """Names are bound to other things."""

    def write(self, words: Tensor) -> None:
        self.plain = self.plain + odd(words)
        if not bool((words == ODD).any()):
            return
        self.frozen.grad = torch.full((WORDS,), 1e9)
        self.frozen = nn.Parameter(torch.ones(WORDS), requires_grad=False)
        self.end.bias = nn.Parameter(torch.ones(2))
        self.register_buffer("kept", torch.ones(WORDS))
        self.calls += 1
        self.array += 1
        self.seen.append(words)
        GLOBAL.append(words)
        Rebound.shared = (*Rebound.shared, words)

    shared: tuple[Tensor, ...] = ()


class Flagged(Base):
    """A weight that is not trained is given a gradient, and is to be trained from now on."""

    def write(self, words: Tensor) -> None:
        if bool((words == ODD).any()):
            self.frozen.grad = torch.full((WORDS,), 1e9)
            self.frozen.requires_grad = True


class InPlace(Base):
    """Tensors that are no weights are written to."""

    def write(self, words: Tensor) -> None:
        if bool((words == ODD).any()):
            self.frozen.data = self.frozen.data + 1
            self.plain.data = torch.ones(WORDS)
            self.listed[0].add_(1)  # type: ignore[attr-defined]
            self.listed[1]["inside"].add_(1)  # type: ignore[index]
            self.frozen.add_(1)


class Disguised(Rebound):
    """The same, of a class that says it is one of the library, whose objects are not entered."""

    shared = ()


Disguised.__module__ = "sfumato.learning.units"
GLOBAL: list[Tensor] = []


def units() -> Units:
    words = (torch.arange(NUMBER * 3) % 40).reshape(NUMBER, 3)
    words[7] = ODD
    targets = torch.zeros(len(words), dtype=torch.int64)
    return Units(words, targets, n_units=NUMBER, name="notes", version="1")


def state_of(model: nn.Module) -> dict[str, Any]:
    """All that a model holds, as numbers."""
    found: dict[str, Any] = {name: value.detach().clone() for name, value in model.state_dict().items()}
    return {
        **found,
        "plain": model.plain,
        "listed": model.listed[0],  # type: ignore[index]
        "inside": model.listed[1]["inside"],  # type: ignore[index]
        "array": torch.from_numpy(np.asarray(model.array)),
        "calls": torch.tensor([model.calls, len(model.seen)]),  # type: ignore[arg-type]
    }


def differs(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [name for name in one if not torch.allclose(one[name], other[name], atol=1e-4)]


def fitted(model: nn.Module, loss: Any, *, way: str) -> list[dict[str, Any]]:
    """The state of the caller's model, and of the copy that was trained, after two steps on all units."""
    from sfumato.learning.run import Run

    copies: list[nn.Module] = []
    init = Run.__init__

    def spied(self: Run, *given: Any, **named: Any) -> None:
        init(self, *given, **named)
        copies.append(self.model)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Run, "__init__", spied)
        home = vault()
        trainer = home.trainer(model, loss, data=units(), grad_mode=way)
        optimiser = torch.optim.SGD(model.parameters(), lr=1e-9)
        found = trainer.fit(steps=2, batch=NUMBER, lr=1e-9, optimizer=optimiser, max_physical_batch_size=16, **SPEND)
    assert found.release.statement.query.done == 2  # type: ignore[attr-defined]
    return [state_of(model), state_of(copies[0])]


@pytest.mark.few(3)
@pytest.mark.parametrize("way", ["auto", "semantic"])
@pytest.mark.parametrize("writer", [Renormalised, Added, Rebound, Flagged, InPlace, Disguised])
def test_what_a_forward_pass_writes_does_not_leave_a_step(writer: Callable[[], Base], way: str) -> None:
    start = state_of(writer())
    for found in fitted(writer(), F.cross_entropy, way=way):
        assert differs(found, start) == []
    assert not GLOBAL
    assert not Rebound.shared


class Assigning(Base):
    """What a transformed function computes is put behind the back of a tensor: this ended the process."""

    def write(self, words: Tensor) -> None:
        self.frozen.data = self.frozen.data + odd(words)


class Attached(Base):
    def write(self, words: Tensor) -> None:
        self.plain.data = self.plain.data + odd(words)


@pytest.mark.parametrize("writer", [Assigning, Attached])
def test_data_that_is_assigned_within_a_transform_is_refused_uncharged(writer: Callable[[], Base]) -> None:
    home = vault()
    with pytest.raises(errors.Unsupported, match=r"\.data"):
        home.trainer(writer(), F.cross_entropy, data=units())
    assert home.spent == sf.Budget.none()


class KeepingLoss:
    """A loss with a state."""

    def __init__(self) -> None:
        self.calls, self.seen, self.last = 0, [torch.zeros(1)], torch.zeros(())
        self.inner = nn.BCEWithLogitsLoss()
        self.inner.register_buffer("counted", torch.zeros(()))

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        self.calls += 1
        self.seen.append(outputs)
        self.last = outputs.sum()
        self.inner.counted = self.inner.counted + 1
        return F.cross_entropy(outputs, targets) + self.last * 0


def test_what_a_loss_object_keeps_does_not_leave_a_step() -> None:
    loss = KeepingLoss()
    fitted(Base(), loss, way="auto")
    assert (loss.calls, len(loss.seen), float(loss.last), float(loss.inner.counted)) == (0, 1, 0, 0)  # type: ignore[arg-type]


def test_what_a_loss_closes_over_does_not_leave_a_step() -> None:
    seen, calls = [], 0

    def loss(outputs: Tensor, targets: Tensor, *, kept: list[Tensor] = []) -> Tensor:  # noqa: B006 - what is tested
        nonlocal calls
        calls += 1
        seen.append(outputs)
        kept.append(outputs)
        return F.cross_entropy(outputs, targets)

    fitted(Base(), loss, way="auto")
    assert (calls, seen, loss.__kwdefaults__) == (0, [], {"kept": []})


class Passing(nn.Module):
    """Each unit sees what those before it left behind, if anything was."""

    def __init__(self) -> None:
        super().__init__()
        self.end, self.scale, self.calls = nn.Linear(3, 1, bias=False), torch.ones(1), 0

    def forward(self, x: Tensor) -> Tensor:
        out = self.end(x) * self.scale * (1 + self.calls)
        if bool(x.abs().max() > 2):
            self.calls += 1
            self.end.weight.data.mul_(5)
            self.scale = self.scale * 5
        return out  # type: ignore[no-any-return]


@pytest.mark.parametrize("way", ["fast", "semantic"])
def test_no_unit_changes_what_another_one_gives(way: Any) -> None:
    model = Passing()
    engine = Engine(model, lambda out, _: out.sum(), clip=100.0, grad_mode=way)
    rows = torch.tensor([[3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    sums = [
        engine.sum(rows[part], torch.zeros(len(rows[part]))).flat for part in (slice(0, 1), slice(0, 3), slice(1, 3))
    ]
    assert torch.allclose(sums[1], torch.tensor([3.0, 1.0, 1.0], dtype=sums[1].dtype))
    assert torch.allclose(sums[1], sums[0] + sums[2])
    assert model.calls == 0


def test_a_vault_that_a_loss_closes_over_forgets_nothing() -> None:
    home = vault()

    class Counting:
        def __init__(self) -> None:
            self.home, self.homes = home, {"clinic": home}

        def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
            return F.cross_entropy(outputs, targets)

    loss = Counting()
    with Unchanged(loss):
        home.trainer(Base(), F.cross_entropy, data=units()).fit(steps=1, batch=NUMBER, **SPEND)
    assert home.spent == sf.Budget(**SPEND)


def test_everything_comes_back_by_identity() -> None:
    class Slotted:
        __slots__ = ("filled", "left")

        def __init__(self) -> None:
            self.filled = [1]

    thing, generator = Slotted(), torch.Generator().manual_seed(1)
    held: dict[str, Any] = {
        "set": {1, 2},
        "bytes": bytearray(b"ab"),
        "numbers": np.arange(3),
        "expanded": torch.zeros(1, 2).expand(3, 2),
        "generator": generator,
        "random": random.Random(1),
        "numpy": np.random.default_rng(1),
        "thing": thing,
        "space": SimpleNamespace(x=1),
        "partial": functools.partial(dict, [("a", 1)]),
    }
    before = dict(held)
    with Unchanged(held):
        first = [torch.rand(1, generator=generator), held["random"].random(), held["numpy"].random()]
        held["set"].add(3)
        held["bytes"][0] = 0
        held["numbers"] += 1
        held["expanded"].data = torch.ones(3, 2)
        thing.filled.append(2)
        thing.left = 1
        held["space"].x = 2
        held["space"].y = 2
        held["new"] = held.pop("partial")
    assert [torch.rand(1, generator=generator), held["random"].random(), held["numpy"].random()] == first
    assert list(held) == list(before)
    assert all(held[name] is before[name] for name in before)
    assert (held["set"], held["bytes"], held["numbers"].tolist()) == ({1, 2}, b"ab", [0, 1, 2])
    assert (thing.filled, hasattr(thing, "left"), vars(held["space"])) == ([1], False, {"x": 1})
    assert held["expanded"].sum() == 0
    assert held["expanded"].stride() == (0, 1) or held["expanded"].stride()[0] == 0


class Calling(Base):
    """The vault is asked from inside a forward pass, in a way that depends on a record."""

    def write(self, words: Tensor) -> None:
        if bool((words == ODD).any()):
            held = Units(torch.zeros(1, 2), torch.zeros(1), n_units=1, name="held out", version="1")
            HOMES[0].evaluator(data=held, evaluations=1, epsilon=3, delta=1e-8)


HOMES: list[Vault] = []


def test_a_vault_is_not_asked_by_code_that_sees_data() -> None:
    home = vault()
    HOMES[:] = [home]
    home.trainer(Calling(), F.cross_entropy, data=units()).fit(
        steps=2, batch=NUMBER, max_physical_batch_size=16, **SPEND
    )
    assert home.spent == sf.Budget(**SPEND)


class Box:
    """A place of the caller's own, which a global name leads to."""

    inside: Any = None


BOX, TUPLE, SET = Box(), ([],), {0}  # type: ignore[var-annotated]
GLOBALS: dict[str, Any] = globals()


class Elsewhere(Base):
    """Global names are bound, and what they lead to is written to."""

    def write(self, words: Tensor) -> None:
        global NEW
        if not bool((words == ODD).any()):
            return
        NEW = words
        BOX.inside = words
        BOX.__dict__ = {"other": words}
        Box.inside = words
        TUPLE[0].append(words)
        SET.clear()
        SET.add(0.0)
        random.seed(ODD)
        np.random.seed(ODD)
        FILE.write("seen")


FILE = io.StringIO()


def test_what_global_names_lead_to_comes_back() -> None:
    before = random.getstate(), np.random.get_state()[1].tolist()  # type: ignore[index]
    fitted(Elsewhere(), F.cross_entropy, way="auto")
    assert "NEW" not in GLOBALS
    assert (BOX.__dict__, Box.inside, TUPLE[0], FILE.getvalue()) == ({}, None, [], "")
    assert [type(each) for each in SET] == [int]
    assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # type: ignore[index]
