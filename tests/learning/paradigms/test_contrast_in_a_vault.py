"""S3-04 in a vault: training with in-batch negatives is charged, bounded for any number of pairs, and certified."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.accounting.calibrate import calibrate_sigma
from sfumato.audit.drawn import shrunk
from sfumato.audit.fit import Played, doubt, numbers
from sfumato.core.query import Dataset
from sfumato.core.units import Relation, Unit, record, user
from sfumato.errors import BudgetExceeded, InvalidInput, Refused
from sfumato.laws import RoundedGaussian
from sfumato.learning import TRAINING_QUERIES, ContrastiveTraining, NoisySums
from sfumato.learning.noisy_sums import WIDTH
from sfumato.learning.paradigms.contrastive_training import most_pairs
from sfumato.learning.paradigms.logit_clipping import ClippedLogits
from sfumato.reports.verify import parsed, verify
from sfumato.reports.words import AUDIENCES
from tests import parts

parts.package("torch")
import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from sfumato.learning import Correlated, InBatchContrast, Units  # noqa: E402
from sfumato.learning.paradigms.contrast_trainer import ContrastRun, ContrastTrainer  # noqa: E402

ADDED, SWAPPED = record(relation="add/remove"), record(relation="replace")


def vault(unit: Unit = ADDED, epsilon: float = 100) -> sf.Vault:
    return sf.Vault(unit=unit, budget=sf.Budget(epsilon=epsilon, delta=1e-6), name="trial")


def pairs(number: int, width: int = 4) -> tuple[Tensor, Tensor]:
    made = torch.Generator().manual_seed(number)
    anchors = torch.randn(number, width, generator=made)
    return anchors, anchors + 0.3 * torch.randn(number, width, generator=made)


def declared(number: int, *, n_units: int | None = None, **more: Any) -> Units:
    return Units(*pairs(number), n_units=n_units or number, name="pairs", version="1", **more)


def trainer(held: sf.Vault, data: Units, model: nn.Module | None = None, **other: Any) -> Any:
    model = nn.Linear(4, 3) if model is None else model
    return held.trainer(model, InBatchContrast(model, **{"each": "1/2", **other}), data=data)


RUN = {"epsilon": 5, "delta": 1e-7, "steps": 2, "progress": False}


def query(**other: Any) -> ContrastiveTraining:
    given: dict[str, Any] = {"clip": Fraction(1), "temperature": Fraction(1), "most": 9, "times": 1, **other}
    return ContrastiveTraining(
        dataset=Dataset(name="t", edition="1"),
        units="record",
        records=1,
        number=9,
        rate=Fraction(1),
        steps=2,
        parameters=6,
        both=False,
        **given,
    )


@pytest.mark.claim("S3-04")
@pytest.mark.parametrize("unit", [ADDED, SWAPPED])
@pytest.mark.parametrize("temperature", [Fraction(1, 2), Fraction(1), Fraction(4)])
def test_a_newcomer_who_takes_a_place_moves_further_than_one_who_is_added(unit: Unit, temperature: Fraction) -> None:
    """The adversarial batch of nine: where nine of ten pairs count, one more can exchange one. The bound for those who
    are added would be too small; the one of a replacement is attained."""
    batch, reach = 9, float(1 / temperature)
    logits, slopes = torch.full((batch, batch), -reach).double(), torch.full((batch, batch, 1), -1.0).double()
    logits[:, -1], logits[-1, :], logits[-1, -1] = reach, reach, -reach
    slopes[:, -1], slopes[-1, :], slopes[-1, -1] = 1, 1, -1
    other = slopes.clone()
    other[:, -1] *= -1
    other[-1, :-1] *= -1

    def total(which: Tensor) -> Tensor:
        weights = logits.softmax(1) - torch.eye(batch)
        return torch.einsum("ij,ijd->d", weights, which)

    moved = (total(slopes) - total(other)).norm().item()
    bound = query(temperature=temperature).sensitivity(unit, None).l2
    assert bound is not None
    assert moved == pytest.approx(float(bound.squared) ** 0.5, rel=1e-6)
    assert moved <= float(bound.squared) ** 0.5 * (1 + 1e-12)
    added = ClippedLogits(clip=Fraction(1), temperature=temperature, batch=batch).moved(Relation.ADD_REMOVE)
    assert moved > float(added) * 1.01


@pytest.mark.claim("S3-04")
def test_a_pair_more_moves_the_sum_of_a_whole_step_by_no_more_than_stated() -> None:
    """Through the run itself: sums before noise, with and without one pair, in all orders that one can be drawn in."""
    torch.manual_seed(3)
    model = nn.Linear(4, 3)
    anchors, positives = pairs(7)
    anchors[-1], positives[-1] = -40 * anchors[0], 40 * anchors[0]
    made = InBatchContrast(model, each=1, temperature=1)
    bound = float(query(most=6).reach)
    far = 0.0
    for gone in range(6):  # six of seven count: the seventh takes the place of this one
        kept = [6 if place == gone else place for place in range(6)]
        moved = made.sum(anchors[:6], positives[:6]).flat - made.sum(anchors[kept], positives[kept]).flat
        far = max(far, moved.norm().item())
    assert 0 < far <= bound


@pytest.mark.claim("S3-04")
@pytest.mark.alpha(1e-9)
def test_of_more_pairs_than_were_declared_a_random_part_counts_and_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """48 pairs where 16 were declared: each of 20 steps has 16, and nearly all come to count. Nine or more are left out
    of all steps with a chance below C(48, 9)·(2/3)^180 < 1e-20; a copy that takes the first ones has 16 of them."""
    seen: list[Tensor] = []
    real = InBatchContrast.sum

    def spied(self: InBatchContrast, inputs: Tensor, targets: Tensor, present: Tensor | None = None) -> Any:
        seen.append(inputs.clone())
        return real(self, inputs, targets, present)

    anchors, positives = pairs(48)
    anchors[:, 0] = torch.arange(48.0)
    data = Units(anchors, positives, n_units=16, name="pairs", version="1")
    made = trainer(vault(), data)
    monkeypatch.setattr(InBatchContrast, "sum", spied)
    seen.clear()
    made.fit(**{**RUN, "steps": 20, "batch": 16})
    steps = [rows for rows in seen if len(rows) > 2]
    assert len(steps) == 20
    assert {len(rows) for rows in steps} == {16}
    often = Counter(int(row[0]) for rows in steps for row in rows)
    assert len(often) >= 40
    assert all(len({int(row[0]) for row in rows}) == 16 for rows in steps)


class Weighing(nn.Module):
    """A linear embedding in float64 with many weights that no input reaches: what is learned of them is noise alone."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.near = nn.Parameter(torch.eye(4, dtype=torch.float64))
        self.far = nn.Parameter(torch.zeros(number, dtype=torch.float64))

    def forward(self, rows: Tensor) -> Tensor:
        return rows.double() @ self.near + 0 * self.far.sum()


@pytest.mark.claim("S3-04")
@pytest.mark.alpha(2e-9)
@pytest.mark.parametrize("unit", [ADDED, SWAPPED])
def test_released_weights_have_the_noise_that_the_charge_needs(unit: Unit) -> None:
    """2,000 weights that get noise alone, in steps of the lattice that the stated move needs; 0.7 of it is refuted."""
    model, seen = Weighing(2000), []

    def watch(_step: int, weights: Mapping[str, Tensor]) -> bool:
        seen.append(weights["far"].numpy().copy())
        return False

    held = vault(unit)
    made = trainer(held, declared(20), model, each=1)
    told = made.fit(
        epsilon=1, delta=1e-9, steps=1, batch=20, lr=1.0, optimizer=torch.optim.SGD, callback=watch, progress=False
    )
    assert held.spent == told.release.charged
    noise, said = told.release.statement.mechanism, told.release.statement
    assert isinstance(noise, NoisySums)
    moved = float(ClippedLogits(clip=Fraction(1), temperature=Fraction(1), batch=32).moved(Relation.REPLACE))
    assert said.query.most == 32
    assert float(said.sensitivity.l2.squared) ** 0.5 == pytest.approx(moved, rel=1e-8)
    needs = float(calibrate_sigma(epsilon=1, delta=1e-9, steps=1, sampling=1))
    pitch = needs * moved / WIDTH
    assert pitch <= float(noise.pitch(said.sensitivity)) <= pitch * 1.02
    steps = np.rint(-seen[0] * 20 / float(noise.pitch(said.sensitivity)))
    played = Played(cells=numbers(RoundedGaussian(sigma=Fraction(WIDTH))), draws=steps)
    assert doubt(played) > 1e-9
    assert doubt(shrunk(played)) < 1e-9


def test_a_run_is_charged_once_signed_verified_and_explained(tmp_path: Path) -> None:
    held = vault()
    model = nn.Linear(4, 3)
    before = [one.detach().clone() for one in model.parameters()]
    made = trainer(held, declared(40), model)
    assert isinstance(made, ContrastTrainer)
    plan = made.plan(epsilon=5, delta=1e-7, steps=2, batch=20)
    assert held.spent.epsilon == 0
    assert type(plan.query) is ContrastiveTraining in TRAINING_QUERIES
    assert plan.query.most == most_pairs(20, sampled=True) == 48
    told = made.fit(**RUN, batch=20, checkpoint=tmp_path / "run", every=1)
    assert held.spent == told.release.charged == sf.Budget(epsilon=5, delta=Fraction(1, 10**7))
    assert any(not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    assert told.release.statement.query.weights == sf.learning.weights_digest(model)
    assert verify(parsed(told.release.certificate.text), key=held.public_key).authenticated
    for language in ("en", "zh"):
        words = [told.release.explain(language, audience) for audience in AUDIENCES]
        assert all("{" not in each for each in words)
        assert any("softmax" in each for each in words)
    again = made.fit(**RUN, batch=20, checkpoint=tmp_path / "run", every=1, resume=True)
    assert again.release.charged == sf.Budget.none()
    assert held.spent.epsilon == 5


def test_a_run_that_was_broken_off_goes_on_for_the_same_charge(tmp_path: Path) -> None:
    class Stop(Exception):
        """What a caller raises to break off."""

    def stop(step: int, _weights: Mapping[str, Tensor]) -> bool:
        raise Stop

    held, model = vault(), nn.Linear(4, 3)
    asked: dict[str, Any] = {**RUN, "batch": 20, "checkpoint": tmp_path / "run", "every": 1}
    with pytest.raises(Stop):
        trainer(held, declared(40), model).fit(**asked, callback=stop)
    told = trainer(held, declared(40), model).fit(**asked, resume=True)
    assert held.spent.epsilon == 5
    assert told.release.statement.query.done == 2


def test_a_certificate_that_states_less_than_it_takes_is_found() -> None:
    """Whoever verifies works out the move from the temperature and the number of pairs, before any signature."""
    held = vault()
    text = trainer(held, declared(40)).fit(**RUN, batch=20).release.certificate.text
    forged = text.replace('"most": 48', '"most": 64').replace('"most":48', '"most":64')
    assert forged != text
    found = verify(parsed(forged), key=held.public_key).findings
    assert any("sensitivity" in each.field for each in found), found


def test_private_steps_bring_views_of_one_person_together() -> None:
    torch.manual_seed(1)
    base = torch.randn(300, 3)
    anchors, positives = (torch.cat([base, 2 * torch.randn(300, 3)], 1) for _ in range(2))
    model = nn.Linear(6, 3)
    data = Units(anchors, positives, n_units=300, name="pairs", version="1")
    held = vault(epsilon=10**6)
    made = held.trainer(model, InBatchContrast(model, each="1/2", chunk=64), data=data)

    def loss() -> float:
        return float(InBatchContrast(model).sum(anchors, positives).losses.mean())

    before = loss()
    made.fit(epsilon=10**4, delta=1e-7, steps=6, batch=300, lr=2.0, optimizer=torch.optim.SGD, progress=False)
    assert loss() < before - 0.1


class Choosy(nn.Module):
    """An embedding that fails on some inputs: those that look up a row which is not there."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 3)

    def forward(self, rows: Tensor) -> Tensor:
        return self.table(rows[:, 0])


def test_a_pair_that_the_model_fails_on_is_as_if_it_were_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model, sums = Choosy(), []
    rows = torch.tensor([[0], [1], [2], [3], [9]])
    real = ContrastRun._clipped

    def kept(self: ContrastRun) -> Tensor:
        sums.append(real(self))
        return sums[-1]

    monkeypatch.setattr(ContrastRun, "_clipped", kept)
    for number in (5, 4):
        data = Units(
            rows[:number], rows[:number].flip(0)[:number] * 0 + rows[:number], n_units=5, name="p", version="1"
        )
        trainer(vault(), data, model).fit(**{**RUN, "steps": 1, "batch": 5, "lr": 0.0})
    assert torch.allclose(sums[0], sums[1], atol=1e-9)
    assert sums[0].norm() > 0


def test_persons_are_protected_with_one_pair_each() -> None:
    held = vault(user("id", relation="add/remove"))
    data = declared(40, n_units=20, ids=[row // 2 for row in range(40)], times=1)
    told = trainer(held, data).fit(**RUN, batch=10)
    assert told.release.statement.query.times == 1
    twice = declared(40, n_units=20, ids=[row // 2 for row in range(40)], times=2)
    with pytest.raises(Refused, match="at least one"):
        trainer(held, twice).fit(**RUN, batch=10)
    assert query(times=3).sensitivity(user("id", relation="replace"), query(times=3).limit(SOMEBODY)) == query(
        clip=Fraction(3)
    ).sensitivity(SWAPPED, None)


SOMEBODY = user("id", relation="replace")


def test_what_is_wrong_is_refused_and_the_ledger_stays_as_it_was() -> None:
    held, model = vault(epsilon=1), nn.Linear(4, 3)
    anchors, positives = pairs(20)
    with pytest.raises(InvalidInput, match="another model"):
        held.trainer(model, InBatchContrast(nn.Linear(4, 3)), data=declared(20))
    with pytest.raises(InvalidInput, match="a pair is one row"):
        trainer(held, Units(anchors[:, None], positives[:, None], n_units=20, name="p", kind="group", times=1))
    with pytest.raises(InvalidInput, match="one shape"):
        trainer(held, Units(anchors, positives[:, :2], n_units=20, name="p"))
    with pytest.raises(InvalidInput, match="Leave noise out"):
        trainer(held, declared(20)).fit(**RUN, batch=20, noise=Correlated(bands=2))
    with pytest.raises(InvalidInput, match="at most 4096"):
        trainer(held, declared(20, n_units=10**5)).fit(**RUN, batch=5000)
    with pytest.raises(Refused, match="normalises by statistics"):
        trainer(held, declared(20), nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)))
    with pytest.raises(Refused, match="replace"):
        trainer(vault(SWAPPED), declared(20)).fit(**RUN, batch=5)
    with pytest.raises(InvalidInput, match="each=…"):
        held.trainer(model, InBatchContrast(model), data=declared(20), clip=2)
    with pytest.raises(InvalidInput, match="bounds nothing"):
        trainer(held, declared(20), temperature="1/2000")
    with pytest.raises(BudgetExceeded):
        trainer(held, declared(20)).fit(**RUN, batch=20)

    class Own(InBatchContrast):
        """A class of the caller, whose sum could be anything."""

    with pytest.raises(InvalidInput, match="InBatchContrast of it"):
        held.trainer(model, Own(model), data=declared(20))
    assert held.spent.epsilon == 0
    for wrong in ({"most": 1}, {"most": 4097}, {"temperature": Fraction(0)}):
        with pytest.raises(InvalidInput):
            query(**wrong)
    with pytest.raises(InvalidInput, match="pairs are rows"):
        replace(query(), units="group")


def test_a_cold_temperature_is_bounded_by_the_number_of_pairs() -> None:
    """Without a limit on the pairs nothing would bound it: e^(2/τ) is beyond all floats."""
    cold = query(temperature=Fraction(1, 100), most=32).reach
    assert cold == pytest.approx(2 * (31 + 2), rel=1e-6)
    told = trainer(vault(SWAPPED), declared(32), temperature="1/100", both=True).fit(**RUN, batch=32)
    assert told.release.statement.query.reach == cold / 2
