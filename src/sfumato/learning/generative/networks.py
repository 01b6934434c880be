"""The two networks: a critic that judges rows, and a generator that makes them. A row is cells, one a column."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["CellCritic", "CellGenerator", "NetworkCritic", "PairCritic", "begun", "drawn_cells", "set_column"]

Network = TypeVar("Network", bound=nn.Module)
SLOPE = 0.2
SMALL = 0.1


class CellCritic(nn.Module):
    """Gives each row one number: the higher, the more it is taken for a row of the data. No row is seen with another.

    ``clip`` is the length that the gradient of a row is held to if nothing else is said.
    """

    clip: float = 1.0

    def deemed_real(self, judged: Tensor) -> Tensor:
        """The loss of each row that should be taken for one of the data."""
        raise NotImplementedError

    def deemed_fake(self, judged: Tensor) -> Tensor:
        """The loss of each row that should be taken for a made one."""
        raise NotImplementedError


class PairCritic(CellCritic):
    """Adds up what it thinks of each two cells of a row.

    It is linear in its weights: the gradient of a row is the table of its own pairs of cells, whatever the weights are,
    and as long for every row as there are columns. A clip of that length cuts nothing off, and the noisy gradients of
    all steps can be averaged. What depends on three columns or more it does not see.

    >>> PairCritic((2, 3))(torch.eye(5)).shape
    torch.Size([5, 1])
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.clip = float(len(sizes))
        self.pairs = nn.Linear(sum(sizes), sum(sizes), bias=False)
        nn.init.zeros_(self.pairs.weight)

    def forward(self, rows: Tensor) -> Tensor:
        """What the critic thinks of rows."""
        found: Tensor = (self.pairs(rows) * rows).sum(-1, keepdim=True)
        return found

    def deemed_real(self, judged: Tensor) -> Tensor:
        """The lower, the higher it is judged: a distance of means, as a Wasserstein critic has it."""
        return -judged[..., 0]

    def deemed_fake(self, judged: Tensor) -> Tensor:
        """The other way round."""
        return judged[..., 0]


class NetworkCritic(CellCritic):
    """A network with two hidden layers that gives the logit of a row, as the discriminator of a classical GAN does.

    >>> NetworkCritic((2, 3), hidden=4)(torch.eye(5)).shape
    torch.Size([5, 1])
    """

    def __init__(self, sizes: Sequence[int], *, hidden: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(sum(sizes), hidden), nn.LeakyReLU(SLOPE), nn.Linear(hidden, hidden), nn.LeakyReLU(SLOPE),
            nn.Linear(hidden, 1),
        )  # fmt: skip

    def forward(self, rows: Tensor) -> Tensor:
        """The logits of rows."""
        found: Tensor = self.layers(rows)
        return found

    def deemed_real(self, judged: Tensor) -> Tensor:
        """−ln sigmoid(logit)."""
        return F.softplus(-judged[..., 0])

    def deemed_fake(self, judged: Tensor) -> Tensor:
        """−ln(1 − sigmoid(logit))."""
        return F.softplus(judged[..., 0])


class CellGenerator(nn.Module):
    """Makes of noise, and of a condition if there is one, a logit for each cell of each column.

    >>> CellGenerator((2, 3), hidden=4, noise=6)(torch.zeros(7, 6), torch.zeros(7, 5)).shape
    torch.Size([7, 5])
    """

    def __init__(self, sizes: Sequence[int], *, hidden: int, noise: int) -> None:
        super().__init__()
        self.sizes, self.noise = tuple(sizes), noise
        width = sum(self.sizes)
        self.layers = nn.Sequential(nn.Linear(noise + width, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.last = nn.Linear(hidden, width)

    def begin_at(self, shares: Tensor) -> None:
        """Begin with columns that are nearly independent of each other and have these shares of their values."""
        with torch.no_grad():
            self.last.weight.mul_(SMALL)
            self.last.bias.copy_(shares.log())

    def forward(self, noise: Tensor, given: Tensor) -> Tensor:
        """Logits of all cells; ``given`` is the condition, as cells, or zeros."""
        found: Tensor = self.last(self.layers(torch.cat([noise, given], dim=1)))
        return found


def begun(make: Callable[[], Network], seed: int) -> Network:
    """A network whose first weights follow from a public seed; torch's own generator is left where it was."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return make()


def drawn_cells(logits: Tensor, sizes: Sequence[int], random: torch.Generator, *, temperature: float) -> Tensor:
    """One cell of each column for each row, drawn by the logits; its gradient is that of a softmax (Gumbel).

    >>> drawn_cells(torch.zeros(4, 5), (2, 3), torch.Generator().manual_seed(1), temperature=0.7).sum(1)
    tensor([2., 2., 2., 2.])
    """
    least = torch.finfo(logits.dtype).tiny
    uniform = torch.rand(logits.shape, generator=random, dtype=logits.dtype).clamp_min(least)
    noisy = (logits - (-uniform.log()).clamp_min(least).log()) / temperature
    parts = []
    for part in torch.split(noisy, list(sizes), dim=1):
        soft = part.softmax(1)
        hard = F.one_hot(part.argmax(1), part.shape[1]).to(soft)
        parts.append(hard - soft.detach() + soft if soft.requires_grad else hard)
    return torch.cat(parts, dim=1)


def set_column(rows: Tensor, given: Tensor, sizes: Sequence[int]) -> Tensor:
    """Rows whose column that a condition names has the value of the condition."""
    own = torch.cat(
        [part.sum(1, keepdim=True).expand_as(part) for part in torch.split(given, list(sizes), dim=1)], dim=1
    )  # 1 in all cells of the column that is given
    return rows * (1 - own) + given
