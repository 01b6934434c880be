"""A search in its vault: one charge, one model, and nothing that tells how many runs counted or how others did."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.query import Dataset
from sfumato.learning import BestOfRuns, Training, Tuning
from sfumato.noise.words import WordBits
from sfumato.reports.verify import load, verify
from sfumato.vault import Vault
from tests.learning.words import TestWords
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from sfumato.learning import TunedModel, Tuner, Units, tuner, weights_digest  # noqa: E402
from sfumato.learning.hidden_parts import HiddenSplit, PartCourse  # noqa: E402
from sfumato.learning.run import Run  # noqa: E402

SPEND: dict[str, Any] = {"epsilon": 4, "delta": 1e-7}
SMALL: dict[str, Any] = {"steps": 3, "batch": 160, "expected_runs": 2, "most": 4}
CANDIDATES = ({"lr": 0.5}, {"lr": 2.0, "clip": 2}, {"lr": 0.1, "steps": 4})


def vault(**said: Any) -> Vault:
    facts: dict[str, Any] = {
        "unit": sf.record(relation="add/remove"),
        "budget": sf.Budget(epsilon=8, delta=1e-6),
        "name": "clinic",
    }
    return Vault(**{**facts, **said})


def rows(number: int = 200) -> tuple[Tensor, Tensor]:
    inputs = torch.sin(torch.arange(number * 3.0) * 1.7).reshape(number, 3)
    return inputs, (inputs.sum(1) > 0).long()


def units(**said: Any) -> Units:
    inputs, targets = rows()
    return Units(inputs, targets, **{"n_units": 200, "name": "visits", "version": "1", **said})


def search(home: Vault, candidates: Any = CANDIDATES, **said: Any) -> Tuner:
    said = {"data": units(), **said}
    return home.tuning(lambda: nn.Linear(3, 2), nn.functional.cross_entropy, candidates=candidates, **said)


@pytest.fixture(scope="module")
def ended() -> tuple[Vault, TunedModel]:
    home = vault()
    return home, search(home).fit(**SMALL, **SPEND)


def test_a_search_is_one_charge_one_entry_and_one_certificate(ended: tuple[Vault, TunedModel], tmp_path: Path) -> None:
    home, found = ended
    said = found.release.statement
    assert home.spent == sf.Budget(**SPEND) == said.spend
    assert (said.account.releases, said.values, said.found) == (1, (), ())
    assert said.query.weights == weights_digest(found.model)
    assert found.settings["lr"] == CANDIDATES[said.query.chosen - 1]["lr"]
    assert (found.score, found.n_units, found.epsilon) == (said.query.score, 40, 4)
    assert said.event == said.mechanism.loss(said.sensitivity)
    assert len(said.event.events) == 3  # 3 and 4 steps, and the score
    assert said.query.candidates[1].clip == 2
    assert [run.steps for run in said.mechanism.runs] == [3, 3, 4]
    assert verify(found.release.certificate.document, key=home.public_key).authenticated
    found.release.certificate.save(tmp_path / "search.json")
    assert load(tmp_path / "search.json").statement == said


def test_the_words_say_what_was_chosen_and_what_stays_secret(ended: tuple[Vault, TunedModel]) -> None:
    _, found = ended
    for language, secret in (("en", "kept secret"), ("zh-Hans", "保密")):
        for reader in ("public", "patient", "clinician", "manager", "board"):
            text = found.release.explain(language, reader)
            assert "{" not in text
        assert secret in found.release.explain(language, "board")
        assert str(found.score) in found.release.explain(language, "board")


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("mechanism", {"most": 3}),
        ("mechanism", {"gamma": "9/10"}),
        ("mechanism", {"eta": "0/1"}),
        ("event", {"most": 3}),
        ("query", {"chosen": 0}),
        ("query", {"weights": ""}),
        ("query", {"held_out": "1/1"}),
    ],
)
def test_a_changed_certificate_does_not_verify(ended: tuple[Vault, TunedModel], part: str, change: Any) -> None:
    document = ended[1].release.certificate.document
    document["statement"][part].update(change)
    outcome = verify(document)
    assert any(finding.field != f"statement.{part}.{next(iter(change))}" for finding in outcome.findings)


def test_less_noise_than_the_search_needs_is_not_certified(ended: tuple[Vault, TunedModel]) -> None:
    """Noise that one run alone would need keeps nothing for the best of several."""
    said = ended[1].release.statement
    alone = BestOfRuns.calibrated(
        said.query.candidates, sf.Budget(**SPEND), eta=Fraction(1), gamma=Fraction(1, 2), most=1
    )
    twin = BestOfRuns(runs=alone.runs, score=alone.score, eta=Fraction(1), gamma=Fraction(1, 2), most=4)
    from sfumato.accounting.basic import guarantee_of

    guarantee_of(said.mechanism.loss(said.sensitivity), sf.Budget(**SPEND))
    with pytest.raises(errors.Refused, match="does not keep"):
        guarantee_of(twin.loss(said.sensitivity), sf.Budget(**SPEND))
    assert all(more.multiplier > less.multiplier for more, less in zip(said.mechanism.runs, alone.runs, strict=True))


def test_nothing_is_read_before_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    home = vault(budget=sf.Budget(epsilon=1, delta=1e-6))
    read: list[str] = []
    laid = Units.laid
    monkeypatch.setattr(Units, "laid", lambda self, key: read.append(str(home.spent.epsilon)) or laid(self, key))
    with pytest.raises(errors.BudgetExceeded):
        search(home).fit(**SMALL, **SPEND)
    assert read == []
    assert home.spent.epsilon == 0
    search(home, [{"lr": 1.0}]).fit(**SMALL, epsilon=1, delta=1e-7)
    assert read == ["1"]  # once, for all runs and all scores


def watched(monkeypatch: pytest.MonkeyPatch, counted: int) -> tuple[list[str], list[int], TunedModel]:
    """What a search does that is made to count so many of its four runs: its steps, its scores, what it hands over."""
    steps: list[str] = []
    scores: list[int] = []
    begun, score = Run.__init__, tuner._Scorer.score

    def begin(self: Run, *given: Any, **said: Any) -> None:
        steps.append("run")
        begun(self, *given, **said)

    def scored(self: Any, model: nn.Module) -> int:
        steps.append("score")
        scores.append(score(self, model))
        return scores[-1]

    monkeypatch.setattr(Run, "__init__", begin)
    monkeypatch.setattr(tuner._Scorer, "score", scored)
    monkeypatch.setattr(tuner, "sample_run_number", lambda *said: counted)
    return steps, scores, search(vault()).fit(**SMALL, **SPEND)


@pytest.mark.parametrize("counted", [1, 2, 4])
def test_all_runs_are_made_and_the_best_of_those_that_count_is_released(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], counted: int, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    steps, scores, found = watched(monkeypatch, counted)
    assert steps == ["run", "score"] * 4  # whatever the hidden number is
    assert found.score == max(scores[:counted])
    assert found.release.statement.account.releases == 1
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_no_field_of_a_release_depends_on_how_many_runs_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """With known draws, one run and four that count differ in what was found, its time and its names alone."""
    from sfumato.core.documents import encode

    monkeypatch.setattr(Tuner, "_words", TestWords)
    said = []
    for counted in (1, 4):
        with monkeypatch.context() as patched:
            _, _, found = watched(patched, counted)
        written = encode(found.release.statement)
        for name in ("identifier", "issued", "account"):
            del written[name]
        for name in ("chosen", "score", "weights"):
            del written["query"][name]
        said.append(written)
    assert said[0] == said[1]


def test_a_run_whose_optimizer_fails_scores_lowest_and_nobody_hears_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    learn = Run._learn
    made: list[int] = []

    def failing(self: Run, noisy: Tensor) -> None:
        made.append(self._run.steps)
        if self._run.steps == 4:
            raise RuntimeError("a secret")
        learn(self, noisy)

    monkeypatch.setattr(Run, "_learn", failing)
    monkeypatch.setattr(tuner, "sample_run_number", lambda *said: 4)
    draws = iter([2, 0, 2, 1])

    class Chosen(WordBits):
        """The tuner's choices alone: what others draw below a bound, ties of a sample among them, stays chance."""

        def below(self, bound: int) -> int:
            return next(draws)

    monkeypatch.setattr(tuner, "WordBits", Chosen)
    found = search(vault()).fit(**SMALL, **SPEND)
    assert made.count(4) == 2  # both began, and ended at their first step
    assert found.release.statement.query.chosen in (1, 2)
    draws = iter([2, 2, 2, 2])
    home = vault()
    found = search(home).fit(**SMALL, **SPEND)
    assert (found.score, home.spent.epsilon) == (tuner.LOWEST, 4)  # all failed: a release all the same


def test_who_is_held_out_is_not_trained_on_and_the_other_way_round(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[int]] = []
    trained: set[int] = set()
    places, held = PartCourse.places, tuner._Scorer._asked

    def drawn(self: PartCourse, number: int, step: int) -> Any:
        found = places(self, number, step)
        trained.update(found.tolist())
        return found

    def judged(self: Any, number: int) -> Tensor:
        asked.append(held(self, number).tolist())
        return held(self, number)

    monkeypatch.setattr(PartCourse, "places", drawn)
    monkeypatch.setattr(tuner._Scorer, "_asked", judged)
    search(vault(), [{"lr": 1.0}]).fit(**{**SMALL, "batch": 160}, **SPEND)
    assert len(asked) == 4
    assert all(each == asked[0] for each in asked)
    assert trained == set(range(200)) - set(asked[0])  # all others, as each step takes all of them here


def test_coins_are_tossed_once_and_each_unit_has_its_own() -> None:
    split = HiddenSplit(Fraction(1, 3), TestWords())
    held, others = split.held(60), split.others(60)
    assert sorted([*held, *others]) == list(range(60))
    assert np.array_equal(split.held(60), held)
    with pytest.raises(errors.Refused, match="not the units"):
        split.held(61)
    longer = HiddenSplit(Fraction(1, 3), TestWords()).held(61)
    assert np.array_equal(longer[longer < 60], held)  # one unit more moves no coin of another


def test_persons_are_held_out_with_all_of_their_rows() -> None:
    home = vault(unit=sf.user("id", relation="add/remove"))
    ids = [f"p{place // 2}" for place in range(200)]
    data = units(ids=ids, max_records_per_unit=2, n_units=100)
    found = search(home, [{"lr": 1.0}], data=data).fit(**{**SMALL, "batch": 80}, **SPEND)
    said = found.release.statement
    assert said.limit == sf.Limit(groups=1, rows_per_group=2)
    assert verify(found.release.certificate.document).consistent


def test_what_cannot_be_searched_is_refused_before_anything_is_spent() -> None:
    home = vault()
    for said, words in (
        ({"epsilon": 4, "delta": 0}, "delta above 0"),
        ({**SPEND, "steps": None}, "epochs"),
        ({**SPEND, "epochs": 1}, "one of them"),
        ({**SPEND, "expected_runs": 1}, "above 1"),
        ({**SPEND, "most": 10**5}, "most"),
        ({**SPEND, "width": 3}, "no setting of training"),
        ({**SPEND, "lr": float("nan")}, "lr"),
    ):
        with pytest.raises(errors.SfumatoError, match=words):
            search(home, [{"clip": 1}]).fit(**{**SMALL, **said})
    with pytest.raises(errors.Refused, match="whoever is protected must be in one"):
        search(vault(unit=sf.user("id", relation="add/remove")), data=units(ids=list(range(200)), times=2))
    with pytest.raises(errors.Refused, match="relation is replace"):
        search(vault(unit=sf.record(relation="replace"))).fit(**{**SMALL, "batch": 20}, **SPEND)
    for candidates in ([], [0.1]):
        with pytest.raises(errors.InvalidInput, match="list of dicts"):
            search(home, candidates)
    with pytest.raises(errors.InvalidInput, match="makes a model"):
        home.tuning(nn.Linear(3, 2), nn.functional.cross_entropy, data=units(), candidates=[{}])
    with pytest.raises(errors.InvalidInput, match="nobody to train on"):
        search(home, held_out=1)

    class Listening(torch.optim.SGD):
        pass

    with pytest.raises(errors.Refused, match="must not be heard"):
        search(home, [{"lr": 0.1, "optimizer": Listening}]).fit(**SMALL, **SPEND)
    assert home.spent.epsilon == 0


def test_models_are_built_with_the_settings_that_are_not_of_training() -> None:
    home = vault()
    made = home.tuning(
        lambda width: nn.Sequential(nn.Linear(3, width), nn.Tanh(), nn.Linear(width, 2)),
        nn.functional.cross_entropy,
        data=units(),
        candidates=[{"width": 2, "lr": 1.0}, {"width": 5, "lr": 1.0}],
    )
    plan = made.plan(epochs=2, batch=80, expected_runs=10, eta=0, **SPEND)
    assert [run.parameters for run in plan.query.candidates] == [14, 32]
    assert {run.steps for run in plan.query.candidates} == {4}
    assert {run.rate for run in plan.query.candidates} == {Fraction(1, 2)}
    assert plan.mechanism.most == 40
    assert 6.9 < plan.mechanism.expected < 7.1  # 10 if there were no largest number
    assert home.spent.epsilon == 0
    assert "2 candidates" in repr(made)


def test_a_declaration_holds_together() -> None:
    data = Dataset(name="visits", edition="1")
    facts: dict[str, Any] = {"dataset": data, "units": "record", "times": 1, "records": 1, "parameters": 7}
    run = Training(clip=Fraction(1), number=80, rate=Fraction(1), steps=10, **facts)
    said: dict[str, Any] = {"dataset": data, "number": 100, "held_out": Fraction(1, 5)}
    whole = Tuning(candidates=(run,), **said)
    other = Dataset(name="other", edition="1")
    for wrong in (
        {"candidates": ()},
        {"held_out": Fraction(1)},
        {"held_out": Fraction(0)},
        {"chosen": 2},
        {"weights": "x"},
        {"dataset": other},
        {"candidates": (run, Training(clip=Fraction(1), number=80, rate=Fraction(1), steps=10, done=3, **facts))},
        {"candidates": (Training(clip=Fraction(1), number=80, rate=Fraction(1), steps=10, **{**facts, "times": 2}),)},
    ):
        with pytest.raises(errors.SfumatoError):
            Tuning(**{**said, "candidates": (run,), **wrong})
    mechanism = BestOfRuns.calibrated((run,), sf.Budget(**SPEND), eta=Fraction(1), gamma=Fraction(1, 2), most=2)
    unit = sf.record(relation="add/remove")
    assert whole.mismatch(mechanism, unit) is None
    assert "one run for each" in str(Tuning(candidates=(run, run), **said).mismatch(mechanism, unit))
    assert "chosen a candidate" in str(whole.misfit(mechanism, unit, ()))
    assert "must be one of" in str(whole.mismatch(mechanism.score, unit))
