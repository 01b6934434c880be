"""Units are whose they say: the rows of one person together, chosen by nobody else's rows."""

from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import errors
from tests.parts import package

package("torch")

import torch  # noqa: E402

from sfumato.learning import Units, triplets  # noqa: E402
from sfumato.learning.units import kept_rows  # noqa: E402

KEY = b"k" * 32
FACTS: dict[str, Any] = {"n_units": 3, "name": "visits", "version": "1"}
USERS, RECORDS = sf.user("id", relation="add/remove"), sf.record(relation="add/remove")


def test_rows_of_a_person_are_one_unit() -> None:
    inputs = torch.arange(12.0).reshape(6, 2)
    units = Units(inputs, torch.arange(6), ids=["b", "a", "b", "c", "b", "b"], max_records_per_unit=3, **FACTS)
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


@pytest.mark.parametrize("other", [float("nan"), 3.5, 2**63, "x", None, b"x", 2.0**60, [7], object()])
@pytest.mark.parametrize("first", [0, 2**60])
def test_whoever_comes_changes_nobody_elses_rows(other: Any, first: int) -> None:
    ids: list[Any] = [first + row % 8 for row in range(40)]
    alone = kept_rows(ids, 2, KEY)
    for more in (kept_rows([*ids, other], 2, KEY), kept_rows(np.array([*ids, other, None], dtype=object), 2, KEY)):
        assert (more[:8] == alone).all()
        assert len(more) <= 9
    assert len(alone) == 8
    assert (kept_rows(np.array(ids), 2, KEY) == alone).all()


def test_a_column_of_floats_with_nulls_names_the_same_persons() -> None:
    ids = np.array([row % 4 for row in range(20)])
    more = kept_rows(np.append(ids.astype(float), [np.nan, 3.5]), 2, KEY)  # as data frames write missing numbers
    assert (more == kept_rows(ids, 2, KEY)).all()
    assert not (kept_rows(ids.astype(str), 2, KEY) == kept_rows(ids, 2, KEY)).all()  # text is somebody else


@pytest.mark.parametrize("frame", ["pandas", "polars", "pyarrow", "tensor", "masked"])
def test_columns_of_ids(frame: str) -> None:
    ids: list[Any] = [2, 1, None, 2, 2]
    if frame in ("pandas", "polars", "pyarrow"):
        package(frame)
        library = __import__(frame)
        made: Any = library.array(ids) if frame == "pyarrow" else library.Series(ids)
    elif frame == "masked":
        made = np.ma.masked_array([2, 1, 2, 2, 2], mask=[0, 0, 1, 0, 0])
    else:
        made, ids = torch.tensor([2, 1, 2, 2, 2]), [2, 1, 2, 2, 2]
    assert (kept_rows(made, 2, KEY) == kept_rows(ids, 2, KEY)).all()


@pytest.mark.parametrize(
    "ids",
    [np.zeros((3, 1)), torch.zeros(3, 1), np.zeros(3, np.float32), np.zeros(3, "M8[s]"), "abc", b"abc", [1, 2], {1: 2}],
)
def test_ids_are_refused_by_their_type_and_shape_when_they_are_given(ids: Any) -> None:
    with pytest.raises(errors.InvalidInput, match=r"nothing was read"):
        Units(torch.zeros(3, 1), torch.zeros(3), ids=ids, max_records_per_unit=2, **FACTS)


def test_parts_have_as_many_rows() -> None:
    with pytest.raises(errors.InvalidInput, match="as many rows"):
        Units(torch.zeros(3, 1), torch.zeros(2), **FACTS)
    with pytest.raises(errors.InvalidInput, match="as many rows"):
        Units((torch.zeros(3, 1), torch.zeros(2, 1)), torch.zeros(3), **FACTS)


def test_at_most_so_many_rows_of_a_person_are_units() -> None:
    ids = ["a"] * 7 + ["b"]
    laid = Units(torch.zeros(8, 1), torch.arange(8), ids=ids, times=2, **FACTS).laid(KEY)
    assert laid.number == 3
    assert laid.targets[-1] == 7
    assert set(laid.targets[:2].tolist()) < set(range(7))


def test_the_declared_number_is_not_the_real_one() -> None:
    assert Units(torch.zeros(8, 1), torch.arange(8), n_units=5, name="x", version="1").laid(KEY).number == 8
    assert Units(torch.zeros(0, 1), torch.zeros(0), n_units=5, name="x", version="1").laid(KEY).number == 0


@pytest.mark.parametrize("frame", ["pandas", "polars", "numpy"])
def test_data_frames_and_columns(frame: str) -> None:
    rows = {"age": [40, 50, 60], "bmi": [20.5, 30.5, 25.0]}
    made: Any = np.array([[40, 20.5], [50, 30.5], [60, 25.0]])
    target: Any = np.array([0, 1, 1])
    if frame in ("pandas", "polars"):
        package(frame)
        made = __import__(frame).DataFrame(rows)
        target = __import__(frame).Series(target)
    laid = Units(made, target, **FACTS).laid(KEY)
    assert laid.inputs[0].dtype == torch.float32
    assert laid.inputs[0].tolist() == [[40, 20.5], [50, 30.5], [60, 25.0]]
    assert laid.targets.tolist() == [0, 1, 1]
    assert laid.targets.dtype == torch.int64


def test_a_list_is_refused_for_its_type_would_depend_on_a_value() -> None:
    kinds = [Units(np.array(rows), np.zeros(2), **FACTS)._inputs[0].dtype for rows in ([[1], [2]], [[1], [2.5]])]
    assert kinds[0] != kinds[1]  # as an analyst would see it, at the first loss that takes one of them alone
    for rows in ([[1], [2]], [[1], [2.5]], [[1], ["x"]], [[1], []]):
        with pytest.raises(errors.InvalidInput, match="whose type is stated"):
            Units(rows, np.zeros(2), **FACTS)
        with pytest.raises(errors.InvalidInput, match="whose type is stated"):
            Units(np.zeros((2, 1)), rows, **FACTS)


@pytest.mark.parametrize("odd", [0.5, 1e300, [1], object(), 1j])
def test_an_odd_id_of_a_group_is_nobody_and_never_refused(odd: Any) -> None:
    groups = triplets(9)
    made = Units.of_groups(np.zeros((3, 2)), np.zeros(3), ids=["a", "b", odd], groups=groups, name="x", version="1")
    nobody = Units.of_groups(np.zeros((3, 2)), np.zeros(3), ids=["a", "b", None], groups=groups, name="x", version="1")
    assert made.laid(KEY).number == nobody.laid(KEY).number


def test_made_up_units_have_the_shape_of_real_ones_and_none_of_their_values() -> None:
    units = Units(torch.full((4, 2, 3), 77.0), torch.full((4,), 9), ids=list("abca"), max_records_per_unit=5, **FACTS)
    inputs, targets, present = units.example(2)
    assert inputs[0].shape == (2, 5, 2, 3)
    assert (targets.shape, present.shape) == ((2, 5), (2, 5))
    assert not (inputs[0] == 77).any()
    assert not targets.any()


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ({}, errors.NotDeclared, "name="),
        ({"name": "x"}, errors.NotDeclared, "n_units="),
        ({**FACTS, "ids": [1, 2]}, errors.NotDeclared, "max_records_per_unit="),
        ({**FACTS, "max_records_per_unit": 2}, errors.InvalidInput, "ids="),
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
    people = Units(torch.zeros(2, 1), torch.zeros(2), ids=[1, 2], max_records_per_unit=1, **FACTS)
    with pytest.raises(errors.Refused, match="protects records"):
        people.check(RECORDS)
    rows.check(RECORDS)
    people.check(USERS)
