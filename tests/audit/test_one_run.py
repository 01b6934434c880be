"""The audit of a training run by its canaries, through vaults, charges and certificates."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import audit, errors
from sfumato.audit.one_run import claimed_curve, right_guesses
from sfumato.audit.one_run_bounds import GaussianCurve, PointCurve
from sfumato.learning.noisy_sums import NoisySums
from sfumato.vault import Vault
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from sfumato.learning import Canaries, Trained, Trainer, Units  # noqa: E402
from tests.learning.words import TestWords  # noqa: E402

DELTA = "1/100000"


def loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Its gradient is the row itself, at its weights, times the target."""
    return (outputs[:, 0] * targets).mean()


class Axes(nn.Module):
    """A weight for each number; a unit says which one it pulls at."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.table = nn.Embedding(number, 1)
        nn.init.zeros_(self.table.weight)

    def forward(self, place: Tensor) -> Tensor:
        """The weight that a unit pulls at."""
        return self.table(place)


def axes(number: int, *, rate: float = 1.0, pull: float = 2.0, **said: Any) -> Trained:
    """One step of a cheap run: canary i pulls at weight i, and real units at the last one."""
    vault = Vault(
        unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9, delta=DELTA), name="cheap", population=9999
    )
    data = Units(torch.full((100,), number), torch.ones(100), n_units=100, name="visits", version="1")
    canaries = Canaries(torch.arange(number), torch.full((number,), pull), **said)
    trainer = vault.trainer(Axes(number + 1), loss, data=data, canaries=canaries)
    settings = {"epsilon": 4, "delta": DELTA, "optimizer": torch.optim.SGD, "lr": 1.0, "progress": False}
    return trainer.fit(steps=1, batch=round(100 * rate), **settings)


@pytest.fixture(scope="module")
def done() -> Trained:
    """A correct run with 400 canaries; coins and noise are a test's, so that it is the same in each run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_words", TestWords)
        coins = np.random.default_rng(5).integers(0, 2, 400).astype(bool)
        patch.setattr("sfumato.learning.sealed_canaries._fair_coins", lambda number: coins[:number])
        return axes(400)


def test_a_correct_run_is_audited_from_its_certificate_and_what_was_sealed(done: Trained) -> None:
    found = audit.trained(done)
    assert (found.canaries, found.guesses, found.epsilon, found.score) == (400, 40, 4.0, "gradient")
    assert found.inside == int(done.canaries.sealed.coins.sum())
    assert 0 < found.by_counting < found.by_curve < 4.5
    assert found.p_curve > 1e-3
    kept = json.loads(json.dumps(audit.canary_evidence(done)))
    assert audit.judged_evidence(done.release.statement, kept).plain() == found.plain()
    for language, words in (("en", "400 canaries"), ("zh-Hans", "虚构单位 400 个")):
        assert words in found.explain(language)
        assert "{" not in found.explain(language)


def test_nothing_can_be_chosen_after_looking(done: Trained) -> None:
    """Coins, confidence, score and rows are those of the certificate; the number of guesses is no argument at all."""
    kept = audit.canary_evidence(done)
    flipped = "".join("10"[int(one)] for one in str(kept["coins"]))
    for changed in (
        {"coins": flipped},
        {"coins": str(kept["coins"])[:-1], "scores": list(kept["scores"])[:-1]},  # type: ignore[call-overload]
        {"confidence": "1/2"},
        {"score": "loss"},
        {"salt": "00"},
    ):
        with pytest.raises(errors.InvalidInput, match="sealed before"):
            audit.judged_evidence(done.release.statement, {**kept, **changed})
    for changed in ({"scores": [0.0]}, {"scores": [float("nan")] * 400}):
        with pytest.raises(errors.InvalidInput, match="finite score"):
            audit.judged_evidence(done.release.statement, {**kept, **changed})
    with pytest.raises(errors.InvalidInput, match="not the evidence"):
        audit.judged_evidence(done.release.statement, {"coins": "1"})
    with pytest.raises(TypeError):
        audit.trained(done, guesses=10)  # type: ignore[call-arg]


def test_a_model_that_was_changed_and_a_run_without_canaries_are_refused(done: Trained) -> None:
    kept = done.model.table.weight.detach().clone()
    with torch.no_grad():
        done.model.table.weight[0] += 1
    with pytest.raises(errors.InvalidInput, match="changed"):
        audit.trained(done)
    with torch.no_grad():
        done.model.table.weight.copy_(kept)
    assert audit.trained(done).canaries == 400
    vault = Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9, delta="1/1000000"), name="plain")
    data = Units(torch.zeros(9, 2), torch.zeros(9), n_units=9, name="visits", version="1")
    plain = vault.trainer(nn.Linear(2, 1), loss, data=data).fit(steps=1, batch=9, epsilon=1, delta=1e-7, progress=False)
    with pytest.raises(errors.InvalidInput, match="no canaries"):
        audit.trained(plain)


def test_guesses_are_the_largest_and_the_smallest_scores_whatever_the_ties() -> None:
    coins = np.array([True, True, False, False, True, False])
    assert right_guesses(np.array([5.0, 4, 3, 2, 1, 0]), coins, 2) == 2
    assert right_guesses(np.array([5.0, 4, 3, 2, 1, 0]), coins, 4) == 3
    assert right_guesses(np.zeros(6), coins, 2) == 0


def test_curves_of_certificates_are_those_of_their_noise(done: Trained) -> None:
    curve = claimed_curve(done.release.statement)
    noise = done.release.statement.mechanism
    assert isinstance(curve, GaussianCurve)
    assert isinstance(noise, NoisySums)
    assert abs(curve.apart * float(noise.multiplier) - 1) < 1e-6
    sampled = claimed_curve(axes(40, rate=0.5).release.statement)
    assert isinstance(sampled, PointCurve)
    epsilon, delta = min(sampled.points, key=lambda point: abs(point[0] - 4))
    assert delta <= 2e-5 or epsilon < 4


def test_the_gap_between_scores_of_sampled_units_is_not_judged() -> None:
    """They are mixtures, not Gaussian: correct runs would be refuted in up to a third of cases."""
    found = audit.trained(axes(40, rate=0.5))
    assert (found.gapped, found.by_gap, found.p_gap, found.refuted_if_gaussian) == (False, 0.0, 1.0, False)
    assert "not judged" in found.explain()
    assert "不按评分差距" in found.explain("zh-Hans")


def test_an_unclipped_unit_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deliberately broken: the engine is made with a clip of 10, and the certificate says 1."""
    from sfumato.learning.engine import Engine

    made = Engine.__init__

    def wide(self: Engine, *args: Any, clip: float, **rest: Any) -> None:
        made(self, *args, clip=10.0, **rest)

    monkeypatch.setattr(Engine, "__init__", wide)
    monkeypatch.setattr("sfumato.learning.course.SampledCourse.clip", 10)
    found = audit.trained(axes(1000, pull=10.0, confidence="0.99"))
    assert found.refuted
    assert "Refuted" in str(found)
    assert "已被推翻" in found.explain("zh-Hans")


def test_the_picture_marks_the_number_of_guesses_that_were_fixed(done: Trained) -> None:
    pytest.importorskip("altair")
    found = audit.trained(done)
    words = {
        "en": ("Audit of one training run", "fixed beforehand", "claimed: ε = "),
        "zh-Hans": ("一次训练的审计", "事先固定", "声明：ε = "),
    }
    for language, (title, fixed, claimed) in words.items():
        drawn = audit.audit_chart(found, language).to_dict()
        assert drawn["title"]["text"] == title
        assert "40" in drawn["title"]["subtitle"][0]
        line, _, rule, dot, *_ = (layer["data"]["values"] for layer in drawn["vconcat"][0]["layer"])
        assert (dot[0]["words"], rule[0]["words"]) == (fixed, f"{claimed}{found.epsilon:g}")
        assert (dot[0]["guesses"], dot[0]["bound"]) in [(row["guesses"], row["bound"]) for row in line]


@pytest.mark.parametrize(
    ("size", "title", "most"), [(3e-5, "score × 100,000", 3.0), (3.0, "score", 3.0), (0.0, "score", 0.0)]
)
def test_scores_of_any_size_have_short_ticks(done: Trained, size: float, title: str, most: float) -> None:
    pytest.importorskip("altair")
    found = audit.trained(done)
    found = replace(found, scores=size * found.scores / abs(found.scores).max())
    axis = audit.audit_chart(found).to_dict()["vconcat"][1]
    assert axis["encoding"]["x"]["axis"]["title"] == title
    assert max(abs(row["score"]) for row in axis["data"]["values"]) <= max(most, 0.5)


@pytest.mark.parametrize("wrong", ["x", None, 1])
def test_a_picture_of_something_else_is_refused_in_words(wrong: object) -> None:
    with pytest.raises(errors.InvalidInput, match=r"such as audit\.trained.*not of .*nothing was drawn"):
        audit.audit_chart(wrong)  # type: ignore[arg-type]
