"""Losses of a whole group, for an engine with ``unit="group"``, and the tensors of groups that they are asked for."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from sfumato.learning.paradigms.placed_groups import PlacedGroups, members

__all__ = ["gathered", "info_nce", "policy_gradient", "triplet_margin"]

GroupLoss = Callable[[Tensor, Tensor], Tensor]


def gathered(rows: Tensor, groups: PlacedGroups, seats: Sequence[int | None]) -> tuple[Tensor, Tensor]:
    """The members of all groups (groups × members × …), zeros where a group does not count, and which ones count.

    >>> from sfumato.learning.paradigms.triplets import triplets
    >>> gathered(torch.tensor([5.0, 6.0, 7.0]), triplets(6, each=1), (2, 0, 1, None, None, None))
    (tensor([[7., 5., 6.], [0., 0., 0.]]), tensor([ True, False]))
    """
    found = members(groups, seats)
    size = len(groups.groups[0])
    padded = torch.cat([rows, torch.zeros((1, *rows.shape[1:]), dtype=rows.dtype, device=rows.device)])
    places = torch.tensor([group or (len(rows),) * size for group in found], device=rows.device)
    present = torch.tensor([group is not None for group in found], device=rows.device)
    return padded[places], present


def triplet_margin(margin: float) -> GroupLoss:
    """The loss of three embeddings with three labels: the two of one label closer together than to the third.

    The first of the two that share a label is the anchor. Where all three labels differ, or none does, the loss is 0:
    which triplets are of use depends on their own labels alone.

    >>> loss = triplet_margin(1.0)
    >>> loss(torch.tensor([[0.0], [3.0], [1.0]]), torch.tensor([4, 4, 5]))
    tensor(3.)
    """

    def loss(outputs: Tensor, labels: Tensor) -> Tensor:
        total = outputs.sum() * 0
        for anchor, positive, negative in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
            fits = (labels[anchor] == labels[positive]) & (labels[anchor] != labels[negative])
            near = _distance(outputs[anchor] - outputs[positive])
            far = _distance(outputs[anchor] - outputs[negative])
            total = total + torch.where(fits, functional.relu(near - far + margin), 0.0)
        return total

    return loss


def info_nce(temperature: float, *, public: Tensor | None = None) -> GroupLoss:
    """The loss of an anchor, its positive, and negatives: the other members of the group, and ``public`` embeddings.

    Targets are not used.

    >>> loss = info_nce(1.0, public=torch.tensor([[0.0, 1.0]]))
    >>> round(float(loss(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.zeros(1))), 4)  # ln(1 + 1/e)
    0.3133
    """

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        others = outputs[1:] if public is None else torch.cat([outputs[1:], public])
        similar = functional.cosine_similarity(outputs[:1], others, dim=1) / temperature
        return torch.logsumexp(similar, 0) - similar[0]

    return loss


def policy_gradient(outputs: Tensor, targets: Tensor) -> Tensor:
    """The loss of a trajectory whose gradient is minus its policy gradient: −Σ_t weight_t · ln π(action_t).

    ``outputs`` are the logits of the actions at each step, ``targets`` the action taken and its weight (return to go
    less a public baseline; 0 for steps after the end).

    >>> float(policy_gradient(torch.zeros(1, 2), torch.tensor([[1.0, 2.0]])))  # 2 ln 2
    1.3862943649291992
    """
    chances = functional.log_softmax(outputs, dim=-1)
    taken = functional.one_hot(targets[..., 0].long(), outputs.shape[-1]).to(chances.dtype)
    return -((chances * taken).sum(-1) * targets[..., 1]).sum()


def _distance(difference: Tensor) -> Tensor:
    """Euclidean, with a slope at 0."""
    return (difference.square().sum() + 1e-12).sqrt()
