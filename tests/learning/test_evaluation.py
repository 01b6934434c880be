"""Private evaluation: paid for beforehand, so many times and no more; and runs that end early by it."""

import copy
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import product
from pathlib import Path
from queue import SimpleQueue
from threading import Barrier
from time import sleep
from typing import Any

import pytest
from scipy.stats import chi2

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.errors import BudgetExceeded, EngineFailed, InvalidInput, Refused, Unsupported
from sfumato.learning import Evaluations, Units
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from sfumato.learning.evaluation import EarlyStop, Evaluated, Evaluator  # noqa: E402

RECORDS, PERSONS = sf.record(relation="add/remove"), sf.user("id", relation="add/remove")
SPEND: dict[str, Any] = {"epsilon": 4, "delta": 1e-6}


class Sign(nn.Module):
    """Says 1 for what is above 0: right of a record (x, 1) where x > 0."""

    def __init__(self, turn: float = 1.0) -> None:
        super().__init__()
        self.turn = nn.Parameter(torch.tensor([[turn]]))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.turn


def vault(unit: Any = RECORDS) -> sf.Vault:
    return sf.Vault(unit=unit, budget=sf.Budget(epsilon=20, delta=1e-5), name="trial", population=10_000)


def held(values: list[float], **said: Any) -> Units:
    x = torch.tensor(values)[:, None]
    return Units(x, torch.ones(len(values), dtype=torch.long), name="held out", version="1", **{"n_units": 100, **said})


def exact(values: list[float], unit: Any = RECORDS, **said: Any) -> int:
    """The count before its noise."""
    return vault(unit).evaluator(data=held(values, **said), evaluations=1, **SPEND)._counted(Sign())


def query(units: str = "record", *, times: int = 1, records: int = 1, evaluations: int = 9) -> Evaluations:
    return Evaluations(
        dataset=Dataset(name="held out", edition="1"),
        units=units,
        evaluations=evaluations,
        number=100,
        times=times,
        records=records,
    )


def test_what_is_counted_are_units_that_are_right() -> None:
    assert exact([1.0, 2.0, -1.0]) == 2
    assert exact([1.0] * 700 + [-1.0] * 700) == 700  # more than one part of a fixed shape


def test_a_person_is_right_where_most_records_are() -> None:
    values, ids = [1.0, 1.0, -1.0, 1.0, -1.0, -1.0], ["a", "a", "a", "b", "b", "c"]
    assert exact(values, PERSONS, ids=ids, max_records_per_unit=3) == 1  # b is right in one of two: not more than half


@pytest.mark.parametrize("records", [1, 2])
def test_no_person_moves_the_count_by_more_than_one(records: int) -> None:
    """Brute force: all persons with up to three records, added to two others; the twin counts records."""
    others, most, twin = [1.0, -1.0], 0, 0
    base = exact(others, PERSONS, ids=["x", "y"], max_records_per_unit=records)
    for count in (1, 2, 3):
        for more in product((1.0, -1.0), repeat=count):
            found = exact([*others, *more], PERSONS, ids=["x", "y", *["z"] * count], max_records_per_unit=records)
            most, twin = max(most, abs(found - base)), max(twin, sum(one > 0 for one in more))
    moved = query("user", records=records).sensitivity(PERSONS, sf.Limit(groups=1, rows_per_group=records))
    assert most**2 * 9 == moved.l2.squared  # type: ignore[union-attr]
    assert twin**2 * 9 > moved.l2.squared  # type: ignore[union-attr]


def test_who_is_in_several_units_moves_each_count_by_as_many() -> None:
    moved = query(times=3).sensitivity(PERSONS, sf.Limit(groups=3, rows_per_group=1))
    assert moved == sf.core.sensitivity.Sensitivity.of(l0=9, l1=27, l2_squared=81, linf=3)
    with pytest.raises(Refused, match="limit"):
        query(times=3).sensitivity(PERSONS, None)
    with pytest.raises(Unsupported):
        query().sensitivity(sf.event(relation="add/remove"), None)


def test_everything_is_charged_at_once_and_no_look_is_free() -> None:
    here = vault()
    evaluator = here.evaluator(data=held([1.0] * 60), evaluations=2, **SPEND)
    assert here.left.epsilon == 16
    told = [evaluator.ask(Sign()), evaluator.ask(Sign(-1.0))]
    assert evaluator.left == 0
    assert abs(told[0].count - 60) < 40 > abs(told[1].count)
    with pytest.raises(Refused, match="2 evaluations were declared"):
        evaluator.ask(Sign())
    release = evaluator.close()
    assert release.values == tuple(one.count for one in told)
    assert release is evaluator.close()
    assert here.left.epsilon == 16
    with pytest.raises(BudgetExceeded):
        here.evaluator(data=held([1.0]), evaluations=2, epsilon=17, delta=1e-6)


def test_what_was_told_can_be_verified_and_has_margins(tmp_path: Path) -> None:
    here = vault()
    evaluator = here.evaluator(data=held([1.0] * 60), evaluations=3, **SPEND)
    one = evaluator.ask(Sign())
    release = evaluator.close()
    release.certificate.save(tmp_path / "looks.json")
    assert sf.load(tmp_path / "looks.json", key=here.public_key).values == release.values
    (low, high), share = release.columns["accuracy"].interval()[0], Fraction(one.count, 100)
    assert (low, min(high, 1)) == (share - Fraction(one.margin, 100), min(share + Fraction(one.margin, 100), 1))
    assert release.statement.query.done == 1  # type: ignore[attr-defined]


def spread(sigma: float) -> float:
    """The noise of 200 evaluations, in parts of what it should be: its mean square."""
    evaluator = vault().evaluator(data=held([1.0] * 3), evaluations=200, **SPEND)
    squares = [(evaluator.ask(Sign()).count - 3) ** 2 for _ in range(200)]
    return sum(squares) / 200 / sigma**2


@pytest.mark.alpha(1e-9)
def test_the_counts_carry_the_noise_that_is_stated() -> None:
    """200 draws by the χ² law: α = 1e-9; noise that is a half too small passes with probability 1e-15."""
    sigma = float(query(evaluations=200).mechanism(RECORDS, sf.Budget(**SPEND)).sigma)
    low, high = (float(chi2.ppf(share, 200)) / 200 for share in (5e-10, 1 - 5e-10))
    found = spread(sigma)
    assert low <= found <= high
    assert not low <= found / 4 <= high


def test_units_are_asked_about_one_by_one() -> None:
    """A model that looks at its whole batch sees one record: nobody's answer depends on others."""

    class Crowd(Sign):
        def forward(self, x: Tensor) -> Tensor:
            return (x - x.mean(0)) @ self.turn

    values = [3.0, 1.0, -2.0]
    evaluator = vault().evaluator(data=held(values), evaluations=1, **SPEND)
    assert evaluator._counted(Crowd()) == 0


def test_what_cannot_be_asked_is_refused_before_a_row_is_read() -> None:
    evaluator = vault().evaluator(data=held([1.0]), evaluations=1, **SPEND)
    with pytest.raises(RuntimeError):
        evaluator.ask(nn.Linear(3, 2))
    assert evaluator.left == 1
    with pytest.raises(InvalidInput, match="delta"):
        vault().evaluator(data=held([1.0]), evaluations=1, epsilon=1, delta=0)
    with pytest.raises(InvalidInput, match="Units"):
        Evaluator(vault()._stores["learning"]._sessions, data=[1.0], evaluations=1, epsilon=1, delta=1e-6)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="record or user"):
        vault().evaluator(data=held([1.0], kind="group", times=1), evaluations=1, **SPEND)
    with pytest.raises(Refused):
        vault(PERSONS).evaluator(data=held([1.0]), evaluations=1, **SPEND)  # whose records these are, nobody says


def test_a_failure_while_reading_keeps_the_charge_and_quotes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Units, key: bytes) -> Any:
        raise ValueError("of Ann, row 17")

    monkeypatch.setattr(Units, "laid", broken)
    here = vault()
    data = Units(torch.ones(3, 1), torch.ones(3), n_units=100, name="held out", version="1")
    evaluator = here.evaluator(data=data, evaluations=2, **SPEND)
    with pytest.raises(EngineFailed, match="the charge of ε = 4") as caught:
        evaluator.ask(Sign())
    assert "Ann" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert here.left.epsilon == 16
    assert evaluator.left == 1  # it has taken its place


class Slow(Sign):
    """Gives other threads time to ask while it is asked."""

    def forward(self, x: Tensor) -> Tensor:
        sleep(0.05)
        return super().forward(x)


def test_threads_get_no_answer_that_was_not_paid_for() -> None:
    evaluator = vault().evaluator(data=held([1.0] * 60), evaluations=2, **SPEND)
    start = Barrier(4)

    def ask(_: int) -> Evaluated | Refused:
        start.wait()
        try:
            return evaluator.ask(Slow())
        except Refused as refused:
            return refused

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    told = [one.count for one in found if isinstance(one, Evaluated)]
    assert len(told) == 2
    assert sorted(evaluator.close().values) == sorted(told)


def test_a_model_that_asks_while_it_is_asked_takes_places_as_well() -> None:
    evaluator = vault().evaluator(data=held([1.0] * 60), evaluations=1, **SPEND)
    told: SimpleQueue[Evaluated] = SimpleQueue()  # what a list is given here is taken back

    class Asks(Sign):
        def forward(self, x: Tensor) -> Tensor:
            if told.empty():
                told.put(evaluator.ask(Sign()))
            return super().forward(x)

    with pytest.raises(Refused, match="1 evaluations were declared"):
        evaluator.ask(Asks())
    assert evaluator.close().values == (told.get().count,)


def test_nothing_is_closed_while_a_question_is_under_way() -> None:
    evaluator = vault().evaluator(data=held([1.0] * 60), evaluations=1, **SPEND)
    calls: SimpleQueue[Refused] = SimpleQueue()

    class Closes(Sign):
        def forward(self, x: Tensor) -> Tensor:
            if not evaluator.left:  # the place is taken: rows are being read
                with pytest.raises(Refused, match="under way") as caught:
                    evaluator.close()
                calls.put(caught.value)
            return super().forward(x)

    told = evaluator.ask(Closes())
    assert not calls.empty()
    assert evaluator.close().values == (told.count,)


@pytest.mark.parametrize("fails", [True, False])
def test_of_questions_at_once_one_tells_that_the_engine_failed(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = vault().evaluator(data=held([1.0] * 60), evaluations=2, **SPEND)

    def meanwhile(self: Evaluator, model: Any) -> int:
        assert self._gate.fail(self._opened)  # that of another evaluator of the same data
        if fails:
            raise SystemExit("row 4321")
        return 60

    monkeypatch.setattr(Evaluator, "_exact", meanwhile)
    with pytest.raises(Refused, match="this charge is settled, or its dataset was closed; nothing was released"):
        evaluator.ask(Sign())


def test_an_evaluator_is_not_copied() -> None:
    evaluator = vault().evaluator(data=held([1.0] * 60), evaluations=1, **SPEND)
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(Refused, match="not copied"):
            way(evaluator)


def test_a_forked_evaluator_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = vault().evaluator(data=held([1.0] * 60), evaluations=1, **SPEND)
    here = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: here + 1)
    for use in (lambda: evaluator.ask(Sign()), evaluator.close):
        with pytest.raises(Refused, match="another process"):
            use()
    monkeypatch.undo()
    evaluator.ask(Sign())


def test_the_model_of_the_caller_is_left_as_it_was() -> None:
    """Of its modules one is held in evaluation mode by the caller, and one counts what it sees."""

    class Counts(nn.Module):
        seen = 0

        def forward(self, x: Tensor) -> Tensor:
            self.seen += 1
            return x

    model = nn.Sequential(Sign(), nn.Dropout(), Counts())
    model.train()
    model[1].eval()
    evaluator = vault().evaluator(data=held([1.0] * 60), evaluations=1, **SPEND)
    evaluator.ask(model)
    assert [one.training for one in model] == [True, False, True]
    assert model[2].seen == 0


class Scripted:
    """An evaluator that was told what to say."""

    def __init__(self, counts: list[int]) -> None:
        self.counts = counts

    @property
    def left(self) -> int:
        return len(self.counts)

    def ask(self, model: nn.Module) -> Evaluated:
        return Evaluated(count=self.counts.pop(0), n_units=100, margin=1)


@pytest.mark.parametrize(
    ("counts", "ends", "best"),
    [([5, 7, 6, 7], 4, 2), ([5, 4, 3], 3, 1), ([1, 2, 3, 4, 5, 5], None, 5), ([5, 5, 5], 3, 1)],
)
def test_a_run_ends_when_nothing_rose_for_a_while(counts: list[int], ends: int | None, best: int) -> None:
    stop = EarlyStop(Scripted(list(counts)), Sign(), patience=2)  # type: ignore[arg-type]
    found = None
    for step in range(1, 9):
        if stop(step, {"turn": torch.tensor([[float(step)]])}):
            found = step
            break
    assert found == ends
    assert stop.best is not None
    assert float(stop.best["turn"]) == best
    assert [one.count for _, one in stop.told] == counts[: ends or len(counts)]


@pytest.mark.long
def test_training_can_be_watched_and_ended_early() -> None:
    here, made = vault(), torch.Generator().manual_seed(2)
    x = torch.randn((200, 2), generator=made)
    y = (x[:, 0] > 0).long()
    model = nn.Linear(2, 2)
    units = {"n_units": 200, "version": "1"}
    evaluator = here.evaluator(data=Units(x, y, name="held out", **units), evaluations=5, **SPEND)  # type: ignore[arg-type]
    stop = EarlyStop(evaluator, model, patience=1)
    trainer = here.trainer(model, nn.functional.cross_entropy, data=Units(x, y, name="visits", **units))  # type: ignore[arg-type]
    trained = trainer.fit(steps=20, batch=200, every=2, epsilon=8, delta=1e-6, callback=stop)
    done = trained.release.statement.query.done  # type: ignore[attr-defined]
    assert 1 <= len(stop.told) <= 5
    assert done == (stop.told[-1][0] if len(stop.told) < 5 else done)
    assert here.left.epsilon == 20 - 4 - 8  # the run costs what it was charged, however early it ended
