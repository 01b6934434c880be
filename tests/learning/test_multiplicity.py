"""Augmented copies of a unit: they are averaged before the clip, and no unit's copies hold anything of another's."""

import pytest

from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.noise import SystemWords
from tests.parts import package

package("torch")

import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from sfumato.learning.engine import clipped_sum  # noqa: E402
from sfumato.learning.multiplicity import Multiplied, mirrored, shifted  # noqa: E402

CLIP = 0.5


def batch(units: int) -> tuple[Tensor, Tensor, Tensor]:
    made = torch.Generator().manual_seed(3)
    return (
        torch.randn((units, 1, 4, 4), generator=made) * 5,
        torch.arange(units) % 3,
        torch.ones(units, dtype=torch.bool),
    )


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 3))


def norm(sums: dict[str, Tensor]) -> float:
    return float(torch.cat([value.flatten() for value in sums.values()]).double().norm())


def averaged(copies: int) -> float:
    """The norm of one unit's part of the sum, its copies averaged before the clip."""
    made = Multiplied(shifted(1), augmentations=copies)
    inputs, targets, present = made(*batch(1), words=SystemWords())
    return norm(
        clipped_sum(
            model(), nn.functional.cross_entropy, (inputs, targets), clip=CLIP, unit="user", present=present
        ).sums
    )


@pytest.mark.parametrize("copies", [1, 2, 8])
def test_a_unit_with_copies_moves_the_sum_no_further(copies: int) -> None:
    assert averaged(copies) <= CLIP * (1 + 1e-6)
    assert averaged(copies) > 0.99 * CLIP  # attained: the gradients of this batch are far beyond the clip


@pytest.mark.alpha(1e-12)
def test_copies_that_are_units_of_their_own_are_caught() -> None:
    """The broken twin: each copy is clipped by itself. The sum of 32 is 7.5 ± 0.6, far from the limit of 1."""
    inputs, targets, _ = Multiplied(shifted(1), augmentations=32)(*batch(1), words=SystemWords())
    found = clipped_sum(model(), nn.functional.cross_entropy, (inputs[0], targets[0]), clip=CLIP)
    assert norm(found.sums) > 2 * CLIP


def test_the_gradient_is_the_mean_of_those_of_the_copies() -> None:
    inputs, targets, present = Multiplied(mirrored, augmentations=4)(*batch(1), words=SystemWords())
    together = clipped_sum(
        model(), nn.functional.cross_entropy, (inputs, targets), clip=1e6, unit="user", present=present
    ).sums
    alone = clipped_sum(model(), nn.functional.cross_entropy, (inputs[0], targets[0]), clip=1e6).sums
    for name, value in together.items():
        assert torch.allclose(value, alone[name] / 4, atol=1e-5)


def test_no_augmentation_can_mix_units() -> None:
    """Mixing all units of a batch, as mixup does: inside, only one record is in sight."""
    inputs, _, _ = Multiplied(lambda image, _: image - image.mean(0, keepdim=True), augmentations=2, original=False)(
        *batch(5), words=SystemWords()
    )
    alone, _, _ = Multiplied(lambda image, _: image - image.mean(0, keepdim=True), augmentations=2, original=False)(
        *(part[:1] for part in batch(5)), words=SystemWords()
    )
    assert torch.equal(inputs[:1], alone)


def test_users_keep_their_records_and_absent_ones_stay_absent() -> None:
    images = torch.arange(12.0).reshape(2, 3, 1, 2)
    present = torch.tensor([[True, True, False], [True, False, False]])
    inputs, targets, here = Multiplied(mirrored, augmentations=2)(
        images, torch.tensor([[0, 1, 2], [3, 4, 5]]), present, words=SystemWords(), kind="user"
    )
    assert inputs.shape == (2, 6, 1, 2)
    assert targets.tolist() == [[0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5]]
    assert here.tolist() == [[True, True, True, True, False, False], [True, True, False, False, False, False]]
    assert torch.equal(inputs[:, ::2], images)  # the first of the copies is the record itself


@pytest.mark.alpha(1e-19)
def test_draws_are_fresh_and_shifts_reach_every_place() -> None:
    """A draw of nine places is missed by 400 copies with probability below 1e-19."""
    image = torch.zeros((1, 1, 5, 5))
    image[..., 2, 2] = 1
    copies, _, _ = Multiplied(shifted(1), augmentations=400, original=False)(
        image, torch.tensor([0]), torch.tensor([True]), words=SystemWords()
    )
    places = {tuple(place.tolist()) for place in copies[0, :, 0].nonzero()[:, 1:]}
    assert places == {(row, column) for row in (1, 2, 3) for column in (1, 2, 3)}


def test_what_cannot_be_copied_is_refused() -> None:
    images, targets, present = batch(2)
    words = SystemWords()
    with pytest.raises(Unsupported, match="one loss together"):
        Multiplied(mirrored, augmentations=2)(images, targets, present, words=words, kind="group")
    with pytest.raises(Unsupported, match="several"):
        Multiplied(mirrored, augmentations=2)((images, images), targets, present, words=words)
    with pytest.raises(Refused, match="another shape"):
        Multiplied(lambda image, _: image.flatten(), augmentations=2)(images, targets, present, words=words)
    with pytest.raises(InvalidInput):
        Multiplied(mirrored, augmentations=0)
