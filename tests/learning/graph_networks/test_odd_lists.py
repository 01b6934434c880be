"""Lists and names that are none: after the charge nothing of them is refused, and a run ends as with any others."""

import os
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.units import Unit, record, user
from sfumato.learning import GraphNodes
from sfumato.learning.given_rows import kept_rows, written_id
from sfumato.learning.graph_networks.recipients import recipients_of
from tests import parts

parts.package("torch")
import torch  # noqa: E402

ADDED, PERSON = record(relation="add/remove"), user("name", relation="add/remove")
KEY = b"0" * 32
LONG = 10**5000


class Raises(list[str]):
    """A list that cannot be read."""

    def __iter__(self) -> Iterator[str]:
        raise SystemExit("what is in it")


class Ends(list[str]):
    """A list that raises after its first names."""

    def __iter__(self) -> Iterator[str]:
        yield "b"
        raise RuntimeError("what is in it")


class Lied:
    """What says that it can be read, and is asked for its class in vain."""

    @property
    def __class__(self) -> Any:
        raise ValueError("what is in it")


class Column(Sequence[object]):
    """Lists of which one place cannot be read."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, place: Any) -> Any:
        if place == 1:
            raise OSError("gone")
        return ["b", "c"]


ODD = [None, float("nan"), "bc", {"b": 1}, 7, np.array("b"), torch.tensor(1), Raises("b"), Ends("b")]


def nodes(lists: Sequence[object], names: Sequence[object] = ("a", "b", "c")) -> GraphNodes:
    return GraphNodes(
        np.eye(3, dtype="f4"),
        np.array([0, 1, 1]),
        names=list(names),
        lists=lists,
        roster=["a", "b", "c", LONG],
        classes=2,
        n_units=3,
        name="papers",
    )


def spent(of: GraphNodes, unit: Unit = ADDED, **settings: Any) -> Any:
    held = sf.Vault(unit=unit, budget=sf.Budget(epsilon=9, delta=1e-7), name="trial")
    held.graph_network(data=of, **settings).fit(epsilon=3, delta=1e-7, steps=1, progress=False)
    return held.spent.epsilon


def test_a_list_that_is_none_sends_to_nobody() -> None:
    for odd in [*ODD, Lied()]:
        assert recipients_of("a", odd, {"a": 0, "b": 1, 1: 2}, 5, KEY) == []


@pytest.mark.parametrize(("unit", "method"), [(ADDED, "propagate"), (PERSON, "subgraphs")])
def test_a_run_with_odd_lists_ends_as_any_other(unit: Unit, method: str) -> None:
    assert spent(nodes([np.array("a"), Raises("b"), ["a"]]), unit, method=method) == 3


def test_a_place_that_cannot_be_read_is_a_list_of_nobody() -> None:
    found = nodes(Column()).within(ADDED).read(KEY, recipients=5)
    assert found.sent.rows.tolist() == [0, 0, 2]
    assert spent(nodes(Column())) == 3


def test_names_in_arrays_and_tensors_count() -> None:
    places = {"a": 0, "b": 1, 5: 2}
    assert recipients_of("a", np.array(["b", "z"]), places, 5, KEY) == [1]
    assert recipients_of("a", torch.tensor([5, 6]), places, 5, KEY) == [2]


def test_an_interrupt_while_a_list_is_read_goes_on() -> None:
    class Interrupted(list[str]):
        def __iter__(self) -> Iterator[str]:
            os.kill(os.getpid(), signal.SIGINT)
            return super().__iter__()

    with pytest.raises(KeyboardInterrupt):
        recipients_of("a", Interrupted(["b"]), {"a": 0, "b": 1}, 5, KEY)


def test_names_with_thousands_of_digits_are_names() -> None:
    ids = [LONG, -LONG, LONG + 1, 1, -1, "1", b"1"]
    assert len({written_id(each) for each in ids}) == len(ids)
    assert kept_rows([LONG, "a", LONG], 1, KEY).shape == (2, 1)
    assert len(recipients_of(LONG, ["a", "b", LONG], {"a": 0, "b": 1, LONG: 2}, 1, KEY)) == 1
    of = nodes([["b"], ["a", "b", "c"], ["a", LONG]], names=["a", LONG, LONG])
    for unit, method in ((ADDED, "propagate"), (PERSON, "propagate"), (PERSON, "subgraphs")):
        assert spent(of, unit, method=method, recipients=1) == 3
