"""What models, teachers and losses raise tells nothing of rows; a Ctrl-C ends a run and closes nothing.

Whatever is raised where a record is seen, be it an interrupt or an exit, changes what that record's unit adds and
nothing else. A signal is something else: it comes from outside, and goes through.
"""

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.learning.paradigms.store import ExampleStore
from sfumato.vault import Vault
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from sfumato.learning import Engine, InBatchContrast, Multiplied, Units, private_mean  # noqa: E402
from sfumato.learning.evaluation import Evaluator  # noqa: E402
from tests.learning.test_trainer_failures import NUMBER, SPEND, Words, rows, sums, trainer, vault  # noqa: E402

RAISED = [KeyboardInterrupt, SystemExit, GeneratorExit, RuntimeError]


class Raising(nn.Module):
    """A model that raises something where it sees one record."""

    def __init__(self, raised: type[BaseException]) -> None:
        super().__init__()
        self.end, self.raised = nn.Linear(3, 2), raised

    def forward(self, x: Tensor) -> Tensor:
        if float(x.max()) > 4:
            raise self.raised(str(x))
        return self.end(x)  # type: ignore[no-any-return]


@pytest.mark.few(1)
@pytest.mark.parametrize("raised", RAISED)
def test_a_unit_on_which_a_model_raises_counts_nothing(
    raised: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, targets = rows()
    inputs[17] = 5.0
    kept = torch.arange(NUMBER) != 17
    model = Raising(raised)
    state = {name: one.clone() for name, one in model.state_dict().items()}
    found = sums(monkeypatch, model, (inputs, targets), "auto")
    model.load_state_dict(state)
    without = sums(monkeypatch, model, (inputs[kept], targets[kept]), "auto")
    torch.testing.assert_close(found, without, atol=1e-5, rtol=1e-5)


def examples(home: Vault, **said: Any) -> Any:
    inputs = np.arange(60.0).reshape(20, 3)
    return home.examples(inputs, np.arange(20) % 2, name="test", version="1", **said)


def exact(home: Vault, question: Any) -> list[Any]:
    """What is computed before the noise, by the way that a release takes."""
    caught: list[Any] = []
    read = ExampleStore.read

    def spied(self: ExampleStore, query: Any) -> Any:
        caught.append(read(self, query))
        return caught[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ExampleStore, "read", spied)
        question.release(epsilon=1)
    return caught[0]  # type: ignore[no-any-return]


@pytest.mark.parametrize("raised", RAISED)
def test_a_teacher_that_raises_votes_for_class_0(raised: type[BaseException]) -> None:
    kept: list[Any] = []

    def train(inputs: Any, targets: Any, seed: int) -> Any:
        kept.append(inputs)
        if len(kept) > 1 or (inputs == 21.0).any():
            raise raised
        return lambda questions: [1] * len(questions)

    home = Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=9), name="clinic")
    teachers = examples(home, ids=list(range(20))).teachers(train, parts=4, classes=2, name="four")
    votes = exact(home, teachers.labels(np.zeros((1, 3)), name="one"))
    assert votes == [1, 3]  # all but one voted, though each teacher kept something that would end the next one
    assert kept == []
    teachers.labels(np.zeros((2, 3)), name="two").release(epsilon=1)  # and the data is open


@pytest.mark.parametrize("raised", RAISED)
def test_a_model_of_a_learning_curve_that_raises_is_wrong_there(raised: type[BaseException]) -> None:
    calls = 0

    def model(record: Any) -> int:
        nonlocal calls
        calls += 1
        if record[0] == 21.0 or calls > 2:
            raise raised
        return 0

    home = Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=9), name="clinic")
    right = exact(home, examples(home).accuracy(model, name="one"))
    assert right == [10]  # of ten records of class 0; that of 21.0 is of class 1
    assert calls == 1  # the trial on zeros


class Carrying(nn.Module):
    """A model that says of a record what it saw before."""

    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        said = torch.stack([1 - self.last.detach(), self.last.detach()]).expand(len(x), 2).clone()
        self.last.data = (x[:, 0] > 30).float().max()
        return said


def test_a_model_of_a_learning_curve_carries_nothing_to_the_next_record() -> None:
    home = Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=9), name="clinic")
    data = home.examples(np.arange(60.0).reshape(20, 3), np.zeros(20), name="test", version="1")
    assert exact(home, data.accuracy(Carrying(), name="one")) == [20]


def held_out(words: Tensor, targets: Tensor) -> Units:
    return Units(words, targets, n_units=NUMBER, name="held out", version="1")


def counted(home: Vault, data: Units, model: nn.Module, **said: Any) -> int:
    """The exact count of an evaluation that was asked for and answered."""
    caught: list[int] = []
    counts = Evaluator._counted

    def spied(self: Evaluator, model: nn.Module) -> int:
        caught.append(counts(self, model))
        return caught[-1]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Evaluator, "_counted", spied)
        home.evaluator(data=data, evaluations=1, **SPEND, **said).ask(model)
    return caught[0]


@pytest.mark.parametrize("kind", ["record", "user"])
def test_a_held_out_unit_that_a_model_cannot_compute_is_not_right(kind: str) -> None:
    inputs, targets = rows()
    words = (inputs.abs() * 8).long()
    model, home = Words(), vault()
    said: dict[str, Any] = {}
    if kind == "user":
        said = {"ids": [place // 2 for place in range(NUMBER)], "max_records_per_unit": 2}
        home = vault(unit=sf.user("id", relation="add/remove"))

    def data(version: str) -> Units:
        return Units(words, targets, n_units=NUMBER, name="held out", version=version, **said)

    whole = counted(home, data("1"), model)
    outputs = model(words)
    right = outputs.argmax(1) == targets
    words[17, 1] = 4321
    lost = int(right[16:18].sum() == 2) if kind == "user" else int(right[17])
    assert counted(home, data("2"), model) == whole - lost
    assert whole > 0
    home.evaluator(data=data("2"), evaluations=1, epsilon=1, delta=1e-8).ask(model)  # the data is open


def test_a_model_that_cannot_be_evaluated_at_all_is_refused_before_a_row_is_read() -> None:
    home = vault()
    evaluator = home.evaluator(data=held_out(*rows()), evaluations=1, **SPEND)
    with pytest.raises(RuntimeError, match=r"shape|size"):
        evaluator.ask(nn.Linear(7, 2))
    assert evaluator.left == 1


def test_what_judges_an_answer_keeps_nothing() -> None:
    kept: list[Tensor] = []

    def right(outputs: Tensor, targets: Tensor) -> Tensor:
        kept.append(outputs)
        return outputs.argmax(-1) == targets

    vault().evaluator(data=held_out(*rows()), evaluations=1, metric=right, **SPEND).ask(nn.Linear(3, 2))
    assert kept == []


def test_an_augmentation_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Tensor] = []

    def augment(record: Tensor, draws: Tensor) -> Tensor:
        if (len(kept) > 1) or kept.append(record):  # type: ignore[func-returns-value]
            raise SystemExit
        return record + draws[0]

    made = trainer(vault(), augmentations=Multiplied(augment, augmentations=2, original=False))
    kept.clear()
    assert made.fit(steps=2, batch=NUMBER, max_physical_batch_size=16, **SPEND).release.statement.query.done == 2
    assert kept == []


@pytest.mark.parametrize("raised", [IndexError, KeyboardInterrupt])
def test_a_unit_that_cannot_be_computed_adds_nothing_to_a_private_mean(raised: type[BaseException]) -> None:
    inputs, targets = rows()
    inputs[17] = 5.0
    model = Raising(raised)
    said: dict[str, Any] = {"moved": 1, "multiplier": "1/1000000", "over": NUMBER}
    kept = torch.arange(NUMBER) != 17
    engine = Engine(model, nn.functional.cross_entropy, clip=1.0)
    found = private_mean(engine, inputs, targets, **said)
    without = private_mean(engine, inputs[kept], targets[kept], **said)
    for name, value in found.items():
        torch.testing.assert_close(value, without[name], atol=1e-5, rtol=1e-4)
    assert max(float(value.abs().max()) for value in found.values()) > 1e-3


class Embedded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.table, self.end = nn.Embedding(9, 4), nn.Linear(4, 2)

    def forward(self, words: Tensor) -> Tensor:
        return self.end(self.table(words).mean(1))  # type: ignore[no-any-return]


def test_a_pair_that_cannot_be_computed_is_absent_from_a_contrast() -> None:
    words = torch.arange(60).reshape(20, 3) % 9
    anchors, positives = words, (words + 1) % 9
    contrast = InBatchContrast(Embedded())
    said: dict[str, Any] = {"moved": contrast.clip, "multiplier": "1/100000000", "over": 20}
    kept = torch.arange(20) != 7
    without = private_mean(contrast, anchors[kept], positives[kept], **said)
    positives[7, 0] = 4321
    found = private_mean(contrast, anchors, positives, **said)
    for name, value in found.items():
        torch.testing.assert_close(value, without[name], atol=1e-4, rtol=1e-3)
    assert max(float(value.abs().max()) for value in found.values()) > 1e-3


def test_a_private_mean_is_held_to_the_bound_of_its_sum() -> None:
    contrast, pairs = InBatchContrast(nn.Linear(3, 2)), (torch.eye(3), torch.eye(3))
    for moved in ("1/1000", contrast.clip * 0.99):
        with pytest.raises(errors.InvalidInput, match=r"engine\.clip"):
            private_mean(contrast, *pairs, moved=moved, multiplier=1, over=3)
    assert set(private_mean(contrast, *pairs, moved=contrast.clip, multiplier=1, over=3)) == {"weight", "bias"}

    class Longer(Engine):
        """A sum that is bounded by nothing."""

    class Anything:
        model, clip, batches, unit = nn.Linear(3, 2), 1.0, 2, "record"

    for other in (Longer(nn.Linear(3, 2), nn.functional.mse_loss), Anything()):
        with pytest.raises(errors.InvalidInput, match="nothing else"):
            private_mean(other, *pairs, moved=1, multiplier=1, over=3)  # type: ignore[arg-type]


def test_a_trainer_of_a_contrast_says_what_to_do() -> None:
    home = vault()
    units = Units(*rows(), n_units=NUMBER, name="visits", version="1")
    contrast: Any = InBatchContrast(nn.Linear(3, 2))
    for model, loss in ((contrast, nn.functional.cross_entropy), (nn.Linear(3, 2), contrast)):
        with pytest.raises(errors.InvalidInput, match="InBatchContrast"):
            home.trainer(model, loss, data=units)


SLOW, READING = threading.Event(), threading.Event()


class Slow(nn.Linear):
    """A model that takes its time on real rows."""

    def forward(self, x: Tensor) -> Tensor:
        if SLOW.is_set() and float(x.max()) > 4:
            READING.set()
            for _ in range(2000):
                time.sleep(0.01)
        return super().forward(x)


@contextmanager
def interrupted() -> Iterator[None]:
    """A Ctrl-C as soon as rows are read."""

    def press() -> None:
        if READING.wait(60):
            os.kill(os.getpid(), signal.SIGINT)

    SLOW.set()
    READING.clear()
    thread = threading.Thread(target=press)
    thread.start()
    try:
        yield
    finally:
        SLOW.clear()
        READING.set()
        thread.join()


def test_a_control_c_ends_a_run_keeps_its_charge_and_closes_nothing(tmp_path: Path) -> None:
    inputs, targets = rows()
    inputs[:, 0] = 5.0
    home = vault()
    made = trainer(home, Slow(3, 2), (inputs, targets))
    said: dict[str, Any] = {"steps": 2, "batch": NUMBER, "checkpoint": tmp_path / "run", **SPEND}
    with pytest.raises(KeyboardInterrupt) as told, interrupted():
        made.fit(**said)
    assert told.value.__context__ is None
    assert home.spent == sf.Budget(**SPEND)
    found = made.fit(**said, resume=True)
    assert found.release.statement.query.done == 2
    assert home.spent == sf.Budget(**SPEND)
    made.fit(steps=1, **SPEND)  # and the data is open


class Chatty(nn.Module):
    """A model that tells everyone where it sees one record, in the ways that Python has and one past it."""

    def __init__(self) -> None:
        super().__init__()
        self.end = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        if float(x.max()) > 4:
            tell()
        return self.end(x)  # type: ignore[no-any-return]


def tell() -> None:
    print("the record is here")
    print("the record is here", file=sys.stderr)
    os.write(2, b"the record is here\n")
    logging.disable(logging.NOTSET)
    logging.getLogger("model").error("the record is here")


def test_what_code_prints_or_logs_while_it_sees_data_is_not_shown(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    tell()
    shown = capfd.readouterr()
    assert (shown.out + shown.err).count("the record") == 3, "what is told outside is seen by this test"
    assert caplog.text.count("the record") == 1
    logging.disable(logging.DEBUG)
    inputs, targets = rows()
    inputs[17] = 5.0
    caplog.clear()
    made = trainer(vault(), Chatty(), (inputs, targets))
    made.fit(steps=2, batch=NUMBER, max_physical_batch_size=16, **SPEND)
    shown = capfd.readouterr()
    assert "the record" not in shown.out + shown.err + caplog.text
    assert logging.root.manager.disable == logging.DEBUG, "what the code sets is not there afterwards"
    logging.disable(logging.NOTSET)
    logging.getLogger("model").error("heard again")
    assert "heard again" in caplog.text


def test_what_a_metric_prints_is_shown_for_made_up_units_alone(capfd: pytest.CaptureFixture[str]) -> None:
    def chatty(outputs: Tensor, meant: Tensor) -> Tensor:
        print("asked")
        return outputs.argmax(1) == meant

    inputs, targets = rows()
    data = Units(inputs, targets, n_units=NUMBER, name="held out", version="1")
    asked = vault().evaluator(data=data, evaluations=1, metric=chatty, **SPEND)
    asked.ask(nn.Linear(3, 2))
    assert capfd.readouterr().out.count("asked") == 1
