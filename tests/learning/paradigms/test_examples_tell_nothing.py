"""What a record, an id, a teacher or a log could give away past the noise, and does not."""

import logging
import os
import random
import sys
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.core.units import Unit
from sfumato.errors import InvalidInput
from sfumato.learning.paradigms.attention_logits import LogitRelease, TopKey
from sfumato.learning.paradigms.noisy_auc import auc_at
from sfumato.learning.paradigms.output_perturbation import logistic_weights
from sfumato.learning.paradigms.persons import canonical_id, canonical_ids
from sfumato.learning.paradigms.predictions import right
from sfumato.learning.paradigms.teachers import part_of, vote
from tests import parts

MANY = (1, 2, 513, 521) if os.environ.get("SFUMATO_LONG") == "1" else (1, 2, 513)  # rows, beyond batches of 512
SWAPPED = sf.user("id", relation="replace")


def vault(unit: Unit = SWAPPED) -> sf.Vault:
    return sf.Vault(unit=unit, budget=sf.Budget(epsilon=100, delta=1e-6), name="trial")


def counted(ids: Any, model: Any = lambda record: 1) -> Any:
    held = vault()
    rows = len(ids)
    examples = held.examples(np.zeros((rows, 1)), np.ones(rows), ids=ids, name="t", version="1", n_units=rows)
    return held._stores["learning"].read(examples.accuracy(model, name="m").query)


@pytest.mark.claim("S3-09")
def test_a_module_that_fails_on_one_record_is_wrong_there_and_is_released() -> None:
    parts.package("torch")
    from torch import nn

    class Codes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(42, 2)

        def forward(self, rows: Any) -> Any:
            return self.table(rows[:, 0].long()) * 0 + rows.new_tensor([1, 0])

    held = vault(sf.record(relation="replace"))
    codes = np.array([[7]] * 19 + [[42]])
    question = held.examples(codes, np.zeros(20), name="t", version="1").accuracy(Codes(), name="m")
    assert held._stores["learning"].read(question.query) == [19]
    assert len(question.release(epsilon=1).values) == 1


@pytest.mark.claim("S2-11")
def test_what_is_said_of_a_record_does_not_hang_on_how_many_others_there_are() -> None:
    """Rows of which rounding alone decides the class; in batches, the last one differs from the others."""
    parts.package("torch")
    import torch

    torch.manual_seed(0)
    model, weights = torch.nn.Linear(784, 10).eval(), torch.randn(784)
    with torch.no_grad():
        model.bias.zero_()
        for k in range(10):
            model.weight[k] = weights[torch.randperm(784)]
    rows, zeros = torch.ones(521, 784), torch.zeros(521)
    seen = {sum(right(model, rows, zeros + k, range(many)) == many for k in range(10)) for many in MANY}
    assert seen == {1}, "all rows are alike, so one class is right for all of them, however many there are"


@pytest.mark.claim("S3-09")
def test_brute_force_over_records_through_the_model_itself() -> None:
    values = (0.0, 1.0, np.nan)  # right, wrong, and one that the model fails on
    for first in values:
        for second in values:
            here, there = np.array([[first], [0.0]]), np.array([[second], [0.0]])
            counts = [right(lambda record: int(record[0]), data, np.zeros(2), (0, 1)) for data in (here, there)]
            assert abs(counts[0] - counts[1]) <= 1
            assert counts[0] == 1 + (first == 0.0)


def test_one_person_counts_once_in_whatever_type_the_id_is() -> None:
    parts.package("torch")
    import torch

    assert counted(list(torch.zeros(50, dtype=torch.long))) == [1]
    assert counted([np.int64(0)] * 5 + [0] * 5 + [0.0, -0.0, False, np.array(0)]) == [1]
    assert counted([0, "0", b"0"]) == [3]
    assert {part_of(who, 2**30, b"k") for who in (1, 1.0, True, np.int8(1), torch.tensor(1))} == {
        part_of(1, 2**30, b"k")
    }


def test_nobody_is_no_person_and_what_is_no_id_is_refused_before_a_charge() -> None:
    assert counted([1, None, float("nan"), np.float32("nan"), np.ma.masked, np.datetime64("NaT")]) == [1]
    assert canonical_ids(np.ma.array([1, 2], mask=[0, 1])) == [1, None]
    for wrong in (0.5, float("inf"), [1], {}, object(), 1j, np.array([1])):
        with pytest.raises(InvalidInput, match="an id is text"):
            canonical_id(wrong)
    with pytest.raises(InvalidInput, match="one text"):
        canonical_ids("ann")


@pytest.mark.parametrize("odd", [0.5, float("inf"), [1], {}, object(), 1j])
def test_an_odd_id_is_nobody_when_examples_are_declared(odd: Any) -> None:
    def places(last: Any) -> Any:
        held = vault(sf.user("id", relation="add/remove"))
        examples = held.examples(np.ones((3, 1)), np.ones(3), ids=[1, 2, last], name="t", version="1", n_units=3)
        return held._stores["learning"]._places(held._stores["learning"]._holdings[examples.dataset])

    assert places(odd) == places(None) == [0, 1]
    assert places(3) == [0, 1, 2]


def test_nulls_of_data_frames_are_nobody() -> None:
    parts.package("pandas")
    import pandas as pd

    assert canonical_ids(pd.Series([1, 2, pd.NA], dtype="Int64")) == [1, 2, None]
    assert canonical_id(pd.NaT) is None


@pytest.mark.parametrize(
    "inputs",
    [np.array([["1"], [""]]), np.array([[1], [10**400]], dtype=object), np.ones((2, 1), complex)],
    ids=["text", "objects", "complex"],
)
def test_inputs_that_are_no_numbers_by_type_are_refused_before_a_charge(inputs: Any) -> None:
    held = vault()
    examples = held.examples(inputs, np.array([1, 0]), ids=[1, 2], name="t", version="1", n_units=2)
    with pytest.raises(InvalidInput, match="rows of numbers"):
        examples.logistic_regression(regularisation=1)
    assert held.spent.epsilon == 0


def test_half_precision_and_targets_of_any_kind_are_answered() -> None:
    parts.package("torch")
    import torch

    rows = torch.ones(2, 1, dtype=torch.bfloat16)
    examples = vault().examples(rows, torch.ones(2, 3), ids=[1, 2], name="t", version="1", n_units=2)
    assert len(examples.logistic_regression(regularisation=1).release(epsilon=1).values) == 1
    assert len(examples.closer_model([1, 2], [2, 1]).release(epsilon=1).values) == 1


@pytest.mark.parametrize("wrong", [10**400, Fraction(1, 10**400)], ids=["large", "small"])
def test_a_penalty_beyond_all_doubles_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="must lie between"):
        logistic_weights(Dataset(name="t", edition="1"), features=1, number=2, regularisation=wrong)


def test_a_target_above_zero_is_of_the_one_class_and_all_else_of_the_other() -> None:
    def weights(target: Any) -> Any:
        held = vault()
        examples = held.examples(np.ones((2, 1)), np.array([target] * 2), ids=[1, 2], name="t", version="1", n_units=2)
        return held._stores["learning"].read(examples.logistic_regression(regularisation=1).query)

    assert weights(0.7) == weights(1.0) != weights(-0.7)
    assert weights(0) == weights(np.nan) == weights(-1)


def test_votes_that_are_made_as_they_are_read_draw_from_the_teachers_own_generator() -> None:
    def train(inputs: Any, targets: Any, seed: int) -> Any:
        return lambda asked: (int(random.random() * 9) for _ in iter(int, 1))  # endless

    def asked(draws: int) -> list[int]:
        random.seed(draws)
        return vote(train, np.zeros((1, 1)), np.zeros(1), np.zeros((8, 1)), classes=9, seed=5)

    assert asked(1) == asked(2)
    assert len(asked(1)) == 8


def test_a_teacher_that_ends_the_program_votes_for_class_zero() -> None:
    def leave(inputs: Any, targets: Any, seed: int) -> Any:
        raise SystemExit("the data say so")

    assert vote(leave, np.zeros((1, 1)), np.zeros(1), np.zeros((2, 1)), classes=2, seed=1) == [0, 0]
    assert right(lambda record: sys.exit(3), np.zeros((2, 1)), np.zeros(2), (0, 1)) == 0


def test_no_log_and_no_descriptor_gets_out(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    handler = logging.StreamHandler(sys.__stderr__)
    logging.getLogger("earlier").addHandler(handler)

    def loud(record: Any) -> int:
        logging.getLogger("earlier").critical("a record")
        os.write(1, b"one")
        os.write(2, b"two")
        assert sys.__stdout__ is not None
        sys.__stdout__.write("three")
        return 1

    disabled = logging.root.manager.disable
    held = vault(sf.record(relation="replace"))
    query = held.examples(np.ones((2, 1)), np.array([1, 1]), name="t", version="1").accuracy(loud, name="loud").query
    assert capfd.readouterr() != ("", ""), "on the record of zeros, which is nobody's, it is heard"
    caplog.clear()
    try:
        assert held._stores["learning"].read(query) == [2]
    finally:
        logging.getLogger("earlier").removeHandler(handler)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    assert logging.root.manager.disable == disabled
    os.write(1, b"again")
    assert capfd.readouterr().out == "again"


def test_the_handle_of_an_analyst_has_no_way_to_read() -> None:
    examples = vault().examples(np.eye(3), np.array([0, 1, 1]), ids=[1, 2, 3], name="t", version="1", n_units=3)
    assert not hasattr(examples, "area")
    ways = {name for name in dir(examples.keeper) if not name.startswith("_")}
    laid, digests = {"teach", "ask", "examine", "attend"}, {"voted", "examined", "attended"}
    assert ways == laid | digests


@pytest.mark.parametrize("wide", [1, 0])
def test_a_module_without_scores_of_two_classes_is_refused_before_a_charge(wide: int) -> None:
    parts.package("torch")
    from torch import nn

    model = nn.Linear(3, 1) if wide else nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
    examples = vault().examples(
        np.eye(3, dtype=np.float32), np.array([0, 1, 1]), ids=[1, 2, 3], name="t", version="1", n_units=3
    )
    with pytest.raises(InvalidInput, match="two or more classes"):
        examples.accuracy(model, name="m")
    two = nn.Linear(3, 2)
    assert examples.accuracy(two, name="two").query == examples.accuracy(two, name="two").query


def test_classes_are_whole_numbers() -> None:
    assert right(lambda record: 0.7, np.zeros((1, 1)), np.zeros(1), (0,)) == 0
    assert right(lambda record: 0.0, np.zeros((1, 1)), np.zeros(1), (0,)) == 1


@pytest.mark.alpha(1e-20)
def test_the_error_of_the_top_key_is_stated_for_logits_within_the_bound() -> None:
    fine = LogitRelease.for_budget(epsilon=1, delta=1e-5, l2="1e-6", keys=2)
    assert fine.error(2) < Fraction(1, 100)
    bounded = LogitRelease(keys=2, l2=fine.l2, sigma=fine.sigma, pitch=fine.pitch, bound=Fraction(1))
    assert bounded.error(Fraction(21, 10)) == 1 > bounded.error(2)
    top = TopKey(keys=2, linf=Fraction(1, 10**6), epsilon=Fraction(1), pitch=Fraction(1, 10**9), bound=Fraction(1))
    assert top.error(3) == 1 > top.error(1)
    with pytest.raises(InvalidInput, match="coarser pitch"):
        LogitRelease(keys=2, l2=fine.l2, sigma=fine.sigma, pitch=fine.pitch, bound=Fraction(10**9))


def test_an_auc_of_more_than_one_is_refused() -> None:
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        auc_at(1.5, 0.5)
