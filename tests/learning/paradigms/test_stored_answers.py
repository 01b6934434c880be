"""Stored answers go by what was asked, and not by what it was called: across processes that share a ledger."""

import copy
import subprocess
import sys
import textwrap
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.errors import Refused
from sfumato.learning.paradigms.content import content_of
from tests import parts
from tests.governance.homes import Home

UNIT = sf.record(relation="replace")
LARGE = sf.Budget(epsilon=10**4)
INPUTS, TARGETS = np.linspace(-1, 1, 40)[:, None], np.arange(40) % 2
QUESTIONS = np.linspace(-1, 1, 5)[:, None]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    place = Home(url=str(tmp_path / "ledger.db"), folder=str(tmp_path))
    ledger = place.create()
    ledger.declare_population("all", unit=UNIT, cap=LARGE, reason="test")
    ledger.declare_dataset(Dataset(name="scans", edition="1"), population="all", cap=LARGE)
    ledger.open_account("clinic", unit=UNIT, cap=LARGE, reason="test")
    return place


def examples(home: Home) -> Any:
    """What a process begins with: a vault of its own on the same ledger."""
    vault = sf.Vault(unit=UNIT, ledger=home.url, account="clinic", key=home.key, anchor=home.anchor)
    return vault.examples(INPUTS, TARGETS, name="scans", version="1", ids=np.arange(40), n_units=40)


def says(label: int) -> Callable[..., Any]:
    """A way to train: its teachers all say one class."""
    return lambda inputs, targets, seed: lambda asked: [label] * len(asked)


def test_other_teachers_under_the_same_name_are_another_question(home: Home) -> None:
    def labels(label: int, questions: Any = QUESTIONS) -> Any:
        teachers = examples(home).teachers(says(label), parts=4, classes=2, name="nearest")
        return teachers.labels(questions, name="public").release(epsilon=100)

    first, second, again = labels(0), labels(1), labels(1)
    assert list(first["label"].values) == [0] * 5
    assert list(second["label"].values) == [1] * 5
    assert (second.repeated, second.charged.epsilon) == (False, 100)
    assert (again.repeated, again.charged.epsilon) == (True, 0)
    assert again.values == second.values
    assert not labels(1, QUESTIONS + 1).repeated


def test_other_models_under_the_same_name_are_another_question(home: Home) -> None:
    def right(edge: float) -> Any:
        return examples(home).accuracy(lambda record: record[0] > edge, name="a rule").release(epsilon=100)

    assert not right(0.0).repeated
    assert not right(0.5).repeated
    assert right(0.0).repeated
    confident = examples(home).teachers(says(0), parts=4, classes=2, name="nearest")
    other = examples(home).teachers(says(1), parts=4, classes=2, name="nearest")
    said: dict[str, Any] = {"name": "public", "answers": 1, "threshold": 1}
    one, two = confident.confident_labels(QUESTIONS, **said), other.confident_labels(QUESTIONS, **said)
    assert one.query != two.query
    assert one.query == confident.confident_labels(QUESTIONS, **said).query


def test_what_became_something_else_after_it_was_asked_is_refused(home: Home) -> None:
    settings = {"label": 0}
    held = examples(home)

    def train(inputs: Any, targets: Any, seed: int) -> Callable[[Any], list[int]]:
        return lambda asked: [settings["label"]] * len(asked)

    question = held.teachers(train, parts=4, classes=2, name="nearest").labels(QUESTIONS, name="public")
    settings["label"] = 1
    with pytest.raises(Refused, match="not those declared"):
        question.release(epsilon=1)
    with pytest.raises(Refused, match="name of something else"):
        held.teachers(train, parts=4, classes=2, name="nearest")


CODE = """
    import functools, re
    from fractions import Fraction
    import numpy as np
    from sfumato.learning.paradigms.content import content_of
    EDGE = 3
    WORDS = {"one", "two", "three"}
    class Rule:
        kinds = frozenset({"p", "q", "r"})
        def __init__(self, edge): self.edge = edge
        def __call__(self, row): return float(np.tanh(row[0])) > self.edge and row[1] in {"x", "y", "z"} | WORDS
    def train(inputs, targets, seed, *, share=Fraction(1, 3)):
        means = np.stack([inputs[targets == each].mean(axis=0) for each in (0, 1)])
        return functools.partial(lambda means, asked: asked @ means, means)
    kept = [Rule(EDGE), train, re.compile("a+"), np.array(["x", None], dtype=object), np.mean, str.lower]
    print(content_of(*kept, kept))
"""


@pytest.mark.long
def test_two_processes_find_the_same_digest_for_the_same() -> None:
    found = set()
    for seed in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(CODE)],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        )
        found.add(ran.stdout)
    assert len(found) == 1


class Slotted:
    """An object without a dictionary."""

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held


def test_what_differs_has_another_digest() -> None:
    def closing(over: object) -> Callable[[], object]:
        return lambda: over

    kinds: list[Any] = [
        0,
        False,
        0.0,
        "0",
        b"0",
        None,
        [],
        (),
        {},
        [[]],
        [0, [1]],
        [0, 1],
        Fraction(1, 2),
        Fraction(1, 3),
    ]
    kinds += [np.zeros(2), np.zeros(3), np.zeros(2, np.float32), np.ones(2), np.tanh, np.sinh, Slotted(1), Slotted(2)]
    kinds += [closing(1), closing(2), closing(closing(1)), lambda x: x, lambda x: x + 1, lambda x: x + 2, len, abs]
    kinds += [[].append, [1].append, {1: 2}, {2: 1}, {1, 2}, {1, 3}, int, str, Slotted]
    assert len({content_of(each) for each in kinds}) == len(kinds)


def test_what_cannot_be_looked_into_is_nobody_elses() -> None:
    import threading

    for kind in (threading.Lock, np.random.default_rng, lambda: sf.Budget(epsilon=1)):
        one, other = kind(), kind()
        assert content_of(one) == content_of(one) != content_of(other)
        assert content_of([one]) == content_of([one]) != content_of([other])


def test_what_python_keeps_for_itself_or_is_only_an_attribute_is_no_part_of_it(monkeypatch: Any) -> None:
    def train(inputs: Any, targets: Any, seed: int) -> Any:
        return Slotted(inputs.not_there_yet)

    before = content_of(train)
    assert copy.copy(Slotted(1)).held == 1  # Python notes the names of slots at the class
    assert not Slotted.__annotations__
    monkeypatch.setitem(globals(), "not_there_yet", 1)
    assert content_of(train) == before
    monkeypatch.setitem(globals(), "QUESTIONS", 1)
    monkeypatch.setattr(Slotted, "held_by", 1, raising=False)
    assert content_of(train) != before


class Rude:
    """An object that raises whatever is done to it."""

    def __getattr__(self, name: str) -> Any:
        raise KeyboardInterrupt

    __reduce_ex__ = __eq__ = __hash__ = __repr__ = __iter__ = __len__ = __getattr__  # type: ignore[assignment]


class Lies(list[Any]):
    """A list that says it is something else."""

    @property
    def __class__(self) -> Any:  # type: ignore[override]
        raise KeyboardInterrupt

    def __iter__(self) -> Any:
        raise KeyboardInterrupt


class Fails:
    """An object with attributes that cannot be had."""

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise KeyboardInterrupt


def test_nothing_that_an_object_raises_gets_out() -> None:
    assert content_of(Rude()) == content_of(Rude())
    assert content_of(Lies([1])) == content_of(Lies([1])) != content_of(Lies([2]))
    one, other = Fails(), Fails()
    assert content_of(one) == content_of(one) != content_of(other)
    assert content_of(b"secret", one) == content_of(b"secret", one) != content_of(b"other", one)


def test_modules_go_by_name_and_those_of_the_caller_by_none(monkeypatch: Any) -> None:
    own = ModuleType("helpers")
    monkeypatch.setitem(sys.modules, "helpers", own)
    assert content_of(np) == content_of(np) != content_of(np.linalg)
    first = content_of(own)
    other = ModuleType("helpers")
    monkeypatch.setitem(sys.modules, "helpers", other)
    assert content_of(own) == first != content_of(other)


def test_a_module_of_torch_goes_by_code_weights_and_settings() -> None:
    parts.package("torch")
    import torch

    class Net(torch.nn.Module):
        def __init__(self, rate: float = 0.5) -> None:
            super().__init__()
            torch.manual_seed(1)
            self.layers = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout(rate))

        def forward(self, rows: Any) -> Any:
            return self.layers(rows).to(torch.float64)

    same, other = Net(), Net(0.25)
    found = content_of(same)
    assert found == content_of(Net()) == content_of(copy.deepcopy(same)) != content_of(other)
    assert content_of(same.eval()) != found
    same.train()
    assert content_of(same) == found
    with torch.no_grad():
        same.layers[0].weight[0, 0] += 1
    assert content_of(same) != found


def test_a_digest_tells_nobody_without_the_key_what_was_asked_with(home: Home) -> None:
    train = says(0)
    said = examples(home).teachers(train, parts=4, classes=2, name="nearest").labels(QUESTIONS, name="public").query
    assert said.content not in (content_of(train, QUESTIONS), content_of((train, QUESTIONS)))
    other = sf.Vault(unit=UNIT, budget=LARGE, name="v").examples(
        INPUTS, TARGETS, name="scans", version="1", ids=np.arange(40)
    )
    told = other.teachers(train, parts=4, classes=2, name="nearest").labels(QUESTIONS, name="public").query
    assert told.content != said.content


def test_teachers_and_models_that_were_written_again_are_the_same() -> None:
    held = sf.Vault(unit=UNIT, budget=LARGE, name="v").examples(
        INPUTS, TARGETS, name="t", version="1", ids=np.arange(40)
    )
    first, second = (held.teachers(says(0), parts=4, classes=2, name="nearest") for _ in range(2))
    assert first.labels(QUESTIONS, name="public").query == second.labels(QUESTIONS.copy(), name="public").query
    with pytest.raises(Refused, match="name of something else"):
        held.teachers(says(0), parts=5, classes=2, name="nearest")
    with pytest.raises(Refused, match="name of something else"):
        first.labels(QUESTIONS + 1, name="public")


def test_what_teachers_wrote_down_while_they_saw_data_is_in_no_digest() -> None:
    seen, last, own = [], {"row": None}, Slotted(None)

    def train(inputs: Any, targets: Any, seed: int) -> Callable[[Any], list[int]]:
        seen.append(inputs)
        last["row"], own.held = inputs[0], inputs[0]
        return lambda asked: [0] * len(asked)

    held = sf.Vault(unit=UNIT, budget=LARGE, name="v").examples(
        INPUTS, TARGETS, name="t", version="1", ids=np.arange(40)
    )
    question = held.teachers(train, parts=4, classes=2, name="nearest").labels(QUESTIONS, name="public")
    assert not question.release(epsilon=1).repeated
    assert question.release(epsilon=1).repeated
    assert held.teachers(train, parts=4, classes=2, name="nearest").labels(QUESTIONS, name="public") == question
