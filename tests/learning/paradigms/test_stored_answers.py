"""Stored answers go by what was asked, and not by what it was called: across processes that share a ledger."""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.errors import Refused
from sfumato.learning.paradigms.content import content_of
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
    return vault.examples(INPUTS, TARGETS, name="scans", version="1", ids=np.arange(40), number=40)


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

    one, other = threading.Lock(), threading.Lock()
    assert content_of(one) == content_of(one) != content_of(other)
