"""Tables of the vault as units: their columns by what was declared, their persons by the vault's unit."""

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

from sfumato.engines.sources import Source  # noqa: E402
from sfumato.learning import Units  # noqa: E402
from tests.learning.words import TestWords  # noqa: E402

SPEND: dict[str, Any] = {"epsilon": 2, "delta": 1e-7}
NUMBER = 60
RECORDS, USERS = sf.record(relation="add/remove"), sf.user("id", relation="add/remove")
KEY = SigningKey.new()
FACTS: dict[str, Any] = {
    "bounds": {"age": (0, 100), "crp": (0, 50)},
    "keys": {"sex": ["f", "m"], "died": [False, True], "grade": [1, 2, 3]},
}


def rows() -> dict[str, list[Any]]:
    return {
        "id": [f"p{row % 20}" for row in range(NUMBER)],
        "age": [(37 * row) % 100 for row in range(NUMBER)],
        "crp": [float((13 * row) % 60) for row in range(NUMBER)],
        "sex": ["fm"[row % 2] for row in range(NUMBER)],
        "died": [row % 3 == 0 for row in range(NUMBER)],
        "grade": [1 + row % 3 for row in range(NUMBER)],
        "free": ["text"] * NUMBER,
    }


def vault(unit: Any = RECORDS, epsilon: float = 8) -> Vault:
    return Vault(unit=unit, budget=sf.Budget(epsilon=epsilon, delta=1e-6), name="clinic", key=KEY)


def table(home: Vault, data: Any = None, **said: Any) -> Any:
    return home.table(pa.table(rows() if data is None else data), name="stays", version="1", **{**FACTS, **said})


def encoded(data: dict[str, list[Any]]) -> Tensor:
    age = torch.tensor(data["age"], dtype=torch.float64) / 50 - 1
    crp = (torch.tensor(data["crp"], dtype=torch.float64).clamp(0, 50) - 25) / 25
    sex = torch.tensor([[each == "f", each == "m"] for each in data["sex"]]).double()
    return torch.cat([age[:, None], crp[:, None], sex], dim=1).float()


def weights(home: Vault, data: Units, outputs: int = 2) -> dict[str, Tensor]:
    torch.manual_seed(3)
    model = nn.Linear(4, outputs)
    trainer = home.trainer(model, nn.functional.cross_entropy, data=data)
    trainer._words = TestWords
    trainer.fit(steps=4, batch=data.n_units // 3, lr=0.5, max_physical_batch_size=16, **SPEND)
    return {name: one.clone() for name, one in model.state_dict().items()}


COLUMNS: dict[str, Any] = {"inputs": ["age", "crp", "sex"], "targets": "died"}


def test_a_table_learns_what_its_encoded_rows_do() -> None:
    home = vault()
    found = weights(home, Units.of_table(table(home), **COLUMNS, n_units=NUMBER))
    targets = torch.tensor(rows()["died"])
    expected = weights(vault(), Units(encoded(rows()), targets, n_units=NUMBER, name="stays", version="1"))
    assert all(torch.equal(found[name], expected[name]) for name in found)


def test_the_units_column_says_whose_rows_they_are_and_the_limit_how_many_count() -> None:
    home = vault(USERS)
    data = Units.of_table(table(home, limit=sf.Limit(groups=1, rows_per_group=2)), **COLUMNS, n_units=20)
    assert (data.kind, data.max_records_per_unit) == ("user", 2)
    laid = data.laid(b"k")
    assert laid.number == 20
    assert laid.present is not None
    assert (laid.present.sum(1) == 2).all()
    trained = home.trainer(nn.Linear(4, 2), nn.functional.cross_entropy, data=data).fit(steps=2, batch=5, **SPEND)
    assert trained.release.statement.query.dataset.name == "stays"
    assert home.spent.epsilon == 2


def test_what_counts_of_a_person_does_not_hang_on_the_order_of_rows() -> None:
    """Engines give rows in any order, and in which one may depend on rows of others."""
    held = rows()
    order = np.random.default_rng(4).permutation(NUMBER)
    found = []
    for places in (range(NUMBER), order):
        home = vault(USERS)
        data = {name: [column[place] for place in places] for name, column in held.items()}
        units = Units.of_table(table(home, data), **COLUMNS, n_units=20, max_records_per_unit=2)
        laid = units.laid(b"k")
        assert laid.places is not None
        found.append((laid.inputs[0][laid.places], laid.targets[laid.places]))
        ids = np.array(data["id"])
        shuffled = Units(
            encoded(data), torch.tensor(data["died"]), ids=ids, n_units=20, max_records_per_unit=2, name="s"
        )
        broken = shuffled.laid(b"k")
        assert broken.places is not None
        found[-1] += (broken.inputs[0][broken.places],)
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    assert not torch.equal(found[0][2], found[1][2])  # as the rows came, it would


def test_missing_and_unlisted_values() -> None:
    held = rows()
    held["age"][0] = None
    held["sex"][1] = "x"
    held["died"][2] = None
    held["crp"][3] = float("nan")
    laid = Units.of_table(table(vault(), held), **COLUMNS, n_units=NUMBER).laid(b"k")
    assert laid.number == NUMBER - 1  # the row without a target does not count
    assert laid.inputs[0][0, 0] == 0
    assert laid.inputs[0][1, 2:].tolist() == [0, 0]
    assert laid.inputs[0][2, 1] == 0
    assert laid.inputs[0].isfinite().all()


def test_targets_are_classes_by_their_keys_or_numbers_within_bounds() -> None:
    home = vault()
    stays = table(home)
    grades = Units.of_table(stays, inputs=["age"], targets="grade", n_units=NUMBER).laid(b"k")
    assert grades.targets.tolist() == [row % 3 for row in range(NUMBER)]
    assert grades.targets.dtype == torch.int64
    numbers = Units.of_table(stays, inputs=["grade"], targets="crp", n_units=NUMBER).laid(b"k")
    assert numbers.targets.tolist() == [min(50.0, each) for each in rows()["crp"]]
    assert numbers.inputs[0].shape == (NUMBER, 3)


def test_no_row_is_read_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    home = vault(epsilon=1)
    data = Units.of_table(table(home), **COLUMNS, n_units=NUMBER)
    opened: list[str] = []
    real = Source.opened
    monkeypatch.setattr(Source, "opened", lambda self: opened.append(str(home.spent.epsilon)) or real(self))
    trainer = home.trainer(nn.Linear(4, 2), nn.functional.cross_entropy, data=data)
    with pytest.raises(errors.BudgetExceeded):
        trainer.fit(steps=2, batch=5, **SPEND)
    assert opened == []
    trainer.fit(steps=2, batch=5, epsilon=1, delta=1e-7)
    assert opened == ["1"]


def test_one_row_more_shows_nowhere() -> None:
    def shown(number: int) -> str:
        home = vault()
        data = Units.of_table(
            table(home, {name: each[:number] for name, each in rows().items()}), **COLUMNS, n_units=50
        )
        facts = {name: value for name, value in vars(data).items() if not name.startswith("_")}
        return f"{data!r} {facts} {[tuple(each.shape) for each in data.example(2)[0]]}"

    assert shown(NUMBER) == shown(NUMBER - 1)


def test_what_is_refused() -> None:
    home = vault()
    stays = table(home)
    said: dict[str, Any] = {"inputs": ["age"], "targets": "died", "n_units": NUMBER}
    for change, kind, words in (
        ({"inputs": ["weight"]}, errors.InvalidInput, "no column 'weight'"),
        ({"inputs": ["free"]}, errors.NotDeclared, "'free' needs public facts"),
        ({"targets": "free"}, errors.NotDeclared, "'free' needs public facts"),
        ({"inputs": "age"}, errors.InvalidInput, "names of columns"),
        ({"n_units": None}, errors.NotDeclared, "n_units="),
    ):
        with pytest.raises(kind, match=words):
            Units.of_table(stays, **{**said, **change})
    with pytest.raises(errors.InvalidInput, match="as it was declared"):
        Units.of_table(stays.where("age > 3"), **said)
    with pytest.raises(errors.Refused, match="another vault"):
        vault().trainer(nn.Linear(1, 2), nn.functional.cross_entropy, data=Units.of_table(stays, **said))
    with pytest.raises(errors.Refused, match="another vault"):
        vault().evaluator(data=Units.of_table(stays, **said), evaluations=1, **SPEND)
    derived = home.table(pa.table(rows()), name="made", version="1", derived=True, **FACTS)
    with pytest.raises(errors.Refused, match="derived=True"):
        Units.of_table(derived, **said)
    people = table(vault(USERS))
    with pytest.raises(errors.NotDeclared, match="max_records_per_unit"):
        Units.of_table(people, **said)
    assert home.spent.epsilon == 0
