"""Units are whose they say: the rows of one person together, chosen by nobody else's rows."""

from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import errors
from tests.parts import package

package("torch")

import torch  # noqa: E402

from sfumato.learning import Units  # noqa: E402
from sfumato.learning.units import kept_rows  # noqa: E402

KEY = b"k" * 32
FACTS: dict[str, Any] = {"number": 3, "name": "visits", "version": "1"}
USERS, RECORDS = sf.user("id", relation="add/remove"), sf.record(relation="add/remove")


def test_rows_of_a_person_are_one_unit() -> None:
    inputs = torch.arange(12.0).reshape(6, 2)
    units = Units(inputs, torch.arange(6), ids=["b", "a", "b", "c", "b", "b"], records=3, **FACTS)
    laid = units.laid(KEY)
    assert laid.number == 3
    assert laid.places is not None
    assert laid.present is not None
    assert laid.present.sum(1).tolist() == [1, 3, 1]
    assert laid.places[0, 0] == 1
    assert laid.places[2, 0] == 3
    assert set(laid.places[1].tolist()) < {0, 2, 4, 5}


def test_which_rows_count_hangs_on_their_person_and_the_key_alone() -> None:
    ids = np.array(["a"] * 9 + ["b"] * 9)
    alone = kept_rows(ids[:9], 4, KEY)
    together = kept_rows(ids, 4, KEY)
    before = kept_rows(np.concatenate([["0"] * 5, ids]), 4, KEY)  # others that come before, in the rows and by name
    assert (together[0] == alone[0]).all()
    assert (before[1] - 5 == alone[0]).all()
    assert not all((kept_rows(ids[:9], 4, bytes([key]) * 32) == alone).all() for key in range(20))


def test_at_most_so_many_rows_of_a_person_are_units() -> None:
    ids = ["a"] * 7 + ["b"]
    laid = Units(torch.zeros(8, 1), torch.arange(8), ids=ids, times=2, **FACTS).laid(KEY)
    assert laid.number == 3
    assert laid.targets[-1] == 7
    assert set(laid.targets[:2].tolist()) < set(range(7))


def test_the_declared_number_is_not_the_real_one() -> None:
    assert Units(torch.zeros(8, 1), torch.arange(8), number=5, name="x", version="1").laid(KEY).number == 8
    assert Units(torch.zeros(0, 1), torch.zeros(0), number=5, name="x", version="1").laid(KEY).number == 0


@pytest.mark.parametrize("frame", ["pandas", "polars", "numpy", "list"])
def test_data_frames_columns_and_lists(frame: str) -> None:
    rows = {"age": [40, 50, 60], "bmi": [20.5, 30.5, 25.0]}
    made: Any = np.array([[40, 20.5], [50, 30.5], [60, 25.0]])
    target: Any = [0, 1, 1]
    if frame in ("pandas", "polars"):
        package(frame)
        made = __import__(frame).DataFrame(rows)
        target = __import__(frame).Series(target)
    laid = Units(made.tolist() if frame == "list" else made, target, **FACTS).laid(KEY)
    assert laid.inputs[0].dtype == torch.float32
    assert laid.inputs[0].tolist() == [[40, 20.5], [50, 30.5], [60, 25.0]]
    assert laid.targets.tolist() == [0, 1, 1]
    assert laid.targets.dtype == torch.int64


def test_made_up_units_have_the_shape_of_real_ones_and_none_of_their_values() -> None:
    units = Units(torch.full((4, 2, 3), 77.0), torch.full((4,), 9), ids=list("abca"), records=5, **FACTS)
    inputs, targets, present = units.example(2)
    assert inputs[0].shape == (2, 5, 2, 3)
    assert (targets.shape, present.shape) == ((2, 5), (2, 5))
    assert not (inputs[0] == 77).any()
    assert not targets.any()


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ({}, errors.NotDeclared, "name="),
        ({"name": "x"}, errors.NotDeclared, "number="),
        ({**FACTS, "ids": [1, 2]}, errors.NotDeclared, "records="),
        ({**FACTS, "records": 2}, errors.InvalidInput, "ids="),
        ({**FACTS, "kind": "triple"}, errors.InvalidInput, "record, user, group"),
        ({**FACTS, "ids": [1, 2], "times": 0}, errors.InvalidInput, "times"),
    ],
)
def test_what_is_missing_is_said(said: dict[str, Any], kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        Units(torch.zeros(2, 1), torch.zeros(2), **said)


def test_text_is_no_input() -> None:
    with pytest.raises(errors.InvalidInput, match="Encode text"):
        Units(np.array([["a"], ["b"]]), [0, 1], **FACTS)


@pytest.mark.claim("S1-13")
def test_units_must_be_those_of_the_vault() -> None:
    rows = Units(torch.zeros(2, 1), torch.zeros(2), **FACTS)
    with pytest.raises(errors.Refused, match="do not say whose they are"):
        rows.check(USERS)
    people = Units(torch.zeros(2, 1), torch.zeros(2), ids=[1, 2], records=1, **FACTS)
    with pytest.raises(errors.Refused, match="protects records"):
        people.check(RECORDS)
    rows.check(RECORDS)
    people.check(USERS)
