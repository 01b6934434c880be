"""A loop that means harm: between steps its code tries each side door, on neighbouring data with the same noise.

The neighbour has a record whose gradient is not finite, so that it counts nothing in both worlds: all that is released
is the same, bit by bit. Whatever else differs was not noised. Each door is tried on a broken copy of the run as well,
which leaves it open and is found.
"""

import gc
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sfumato import errors
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.nn.modules.module import register_module_forward_hook  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from sfumato.learning import (  # noqa: E402
    OpenRun,
    OpenStep,
    Trainer,
    Units,
)
from sfumato.learning import listeners as listening  # noqa: E402
from sfumato.learning import run as runs  # noqa: E402
from sfumato.learning import trainer as trainers  # noqa: E402
from tests.learning.test_trainer_failures import NUMBER, SPEND, rows, vault  # noqa: E402
from tests.learning.words import TestWords  # noqa: E402

AT = 17
SEEN: list[Any] = []  # what a side door brought, where there is one


def data(*, neighbour: bool) -> Units:
    """The same units but for one, which counts nothing in either: what it holds is not finite."""
    inputs, targets = rows()
    inputs[AT] = float("nan")
    if neighbour:
        inputs[AT] = torch.tensor([float("inf"), 0.0, 0.0])  # outputs are infinite, and not "not a number"
    return Units(inputs, targets, n_units=NUMBER, name="visits", version="1")


class Drawing(nn.Module):
    """A model that draws from the generators of everybody where it sees a record."""

    def __init__(self) -> None:
        super().__init__()
        self.end = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.detach().isnan().any()):
            _ = torch.rand(1), random.random(), np.random.random()
        return self.end(x)  # type: ignore[no-any-return]


def opened(*, neighbour: bool, model: nn.Module | None = None, **said: Any) -> tuple[OpenRun, nn.Module]:
    torch.manual_seed(3)
    model = Drawing() if model is None else model
    made: Trainer = vault().trainer(model, F.cross_entropy, data=data(neighbour=neighbour))
    made._words = TestWords
    return made.run(**{"steps": 3, "batch": NUMBER, "max_physical_batch_size": 16, **SPEND, **said}), model


def plain(value: object) -> object:
    """Whatever a door brought, in a form that can be compared bit by bit."""
    match value:
        case Tensor():
            try:
                return value.detach().double().numpy().tobytes()
            except RuntimeError:  # it has left the function that it was made for; it can be printed all the same
                return repr(value)
        case np.ndarray():
            return value.tobytes()
        case dict():
            return {str(name): plain(one) for name, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
    return repr(value)


Door = Callable[[OpenRun, OpenStep, nn.Module], object]


def grads(run: OpenRun, step: OpenStep, model: nn.Module) -> object:
    step.loss()
    assert all(one.grad is None for one in model.parameters())
    return [one.grad for one in model.parameters()]


def documented(run: OpenRun, step: OpenStep, model: nn.Module) -> object:
    """All that is public of both, after a step whose loss is asked for what it gives."""
    assert step.loss() is None  # type: ignore[func-returns-value]  # what is tested
    of_step = {name: getattr(step, name) for name in dir(step) if not name.startswith("_") and name != "loss"}
    of_run = {name: getattr(run, name) for name in ("step", "epsilon", "charged", "lr")}
    return [of_step, of_run, len(run), repr(run), repr(step), model.state_dict()]


def keeping_loss(run: OpenRun, step: OpenStep, model: nn.Module) -> object:
    kept: list[Tensor] = []
    held: dict[str, Any] = {}

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        kept.append(outputs)
        held["last"] = outputs
        run.__dict__["told"] = outputs
        return F.cross_entropy(outputs, targets)

    step.loss(loss)
    return [kept, held, loss.__dict__, [str(name) for name in vars(run)]]


def printed_loss(run: OpenRun, step: OpenStep, model: nn.Module) -> object:
    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        print(outputs)
        warnings.warn(str(outputs), stacklevel=1)
        return F.cross_entropy(outputs, targets)

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        step.loss(loss)
    return [str(one.message) for one in heard if "tensor" in str(one.message)]


def raising_loss(run: OpenRun, step: OpenStep, model: nn.Module) -> object:
    """A loss that cannot be computed on a batch says so on made-up units; the step is made by another."""

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        if bool((outputs > 0).any()):
            raise ValueError(str(outputs))
        return F.cross_entropy(outputs, targets)

    try:
        step.loss(loss)
    except (RuntimeError, ValueError) as wrong:
        said = type(wrong).__name__
    else:
        said = "made"
    if not step.made:
        step.loss()
    return said


def generators(run: OpenRun, step: OpenStep, model: nn.Module) -> object:
    torch.manual_seed(11)
    random.seed(11)
    np.random.seed(11)
    step.loss()
    return [torch.get_rng_state(), random.getstate(), np.random.get_state()[1]]  # type: ignore[index]


def scaler(run: OpenRun, step: OpenStep, model: nn.Module) -> object:
    own = torch.optim.SGD(model.parameters(), lr=1.0)
    scaling = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaling.scale(torch.ones(()))
    step.loss()
    try:
        scaling.step(own)
    except AssertionError as nothing:  # it finds no gradient
        return [str(nothing), scaling.get_scale()]
    return [scaling.get_scale(), model.state_dict()]


def memory(run: OpenRun, step: OpenStep, model: nn.Module) -> object:
    """Tensors that are alive after a step and were not before it."""
    gc.collect()
    before = {id(one) for one in gc.get_objects() if type(one) is Tensor}
    step.loss()
    gc.collect()
    left = [one for one in gc.get_objects() if type(one) is Tensor and id(one) not in before]
    return sorted(str(tuple(one.shape)) for one in left)


def later_hook(run: OpenRun, step: OpenStep, model: nn.Module) -> object:
    """A hook on the caller's model and its weights, after the run was opened: they are not those that are trained."""
    handles = [model.register_forward_hook(lambda *all_: SEEN.append(all_))]
    handles += [one.register_hook(SEEN.append) for one in model.parameters()]
    step.loss()
    for handle in handles:
        handle.remove()
    return list(SEEN)


class HearingFunctions(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        SEEN.append(found if isinstance(found, Tensor) else None)
        return found


class HearingKernels(TorchDispatchMode):
    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        SEEN.append(found if isinstance(found, Tensor) else None)
        return found


@contextmanager
def every_module() -> Iterator[None]:
    handle = register_module_forward_hook(lambda module, inputs, outputs: SEEN.append(outputs))
    try:
        yield
    finally:
        handle.remove()


def kept_back(value: Tensor) -> Tensor:
    SEEN.append(value)
    return value


LISTENERS: dict[str, Callable[[], Any]] = {
    "function mode": HearingFunctions,
    "dispatch mode": HearingKernels,
    "hook for every module": every_module,
    "saved tensors": lambda: torch.autograd.graph.saved_tensors_hooks(kept_back, lambda value: value),
    "profiler": lambda: torch.profiler.profile(record_shapes=True),
    "inference": torch.inference_mode,
}


def listening_door(name: str) -> Door:
    def door(run: OpenRun, step: OpenStep, model: nn.Module) -> object:
        with LISTENERS[name]() as heard:
            try:
                step.loss()
            except errors.Refused as refused:
                said = str(refused)
            else:
                said = "heard"
        if said == "heard":
            told = [event.name for event in heard.events()] if name == "profiler" else list(SEEN)
            return [said, told]
        SEEN.clear()
        step.loss()  # the same step, with nobody listening: the refusal ended nothing
        return [said, list(SEEN)]

    return door


DOORS: dict[str, Door] = {
    "grad": grads,
    "documented": documented,
    "keeping loss": keeping_loss,
    "printed loss": printed_loss,
    "raising loss": raising_loss,
    "generators": generators,
    "scaler": scaler,
    "memory": memory,
    "later hook": later_hook,
    **{name: listening_door(name) for name in LISTENERS},
}


def brought(names: list[str], *, neighbour: bool) -> dict[str, object]:
    """All that a loop saw that goes through one door in each step, and what the run came to."""
    SEEN.clear()
    run, model = opened(neighbour=neighbour, steps=len(names))
    seen: dict[str, object] = {}
    for name, step in zip(names, run, strict=True):
        through = plain(DOORS[name](run, step, model))
        seen[name] = [through, plain(dict(step.weights)), plain(step.optimizer_state)]
        SEEN.clear()
    said: Any = run.trained.release.statement
    return {**seen, "model": plain(model.state_dict()), "weights": said.query.weights, "event": repr(said.event)}


@pytest.mark.claim("S1-12")
def test_no_door_of_a_loop_leads_past_the_noise(capfd: pytest.CaptureFixture[str]) -> None:
    one, other = (brought(list(DOORS), neighbour=neighbour) for neighbour in (False, True))
    assert [name for name in one if one[name] != other[name]] == []
    written = capfd.readouterr()
    assert "nan" not in written.out + written.err
    for name in LISTENERS:  # refused, and the step was made when nobody listened
        (said, heard), *_ = one[name]  # type: ignore[misc]
        assert "nothing was read" in said
        assert heard == []


# ------------------------------------------------------------------- broken copies, each of which must be found out


def broken(patched: pytest.MonkeyPatch, name: str) -> None:
    """Open a door: what keeps it shut is taken away."""
    match name:
        case "keeping loss":
            patched.setattr(runs, "Unchanged", lambda *roots: nullcontext())
        case "generators":  # a model that draws where it sees a record, from the generator of everybody
            patched.setattr(runs.Draws, "used", lambda self: nullcontext())
            patched.setattr(runs, "Unchanged", lambda *roots: nullcontext())
        case "later hook":  # the caller's model is trained, and not a copy of it
            patched.setattr(trainers, "copy", SimpleNamespace(deepcopy=lambda one: one))
            patched.setattr(runs, "Unchanged", lambda *roots: nullcontext())
        case _:
            patched.setattr(runs, "check_nobody_listens", lambda *, strict: None)
            patched.setattr(runs, "Unheard", nullcontext)
            patched.setattr(runs, "Unchanged", lambda *roots: nullcontext())


@pytest.mark.parametrize(
    "name",
    [
        *("keeping loss", "generators", "later hook"),
        *("function mode", "dispatch mode", "hook for every module", "saved tensors"),
    ],
)
def test_an_open_door_is_found(name: str) -> None:
    with pytest.MonkeyPatch.context() as patched:
        broken(patched, name)
        one, other = (brought([name], neighbour=neighbour) for neighbour in (False, True))
    assert one[name] != other[name]
    assert one["weights"] == other["weights"]  # what is released is the same: the door was the difference


def test_a_hook_that_the_model_already_has_is_refused_uncharged() -> None:
    home = vault()
    for where in ("layer", "weight"):
        model = nn.Linear(3, 2)
        if where == "layer":
            model.register_forward_pre_hook(lambda *all_: None)
        else:
            model.weight.register_hook(lambda gradient: None)
        made = home.trainer(model, F.cross_entropy, data=data(neighbour=False))
        with pytest.raises(errors.Refused, match="hook of yours"):
            made.run(steps=1, **SPEND)
    assert home.spent.epsilon == 0


def test_hooks_that_torch_adds_may_stay() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        listening.check_no_hooks(torch.nn.utils.spectral_norm(nn.Linear(3, 2)))


class Leaving(nn.Module):
    """A model that leaves a listener behind where it sees one record."""

    def __init__(self) -> None:
        super().__init__()
        self.end = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        if not bool(torch.isfinite(x.detach()).all()):
            register_module_forward_hook(lambda module, inputs, outputs: SEEN.append(outputs))
            HearingFunctions().__enter__()
        return self.end(x)  # type: ignore[no-any-return]


def test_a_listener_that_code_leaves_which_sees_data_is_gone_before_anybody_looks() -> None:
    SEEN.clear()
    run, _ = opened(neighbour=True, model=Leaving())
    for step in run:
        step.loss()
        listening.check_nobody_listens(strict=True)
    assert run.step == 3
    assert SEEN == []


def test_a_vault_is_not_asked_by_a_loss_and_a_step_is_not_made_by_one() -> None:
    run, _ = opened(neighbour=False)
    steps = iter(run)
    step = next(steps)
    tried: list[bool] = []

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        tried.append(True)
        step.loss()
        return F.cross_entropy(outputs, targets)

    with pytest.raises(errors.InvalidInput, match="is being made"):
        step.loss(loss)  # on made-up units, before anything is read
    step.loss()
    assert run.step == 1
