"""Words, pages and pictures of trained models: on whom, what a person can do, what is free and what not promised."""

import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import accounting
from sfumato.core.description import Form
from sfumato.core.events import Repeated
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, Unsupported
from sfumato.learning import AdaptiveClip, Correlated, Units
from sfumato.learning.plots.training_curve import training
from sfumato.reports.particulars import particulars
from sfumato.reports.plots import Trials, accuracies, draw
from sfumato.reports.words import AUDIENCES, Facts
from tests.parts import package

package("torch")
package("altair")

import torch  # noqa: E402
from torch import nn  # noqa: E402

RECORDS, PERSONS = sf.record(relation="add/remove"), sf.user("id", relation="add/remove")
ROWS = 60


def vault(unit: Any) -> sf.Vault:
    return sf.Vault(unit=unit, budget=sf.Budget(epsilon=20, delta=1e-6), name="trial")


def run(unit: Any = RECORDS, units: dict[str, Any] | None = None, **fit: Any) -> Release:
    x = torch.linspace(-1, 1, ROWS)[:, None]
    data = Units(x, (x[:, 0] > 0).long(), name="visits", version="1", **{"n_units": ROWS, **(units or {})})
    trainer = vault(unit).trainer(nn.Linear(1, 2), nn.functional.cross_entropy, data=data, clip=3)
    said = {"epsilon": 2, "delta": 1e-7, "steps": 6, "batch": data.n_units, **fit}
    return trainer.fit(**said).release


IDS = [f"p{row // 2}" for row in range(ROWS)]
MADE: dict[str, tuple[Any, str]] = {
    "all rows": (run, "A model with 4 weights, trained on “visits” (version 1) in 6 steps, each on all of 60 rows."),
    "sampled": (
        lambda: run(batch=15),
        "A model with 4 weights, trained on “visits” (version 1) in 6 steps, each on about 15 of 60 rows.",
    ),
    "persons": (
        lambda: run(PERSONS, {"ids": IDS, "max_records_per_unit": 2, "n_units": 30}),
        "A model with 4 weights, trained on “visits” (version 1) in 6 steps, each on all of 30 persons.",
    ),
    "several rows": (lambda: run(PERSONS, {"ids": IDS, "times": 2}), "A model with 4 weights, trained on"),
    "adaptive": (lambda: run(noise=AdaptiveClip(noise=Fraction(9))), "A model with 4 weights, trained on"),
    "cycle": (lambda: run(noise=Correlated(bands=4), batch=20), "A model with 4 weights, trained on"),
    "ended early": (lambda: run(every=2, callback=lambda step, weights: True), "A model with 4 weights, trained on"),
}


@cache
def made(name: str) -> Release:
    return MADE[name][0]()  # type: ignore[no-any-return]


def digest(name: str) -> str:
    return made(name).statement.query.weights[:16]  # type: ignore[attr-defined, no-any-return]


@pytest.mark.few(10)
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("audience", AUDIENCES)
def test_every_reader_is_told_what_was_trained_in_both_languages(name: str, audience: str) -> None:
    english, chinese = (made(name).explain(language, audience) for language in ("en", "zh"))
    assert english.startswith(MADE[name][1])
    assert "{" not in english + chinese
    assert set(re.findall(r"[A-Za-z]{2,}", chinese)) - {"visits", "trial", "SHA"} <= set(
        re.findall(r"[a-f]{2,}", digest(name))
    )


@pytest.mark.few(10)
@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("audience", AUDIENCES)
def test_every_reader_is_told_what_is_free_and_what_is_not_promised(name: str, audience: str) -> None:
    english, chinese = (made(name).explain(language, audience) for language in ("en", "zh"))
    assert "queried any number of times" in english
    assert "不限次数地向它提问" in chinese
    assert "The privacy guarantee does not say that the model is right or fair" in english
    assert "隐私保证不涉及模型是否正确、是否公平" in chinese
    assert "not the chance that something goes wrong" in english
    assert "不是出错的概率" in chinese
    assert "was charged once, before anything was read" in english
    assert "choosing the best of several models, is charged each time" in english
    assert "Unusual cases would change the model most" in english
    assert "不寻常的情况影响最大" in chinese
    assert "there is no margin to state" in english
    assert "±" not in english


@pytest.mark.parametrize("audience", AUDIENCES)
def test_only_the_board_is_told_the_method(audience: str) -> None:
    for name in MADE:
        english = made(name).explain("en", audience)
        assert ("Gaussian" in english) is (audience == "board")
        assert ("gradient" in english) is (audience == "board")
    board = {name: made(name).explain("en", "board") for name in MADE}
    assert "with a chance of 25 in 100" in board["sampled"]
    assert "every unit counted once in 3 steps" in board["cycle"]
    assert "followed a count" in board["adaptive"]
    assert "followed a count" not in board["all rows"]
    assert all(digest(name) in text for name, text in board.items())


def test_what_counts_of_a_person_is_told() -> None:
    for audience in AUDIENCES:
        texts = {name: made(name).explain("en", audience) for name in MADE}
        assert "at most 2 rows count, and all of them together change the model no more than one" in texts["persons"]
        assert "at most 2 rows count, each clipped separately" in texts["several rows"]
        assert "clipped separately" not in texts["all rows"]
        assert not re.search(r"groups? counts?", texts["persons"])


def test_a_run_that_ended_early_says_so() -> None:
    for audience in AUDIENCES:
        assert "declared for 6 steps and ended after 2 steps" in made("ended early").explain("en", audience)
        assert "ended after" not in made("all rows").explain("en", audience)


def test_the_facts_are_those_of_the_statement() -> None:
    facts = Facts.of(made("sampled"))
    assert facts.description.form is Form.MODEL
    told = dict(particulars(made("persons"), "en"))
    assert told["noise"].startswith("Gaussian, ")
    assert told["sensitivity"] == "one protected unit moves the sum of a step by at most 3 in length"
    assert told["margin"] == "none: the noise is in the weights"
    assert "correlated over 6 steps" in dict(particulars(made("cycle"), "en"))["noise"]
    with pytest.raises(Unsupported, match="not a training run"):
        made("sampled").statement.query.describe(looked().statement)


@cache
def looked() -> Release:
    x = torch.linspace(-1, 1, ROWS)[:, None]
    data = Units(x, (x[:, 0] > 0).long(), name="held out", version="1", n_units=ROWS)
    evaluator = vault(RECORDS).evaluator(data=data, evaluations=3, epsilon=8, delta=1e-7)
    evaluator.ask(nn.Linear(1, 2))
    evaluator.ask(nn.Linear(1, 2))
    return evaluator.close()


@pytest.mark.parametrize("audience", AUDIENCES)
def test_looks_at_held_out_units_are_explained(audience: str) -> None:
    english, chinese = (looked().explain(language, audience) for language in ("en", "zh"))
    assert english.startswith("A curve of 2 points: the share of “held out” (version 1) that a model gets right, step")
    assert "模型对数据集“held out”（版本 1）判断正确的比例" in chinese
    assert "±" in english


def test_nothing_that_was_told_is_nothing_to_explain() -> None:
    x = torch.zeros((9, 1))
    data = Units(x, torch.zeros(9), name="held out", version="1", n_units=9)
    release = vault(RECORDS).evaluator(data=data, evaluations=3, epsilon=8, delta=1e-7).close()
    with pytest.raises(Unsupported, match="no model was looked at"):
        release.explain("en")


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["sampled", "adaptive", "cycle", "ended early"])
def test_the_curve_is_the_epsilon_of_the_steps_and_ends_at_the_charge(name: str) -> None:
    release = made(name)
    chart = draw(release).to_dict()
    points = [row for rows in chart["datasets"].values() for row in rows] if "datasets" in chart else []
    rows = points or chart["layer"][1]["data"]["values"]
    curve = {row["step"]: row["epsilon"] for row in rows if "words" not in row}
    steps = sorted(curve)
    assert [curve[step] for step in steps] == sorted(curve.values())
    said = release.statement
    if isinstance(said.event, Repeated):
        for step in (1, 2):
            exact = accounting.epsilon(Repeated(event=said.event.event, times=step), delta=said.spend.delta)
            assert curve[step] == pytest.approx(float(exact), rel=1e-6)
    assert (curve[max(steps)] == 2) is (name != "ended early")


def test_pictures_that_make_no_sense_are_refused() -> None:
    with pytest.raises(Unsupported, match="in its weights"):
        draw(made("all rows"), "noise")
    with pytest.raises(InvalidInput, match="not about a column"):
        draw(made("all rows"), "training", column="accuracy")
    with pytest.raises(InvalidInput, match="not a release of a trained model"):
        training(looked())
    with pytest.raises(InvalidInput, match="every epoch"):
        Trials(name="a", epsilon=(1.0,), runs=((0.5, 0.6),))
    with pytest.raises(InvalidInput, match="one or two"):
        accuracies([], name="digits")


def test_accuracies_are_drawn_as_mean_and_range() -> None:
    trials = Trials(name="a", epsilon=(1.0, 2.0), runs=((0.5, 0.6), (0.7, 0.9)))
    text = str(accuracies([trials], "zh", "dark", name="数字").to_dict())
    assert "'low': 50.0" in text
    assert "'high': 90.0" in text
    assert "'mean': 75.0" in text
    assert "2 次训练" in text


@pytest.mark.long
def test_a_model_has_a_page(tmp_path: Path) -> None:
    made("cycle").report(tmp_path / "run.html")
    text = (tmp_path / "run.html").read_text("utf-8")
    assert ">Model</h2>" in text
    assert ">模型</h2>" in text
    assert "A model that was trained on private data" in text
    assert "queried any number of times" in text
    assert "trained weights" in text
    assert "<table" not in text
    assert "<p>ε = 2" in made("cycle")._repr_html_()
