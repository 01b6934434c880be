"""Runs of every course go on from their file as if nothing had happened: sums, clips, averages and masks included."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.signature import SigningKey
from sfumato.vault import Vault
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from sfumato.learning import Units, weights_digest  # noqa: E402
from sfumato.learning.adaptive import AdaptiveClip  # noqa: E402
from sfumato.learning.averaging import Average  # noqa: E402
from sfumato.learning.correlated import Correlated  # noqa: E402
from sfumato.learning.multiplicity import Multiplied  # noqa: E402
from sfumato.learning.run import Run  # noqa: E402
from tests.learning.learner import model_of, rows_of  # noqa: E402
from tests.learning.words import TestWords  # noqa: E402

KEY = SigningKey.new()  # the same for both runs: which rows of a person count depends on it
USER, RECORD = sf.user("id", relation="add/remove"), sf.record(relation="add/remove")


def turned(row: Tensor, draws: Tensor) -> Tensor:
    return torch.where(draws[0] < 0.5, row, -row)


COURSES: dict[str, dict[str, Any]] = {
    "sampled": {},
    "adaptive": {"noise": AdaptiveClip(noise=Fraction(20))},
    "correlated": {"noise": Correlated(bands=3)},
    "augmented": {"augmentations": Multiplied(turned, augmentations=3)},
    "users": {"unit": USER},
}


class Gone(BaseException):
    """The process is gone."""


def fitted(course: str, state: Path, monkeypatch: pytest.MonkeyPatch, last: int) -> tuple[Any, Average]:
    """A run that is interrupted after so many steps and resumed by another trainer of the vault."""
    said = dict(COURSES[course])
    unit, copies = said.pop("unit", RECORD), said.pop("augmentations", None)
    vault = Vault(unit=unit, budget=sf.Budget(epsilon=9, delta=1e-6), name="clinic", key=KEY)
    inputs, targets = rows_of()
    ids: dict[str, Any] = {"ids": [row % 20 for row in range(60)], "max_records_per_unit": 2} if unit is USER else {}
    number = 20 if ids else 60

    def fit(*, resume: bool) -> tuple[Any, Average]:
        data = Units(inputs, targets, n_units=number, name="visits", version="1", **ids)
        trainer = vault.trainer(model_of(), nn.functional.cross_entropy, data=data, augmentations=copies)
        trainer._words = TestWords
        average = Average(decay=0.5)
        settings: dict[str, Any] = {"steps": 7, "batch": number // 4, "every": 2, "optimizer": torch.optim.Adam}
        found = trainer.fit(
            epsilon=2, delta=1e-7, lr=0.1, checkpoint=state, resume=resume, average=average, **settings, **said
        )
        return found, average

    if not last:
        return fit(resume=False)
    made, summed = 0, Run._summed

    def counted(self: Run) -> Tensor:
        nonlocal made
        if made == last:
            raise Gone
        made += 1
        return summed(self)

    with monkeypatch.context() as patched:
        patched.setattr(Run, "_summed", counted)
        with pytest.raises(Gone):
            fit(resume=False)
    return fit(resume=True)


@pytest.mark.few(1)
@pytest.mark.parametrize("course", COURSES)
def test_a_resumed_run_is_an_uninterrupted_one(course: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, mean = fitted(course, tmp_path / "whole", monkeypatch, 0)
    again, resumed_mean = fitted(course, tmp_path / "again", monkeypatch, 5)
    assert weights_digest(again.model) == weights_digest(whole.model)
    assert again.curve == whole.curve
    assert resumed_mean.steps == mean.steps == 7
    assert all(torch.equal(one, mean.weights[name]) for name, one in resumed_mean.weights.items())


@pytest.mark.few(1)
@pytest.mark.parametrize("course", COURSES)
def test_the_length_of_a_state_tells_not_how_many_units_there_are(course: str, tmp_path: Path) -> None:
    said = dict(COURSES[course])
    unit, copies = said.pop("unit", RECORD), said.pop("augmentations", None)
    left = set()
    for count in (1, 57, 1000):
        vault = Vault(unit=unit, budget=sf.Budget(epsilon=9, delta=1e-6), name="clinic")
        inputs, targets = (torch.cat([part] * 17)[:count] for part in rows_of())
        ids: dict[str, Any] = {"ids": list(range(count)), "max_records_per_unit": 2} if unit is USER else {}
        data = Units(inputs, targets, n_units=60, name="visits", version="1", **ids)
        trainer = vault.trainer(model_of(), nn.functional.cross_entropy, data=data, augmentations=copies)
        home = tmp_path / str(count)
        home.mkdir()
        trainer.fit(steps=2, batch=15, epsilon=2, delta=1e-7, checkpoint=home / "state", **said)
        left.add(tuple((file.name, file.stat().st_size) for file in sorted(home.iterdir())))
    assert len(left) == 1
