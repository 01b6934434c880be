"""Canaries of a run: fair coins sealed before the charge, units of their own, and nobody else's business."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core import documents
from sfumato.core.signature import SigningKey
from sfumato.vault import Vault
from tests.alpha import likely
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from sfumato.learning import Canaries, Multiplied, Trained, Units, triplets  # noqa: E402
from sfumato.learning.canary_commitment import commitment  # noqa: E402
from sfumato.learning.course import SampledCourse  # noqa: E402

KEY = SigningKey.new()
WIDE = 30
RECORD = sf.record(relation="add/remove")


def loss(outputs: Tensor, targets: Tensor) -> Tensor:
    """Its gradient is the input itself, times the target."""
    return (outputs[:, 0] * targets).mean()


def own_axes(number: int = 20, first: int = 3) -> Canaries:
    """Canary i pulls at weight ``first + i`` alone, and longer than the clip."""
    return Canaries(2 * torch.eye(WIDE)[first : first + number], torch.ones(number))


def run(data: Units, canaries: Canaries | None, *, unit: Any = RECORD, epsilon: int = 1, **said: Any) -> Trained:
    """One step on all units."""
    vault = Vault(unit=unit, budget=sf.Budget(epsilon=100, delta=1e-6), name="trial", key=KEY)
    model = nn.Linear(WIDE, 1, bias=False)
    nn.init.zeros_(model.weight)
    trainer = vault.trainer(model, loss, data=data, canaries=canaries)
    done = trainer.fit(steps=1, batch=4, epsilon=epsilon, delta=1e-7, lr=1.0, progress=False, **said)
    assert vault.spent == sf.Budget(epsilon=epsilon, delta=1e-7)
    return done


def units(rows: Tensor, **said: Any) -> Units:
    """Real units; four are declared, however many there are."""
    return Units(rows, torch.ones(len(rows)), n_units=4, name="visits", version="1", **said)


def told(coins: np.ndarray) -> str:
    """Coins as they are hashed."""
    return "".join(str(int(one)) for one in coins)


@pytest.fixture
def sums(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The exact sums of steps, before their noise."""
    caught: list[Tensor] = []
    release = SampledCourse.release

    def spied(self: SampledCourse, total: Tensor) -> Tensor:
        caught.append(total.double().clone())
        return release(self, total)

    monkeypatch.setattr(SampledCourse, "release", spied)
    return caught


def test_a_canary_is_in_the_sum_if_its_coin_says_so_and_real_units_are_as_before(sums: list[Tensor]) -> None:
    rows = torch.eye(WIDE)[:2]
    run(units(rows), None)
    done = run(units(rows), own_axes())
    coins = done.canaries.sealed.coins
    assert torch.allclose(sums[1][:3], sums[0][:3])
    assert np.allclose(sums[1][3:23].numpy(), coins)
    assert sums[1][23:].abs().max() == 0
    assert done.release.statement.query.number == 4


def test_a_real_unit_more_moves_a_sum_with_canaries_by_its_clip_and_no_further(
    sums: list[Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neighbours at the same coins: whatever the unit is, also one that is the copy of a canary."""
    monkeypatch.setattr("sfumato.learning.sealed_canaries._fair_coins", lambda number: np.arange(number) % 3 == 0)
    rows = torch.eye(WIDE)[:2]
    run(units(rows), own_axes())
    for more in (torch.full((1, WIDE), 1e6), 2 * torch.eye(WIDE)[3:4], torch.zeros(1, WIDE)):
        run(units(torch.cat([rows, more])), own_axes())
        assert (sums[-1] - sums[0]).norm() <= 1 + 1e-6


def test_persons_and_rows_of_a_file_have_canaries_behind_them_too(sums: list[Tensor], tmp_path: Path) -> None:
    rows = torch.eye(WIDE)[:3]
    person = sf.user("id", relation="add/remove")
    done = run(units(rows, ids=["a", "a", "b"], max_records_per_unit=2), own_axes(), unit=person)
    assert np.allclose(sums[-1][3:23].numpy(), done.canaries.sealed.coins)
    assert torch.allclose(sums[-1][:3], torch.tensor([0.5, 0.5, 1.0], dtype=torch.float64))
    np.save(tmp_path / "rows.npy", rows.numpy())
    done = run(units(np.load(tmp_path / "rows.npy", mmap_mode="r")), own_axes())
    assert np.allclose(sums[-1].numpy(), np.r_[1, 1, 1, done.canaries.sealed.coins, np.zeros(7)])


def test_the_certificate_has_the_hash_of_the_coins_and_none_where_there_are_none() -> None:
    plain, done = run(units(torch.eye(WIDE)[:2]), None), run(units(torch.eye(WIDE)[:2]), own_axes())
    assert plain.canaries is None
    assert "canaries" not in str(documents.encode(plain.release.statement.query))
    sealed, said = done.canaries.sealed, done.release.statement.query.canaries
    assert said == (20, sealed.commitment)
    facts: dict[str, Any] = {"salt": sealed.salt, "rows": sealed.rows, "score": "gradient"}
    assert said[1] == commitment(told(sealed.coins), confidence=Fraction(19, 20), **facts)
    other = sealed.coins.copy()
    other[0] = not other[0]
    assert said[1] != commitment(told(other), confidence=Fraction(19, 20), **facts)
    assert said[1] != commitment(told(sealed.coins), confidence=Fraction(99, 100), **facts)
    assert done.epsilon == plain.epsilon
    assert done.release.statement.mechanism == plain.release.statement.mechanism
    for language, word in (("en", "20 invented units"), ("zh-Hans", "20 个虚构单位")):
        texts = [one.release.explain(language, "board") for one in (plain, done)]
        assert [word in text for text in texts] == [False, True]


@pytest.mark.alpha(2e-9)
def test_coins_are_fair_and_independent_and_other_ones_in_each_run() -> None:
    """A coin of 60% would be seen, and so would exactly half of the canaries, or pairs with one inside."""
    canaries = Canaries(np.zeros((4_000, 1)), np.zeros(4_000))
    one, two = canaries.sealed().coins, canaries.sealed().coins
    assert likely(int(one.sum()), 4_000, 0.5, alpha=5e-10)
    assert likely(int((one[::2] == one[1::2]).sum()), 2_000, 0.5, alpha=5e-10)
    assert likely(int((one == two).sum()), 4_000, 0.5, alpha=5e-10)
    assert not likely(2_400, 4_000, 0.5, alpha=5e-10)
    assert not likely(0, 2_000, 0.5, alpha=5e-10)
    few = Canaries(np.zeros((20, 1)), np.zeros(20))
    assert len({int(few.sealed().coins.sum()) for _ in range(40)}) > 1


def test_what_cannot_have_canaries_is_refused_before_anything_is_charged(tmp_path: Path) -> None:
    data, axes = units(torch.eye(WIDE)[:2]), own_axes()
    for wrong, why in (
        (lambda: Canaries(torch.zeros(19, 2), torch.zeros(19)), "canaries"),
        (lambda: Canaries(torch.zeros(20, 2), torch.zeros(21)), "as many rows"),
        (lambda: Canaries(torch.zeros(20, 2), torch.zeros(20), score="rank"), "score of canaries"),  # type: ignore[arg-type]
        (lambda: Canaries(torch.zeros(20, 2), torch.zeros(20), confidence=1), "confidence"),
        (lambda: run(data, Canaries(torch.zeros(20, 2), torch.zeros(20))), "shape"),
        (lambda: run(data, object()), "learning.Canaries"),  # type: ignore[arg-type]
        (lambda: run(data, axes, checkpoint=tmp_path / "state"), "kept in no file"),
        (lambda: run(data, axes, unit=sf.record(relation="replace")), "relation is replace"),
    ):
        with pytest.raises(errors.SfumatoError, match=why):
            wrong()
    model, twice = nn.Linear(WIDE, 1, bias=False), Multiplied(lambda rows: rows, augmentations=2)
    vault = Vault(unit=RECORD, budget=sf.Budget(epsilon=1, delta=1e-6), name="trial", key=KEY)
    with pytest.raises(errors.InvalidInput, match="no augmentations"):
        vault.trainer(model, loss, data=data, canaries=axes, augmentations=twice)
    groups = Units.of_groups(torch.zeros(3, WIDE), torch.zeros(3), ids=["a", "b", "c"], groups=triplets(9), name="g")
    with pytest.raises(errors.InvalidInput, match="not groups"):
        axes.fitted(groups)
    assert vault.spent == sf.Budget(epsilon=0, delta=0)


def test_canaries_that_no_score_can_be_made_of_are_refused_before_the_charge() -> None:
    """Targets that are no class, a layer that does not run row by row, and halves where the data has whole numbers."""
    classes = Units(torch.zeros(4, WIDE), torch.zeros(4, dtype=torch.int64), n_units=4, name="visits", version="1")
    vault = Vault(unit=RECORD, budget=sf.Budget(epsilon=1, delta=1e-6), name="trial", key=KEY)
    halves = Canaries(torch.eye(WIDE)[:20], torch.full((20,), 0.5))
    kept = halves.fitted(units(torch.eye(WIDE)[:2])).sealed().targets
    assert kept.tolist() == [0.5] * 20
    cases = [(halves, "whole numbers"), (Canaries(torch.eye(WIDE)[:20], torch.full((20,), 7)), "no scores")]
    for canaries, why in cases:
        with pytest.raises(errors.InvalidInput, match=why):
            vault.trainer(nn.Linear(WIDE, 3), nn.functional.cross_entropy, data=classes, canaries=canaries)
    assert halves.sealed().targets.tolist() == [0.5] * 20  # those of the caller stay as they were
    assert vault.spent == sf.Budget(epsilon=0, delta=0)


def test_random_canaries_have_one_length_and_the_types_of_the_data() -> None:
    data = units(torch.eye(WIDE)[:2])
    made = Canaries.random(50, like=data, targets=[0, 1], length=3)
    sealed = made.fitted(data).sealed()
    assert torch.allclose(sealed.inputs[0].norm(dim=1), torch.tensor(3.0))
    assert sealed.targets[:4].tolist() == [0, 1, 0, 1]
    with pytest.raises(errors.InvalidInput, match="Give rows"):
        Canaries.random(50, like=units(torch.zeros(2, 3, dtype=torch.int64)), targets=[0])


def test_scores_are_made_of_weights_and_canaries_alone() -> None:
    """By hand: how far each weight moved, along the axis that a canary pulls at; and the loss that became lower."""
    for score in ("gradient", "loss"):
        canaries = Canaries(2 * torch.eye(WIDE)[3:23], torch.ones(20), score=score)
        done = run(units(torch.eye(WIDE)[:2]), canaries)
        moved = -done.model.weight.detach().double().numpy()[0, 3:23]
        found = done.canaries.scores(done.model)
        assert np.allclose(found, moved if score == "gradient" else 2 * moved, atol=1e-6)


def test_canaries_in_a_mapped_file_are_read_and_not_taken_for_zeros(tmp_path: Path) -> None:
    rows = np.arange(1200, dtype=np.float32).reshape(400, 3)
    np.save(tmp_path / "canaries.npy", rows)
    mapped = np.load(tmp_path / "canaries.npy", mmap_mode="r")
    sealed = Canaries(mapped, np.arange(400)).sealed()
    assert np.array_equal(sealed.inputs[0].numpy(), rows)
