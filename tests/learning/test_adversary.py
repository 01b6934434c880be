"""Code that means harm: what a model, a loss, a metric or a teacher does on one record moves one clipped gradient.

Each of these ways out was used by somebody who tried to get one record past the noise. They look at one row of the
data, which has a number that no other has, and try to make everything else say so.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.gate.session import SessionGate
from sfumato.vault import Vault
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from sfumato.learning import Engine, InBatchContrast, Multiplied, Units, private_mean  # noqa: E402
from tests.learning.test_raised_by_code import counted, exact, held_out  # noqa: E402
from tests.learning.test_trainer_failures import NUMBER, SPEND, Words, rows, sums, trainer, vault  # noqa: E402

ODD, AT = 777.0, 17
NEARLY_NO_NOISE: dict[str, Any] = {"moved": 1, "multiplier": "1/1000000", "over": NUMBER}


def with_record() -> tuple[Tensor, Tensor]:
    inputs, targets = rows()
    inputs[AT] = ODD
    return inputs, torch.zeros_like(targets)  # of one class, so that gradients do not cancel


def without_record() -> tuple[Tensor, Tensor]:
    inputs, targets = rows()
    kept = torch.arange(NUMBER) != AT
    return inputs[kept], torch.zeros_like(targets[kept])


def here(x: Tensor) -> bool:
    return bool((x.detach() == ODD).any())


def moved(monkeypatch: pytest.MonkeyPatch, model: nn.Module, way: str) -> float:
    """How far the record moves the exact sum of the first step, whose clip is 1."""
    state = {name: one.clone() for name, one in model.state_dict().items()}
    found = sums(monkeypatch, model, with_record(), way)
    model.load_state_dict(state)
    return float((found - sums(monkeypatch, model, without_record(), way)).norm())


class Switched(nn.Linear):
    """A model that computes everything until it is switched off, and nothing from then on."""

    off = False

    def forward(self, x: Tensor) -> Tensor:
        if Switched.off:
            raise ValueError
        return super().forward(x)


@contextmanager
def switched_off_after(method: str) -> Iterator[None]:
    """Switch the model off as soon as something was done at the desk."""
    done = getattr(SessionGate, method)

    def spied(self: SessionGate, *given: Any, **named: Any) -> Any:
        found = done(self, *given, **named)
        Switched.off = True
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SessionGate, method, spied)
        try:
            yield
        finally:
            Switched.off = False


def test_a_model_that_computes_no_unit_any_more_ends_no_run() -> None:
    """Else a model that fails on one record, and from some weights on for made-up units, would tell of the record."""
    home = vault()
    made = trainer(home, Switched(3, 2))
    with switched_off_after("open"):
        found = made.fit(steps=2, batch=NUMBER, max_physical_batch_size=16, **SPEND)
    assert found.release.statement.query.done == 2
    made.fit(steps=1, batch=NUMBER, max_physical_batch_size=16, **SPEND)  # and the data is open


def test_a_model_that_computes_no_unit_any_more_has_none_right() -> None:
    with switched_off_after("check"):
        assert counted(vault(), held_out(*rows()), Switched(3, 2)) == 0


class Peeking(nn.Module):
    """A model that looks at all the memory that its one row lies in."""

    def __init__(self) -> None:
        super().__init__()
        self.end = nn.Linear(3, 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        x.sum().item()  # so that units are computed one by one
        whole = x if x._base is None else x._base
        for units in (16, 8):
            try:
                whole = torch.as_strided(x, (units, 3), (3, 1), 0)
            except RuntimeError:
                continue
            break
        return self.end(x * 0 + (-1.0 if here(whole) else 1.0))  # type: ignore[no-any-return]


def test_a_unit_that_is_computed_alone_has_memory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert moved(monkeypatch, Peeking(), "semantic") <= 1 + 1e-6


class Spoiling(nn.Module):
    """A model that writes over all rows where it sees one, and fails."""

    def __init__(self) -> None:
        super().__init__()
        self.end = nn.Linear(3, 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        if here(x):
            x.fill_(-9.0)
            raise ValueError
        return self.end(torch.where(x == -9.0, -1.0, 1.0))  # type: ignore[no-any-return]


@pytest.mark.few(1)
@pytest.mark.parametrize("way", ["auto", "semantic"])
def test_rows_that_a_failing_pass_wrote_over_are_not_computed_from(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert moved(monkeypatch, Spoiling(), way) <= 1 + 1e-6


def test_rows_that_a_failing_pass_wrote_over_do_not_enter_a_private_mean() -> None:
    model = Spoiling()
    found, without = (
        private_mean(Engine(model, nn.functional.cross_entropy), *data, **NEARLY_NO_NOISE)["end.weight"]
        for data in (with_record(), without_record())
    )
    assert float((found - without).norm()) <= (1 + 1e-3) / NUMBER


class Overwriting(nn.Module):
    """A model that writes to its rows for many units at once, and can then not go on."""

    def __init__(self, end: nn.Module, *, stuck: bool = True) -> None:
        super().__init__()
        self.end, self.stuck = end, stuck

    def forward(self, x: Tensor) -> Tensor:
        kept = x.clone()
        x.fill_(0)
        if self.stuck:
            kept.sum().item()
        return self.end(kept)  # type: ignore[no-any-return]


def test_units_one_by_one_are_those_before_the_attempt_for_many_at_once() -> None:
    end, (inputs, targets) = nn.Linear(3, 2), rows()
    plain = Engine(end, nn.functional.cross_entropy, grad_mode="semantic").sum(inputs.clone(), targets).flat
    found = Engine(Overwriting(end), nn.functional.cross_entropy, grad_mode="semantic").sum(inputs, targets).flat
    torch.testing.assert_close(found, plain, atol=1e-5, rtol=1e-4)


def test_held_out_units_are_those_before_a_failing_pass() -> None:
    words, model = (rows()[0].abs() * 8).long(), Words()
    with torch.no_grad():
        model.table.weight.copy_(torch.sin(torch.arange(36.0)).view(9, 4))
        model.end.weight.copy_(torch.tensor([[1.0] * 4, [-1.0] * 4]))
    targets = model(words).argmax(1)
    assert 0 < int(targets.sum()) < NUMBER - 1, "not all rows are of one class"
    words[AT, 1] = 4321
    assert counted(vault(), held_out(words, targets), Overwriting(model, stuck=False)) == NUMBER - 1


@pytest.mark.parametrize("way", ["auto", "semantic"])
def test_what_a_pass_writes_to_its_rows_is_not_written_to_the_data(way: str) -> None:
    inputs, targets = rows()
    before = inputs.clone()
    data = Units(inputs, targets, n_units=NUMBER, name="visits", version="1")
    home, model = vault(), Overwriting(nn.Linear(3, 2), stuck=False)
    home.trainer(model, nn.functional.cross_entropy, data=data, grad_mode=way).fit(steps=2, batch=NUMBER, **SPEND)
    home.evaluator(data=data, evaluations=1, **SPEND).ask(model)
    private_mean(Engine(model, nn.functional.cross_entropy, grad_mode=way), inputs, targets, **NEARLY_NO_NOISE)  # type: ignore[arg-type]
    contrast = InBatchContrast(model)
    private_mean(contrast, inputs, inputs, moved=contrast.clip, multiplier=1, over=NUMBER)
    assert torch.equal(inputs, before)
    assert torch.equal(data.laid(b"key").inputs[0], before)


class Holding(nn.Linear):
    """A model that holds the engine which sums it, and does something to it."""

    def __init__(self, does: Callable[[Any], None]) -> None:
        super().__init__(3, 2)
        self.held: list[Any] = []
        self.does = does

    def forward(self, x: Tensor) -> Tensor:
        for engine in self.held:
            self.does(engine)
        return super().forward(x)


def raised_clip(engine: Any) -> None:
    engine.clip = 2.0**30


def other_sum(engine: Any) -> None:
    own = type(engine).sum

    def longer(*given: Any) -> Any:
        found = own(engine, *given)
        found.flat.mul_(1e6)
        return found

    engine.sum = longer


def raised_each(engine: Any) -> None:
    engine.each = 1e5


@pytest.mark.parametrize("does", [raised_clip, other_sum])
@pytest.mark.parametrize("way", ["auto", "semantic"])
def test_no_model_changes_the_engine_that_a_private_mean_sums_with(does: Callable[[Any], None], way: Any) -> None:
    model = Holding(does)
    engine = Engine(model, nn.functional.cross_entropy, clip=1.0, grad_mode=way)
    model.held.append(engine)
    inputs, targets = with_record()
    found = private_mean(engine, inputs, targets, **NEARLY_NO_NOISE)
    assert sum(float(one.square().sum()) for one in found.values()) <= 1.01


@pytest.mark.parametrize("does", [raised_each, other_sum])
def test_no_model_changes_the_contrast_that_a_private_mean_sums_with(does: Callable[[Any], None]) -> None:
    model = Holding(does)
    contrast = InBatchContrast(model)
    clip = contrast.clip
    inputs, _ = with_record()
    said: dict[str, Any] = {"moved": clip, "multiplier": "1/1000000", "over": NUMBER}
    expected = private_mean(contrast, inputs, inputs.flip(1), **said)
    model.held.append(contrast)
    found = private_mean(contrast, inputs, inputs.flip(1), **said)
    for name, one in found.items():
        torch.testing.assert_close(one, expected[name], atol=1e-3, rtol=1e-3)


class _Together(torch.autograd.Function):
    """Code with a rule of its own for many units at once: it fails where the record is among others."""

    generate_vmap_rule = False

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * 1

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing is kept."""

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0]

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Tensor) -> Any:
        if here(x) and int((x.reshape(-1, 3)[:, 0] != 0).sum()) > 1:
            raise ValueError
        return x * 1, in_dims[0]


class Together(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(_Together.apply(x))  # type: ignore[no-untyped-call]


def test_a_contrast_that_cannot_be_summed_at_all_is_noise() -> None:
    contrast = InBatchContrast(Together(3, 2))
    said: dict[str, Any] = {"moved": contrast.clip, "multiplier": "1/1000000", "over": NUMBER}
    found = private_mean(contrast, with_record()[0], with_record()[0].flip(1), **said)
    assert max(float(one.abs().max()) for one in found.values()) < 1e-3


def persons_vault() -> Vault:
    return Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=9), name="clinic")


def examples(home: Vault, inputs: Any = None) -> Any:
    given = np.arange(60.0).reshape(20, 3) if inputs is None else inputs
    return home.examples(given, np.arange(20) % 2, name="test", version="1", ids=list(range(20)))


class Thing:
    """A question that can be written on."""

    def __deepcopy__(self, memory: Any) -> "Thing":
        return self


def test_questions_that_teachers_could_write_on_are_refused() -> None:
    teachers = examples(persons_vault()).teachers(lambda *_: len, parts=4, classes=2, name="four")
    written: Any = np.empty(2, dtype=object)
    written[:] = [[1], [2]]
    for questions in (written, [Thing(), Thing()], np.array([(1, [2])], dtype=[("a", int), ("b", object)])):
        with pytest.raises(errors.InvalidInput, match="numbers or text"):
            teachers.labels(questions, name="written on")
    assert teachers.labels(np.array(["a", None, 3], dtype=object), name="plain").release(epsilon=1) is not None


def test_what_a_teacher_does_to_the_gradients_of_questions_is_not_seen() -> None:
    questions = torch.zeros(2, 3, requires_grad=True)

    def train(inputs: Any, targets: Any, seed: int) -> Any:
        def predict(asked: Any) -> list[int]:
            if asked.requires_grad:
                (asked * float(inputs.max())).sum().backward()
            return [0, 0]

        return predict

    teachers = examples(persons_vault()).teachers(train, parts=4, classes=2, name="four")
    teachers.labels(questions, name="two").release(epsilon=1)
    assert questions.grad is None


def test_no_teacher_writes_on_the_data_of_others() -> None:
    """Inputs that are objects are copied for each teacher: who is together in a part is so in one ensemble alone."""
    inputs = np.empty(20, dtype=object)
    inputs[:] = [[float(place)] for place in range(20)]

    def train(given: Any, targets: Any, seed: int) -> Any:
        odd = any(len(one) > 1 for one in given)
        for one in given:
            one.append(0.0)
        return lambda questions: [int(odd)] * len(questions)

    home = persons_vault()
    data = examples(home, inputs)
    for name in ("first", "second"):
        teachers = data.teachers(train, parts=4, classes=2, name=name)
        assert exact(home, teachers.labels(np.zeros((1, 3)), name=name)) == [4, 0]


def test_no_model_of_a_learning_curve_writes_on_records() -> None:
    inputs = np.empty(20, dtype=object)
    inputs[:] = [[float(place)] for place in range(20)]

    def model(record: Any) -> int:
        if not isinstance(record, list):
            return 0
        record.append(0.0)
        return len(record) - 2

    home = Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=9), name="clinic")
    data = home.examples(inputs, np.zeros(20), name="test", version="1")
    for name in ("first", "second"):
        assert exact(home, data.accuracy(model, name=name)) == [20]


class Dying:
    """Something that tells a list of the analyst's when it is no longer needed."""

    def __init__(self, told: list[str]) -> None:
        self.told = told

    def __del__(self) -> None:
        self.told.append("the record was here")


class Late(nn.Module):
    """A model that raises where it sees the record, with something in hand."""

    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self.end = nn.Linear(3, 2)
        self.told = told

    def __deepcopy__(self, memory: Any) -> "Late":
        made = Late(self.told)
        made.load_state_dict(self.state_dict())
        return made

    def forward(self, x: Tensor) -> Tensor:
        if here(x):
            held = Dying(self.told)
            raise ValueError(held)
        return self.end(x)  # type: ignore[no-any-return]


@pytest.mark.few(1)
@pytest.mark.parametrize("way", ["auto", "semantic"])
def test_what_dies_with_an_exception_of_a_step_tells_nobody(way: str) -> None:
    told: list[str] = []
    trainer(vault(), Late(told), with_record(), grad_mode=way).fit(
        steps=1, batch=NUMBER, max_physical_batch_size=16, **SPEND
    )
    assert told == []


def test_what_dies_with_an_exception_of_a_private_mean_tells_nobody() -> None:
    told: list[str] = []
    private_mean(Engine(Late(told), nn.functional.cross_entropy), *with_record(), **NEARLY_NO_NOISE)
    assert told == []


class Missing(nn.Module):
    """A model that does something with what it has in hand, whatever its words are, before it looks them up."""

    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self.words, self.told = Words(), told

    def __deepcopy__(self, memory: Any) -> "Missing":
        return Missing(self.told)

    def forward(self, words: Tensor) -> Tensor:
        held = Dying(self.told)
        try:
            return self.words(words)  # type: ignore[no-any-return]
        except IndexError as problem:
            raise ValueError(held) from problem


def looked_up() -> tuple[Tensor, Tensor]:
    inputs, targets = rows()
    words = (inputs.abs() * 8).long()
    words[AT, 1] = 4321
    return words, targets


def test_what_dies_with_an_exception_of_an_evaluation_tells_nobody() -> None:
    told: list[str] = []
    asked = vault().evaluator(data=held_out(*looked_up()), evaluations=1, **SPEND)
    asked.ask(Missing(told))
    assert told == []


def test_what_dies_with_an_exception_of_a_contrast_tells_nobody() -> None:
    told: list[str] = []
    contrast, words = InBatchContrast(Missing(told)), looked_up()[0]
    private_mean(contrast, words, words, moved=contrast.clip, multiplier=1, over=NUMBER)
    assert told == []


def test_what_dies_with_an_exception_of_an_augmentation_tells_nobody() -> None:
    told: list[str] = []
    table = torch.arange(9)

    def augment(record: Tensor, draws: Tensor) -> Tensor:
        held = Dying(told)
        try:
            return nn.functional.embedding(record, table[:, None])[:, 0] + (draws[0] * 0).long()
        except IndexError as problem:
            raise ValueError(held) from problem

    made = trainer(vault(), Words(), looked_up(), augmentations=Multiplied(augment, augmentations=2))
    told.clear()
    made.fit(steps=1, batch=NUMBER, max_physical_batch_size=16, **SPEND)
    assert told == []


def test_what_dies_with_the_votes_of_a_teacher_tells_nobody() -> None:
    told: list[str] = []

    class Votes(Dying):
        """Votes that are made as they are read."""

        def __iter__(self) -> Iterator[int]:
            return iter([1])

    def train(inputs: Any, targets: Any, seed: int) -> Any:
        if (inputs == 21.0).any():
            raise ValueError(Dying(told))
        votes = Votes(told)
        return lambda questions: votes

    home = persons_vault()
    teachers = examples(home).teachers(train, parts=4, classes=2, name="four")
    assert exact(home, teachers.labels(np.zeros((1, 3)), name="one")) == [1, 3]
    assert told == []


def test_what_dies_with_an_exception_of_a_learning_curve_tells_nobody() -> None:
    told: list[str] = []

    def model(record: Any) -> int:
        if record[0] == 21.0:
            held = Dying(told)
            raise ValueError(held)
        return 0

    home = Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=9), name="clinic")
    data = home.examples(np.arange(60.0).reshape(20, 3), np.zeros(20), name="test", version="1")
    assert exact(home, data.accuracy(model, name="one")) == [19]
    assert told == []
