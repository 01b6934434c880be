"""S0-23: a critic is private, and no way leads from the data to a generator but through what was charged for."""

import copy
from datetime import date
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

import sfumato as sf
from sfumato import errors
from sfumato.core.signature import SigningKey
from sfumato.reports.verify import verify
from sfumato.vault import Vault
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor  # noqa: E402

from sfumato.learning import GeneratedTable, GeneratorSettings, GeneratorTrainer  # noqa: E402
from sfumato.learning.generative.course import GeneratorCourse, PairOptimizer  # noqa: E402
from sfumato.learning.run import Run  # noqa: E402
from sfumato.synthesis.measured import MeasuredTable  # noqa: E402
from sfumato.tables.synthesized import Synthesis  # noqa: E402

RECORDS, USERS = sf.record(relation="add/remove"), sf.user("id", relation="add/remove")
SPEND: dict[str, Any] = {"epsilon": 4, "delta": 1e-6}
KEYS: dict[str, Any] = {"sex": ["F", "M"], "ward": ["A", "B", "C"]}
BOUNDS: dict[str, Any] = {"age": (0, 99), "admitted": (date(2026, 1, 1), date(2026, 12, 31))}
BINS: dict[str, Any] = {"age": 4, "admitted": 3}
NUMBER = 120
KEY = SigningKey.new()  # by which rows of persons are chosen
FEW = GeneratorSettings(hidden=16, noise=4, batch=32)
NETWORK = GeneratorSettings(critic="network", critic_hidden=8, hidden=16, noise=4, batch=32)


def people(number: int = NUMBER, shift: int = 0) -> dict[str, list[Any]]:
    places = range(number)
    return {
        "id": [f"p{place // 3}" for place in places],
        "sex": ["FM"[(place + shift) % 2] for place in places],
        "ward": ["ABC"[(place // 2 + shift) % 3] for place in places],
        "age": [None if place % 11 == 10 else (37 * place + 5 * shift) % 100 for place in places],
        "admitted": [date(2026, 1 + (place + shift) % 12, 3) for place in places],
    }


def world(data: dict[str, list[Any]] | None = None, unit: Any = RECORDS, epsilon: float = 8) -> tuple[Vault, Any]:
    vault = Vault(unit=unit, budget=sf.Budget(epsilon=epsilon, delta=1e-6), name="clinic", key=KEY)
    rows = pa.table(people() if data is None else data)
    limit = sf.Limit(groups=1, rows_per_group=2) if unit is USERS else None
    return vault, vault.table(rows, name="stays", version="1", keys=KEYS, bounds=BOUNDS, limit=limit)


def generator(data: dict[str, list[Any]] | None = None, unit: Any = RECORDS, **said: Any) -> GeneratorTrainer:
    vault, table = world(data, unit)
    usual = {"bins": BINS, "missing": ["age"], "n_units": NUMBER, "settings": FEW}
    made: GeneratorTrainer = vault.generator(table, **{**usual, **said})
    made._seed = 7
    return made


@pytest.fixture(scope="module")
def made() -> tuple[Vault, GeneratedTable]:
    vault, table = world()
    trained = vault.generator(table, bins=BINS, missing=["age"], n_units=NUMBER, settings=FEW)
    return vault, trained.fit(**SPEND, steps=4, batch=30, progress=False)


def test_rows_have_the_declared_columns(made: tuple[Vault, GeneratedTable]) -> None:
    rows, quality = made[1].rows, made[1].quality
    assert quality.estimated_rows is not None
    assert rows.num_rows == max(1, round(quality.estimated_rows))  # none were declared: the noisy number
    assert not quality.declared_rows
    assert [str(kind) for kind in rows.schema.types] == ["string", "string", "int64", "date32[day]"]
    assert set(rows["ward"].to_pylist()) <= {"A", "B", "C"}
    for name, (low, high) in BOUNDS.items():
        ends = pc.min_max(rows[name]).as_py()
        assert low <= ends["min"] <= ends["max"] <= high


def test_both_charges_are_what_was_asked_for(made: tuple[Vault, GeneratedTable]) -> None:
    vault, found = made
    assert vault.spent == found.charged == sf.Budget(**SPEND)
    assert found.marginals is not None
    assert found.marginals.charged == sf.Budget(epsilon="2/5")
    for release in (found.release, found.marginals):
        assert verify(release.certificate.document).consistent
    query = found.release.statement.query
    assert (query.KIND, query.done, query.clip) == ("query.training", 4, 4)  # type: ignore[attr-defined]  # a Training


def test_a_file_names_its_certificate(made: tuple[Vault, GeneratedTable], tmp_path: Path) -> None:
    found = made[1]
    told = parquet.read_schema(found.to_parquet(tmp_path / "rows.parquet")).metadata[b"sfumato.release"]
    assert told.decode() == found.release.statement.identifier
    assert found.to_csv(tmp_path / "rows.csv").read_text().count("\n") == found.rows.num_rows + 1


def test_words_say_what_is_not_known(made: tuple[Vault, GeneratedTable]) -> None:
    found = made[1]
    english, chinese = found.explain(), found.explain("zh")
    assert "was not measured" in english
    assert "no row of the data" in english
    assert "ε = 18/5" in english
    assert "没有测量" in chinese
    assert str(found) == english
    assert repr(found) == f"GeneratedTable of {found.rows.num_rows} rows × 4 columns"
    assert found.quality.noise_multiplier == pytest.approx(float(found.release.statement.mechanism.multiplier))  # type: ignore[attr-defined]  # noisy sums


def test_the_same_generator_makes_more_rows_and_keeps_conditions(made: tuple[Vault, GeneratedTable]) -> None:
    vault, found = made
    before = vault.spent
    more = found.generator.rows(300, seed=3, given={"ward": "B"})
    assert set(more["ward"].to_pylist()) == {"B"}
    assert found.generator.rows(300, seed=3, given={"ward": "B"}).equals(more)
    assert vault.spent == before
    for given in ({"age": 3}, {"ward": "Z"}, {"ward": "B", "sex": "F"}, {}):
        with pytest.raises(errors.InvalidInput, match="no rows were made"):
            found.generator.rows(10, seed=1, given=given)


def fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put constants in the place of all that is released: noisy sums, and noisy tables."""
    sums = torch.Generator().manual_seed(1)
    steps: dict[int, Tensor] = {}

    def noised(run: Run) -> Tensor:
        run._summed()  # rows are read, and what they give is thrown away
        if run._step not in steps:
            steps[run._step] = torch.randn(run._run.parameters, generator=sums, dtype=torch.float64)
        return steps[run._step].clone()

    def measured(asked: Synthesis, release: object) -> list[MeasuredTable]:
        del release
        return [
            MeasuredTable(columns=(place,), counts=np.arange(1.0, size + 1), sigma=1.0)
            for place, size in enumerate(asked.sizes)
        ]

    monkeypatch.setattr(Run, "_noised", noised)
    monkeypatch.setattr(Synthesis, "measured", measured)


def outcome(trained: GeneratorTrainer) -> tuple[dict[str, Tensor], list[Any]]:
    """All that follows from a run but its identifiers."""
    found = trained.fit(**SPEND, steps=3, batch=30, rows=50, progress=False)
    return dict(found.generator.state), found.generator.rows(40, seed=5).to_pylist()


def same(one: tuple[dict[str, Tensor], list[Any]], two: tuple[dict[str, Tensor], list[Any]]) -> bool:
    return all(torch.equal(one[0][name], two[0][name]) for name in one[0]) and one[1] == two[1]


@pytest.mark.claim("S0-23")
@pytest.mark.parametrize("settings", [FEW, NETWORK])
def test_nothing_reaches_the_generator_but_what_was_released(
    settings: GeneratorSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With constants for what is released, quite different data give the same generator, bit by bit."""
    fixed(monkeypatch)
    here, there = (generator(people(shift=shift), settings=settings) for shift in (0, 1))
    assert same(outcome(here), outcome(there))


class _Frequencies(GeneratorTrainer):
    """Broken: conditions by real frequencies, as CTGAN draws them."""

    def _shares(self, asked: Any) -> Any:
        release, _, total = super()._shares(asked)
        return release, self._units.laid(b"key").inputs[0].mean(0) + 1e-6, total


class _Peeking(GeneratorCourse):
    """Broken: a generator that is shown rows of the data beside the critic's weights."""

    rows: Tensor

    def learn(self, weights: Any) -> None:
        super().learn(weights)
        with torch.no_grad():
            self.averaged.last.bias += 1e-3 * self.rows.mean(0)


@pytest.mark.claim("S0-23")
def test_a_generator_that_gets_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    fixed(monkeypatch)
    found = []
    for shift in (0, 1):
        trained = generator(people(shift=shift))
        trained.__class__ = _Frequencies
        found.append(outcome(trained))
    assert not same(*found)
    found = []
    for shift in (0, 1):
        trained = generator(people(shift=shift), marginals=0)
        trained._courses = type("Peeking", (_Peeking,), {"rows": trained._units.laid(b"key").inputs[0]})
        found.append(outcome(trained))
    assert not same(*found)


@pytest.mark.claim("S0-23")
def test_the_generator_can_be_made_again_from_released_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a function of a seed, noisy shares, and the noisy weights of the critic in their order: nothing else."""
    seen: list[dict[str, Tensor]] = []
    learn, began = GeneratorCourse.learn, GeneratorCourse.__init__
    given: list[Any] = []

    def begins(course: GeneratorCourse, *args: Any, **named: Any) -> None:
        given.append((copy.deepcopy(args), dict(named)))
        began(course, *args, **named)

    def learns(course: GeneratorCourse, weights: Any) -> None:
        seen.append({name: one.clone() for name, one in weights.items()})
        learn(course, weights)

    monkeypatch.setattr(GeneratorCourse, "__init__", begins)
    monkeypatch.setattr(GeneratorCourse, "learn", learns)
    found = generator().fit(**SPEND, steps=4, batch=30, rows=50, progress=False)
    monkeypatch.undo()
    ((args, named),) = given
    again = GeneratorCourse(*args, **named)
    for weights in seen:
        again.learn(weights)
    assert len(seen) == 4
    assert all(torch.equal(one, found.generator.state[name]) for name, one in again.averaged.state_dict().items())


def sums(data: dict[str, list[Any]], monkeypatch: pytest.MonkeyPatch, **said: Any) -> Tensor:
    """The sum of the first step before noise, with all units in it."""
    found: list[Tensor] = []
    summed = Run._summed

    def seen(run: Run) -> Tensor:
        found.append(summed(run).clone().double())
        return found[-1].clone()

    with monkeypatch.context() as patched:
        patched.setattr(Run, "_summed", seen)
        generator(data, marginals=0, **said).fit(**SPEND, steps=1, batch=NUMBER, rows=5, progress=False)
    return found[0]


@pytest.mark.claim("S0-23")
def test_one_record_moves_a_step_of_the_critic_by_its_clip(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, less = people(), {name: values[1:] for name, values in people().items()}
    moved = float((sums(whole, monkeypatch) - sums(less, monkeypatch)).norm())
    assert moved == pytest.approx(4, rel=1e-5)  # the gradient of every row is as long as there are columns


@pytest.mark.claim("S0-23")
def test_one_person_moves_a_step_of_the_critic_by_its_clip(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = people()
    stays = [whose != "p0" for whose in whole["id"]]
    less = {name: list(compress(values, stays)) for name, values in whole.items()}
    moved = float((sums(whole, monkeypatch, unit=USERS) - sums(less, monkeypatch, unit=USERS)).norm())
    assert 0 < moved <= 4 * (1 + 1e-5)


@pytest.mark.claim("S0-23")
@pytest.mark.alpha(2e-9)
def test_the_gradient_that_the_critic_learns_from_is_noisy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows that do not count there is noise alone, of the charged size: 6 standard errors of a variance."""
    found: list[Tensor] = []
    step = PairOptimizer.step

    def seen(optimizer: PairOptimizer) -> None:
        found.append(optimizer.param_groups[0]["params"][0].grad.clone().double().flatten())
        step(optimizer)

    monkeypatch.setattr(PairOptimizer, "step", seen)
    nobody = people() | {"ward": ["none of them"] * NUMBER}
    done = generator(nobody, marginals=0).fit(**SPEND, steps=8, batch=30, rows=5, progress=False)
    noise = torch.cat(found[-8:]) * 30
    expected = 4 * done.quality.noise_multiplier
    wide = 6 * (2 / len(noise)) ** 0.5
    assert abs(float(noise.square().mean()) / expected**2 - 1) < wide
    assert abs(float((0.7 * noise).square().mean()) / expected**2 - 1) > wide  # a copy with less noise is caught


def test_without_marginals_there_is_one_charge_and_no_condition() -> None:
    trained = generator(marginals=0)
    found = trained.fit(**SPEND, steps=2, batch=30, progress=False)
    assert found.marginals is None
    assert found.charged == found.release.charged == sf.Budget(**SPEND)
    assert found.rows.num_rows == NUMBER
    assert found.quality.distance_to_shares is None
    with pytest.raises(errors.InvalidInput, match="without noisy shares"):
        found.generator.rows(3, seed=1, given={"ward": "B"})


def test_cells_are_those_of_the_marginals() -> None:
    """Bins, missing values and values beyond the bounds lie in the same cells as for table.synthesize."""
    data = people() | {"age": [None, -5, 0, 24, 25, 99, 250] + [50] * (NUMBER - 7)}
    laid = generator(data)._units.laid(b"key")
    ages = laid.inputs[0][:7, 5:10].argmax(1).tolist()
    assert ages == [4, 0, 0, 0, 1, 3, 3]
    assert torch.equal(laid.inputs[0].sum(1), torch.full((NUMBER,), 4.0))
    unknown = people() | {"ward": ["Z", None, "B"] + ["A"] * (NUMBER - 3)}
    assert generator(unknown)._units.laid(b"key").number == NUMBER - 2


def test_pairs_are_learned_at_a_large_epsilon() -> None:
    """Two columns that always go together, and one that does not: beside independent columns 0.5 would be right."""
    data = {"sex": ["F", "M"] * 1000, "ward": ["A", "B"] * 1000, "ill": [place % 4 < 2 for place in range(2000)]}
    vault = Vault(unit=RECORDS, budget=sf.Budget(epsilon=200, delta=1e-6), name="clinic")
    keys = {"sex": ["F", "M"], "ward": ["A", "B"], "ill": [True, False]}
    table = vault.table(pa.table(data), name="stays", version="1", keys=keys)
    trained = vault.generator(table, n_units=2000, settings=GeneratorSettings(hidden=32, noise=8, batch=128, steps=4))
    trained._seed = 11
    rows = trained.fit(epsilon=100, delta=1e-6, steps=40, batch=500, rows=2000, progress=False).rows
    together = pc.equal(pc.equal(rows["sex"], "F"), pc.equal(rows["ward"], "A"))
    assert pc.mean(pc.cast(together, pa.int8())).as_py() > 0.8


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"columns": ["ward"], "bins": {}, "missing": []}, "two columns or more"),
        ({"marginals": 1}, "at most a half"),
        ({"settings": GeneratorSettings(critic="oracle")}, "one of pairs, network"),
        ({"settings": 3}, "GeneratorSettings"),
        ({"clip": 0}, "clip"),
    ],
)
def test_what_cannot_be_is_refused(said: dict[str, Any], words: str) -> None:
    vault, table = world()
    with pytest.raises(errors.SfumatoError, match=words):
        vault.generator(table, **{"bins": BINS, "missing": ["age"], "n_units": NUMBER, **said})
    assert vault.spent.epsilon == 0


def test_other_tables_and_spends_are_refused_before_anything_is_spent() -> None:
    vault, table = world(epsilon=3)
    with pytest.raises(errors.NotDeclared, match="n_units"):
        vault.generator(table)
    with pytest.raises(errors.InvalidInput, match="as it was declared"):
        vault.generator(table.where("age > 3"), n_units=NUMBER)
    with pytest.raises(errors.Refused, match="another vault"):
        vault.generator(world()[1], n_units=NUMBER)
    with pytest.raises(errors.InvalidInput, match="a table of the vault"):
        vault.generator([1, 2], n_units=NUMBER)  # type: ignore[arg-type]  # what a caller may try
    trained = vault.generator(table, bins=BINS, n_units=NUMBER)
    with pytest.raises(errors.BudgetExceeded, match="nothing was spent"):
        trained.fit(**SPEND, steps=2)
    people_of = world(unit=USERS)
    with pytest.raises(errors.NotDeclared, match="rows="):
        people_of[0].generator(people_of[1], n_units=40, marginals=0).fit(**SPEND, steps=2)
    assert vault.spent.epsilon == people_of[0].spent.epsilon == 0
    assert repr(trained) == "<generator of 4 columns, from <units 'stays': records, declared 120>>"
