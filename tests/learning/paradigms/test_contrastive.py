"""S3-04: how many gradients one person moves, and clipping similarity by similarity where that is all of them."""

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from sfumato.core.units import Relation
from sfumato.errors import InvalidInput, Refused
from sfumato.learning.paradigms.contrastive import assigned_negatives, cyclic_negatives, public_negatives
from sfumato.learning.paradigms.logit_clipping import ClippedLogits
from sfumato.learning.paradigms.placed_groups import PlacedGroups
from tests.parts import package

package("torch")
import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from sfumato.learning import clipped_sum  # noqa: E402
from sfumato.learning.paradigms.group_losses import gathered, info_nce  # noqa: E402
from sfumato.learning.paradigms.logit_clipped_step import InBatchContrast  # noqa: E402
from sfumato.learning.paradigms.private_mean import private_mean  # noqa: E402
from sfumato.learning.refusals import check_uncoupled  # noqa: E402

ADD_REMOVE, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE


def random_negatives(batch: int, negatives: int, seed: int) -> list[list[int]]:
    """For each anchor others, evenly drawn, that are neither it nor its positive; an invented loader, not noise."""
    lots = np.random.default_rng(seed).random((batch, batch))
    anchors = np.arange(batch)
    lots[anchors, anchors] = lots[anchors, (anchors + 1) % batch] = 2
    return np.argpartition(lots, negatives, axis=1)[:, :negatives].tolist()


def in_degree(negatives: list[list[int]]) -> int:
    return int(np.bincount(np.ravel(negatives), minlength=len(negatives)).max())


def group_sum(rows: Tensor, groups: PlacedGroups) -> Tensor:
    """The clipped sum of a loss that is just a sum: as bad as any, for it follows whoever is largest in the group."""
    model = nn.Linear(1, 1, bias=False)
    inputs, present = gathered(rows, groups, tuple(range(groups.places)))
    made = clipped_sum(
        model, lambda out, _: out.sum(), (inputs, torch.zeros(len(inputs))), unit="group", present=present
    )
    return made.sums["weight"]


def moved_by_the_most_used(groups: PlacedGroups) -> float:
    """How far the person in the most groups moves the mean gradient by turning from one side to the other."""
    uses = np.bincount(np.ravel(groups.groups), minlength=groups.places)
    rows = torch.full((groups.places, 1), 1e-3)
    other = rows.clone()
    rows[int(uses.argmax())], other[int(uses.argmax())] = 1e3, -1e3
    return (group_sum(rows, groups) - group_sum(other, groups)).norm().item() / len(groups.groups)


@pytest.mark.claim("S3-04")
@pytest.mark.parametrize(("batch", "negatives", "seed", "affected"), [(64, 4, 10, 14), (256, 8, 351, 24)])
def test_random_negatives_move_more_than_k_plus_2_gradients(
    batch: int, negatives: int, seed: int, affected: int
) -> None:
    table = random_negatives(batch, negatives, seed)
    assert 2 + in_degree(table) == affected
    assert all(in_degree(random_negatives(batch, negatives, draw)) > negatives for draw in range(5)), "in each batch"
    groups = assigned_negatives(table, in_degree=affected - 2)
    moved = moved_by_the_most_used(groups)
    assert moved == pytest.approx(2 * affected / batch, rel=1e-4)
    assert moved > 2 * (negatives + 2) / batch, "the claim of k + 2 is exceeded"
    with pytest.raises(Refused, match=f"a negative of {affected - 2} anchors and in_degree = {negatives} was declared"):
        assigned_negatives(table, in_degree=negatives)


@pytest.mark.claim("S3-04")
@pytest.mark.parametrize(("batch", "negatives"), [(64, 4), (256, 8)])
def test_cyclic_negatives_make_k_plus_2_true(batch: int, negatives: int) -> None:
    groups = cyclic_negatives(batch, negatives=negatives)
    assert np.bincount(np.ravel(groups.groups)).tolist() == [negatives + 2] * batch
    claimed = groups.sensitivity(REPLACE, clip=1, over=batch).l2
    assert claimed is not None
    assert claimed.squared == Fraction(2 * (negatives + 2), batch) ** 2
    assert moved_by_the_most_used(groups) == pytest.approx(2 * (negatives + 2) / batch, rel=1e-4)
    table = [[(anchor + 2 + i) % batch for i in range(negatives)] for anchor in range(batch)]
    assert assigned_negatives(table, in_degree=negatives) == groups


@pytest.mark.claim("S3-04")
def test_a_replaced_person_changes_exactly_the_gradients_that_were_counted() -> None:
    torch.manual_seed(1)
    groups, model = cyclic_negatives(12, negatives=3), nn.Linear(3, 4, bias=False)
    rows = torch.randn(12, 3)
    other = rows.clone()
    other[5] = torch.randn(3)
    changed = 0
    for group in groups.groups:
        one, two = (
            clipped_sum(model, info_nce(0.5), (side[None, group], torch.zeros(1)), unit="group").sums["weight"]
            for side in (rows, other)
        )
        changed += not torch.equal(one, two)
    assert changed == groups.affected == 5


@pytest.mark.claim("S3-04")
def test_with_the_whole_batch_as_negatives_all_gradients_move() -> None:
    groups = cyclic_negatives(16, negatives=14)
    assert groups.affected == 16
    assert moved_by_the_most_used(groups) == pytest.approx(2, rel=1e-4)
    table = [[j for j in range(16) if j not in (i, (i + 1) % 16)] for i in range(16)]
    assert assigned_negatives(table, in_degree=14).affected == 16
    assert assigned_negatives(table, in_degree=40).affected == 16


@pytest.mark.claim("S3-04")
def test_public_negatives_couple_nobody() -> None:
    torch.manual_seed(2)
    groups, model = public_negatives(8), nn.Linear(3, 4, bias=False)
    assert groups.sensitivity(ADD_REMOVE, clip=3).l2.squared == 9  # type: ignore[union-attr]
    loss = info_nce(0.5, public=torch.randn(5, 4))
    views = torch.randn(8, 2, 3)  # a person brings both views
    everyone = clipped_sum(model, loss, (views, torch.zeros(8)), clip=0.1, unit="group").sums["weight"]
    for gone in range(8):
        kept = torch.arange(8) != gone
        fewer = clipped_sum(model, loss, (views[kept], torch.zeros(7)), clip=0.1, unit="group").sums["weight"]
        assert (everyone - fewer).norm() <= 0.1 * 1.00001


@pytest.mark.claim("S3-04")
def test_groups_that_do_not_fit_a_batch_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 6"):
        cyclic_negatives(5, negatives=4)
    assert cyclic_negatives(5, negatives=4, own=True).affected == 5
    assert assigned_negatives([[1], [0]], in_degree=1, own=True).affected == 2
    with pytest.raises(Refused, match="one place is in 3 groups and each = 2 was declared"):
        PlacedGroups(places=4, groups=((0, 1), (0, 2), (0, 3)), each=2)


# Softmax over a batch: the theorem about weights and clipped gradients, whatever the encoder.


def abstract_sum(logits: Tensor, gradients: Tensor) -> Tensor:
    """Σ w_ij g_ij with w = softmax − identity; gradients (n × n × dimensions)."""
    return torch.einsum("ij,ijd->d", logits.softmax(1) - torch.eye(len(logits)).double(), gradients)


def worst_batch(batch: int, reach: float) -> tuple[Tensor, Tensor]:
    """The last pair is a hot negative of every anchor and its own positive is the coldest; all slopes say so."""
    logits, gradients = torch.full((batch, batch), -reach).double(), torch.full((batch, batch, 1), -1.0).double()
    logits[:, -1], logits[-1, :], logits[-1, -1] = reach, reach, -reach
    gradients[:, -1], gradients[-1, :], gradients[-1, -1] = 1, 1, -1
    return logits, gradients


@pytest.mark.claim("S3-04")
@pytest.mark.parametrize("batch", [2, 5, 64])
@pytest.mark.parametrize("temperature", [Fraction(1, 2), Fraction(1), Fraction(4)])
def test_clipped_logits_have_neighbours_that_attain_their_sensitivity(batch: int, temperature: Fraction) -> None:
    declared = ClippedLogits(clip=Fraction(1), temperature=temperature, batch=batch)
    logits, gradients = worst_batch(batch, float(1 / temperature))
    here = abstract_sum(logits, gradients)
    other = gradients.clone()
    other[:, -1] *= -1
    other[-1, :-1] *= -1
    replaced, removed = abstract_sum(logits, other), abstract_sum(logits[:-1, :-1], gradients[:-1, :-1])
    assert (here - replaced).norm().item() == pytest.approx(float(declared.moved(REPLACE)), rel=1e-9)
    assert (here - removed).norm().item() == pytest.approx(float(declared.moved(ADD_REMOVE)), rel=1e-9)


@pytest.mark.claim("S3-04")
@pytest.mark.parametrize("batch", [2, 5])
def test_no_optimised_neighbour_exceeds_it(batch: int) -> None:
    """Gradient ascent over all logits in reach and all clipped gradients of two neighbours, from random starts."""
    torch.manual_seed(batch)
    declared = ClippedLogits(clip=Fraction(1), temperature=Fraction(1), batch=batch)
    found = {ADD_REMOVE: 0.0, REPLACE: 0.0}
    for relation in Relation:
        for _ in range(2):
            free = [torch.randn(batch, batch).double(), torch.randn(batch, batch).double()]
            free += [torch.randn(batch, batch, 2).double() for _ in range(2)]
            for part in free:
                part.requires_grad_()
            ascent = torch.optim.Adam(free, lr=0.2)
            for _ in range(50):
                logits, other = (3 * torch.tanh(part) / 3 for part in free[:2])
                slopes, turned = (part / part.norm(dim=2, keepdim=True).clamp(min=1) for part in free[2:])
                mine = torch.zeros(batch, batch, dtype=torch.bool)
                mine[-1, :] = mine[:, -1] = True
                here = abstract_sum(logits, slopes)
                if relation is REPLACE:
                    there = abstract_sum(torch.where(mine, other, logits), torch.where(mine[..., None], turned, slopes))
                else:
                    there = abstract_sum(logits[:-1, :-1], slopes[:-1, :-1])
                moved = (here - there).norm()
                found[relation] = max(found[relation], moved.item())
                ascent.zero_grad()
                (-moved).backward()
                ascent.step()
        limit = float(declared.moved(relation))
        assert 0.8 * limit < found[relation] <= limit * (1 + 1e-9), relation


# The step itself, with encoders.


def encoder(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def flat(sums: dict[str, Tensor]) -> Tensor:
    return torch.cat([part.flatten().double() for part in sums.values()])


class Tied(nn.Module):
    """One layer that is used twice, one that sees several rows, one that is not used, a weight that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.twice, self.rows, self.unused, self.last = (
            nn.Linear(5, 5),
            nn.Linear(1, 2),
            nn.Linear(2, 2),
            nn.Linear(10, 4),
        )
        self.last.bias.requires_grad_(requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        inner = torch.tanh(self.twice(torch.tanh(self.twice(x))))
        return self.last(self.rows(inner[:, :, None]).flatten(1))


def convolving() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 5)), nn.Conv1d(1, 2, 3), nn.Flatten(), nn.LayerNorm(6), nn.Linear(6, 4, bias=False)
    )


@pytest.mark.parametrize(
    ("made_by", "both"),
    [(lambda: encoder(5, 7, 4), False), (lambda: encoder(5, 7, 4), True), (convolving, False), (Tied, False)],
)
def test_without_clipping_the_step_is_the_gradient_of_the_loss(made_by: Callable[[], nn.Module], both: bool) -> None:
    torch.manual_seed(3)
    model, first, second = made_by(), torch.randn(9, 5), torch.randn(9, 5)
    made = InBatchContrast(model, each=10**6, temperature=0.5, both=both, chunk=4).sum(first, second)
    similar = [nn.functional.normalize(model(side), dim=1) for side in (first, second)]
    logits, own = similar[0] @ similar[1].T / 0.5, torch.arange(9)
    loss = nn.functional.cross_entropy(logits, own, reduction="sum")
    assert made.losses.sum().item() == pytest.approx(loss.item(), rel=1e-5)
    if both:
        loss = (loss + nn.functional.cross_entropy(logits.T, own, reduction="sum")) / 2
    loss.backward()
    trained = {name: value for name, value in model.named_parameters() if value.requires_grad}
    assert made.sums.keys() == trained.keys()
    for name, value in trained.items():
        wanted = torch.zeros_like(value) if value.grad is None else value.grad
        assert torch.allclose(made.sums[name].float(), wanted, atol=1e-5), name
    assert torch.equal(made.flat, flat(made.sums))


def test_the_step_clips_each_half_of_each_similarity() -> None:
    """The same sum, pair by pair, with gradients that autograd gives."""
    torch.manual_seed(4)
    model, first, second = encoder(3, 4).double(), torch.randn(5, 3).double(), torch.randn(5, 3).double()
    made = InBatchContrast(model, each=0.3, temperature=0.5).sum(first, second)
    logits = (
        torch.stack(
            [torch.stack([nn.functional.cosine_similarity(model(a), model(b), 0) for b in second]) for a in first]
        )
        / 0.5
    )
    weights = logits.detach().softmax(1) - torch.eye(5)
    total = torch.zeros_like(flat(made.sums))
    for i in range(5):
        for j in range(5):
            for left, right in (
                (model(first[i]), model(second[j]).detach()),
                (model(first[i]).detach(), model(second[j])),
            ):
                half = nn.functional.cosine_similarity(left, right, 0) / 0.5
                slope = torch.cat([part.flatten() for part in torch.autograd.grad(half, list(model.parameters()))])
                total += weights[i, j] * slope * min(1.0, 0.15 / slope.norm().item())
    assert torch.allclose(flat(made.sums), total, atol=1e-9)


@pytest.mark.claim("S3-04")
@pytest.mark.parametrize("both", [False, True])
def test_no_pair_moves_the_step_by_more_than_declared(both: bool) -> None:
    torch.manual_seed(6)
    for trial in range(6):
        model, each = encoder(4, 3), (1.0, 0.01)[trial % 2]
        contrast = InBatchContrast(model, each=each, temperature=1, both=both)
        first, second = torch.randn(6, 4) * 3, torch.randn(6, 4) * 3
        here = flat(contrast.sum(first, second).sums)
        fewer = flat(contrast.sum(first[:-1], second[:-1]).sums)
        assert (here - fewer).norm().item() <= contrast.declared(6).moved(ADD_REMOVE) <= contrast.clip
        first[-1], second[-1] = -first[-1] * 10, torch.randn(4)
        other = flat(contrast.sum(first, second).sums)
        assert (here - other).norm().item() <= contrast.declared(6).moved(REPLACE) <= 2 * contrast.clip


def view(side: float, tilt: float, slope: float) -> list[float]:
    """An input of the encoder (x, y, z) → (x, y): a direction near one of two, and a huge z that the slopes follow."""
    return [side, side * tilt, slope * 1e6]


@pytest.mark.claim("S3-04")
@pytest.mark.parametrize(("batch", "temperature"), [(2, 1), (9, 1), (9, Fraction(1, 2)), (30, 2)])
def test_an_encoder_attains_the_sensitivity(batch: int, temperature: Fraction) -> None:
    """All anchors point one way and all positives the other, but the last pair is turned round: a hot negative of all.

    Tilts of a hundredth leave the cosines at ±1 and decide the signs of the slopes.
    """
    model = nn.Linear(3, 2, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, 0, 0], [0, 1, 0]]))
    contrast = InBatchContrast(model, each=0.001, temperature=temperature)
    tilt = 1e-2
    first = torch.tensor([view(1, 0, 1)] * (batch - 1) + [view(-1, 0, -1)]).double()
    second = torch.tensor([view(-1, tilt, 1)] * (batch - 1) + [view(1, tilt, -1)]).double()
    here = contrast.sum(first, second).flat
    removed = contrast.sum(first[:-1], second[:-1]).flat
    first[-1], second[-1] = torch.tensor(view(-1, 2 * tilt, -1)), torch.tensor(view(1, -tilt, -1))
    replaced = contrast.sum(first, second).flat
    for relation, there in ((ADD_REMOVE, removed), (REPLACE, replaced)):
        limit = float(contrast.declared(batch).moved(relation))
        assert 0.998 * limit < (here - there).norm().item() <= limit, relation
        assert limit / 0.001 > 2 * (1 if relation is ADD_REMOVE else 2), "one gradient more or less is not all"


@pytest.mark.long
def test_private_steps_learn() -> None:
    """Two numbers of six are shared by the views of a unit; steps with noise find them, and steps backwards do not.

    The loss falls by 0.165 with a standard deviation of 0.006 from the noise, and rises by 0.10 backwards.
    """
    torch.manual_seed(3)
    shared = torch.randn(200, 2)
    views = [torch.cat([shared, 2 * torch.randn(200, 4)], 1) for _ in range(2)]
    start = nn.Linear(6, 3, bias=False).weight.detach()

    def gained(rate: float) -> float:
        model = nn.Linear(6, 3, bias=False)
        contrast, losses = InBatchContrast(model, each=0.1, temperature=1, chunk=200), []
        with torch.no_grad():
            model.weight.copy_(start)
            for _ in range(4):
                made = contrast.sum(*views)
                losses.append(made.losses.mean().item())
                noisy = private_mean(contrast, *views, moved=contrast.clip, multiplier="1/20", over=200)
                model.weight -= rate * noisy["weight"].float()
        return losses[0] - losses[-1]

    assert gained(10.0) > 0.1
    assert gained(-10.0) < 0


def test_absent_units_are_as_if_they_were_not_there() -> None:
    torch.manual_seed(7)
    model, first, second = encoder(4, 3), torch.randn(6, 4), torch.randn(6, 4)
    contrast = InBatchContrast(model, each=0.1, temperature=1, chunk=4)
    present = torch.tensor([True, False, True, True, False, True])
    masked, fewer = contrast.sum(first, second, present), contrast.sum(first[present], second[present])
    assert torch.allclose(flat(masked.sums), flat(fewer.sums), atol=1e-12)
    assert masked.losses[~present].tolist() == masked.norms[~present].tolist() == [0, 0]
    assert flat(contrast.sum(first, second, torch.zeros(6, dtype=torch.bool)).sums).tolist() == [0] * 15


def test_what_is_no_number_counts_nothing() -> None:
    torch.manual_seed(8)
    model, first, second = encoder(4, 3), torch.randn(5, 4), torch.randn(5, 4)
    contrast = InBatchContrast(model, each=0.1, temperature=1)
    usual = flat(contrast.sum(first, second).sums)
    first = first.double()
    for bad in (torch.nan, torch.inf, 1e300):
        first[2] = bad
        sums = flat(contrast.sum(first, second).sums)
        assert sums.isfinite().all()
        assert (sums - usual).norm().item() <= contrast.declared(5).moved(REPLACE)


def test_a_norm_that_cancels_is_not_trusted() -> None:
    """Two outputs with huge, nearly opposite slopes: tᵀJJᵀt loses all digits, and the true norm is above the clip."""
    model = nn.Linear(2, 2, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[1.0, 0.0], [1.0, 1e-9]]))
    first = torch.tensor([[1.0, 1e9], [1.0, -1e9]]).double()
    contrast = InBatchContrast(model, each=1, temperature=1)
    assert flat(contrast.sum(first, first.flip(0)).sums).norm().item() <= 4


def hooked_sum(weight: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """Broken: what of the coupled gradient goes through each unit's own embeddings, clipped to 1 as if it were its own.

    This is what hooks on a linear encoder see.
    """
    sides = [(side @ weight.T).requires_grad_() for side in (first, second)]
    unit = [nn.functional.normalize(side, dim=1) for side in sides]
    loss = nn.functional.cross_entropy(unit[0] @ unit[1].T / 0.05, torch.arange(len(first)), reduction="sum")
    slopes = torch.autograd.grad(loss, sides)
    each = sum(torch.einsum("bo,bi->boi", slope, x) for slope, x in zip(slopes, (first, second), strict=True))
    return torch.einsum("b,boi->oi", 1 / each.flatten(1).norm(dim=1).clamp(min=1), each)


@pytest.mark.claim("S3-04")
def test_in_batch_negatives_through_hooks_move_more_than_the_clip() -> None:
    """Clipping each unit's share of a coupled gradient does not bound what one unit moves: above 2C for one removed."""
    torch.manual_seed(0)
    worst = 0.0
    for _ in range(20):
        weight, first = torch.randn(8, 4) / 2, torch.randn(8, 4)
        second = first + torch.randn(8, 4)
        here = hooked_sum(weight, first, second)
        for gone in range(8):
            kept = torch.arange(8) != gone
            worst = max(worst, (here - hooked_sum(weight, first[kept], second[kept])).norm().item())
    assert worst > 2.09, "the clip is 1"


@pytest.mark.claim("S3-04")
def test_in_batch_negatives_as_a_plain_loss_are_refused() -> None:
    """A loss over a batch of outputs, two views each, is found to couple units; one with public negatives is not."""

    def in_batch(outputs: Tensor, targets: Tensor) -> Tensor:
        unit = nn.functional.normalize(outputs, dim=2)
        return nn.functional.cross_entropy(unit[:, 0] @ unit[:, 1].T / 0.05, torch.arange(len(outputs)))

    def public(outputs: Tensor, targets: Tensor) -> Tensor:
        return torch.stack([info_nce(0.5, public=torch.ones(3, 4))(one, targets) for one in outputs]).mean()

    check_uncoupled(nn.Linear(3, 4), public, torch.zeros(8, 2, 3), torch.zeros(8))
    with pytest.raises(Refused):
        check_uncoupled(nn.Linear(3, 4), in_batch, torch.zeros(8, 2, 3), torch.zeros(8))


@pytest.mark.parametrize(("each", "temperature"), [(0, 1), (1, 0), (10**7, 1), (Fraction(1, 10**7), 1), (1, "1/2000")])
def test_parameters_out_of_range_are_refused(each: Fraction, temperature: Fraction) -> None:
    with pytest.raises(InvalidInput):
        InBatchContrast(nn.Linear(2, 2), each=each, temperature=temperature)
    with pytest.raises(InvalidInput, match="as many"):
        InBatchContrast(nn.Linear(2, 2)).sum(torch.zeros(2, 2), torch.zeros(3, 2))


def rounding_encoder(seed: int) -> nn.Linear:
    """An encoder in which 300 inputs of one cancel but for rounding, which depends on the order of additions."""
    draw = torch.Generator().manual_seed(seed)
    half = torch.randn(150, dtype=torch.float64, generator=draw)
    model = nn.Linear(303, 2, bias=False).double()
    with torch.no_grad():
        model.weight.zero_()
        model.weight[0, 0] = model.weight[1, 1] = 1
        for row in model.weight:
            row[3:] = torch.cat([half, -half])[torch.randperm(300, generator=draw)]
    return model


@pytest.mark.claim("S3-04")
def test_an_embedding_that_is_all_rounding_moves_no_further() -> None:
    """17 and 18 units: a last chunk of 1 and one of 2 round otherwise, and the sum moved by 1.87 times the bound."""
    rest = [0.0] * 300
    for seed in range(128, 138):
        contrast = InBatchContrast(rounding_encoder(seed), each=0.001, temperature=100)
        limit = float(contrast.declared(18).moved(ADD_REMOVE))
        for sign, side in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            anchors = [view(1, 0, 1) + rest] * 16 + [[0.0, 0.0, sign * 1e6] + [1.0] * 300] + [view(-1, 0, -1) + rest]
            views = [view(-1, 1e-2, 1) + rest] * 16 + [view(side, 1e-2, -1) + rest] + [view(1, 1e-2, -1) + rest]
            first, second = torch.tensor(anchors).double(), torch.tensor(views).double()
            moved = contrast.sum(first, second).flat - contrast.sum(first[:-1], second[:-1]).flat
            assert moved.norm().item() <= limit


def test_an_empty_batch_is_a_step_and_one_beyond_the_proof_is_refused() -> None:
    contrast = InBatchContrast(nn.Linear(3, 2))
    made = contrast.sum(torch.zeros(0, 3), torch.zeros(0, 3))
    assert made.flat.tolist() == [0] * 8
    assert (len(made.norms), len(made.losses)) == (0, 0)
    with pytest.raises(InvalidInput, match="at most 4096 units"):
        contrast.sum(torch.zeros(4097, 3), torch.zeros(4097, 3))
    with pytest.raises(InvalidInput, match="floats cannot bound"):
        _ = InBatchContrast(nn.Linear(3, 2), temperature="1/400").clip
