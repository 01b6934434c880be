"""Steps of a device, run here: rows of the sample and no others, in parts of one shape, and no code of the user."""

from fractions import Fraction

import pytest

from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import sfumato as sf  # noqa: E402
from sfumato.core.query import Dataset  # noqa: E402
from sfumato.core.sensitivity import Sensitivity  # noqa: E402
from sfumato.learning.course import SampledCourse  # noqa: E402
from sfumato.learning.device_steps import DeviceSteps  # noqa: E402
from sfumato.learning.engine import Engine  # noqa: E402
from sfumato.learning.item_rows import ItemRows  # noqa: E402
from sfumato.learning.noisy_sums import NoisySums  # noqa: E402
from sfumato.learning.replayed import Replayed  # noqa: E402
from sfumato.learning.run import Run  # noqa: E402
from sfumato.learning.training import Training  # noqa: E402
from sfumato.learning.units import Laid, Units  # noqa: E402
from sfumato.noise import SystemWords  # noqa: E402

NUMBER, WIDTH, PHYSICAL = 40, 3, 16


def steps_of(model: nn.Module, unit: str, records: int, like: tuple[torch.Tensor, ...]) -> tuple[DeviceSteps, Engine]:
    size = sum(one.numel() for one in model.parameters())
    run = Training(
        dataset=Dataset(name="rows", edition="1"), units=unit, clip=Fraction(1), times=1, records=records,
        number=NUMBER, rate=Fraction(1, 2), steps=3, parameters=size,
    )  # fmt: skip
    mechanism = NoisySums(multiplier=Fraction(1), steps=3, rate=Fraction(1, 2), parameters=size)
    course = SampledCourse(run, mechanism, Sensitivity.of(l2_squared=1), SystemWords())
    engine = Engine(model, F.cross_entropy, clip=1.0, unit=unit)  # type: ignore[arg-type]
    return DeviceSteps(course, Replayed(lambda *batch: engine.sum(*batch)), like), engine


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 33, 40])
def test_the_sum_is_that_of_the_units_of_the_sample(count: int) -> None:
    torch.manual_seed(0)
    model = nn.Linear(WIDTH, 2)
    laid = Laid((torch.randn(NUMBER, WIDTH),), torch.randint(0, 2, (NUMBER,)), NUMBER)
    like = (torch.zeros(PHYSICAL, WIDTH), torch.zeros(PHYSICAL, dtype=torch.int64), torch.ones(PHYSICAL, dtype=bool))
    steps, engine = steps_of(model, "record", 1, like)
    places = torch.randperm(NUMBER)[:count]
    found = steps._summed(laid, places, places, count)
    exact = engine.sum(laid.inputs[0][places], laid.targets[places]).flat if count else torch.zeros(8)
    assert torch.allclose(found, exact.double(), atol=1e-6)


def test_a_user_has_the_rows_that_count_and_no_others() -> None:
    torch.manual_seed(0)
    model, count = nn.Linear(WIDTH, 2), 20
    rows, present = torch.randint(0, 90, (NUMBER, 2)), torch.rand(NUMBER, 2) < 0.7
    laid = Laid((torch.randn(90, WIDTH),), torch.randint(0, 2, (90,)), NUMBER, rows, present)
    like = (
        torch.zeros(PHYSICAL, 2, WIDTH), torch.zeros(PHYSICAL, 2, dtype=torch.int64),
        torch.ones(PHYSICAL, 2, dtype=bool),
    )  # fmt: skip
    steps, engine = steps_of(model, "user", 2, like)
    places = torch.randperm(NUMBER)[:count]
    found = steps._summed(laid, places, places, count)
    exact = engine.sum(laid.inputs[0][rows[places]], laid.targets[rows[places]], present[places]).flat
    assert torch.allclose(found, exact.double(), atol=1e-6)


class Unpinned:
    """Buffers of a machine without a device."""

    def next(self, like: list[torch.Tensor]) -> list[torch.Tensor]:
        return [torch.empty(one.shape, dtype=one.dtype) for one in like]

    def sent(self) -> None:
        """Nothing is copied by anybody else."""


@pytest.mark.parametrize(("unit", "records"), [("record", 1), ("user", 2)])
def test_rows_that_are_read_are_summed_as_rows_in_memory_are(unit: str, records: int) -> None:
    torch.manual_seed(0)
    model, count = nn.Linear(WIDTH, 2), 20
    inputs, targets = torch.randn(90, WIDTH), torch.randint(0, 2, (90,))
    source = ItemRows(
        [(inputs[row], targets[row]) for row in range(90)], keys=[0, 1], like=[torch.zeros(WIDTH), torch.tensor(0)]
    )
    rows = torch.randint(0, 90, (NUMBER, records)) if unit == "user" else None
    present = None if rows is None else torch.rand(NUMBER, records) < 0.7
    middle = (PHYSICAL, records) if unit == "user" else (PHYSICAL,)
    like = torch.zeros(*middle, WIDTH), torch.zeros(middle, dtype=torch.int64), torch.ones(middle, dtype=bool)
    steps, _ = steps_of(model, unit, records, like)
    steps._buffers = Unpinned()  # type: ignore[assignment]
    places = torch.randperm(NUMBER)[:count]
    found = steps._summed(Laid.read_from(source, NUMBER, rows, present), places, places, count, 3)
    held = steps._summed(Laid((inputs,), targets, NUMBER, rows, present), places, places, count)
    assert torch.allclose(found, held, atol=1e-6)


@pytest.mark.alpha(1e-8)
def test_each_noisy_sum_has_noise_of_its_own_and_about_the_declared_spread() -> None:
    """Sums of 0: 8 numbers, 80 times, of standard deviation 1, which is met to six of its own deviations."""
    model = nn.Linear(WIDTH, 2)
    laid = Laid((torch.zeros(NUMBER, WIDTH),), torch.zeros(NUMBER, dtype=torch.int64), NUMBER)
    like = (torch.zeros(PHYSICAL, WIDTH), torch.zeros(PHYSICAL, dtype=torch.int64), torch.ones(PHYSICAL, dtype=bool))
    steps, _ = steps_of(model, "record", 1, like)
    steps._run = lambda: type("Sum", (), {"flat": torch.zeros(8, dtype=torch.float64)})()  # type: ignore[method-assign]
    found = torch.stack([steps.noisy(laid) for _ in range(80)])
    assert len({tuple(each.tolist()) for each in found}) == 80
    assert abs(float(found.std()) - 1) < 6 / (2 * 640) ** 0.5


def test_weights_that_moved_are_noticed() -> None:
    like = (torch.zeros(PHYSICAL, WIDTH), torch.zeros(PHYSICAL, dtype=torch.int64), torch.ones(PHYSICAL, dtype=bool))
    model = nn.Linear(WIDTH, 2)
    steps, _ = steps_of(model, "record", 1, like)
    assert steps.as_recorded(model.parameters())
    model.weight.data = model.weight.data.clone()
    assert not steps.as_recorded(model.parameters())


@pytest.mark.alpha(1e-9)
def test_fit_learns_by_the_steps_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call that users make, with what runs on a device in its place: 60 steps on two kinds of rows far apart."""
    prepare, noisy, made = Run._prepare, DeviceSteps.noisy, []

    def prepared(self: Run) -> None:
        prepare(self)
        inputs, targets, present = self._placed(*self._units.example(self._physical))
        self._on_device = DeviceSteps(self._course, Replayed(self._sum), (*inputs, targets, present))  # type: ignore[arg-type]

    monkeypatch.setattr(Run, "_prepare", prepared)
    monkeypatch.setattr(Run, "_settled", lambda self: None)  # there is no device to wait for
    monkeypatch.setattr(DeviceSteps, "noisy", lambda self, laid, step: (made.append(1), noisy(self, laid, step))[1])
    torch.manual_seed(0)
    targets = torch.arange(2000) % 2
    inputs = torch.randn(2000, WIDTH) + 4 * targets[:, None]
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9, delta=1e-6), name="device")
    units = Units(inputs, targets, n_units=2000, name="rows", version="1")
    model = nn.Linear(WIDTH, 2)
    trained = vault.trainer(model, F.cross_entropy, data=units).fit(
        epsilon=8, delta=1e-6, steps=60, batch=400, optimizer=torch.optim.SGD, lr=0.5, progress=False
    )
    assert len(made) == 60
    assert trained.release.statement.query.done == 60  # type: ignore[attr-defined]
    right = (trained.model(inputs).argmax(1) == targets).float().mean()
    assert right > 0.95
