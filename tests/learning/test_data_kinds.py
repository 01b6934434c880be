"""Datasets, files and tables of every kind train as the same tensors do, and tell nothing that those do not."""

import copy
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.signature import SigningKey
from sfumato.vault import Vault
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset  # noqa: E402

from sfumato.learning import Units, triplets  # noqa: E402
from sfumato.learning.item_draws import ItemDraws  # noqa: E402
from sfumato.learning.item_rows import ColumnRows, ItemRows  # noqa: E402
from tests.learning.datasets import (  # noqa: E402
    IDS,
    NUMBER,
    WIDTH,
    ColumnDataset,
    ForeignColumns,
    Items,
    columns,
    named,
    pairs,
    rows_of,
)
from tests.learning.words import TestWords  # noqa: E402

SPEND: dict[str, Any] = {"epsilon": 2, "delta": 1e-7}
FACTS: dict[str, Any] = {"n_units": NUMBER, "name": "visits", "version": "1"}
PEOPLE: dict[str, Any] = {**FACTS, "n_units": 20, "max_records_per_unit": 2}
LIKE = (torch.zeros(WIDTH), torch.tensor(0))
NAMED: dict[str, Any] = {"like": {"x": np.zeros(WIDTH), "y": 0, "id": ""}, "inputs": "x", "targets": "y"}
RECORDS, USERS = sf.record(relation="add/remove"), sf.user("id", relation="add/remove")


def vault(unit: Any = RECORDS, epsilon: float = 8) -> Vault:
    # the key that tells which rows of a person count is the vault's own: one for all of them here
    return Vault(unit=unit, budget=sf.Budget(epsilon=epsilon, delta=1e-6), name="clinic", key=KEY)


KEY = SigningKey.new()


def weights(data: Units, unit: Any = RECORDS, *, home: Vault | None = None, loss: Any = None) -> dict[str, Tensor]:
    """What a run with known draws learns."""
    torch.manual_seed(3)
    model = nn.Linear(WIDTH, 2)
    trainer = (home or vault(unit)).trainer(model, loss or nn.functional.cross_entropy, data=data)
    trainer._words = TestWords
    trainer.fit(steps=4, batch=data.n_units // 3, lr=0.5, max_physical_batch_size=16, **SPEND)
    return {name: one.clone() for name, one in model.state_dict().items()}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def plain() -> dict[str, Tensor]:
    return weights(Units(*rows_of(), **FACTS))


@pytest.fixture(scope="module")
def plain_people() -> dict[str, Tensor]:
    return weights(Units(*rows_of(), ids=IDS, **PEOPLE), USERS)


def mapped(folder: Path, inputs: Tensor, targets: Tensor, dtype: Any = np.float64) -> tuple[Any, Any]:
    np.save(folder / "x.npy", inputs.numpy().astype(dtype))
    np.save(folder / "y.npy", targets.numpy().astype(np.int8))
    return np.load(folder / "x.npy", mmap_mode="r"), np.load(folder / "y.npy", mmap_mode="r")


def transformed(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {**batch, "x": [torch.tensor(each) for each in batch["x"]]}


KINDS: dict[str, Callable[[Path], Units]] = {
    "pairs": lambda _: Units.of_dataset(pairs(), like=LIKE, **FACTS),
    "dictionaries": lambda _: Units.of_dataset(named(), **NAMED, **FACTS),
    "tensors": lambda _: Units.of_dataset(TensorDataset(*rows_of()), **FACTS),
    "part of tensors": lambda _: Units.of_dataset(
        Subset(TensorDataset(*(torch.cat([part[:5], part]) for part in rows_of())), [*range(5, NUMBER + 5)]), **FACTS
    ),
    "part of items": lambda _: Units.of_dataset(Subset(pairs(), range(NUMBER)), like=LIKE, **FACTS),
    "columns": lambda _: Units.of_dataset(columns(), **NAMED, **FACTS),
    "formatted columns": lambda _: Units.of_dataset(columns().with_format("torch"), **NAMED, **FACTS),
    "transformed columns": lambda _: Units.of_dataset(columns().with_transform(transformed), **NAMED, **FACTS),
    "mapped": lambda folder: Units(*mapped(folder, *rows_of()), **FACTS),
    "mapped and not": lambda folder: Units(mapped(folder, *rows_of())[0], rows_of()[1], **FACTS),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_learns_what_the_same_tensors_do(kind: str, tmp_path: Path, plain: dict[str, Tensor]) -> None:
    assert same(weights(KINDS[kind](tmp_path)), plain)


PERSONS: dict[str, Callable[[Path], Units]] = {
    "pairs": lambda _: Units.of_dataset(pairs(), like=LIKE, ids=IDS, **PEOPLE),
    "dictionaries": lambda _: Units.of_dataset(named(), **NAMED, ids="id", **PEOPLE),
    "tensors": lambda _: Units.of_dataset(TensorDataset(*rows_of()), ids=np.array(IDS), **PEOPLE),
    "columns": lambda _: Units.of_dataset(columns(), **NAMED, ids="id", **PEOPLE),
    "transformed columns": lambda _: Units.of_dataset(
        columns().with_transform(transformed), **NAMED, ids="id", **PEOPLE
    ),
    "mapped": lambda folder: Units(*mapped(folder, *rows_of()), ids=IDS, **PEOPLE),
}


@pytest.mark.parametrize("kind", PERSONS)
def test_rows_of_a_person_are_one_unit_in_every_kind(
    kind: str, tmp_path: Path, plain_people: dict[str, Tensor]
) -> None:
    assert same(weights(PERSONS[kind](tmp_path), USERS), plain_people)


def test_rows_that_are_units_and_count_so_often_a_person(tmp_path: Path) -> None:
    facts = {**FACTS, "times": 2}
    expected = Units(*rows_of(), ids=IDS, **facts).laid(b"k")
    for data in (
        Units.of_dataset(named(), **NAMED, ids="id", **facts),
        Units(*mapped(tmp_path, *rows_of()), ids=IDS, **facts),
    ):
        laid = data.laid(b"k")
        everything = torch.arange(laid.number)
        inputs, targets, here = laid.gathered(*laid.rows_of(everything, torch.ones(laid.number, dtype=torch.bool)))
        assert torch.equal(inputs[0], expected.inputs[0])
        assert torch.equal(targets, expected.targets)
        assert here.all()


def test_groups_of_rows_in_a_file(tmp_path: Path) -> None:
    said: dict[str, Any] = {"ids": [f"p{row}" for row in range(NUMBER)], "groups": triplets(30), "name": "visits"}
    said["roster"] = said["ids"][:30]
    expected = Units.of_groups(*rows_of(), **said).laid(b"k")
    laid = Units.of_groups(*mapped(tmp_path, *rows_of()), **said).laid(b"k")
    everything = torch.arange(laid.number), torch.arange(laid.number) != 2
    inputs, targets, here = laid.gathered(*laid.rows_of(*everything))
    assert laid.number == expected.number > 3
    assert torch.equal(here, everything[1])
    assert torch.equal(inputs[0][here], expected.inputs[0][here])
    assert torch.equal(targets[here], expected.targets[here])


def test_ids_may_lie_in_a_tuple() -> None:
    inputs, targets = rows_of()
    triples = Items(lambda row: (inputs[row], targets[row], IDS[row]))
    data = Units.of_dataset(triples, like=(*LIKE, ""), ids=2, **PEOPLE)
    assert data.laid(b"k").number == 20


class Odd(Exception):
    """Whatever an item raises."""


def raised(_: int) -> Any:
    print("p7 has the rare disease")
    warnings.warn("p7 has the rare disease", stacklevel=1)
    raise Odd("p7 has the rare disease")


ODD: dict[str, Callable[[int], Any]] = {
    "raises": raised,
    "exits": lambda _: exit(3),
    "shape": lambda _: (torch.zeros(WIDTH + 1), torch.tensor(0)),
    "dtype": lambda _: (torch.zeros(WIDTH), torch.tensor(0.5)),
    "text": lambda _: ("abc", torch.tensor(0)),
    "not finite": lambda _: (torch.full((WIDTH,), float("nan")), torch.tensor(0)),
    "infinite": lambda _: (torch.tensor([1.0, 1e39, 0.0], dtype=torch.float64), torch.tensor(0)),
    "short": lambda _: (torch.zeros(WIDTH),),
    "nothing": lambda _: None,
}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_item_is_not_there_and_the_others_are(odd: str) -> None:
    inputs, targets = rows_of()
    items = Items(lambda row: ODD[odd](row) if row == 4 else (inputs[row], targets[row]))
    found, classes, fine = ItemRows(items, keys=[0, 1], like=LIKE).read(torch.arange(10), 0)
    assert fine.tolist() == [place != 4 for place in range(10)]
    assert torch.equal(found[0][fine], inputs[:10][fine])
    assert torch.equal(classes[fine], targets[:10][fine])
    assert found[0][4].isfinite().all()


@pytest.mark.parametrize("odd", ["raises", "shape"])
def test_an_item_that_fails_counts_for_nothing(odd: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The run is bit by bit that of units of which this one adds nothing: its clipped gradient is zero."""
    inputs, targets = rows_of()
    bad = 33
    items = Items(lambda row: ODD[odd](row) if row == bad else (inputs[row], targets[row]))
    without = inputs.clone()
    without[bad] = float("nan")  # a row of tensors that is not finite counts for nothing
    found = weights(Units.of_dataset(items, like=LIKE, **FACTS))
    assert bad in items.asked  # it was drawn at least once
    assert same(found, weights(Units(without, targets, **FACTS)))
    shown = capfd.readouterr()
    assert "rare disease" not in shown.out + shown.err


@pytest.mark.parametrize("odd", [[0.1, None, 0.3], [0.1, 0.2], ["a", "b", "c"], None, [0.1, float("inf"), 0.3]])
def test_an_odd_cell_of_a_column_changes_no_other_row(odd: Any) -> None:
    inputs, targets = rows_of()
    cells = inputs.tolist()
    cells[4] = odd
    rows = ColumnRows(ColumnDataset({"x": cells, "y": targets.tolist()}), keys=["x", "y"], like=LIKE)
    found, classes, fine = rows.read(torch.arange(10), 0)
    assert fine.tolist() == [place != 4 for place in range(10)]
    assert torch.equal(found[0][fine], inputs[:10][fine])
    assert torch.equal(classes[fine], targets[:10][fine])


def test_a_missing_class_changes_no_other_rows_type() -> None:
    """As an array, a column of whole numbers with one missing becomes floats, which are no classes: all would fail."""
    inputs, targets = rows_of()
    classes: list[Any] = targets.tolist()
    classes[4] = None
    batch = ColumnDataset({"x": inputs.tolist(), "y": classes})
    fine = ColumnRows(batch, keys=["x", "y"], like=LIKE).read(torch.arange(10), 0)[2]
    assert fine.sum() == 9
    as_array = np.array([np.nan if each is None else each for each in classes[:10]])
    assert not torch.can_cast(torch.from_numpy(as_array).dtype, torch.int64)  # the broken copy would lose all ten


def test_of_a_person_the_other_items_count() -> None:
    inputs, targets = rows_of()
    items = Items(lambda row: raised(row) if row == 0 else (inputs[row], targets[row]))
    data = Units.of_dataset(items, like=LIKE, ids=IDS, **{**PEOPLE, "max_records_per_unit": 3})
    laid = data.laid(b"k")
    rows, here = laid.rows_of(torch.arange(20), torch.ones(20, dtype=torch.bool))
    counted = laid.gathered(rows, here)[2]
    assert here.sum() - counted.sum() == 1
    assert counted.any(1).all()


@pytest.mark.parametrize("kind", ["mixed", "pairs"])
def test_units_whose_items_all_fail_are_noise_and_no_error(kind: str) -> None:
    items = Items(raised) if kind == "pairs" else Items(lambda row: [raised, ODD["shape"]][row % 2](row))
    weights(Units.of_dataset(items, like=LIKE, **FACTS))


def test_a_transform_and_a_class_of_somebody_else_see_one_row_at_a_time() -> None:
    """A transform that pads to the longest row of a batch couples people where it sees several."""
    seen: list[int] = []

    def padded(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        seen.append(len(batch["x"]))
        longest = max(len(each) + (each == batch["x"][0]) for each in batch["x"])
        return {**batch, "x": [each + [0.0] * (longest - len(each) - 1) for each in batch["x"]]}

    everybody = torch.arange(NUMBER), torch.ones(NUMBER, dtype=torch.bool)
    data = Units.of_dataset(columns().with_transform(padded), **NAMED, **FACTS).laid(b"k")
    assert data.gathered(*everybody)[2].all()
    assert set(seen) == {1}
    foreign = columns(ForeignColumns)
    assert Units.of_dataset(foreign, **NAMED, **FACTS).laid(b"k").gathered(*everybody)[2].all()
    assert all(type(each) is int for each in foreign.asked if each != "len")
    plain = columns()
    Units.of_dataset(plain, **NAMED, **FACTS).laid(b"k").gathered(*everybody)
    assert list(range(NUMBER)) in plain.asked


# Draws inside items


HELD: dict[str, Callable[[], Any]] = {
    "torch": lambda: lambda: float(torch.rand(())),
    "numpy": lambda: np.random.random,
    "python": lambda: random.random,
    "own numpy": lambda: np.random.default_rng(5).random,
    "own legacy": lambda: np.random.RandomState(5).random_sample,
    "own python": lambda: random.Random(5).random,
    "own torch": lambda: (lambda own: lambda: float(torch.rand((), generator=own)))(torch.Generator().manual_seed(5)),
}


def drawing(draw: Callable[[], float], greedy: int | None) -> Items:
    """Items that draw; one of them, if there is a greedy one, draws far more than the others do."""

    def make(row: int) -> tuple[Tensor, Tensor]:
        many = 1000 if row == greedy else 1
        return torch.tensor([draw() for _ in range(many)][:1] * WIDTH), torch.tensor(0)

    return Items(make)


def items_read(draw: Callable[[], float], greedy: int | None, monkeypatch: pytest.MonkeyPatch, how: Any) -> Tensor:
    monkeypatch.setattr("secrets.token_bytes", bytes)  # the same key twice
    rows: Any = how(drawing(draw, greedy), keys=[0, 1], like=LIKE)
    return torch.cat([rows.read(torch.arange(10), step)[0][0] for step in range(2)])


class Coupled(ItemRows):
    """The broken copy: all items of a step draw from one state."""

    def read(self, rows: Tensor, step: int) -> Any:
        self._draws._seed = lambda seeds, step, row: None  # type: ignore[method-assign]  # nothing is seeded
        return super().read(rows, step)


@pytest.mark.parametrize("held", HELD)
def test_what_one_item_draws_moves_nobody_elses(held: str, monkeypatch: pytest.MonkeyPatch) -> None:
    others = torch.arange(20) % 10 != 3
    one, other = (items_read(HELD[held](), greedy, monkeypatch, ItemRows) for greedy in (None, 3))
    assert torch.equal(one[others], other[others])
    assert not torch.equal(one[:10], one[10:])  # each step draws anew
    assert len(one.unique()) == 20  # and each item by itself
    torch.manual_seed(0), np.random.seed(0), random.seed(0)
    one = items_read(HELD[held](), None, monkeypatch, Coupled)
    torch.manual_seed(0), np.random.seed(0), random.seed(0)
    other = items_read(HELD[held](), 3, monkeypatch, Coupled)
    assert not torch.equal(one[others], other[others])


def test_generators_are_afterwards_where_they_were() -> None:
    own = np.random.default_rng(5)
    twin = copy.deepcopy(own)
    torch.manual_seed(1), np.random.seed(1), random.seed(1)
    expected = float(torch.rand(())), np.random.random(), random.random()
    torch.manual_seed(1), np.random.seed(1), random.seed(1)
    with ItemDraws(lambda: own).forked() as seeded:
        seeded(0, 0)
        drawn = own.random()
        torch.rand(3), np.random.random(3), random.random()
    assert (float(torch.rand(())), np.random.random(), random.random()) == expected
    assert own.random() == twin.random() != drawn


def test_a_run_that_draws_in_its_items_leaves_no_trace_in_generators() -> None:
    states = []
    for number in (NUMBER, NUMBER - 1):
        torch.manual_seed(9), np.random.seed(9)
        items = drawing(np.random.random, None)
        items.number = number
        data = Units.of_dataset(items, like=LIKE, **FACTS)
        np.random.seed(9)
        vault().trainer(nn.Linear(WIDTH, 2), nn.functional.cross_entropy, data=data).fit(steps=2, batch=20, **SPEND)
        states.append(np.random.random())
    assert states[0] == states[1]


def test_batched_items_are_vouched_for_and_not_the_default() -> None:
    """Padding to the longest of a batch couples people: it is asked for, never found out."""
    inputs, targets = rows_of()

    class Padded(Items):
        def __getitems__(self, rows: list[int]) -> list[Any]:
            longest = max(WIDTH + (row == 3) for row in rows)
            return [(nn.functional.pad(inputs[row], (0, longest - WIDTH)), targets[row]) for row in rows]

    items = Padded(lambda row: (inputs[row], targets[row]))
    data = Units.of_dataset(items, like=LIKE, **FACTS).laid(b"k")
    assert data.gathered(torch.arange(5), torch.ones(5, dtype=torch.bool))[2].all()
    vouched = Units.of_dataset(items, like=LIKE, batched=True, **FACTS).laid(b"k")
    assert vouched.gathered(torch.arange(3), torch.ones(3, dtype=torch.bool))[2].all()
    assert not vouched.gathered(torch.arange(5), torch.ones(5, dtype=torch.bool))[2].any()  # what row 3 does to others
    with pytest.raises(errors.InvalidInput, match="__getitems__"):
        Units.of_dataset(pairs(), like=LIKE, batched=True, **FACTS)


# Before the charge


def test_a_refused_charge_leaves_a_dataset_unread() -> None:
    for items in (pairs(), named()):
        dictionary = items.make(0) if isinstance(items.make(0), dict) else None
        said: dict[str, Any] = {"like": LIKE} if dictionary is None else {**NAMED, "ids": "id"}
        unit, facts = (RECORDS, FACTS) if dictionary is None else (USERS, PEOPLE)
        home = vault(unit, epsilon=1)
        trainer = home.trainer(
            nn.Linear(WIDTH, 2), nn.functional.cross_entropy, data=Units.of_dataset(items, **said, **facts)
        )
        repr(trainer), trainer.plan(steps=3, batch=10, **SPEND)
        with pytest.raises(errors.BudgetExceeded):
            trainer.fit(steps=3, batch=10, **SPEND)
        assert (items.asked, items.lengths) == ([], 0)
        trainer.fit(steps=3, batch=10, epsilon=1, delta=1e-7)
        assert items.asked
    rows = columns()
    data = Units.of_dataset(rows, **NAMED, ids="id", **PEOPLE)
    trainer = vault(USERS, epsilon=1).trainer(nn.Linear(WIDTH, 2), nn.functional.cross_entropy, data=data)
    with pytest.raises(errors.BudgetExceeded):
        trainer.fit(steps=3, batch=10, **SPEND)
    assert rows.asked == []
    trainer.fit(steps=3, batch=10, epsilon=1, delta=1e-7)  # rows are read by the thread that reads ahead
    assert any(isinstance(each, list) for each in rows.asked)


def test_one_row_more_shows_nowhere() -> None:
    """Neighbours of n and n + 1 rows: nothing that is printed, refused or kept as an attribute is different."""

    def shown(number: int) -> list[str]:
        items = pairs()
        items.number = number
        found = []
        for said in (
            {"like": LIKE},
            {"like": LIKE, "ids": IDS[:number], "max_records_per_unit": 2},
            {"like": None},
            {"like": (torch.zeros(WIDTH + 1), torch.tensor(0))},
        ):
            try:
                data = Units.of_dataset(items, **said, n_units=20, name="visits", version="1")
                shapes = [
                    tuple(each.shape)
                    for part in data.example(2)
                    for each in (part if isinstance(part, tuple) else (part,))
                ]
                facts = {name: value for name, value in vars(data).items() if not name.startswith("_")}
                home = vault(USERS if "ids" in said else RECORDS)
                trainer = home.trainer(nn.Linear(WIDTH, 2), nn.functional.cross_entropy, data=data)
                trained = trainer.fit(steps=2, batch=5, max_physical_batch_size=16, **SPEND)
                query = trained.release.statement.query
                found.append(f"{data!r} {facts} {shapes} {trainer!r} {home.spent} {query.number} {query.rate}")
            except errors.SfumatoError as refused:
                found.append(str(refused))
            except RuntimeError as wrong:  # a model that does not fit what was declared, before anything is read
                found.append(str(wrong))
        assert items.asked
        return found

    assert shown(NUMBER) == shown(NUMBER - 1)


# What is refused


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Any:
        raise AssertionError("nothing is read")


def test_an_iterable_dataset_is_refused_with_the_reason() -> None:
    home = vault()
    for way in (
        lambda data: Units.of_dataset(data, like=LIKE, **FACTS),
        lambda data: home.trainer(nn.Linear(WIDTH, 2), nn.functional.cross_entropy, data=data),
    ):
        with pytest.raises(errors.Unsupported, match="by chance, by itself"):
            way(Endless())
        with pytest.raises(errors.Unsupported, match="its dataset"):
            way(DataLoader(pairs()))
    assert home.spent.epsilon == 0


def test_what_is_no_units_says_how_to_make_them(tmp_path: Path) -> None:
    home = vault()
    table = home.table(pa.table({"age": [1, 2]}), name="ages", version="1")
    for given, words in (
        (pairs(), "Units.of_dataset"),
        (columns(), "Units.of_dataset"),
        ({"train": columns()}, r"data\['train'\]"),
        (table, "Units.of_table"),
        (mapped(tmp_path, *rows_of())[0], r"learning.Units\(inputs"),
        (torch.zeros(3, WIDTH), r"learning.Units\(inputs"),
    ):
        with pytest.raises(errors.InvalidInput, match=words):
            home.trainer(nn.Linear(WIDTH, 2), nn.functional.cross_entropy, data=given)


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        ({}, errors.NotDeclared, "like="),
        ({"like": torch.zeros(3)}, errors.InvalidInput, "tuple or a dictionary"),
        ({"like": {"x": 0, "y": 0}}, errors.NotDeclared, "inputs="),
        ({"like": LIKE, "inputs": 5}, errors.InvalidInput, "where they lie"),
        ({"like": {"x": 0, "z": 0}, "inputs": "x", "targets": "z"}, errors.InvalidInput, "no column 'z'"),
        ({**NAMED, "ids": "who"}, errors.InvalidInput, "no column 'who'"),
    ],
)
def test_what_a_dataset_must_say(said: dict[str, Any], kind: type[Exception], words: str) -> None:
    data = columns()
    with pytest.raises(kind, match=words):
        Units.of_dataset(data, **said, **(FACTS if "ids" not in said else PEOPLE))
    assert data.asked == []


def test_units_of_datasets_evaluate_as_tensors_do() -> None:
    model = nn.Linear(WIDTH, 2)
    counts = []
    for data in (Units(*rows_of(), **FACTS), Units.of_dataset(pairs(), like=LIKE, **FACTS)):
        evaluator = vault().evaluator(data=data, evaluations=1, **SPEND)
        counts.append(evaluator._exact(model))
    assert counts[0] == counts[1]


def test_the_class_is_the_librarys_own() -> None:
    class Own(Units):
        pass

    data = Units.of_dataset(pairs(), like=LIKE, **FACTS)
    data.__class__ = Own
    with pytest.raises(errors.InvalidInput):
        vault().trainer(nn.Linear(WIDTH, 2), nn.functional.cross_entropy, data=data)
