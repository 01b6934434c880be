"""How a generator learns: from noisy weights of a critic, noisy shares of values and a public seed. No data here."""

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.func import functional_call

from sfumato.core.exact import natural, positive, probability
from sfumato.learning.engine import Engine
from sfumato.learning.generative.networks import CellCritic, CellGenerator, begun, drawn_cells, set_column

__all__ = ["GeneratorCourse", "GeneratorSettings", "NetworkOptimizer", "PairOptimizer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratorSettings:
    """What is chosen before the data is seen, the same for every table if nothing else is said. Public."""

    critic: str = "pairs"
    """``pairs`` judges each two cells of a row; ``network`` is a network of two hidden layers."""
    critic_hidden: int = 64
    """How wide the layers of a ``network`` are."""
    hidden: int = 128
    noise: int = 32
    temperature: float = 0.7
    rate: float = 2e-3
    steps: int = 4
    """Of the generator, after each step of the critic."""
    batch: int = 512
    decay: float = 0.98
    """Of the running mean of the generator's weights, which the rows are made with."""

    def __post_init__(self) -> None:
        for name in ("critic_hidden", "hidden", "noise", "steps", "batch"):
            natural(getattr(self, name), name, most=2**16)
        for name in ("temperature", "rate"):
            positive(getattr(self, name), name)
        probability(self.decay, "decay")


class GeneratorCourse:
    """A generator and how far it has learned. It is handed noisy weights of a critic, and nothing else ever.

    Guarantee: its weights are a function of ``seed``, ``shares`` and the weights that :meth:`learn` was handed, in
    their order: whoever has these gets the same generator again, bit by bit. So it is post-processing of what a run has
    released, and costs nothing. Assumes: ``shares`` are noisy, or public. Public: all of it.
    Proof: docs/proofs/generative.md
    """

    def __init__(
        self, sizes: Sequence[int], critic: CellCritic, shares: Tensor | None, *, seed: int, settings: GeneratorSettings
    ) -> None:
        self.sizes, self.shares, self.settings = tuple(sizes), shares, settings
        self._critic = copy.deepcopy(critic).requires_grad_(requires_grad=False)
        self._generator = begun(lambda: CellGenerator(sizes, hidden=settings.hidden, noise=settings.noise), seed)
        if shares is not None:
            self._generator.begin_at(shares)
        self.averaged = copy.deepcopy(self._generator).requires_grad_(requires_grad=False)
        """The running mean, which rows are made with."""
        self._optimizer = torch.optim.Adam(self._generator.parameters(), lr=settings.rate, betas=(0.5, 0.9))
        self._own, self._others = (torch.Generator().manual_seed(seed + place) for place in (1, 2))
        self._turns = 0

    def draw_anew(self, seed: int, number: int) -> None:
        """Draw from here on as in this round of a run with this seed, whatever was drawn before. Public."""
        digest = hashlib.sha256(f"round {number} of a generator {seed}".encode()).digest()
        first = int.from_bytes(digest[:6], "big")
        self._own, self._others = (torch.Generator().manual_seed(first + place) for place in (1, 2))

    def kept(self) -> npt.NDArray[np.float64]:
        """All that the generator has learned, its optimizer and its running mean, as one vector. Public."""
        now = list(self._generator.parameters())
        memory = [self._optimizer.state[one][name] for name in ("exp_avg", "exp_avg_sq") for one in now]
        parts = [one.detach().flatten() for one in (*now, *self.averaged.parameters(), *memory)]
        return np.asarray(torch.cat(parts).double().numpy())

    def take_up(self, kept: npt.NDArray[np.float64], turns: int) -> None:
        """Be as :meth:`kept` says, after so many turns."""
        now, mean = list(self._generator.parameters()), list(self.averaged.parameters())
        parts = torch.split(torch.from_numpy(kept.copy()).float(), [one.numel() for one in now] * 4)
        count, self._turns = len(now), turns
        with torch.no_grad():
            for one, part in zip((*now, *mean), parts, strict=False):
                one.copy_(part.reshape(one.shape))
        for place, one in enumerate(now):
            self._optimizer.state[one] = {
                "step": torch.tensor(float(turns * self.settings.steps)),
                "exp_avg": parts[2 * count + place].reshape(one.shape).clone(),
                "exp_avg_sq": parts[3 * count + place].reshape(one.shape).clone(),
            }

    def fakes(self, number: int) -> Tensor:
        """Rows for the critic to learn from, which no gradient goes through."""
        with torch.no_grad():
            return self._made(self._generator, number, self._others)

    def learn(self, weights: Mapping[str, Tensor]) -> None:
        """Learn from a critic with these weights: make rows that it takes for rows of the data."""
        for _ in range(self.settings.steps):
            rows = self._made(self._generator, self.settings.batch, self._own)
            judged = functional_call(self._critic, dict(weights), (rows,))
            self._optimizer.zero_grad()
            torch.autograd.backward(self._critic.deemed_real(judged).mean())
            self._optimizer.step()
        self._turns += 1
        decay = min(self.settings.decay, self._turns / (self._turns + 10))
        with torch.no_grad():
            for mean, now in zip(self.averaged.parameters(), self._generator.parameters(), strict=True):
                mean.lerp_(now, 1 - decay)

    def cells(self, number: int, random: torch.Generator, given: Tensor | None = None) -> Tensor:
        """Finished rows as numbers of their cells, one for each column; ``given`` is one condition for all of them."""
        with torch.no_grad():
            rows = self._made(self.averaged, number, random, given)
            return torch.stack([part.argmax(1) for part in torch.split(rows, list(self.sizes), dim=1)], dim=1)

    def _made(
        self, generator: CellGenerator, number: int, random: torch.Generator, given: Tensor | None = None
    ) -> Tensor:
        noise = torch.randn(number, self.settings.noise, generator=random)
        known = self._conditions(number, random) if given is None else given.expand(number, -1)
        rows = drawn_cells(generator(noise, known), self.sizes, random, temperature=self.settings.temperature)
        return set_column(rows, known, self.sizes)

    def _conditions(self, number: int, random: torch.Generator) -> Tensor:
        """A column for each row, each alike, and a value of it by the noisy shares; zeros where there are none."""
        if self.shares is None:
            return torch.zeros(number, sum(self.sizes))
        values = torch.multinomial(self.shares / len(self.sizes), number, replacement=True, generator=random)
        return torch.nn.functional.one_hot(values, sum(self.sizes)).to(torch.float32)


class PairOptimizer(torch.optim.Optimizer):
    """Learns for a critic of pairs: the mean of all noisy gradients so far, less what made rows are like now.

    The gradient of a critic that is linear does not depend on its weights, so noisy ones of all steps are of the same
    thing and are averaged. The difference is followed with the part ``lr`` in each step.

    Guarantee: made rows are a function of what was released before, so their gradient is, and needs neither clip nor
    noise. Public: all of it.
    """

    def __init__(self, parameters: Sequence[Tensor], *, course: GeneratorCourse, lr: float) -> None:
        super().__init__(parameters, {"lr": lr})
        self._course, self._steps = course, 0

    def go_on(self, steps: int) -> None:
        """Go on as after so many steps, whose mean was given back."""
        self._steps = steps

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # a run has one gradient a step, and no closure
        """Take in a noisy gradient, and follow the difference."""
        del closure
        self._steps += 1
        ((one,),) = (group["params"] for group in self.param_groups)
        if one.grad is None:
            return
        rows = self._course.fakes(self._course.settings.batch)
        made = rows.T @ rows / len(rows)  # the gradient of the mean judgement of made rows
        real = self.state[one].setdefault("real", torch.zeros_like(one))
        real.add_((one.grad - real) / self._steps)
        one.lerp_(-real - made, self.param_groups[0]["lr"])


class NetworkOptimizer(torch.optim.Adam):
    """Learns for a network from the noisy gradient of the run, which is about real rows, and adds that of made ones.

    Guarantee: as for :class:`PairOptimizer`. Made rows are clipped all the same, row by row and like real ones: a
    gradient that is cut on one side alone would draw the critic to the other. Public: all of it.
    """

    def __init__(
        self, parameters: Sequence[Tensor], *, critic: CellCritic, course: GeneratorCourse, clip: float, lr: float
    ) -> None:
        super().__init__(parameters, lr=lr, betas=(0.5, 0.9))
        self._course, self._twin = course, copy.deepcopy(critic)
        self._names = [name for name, _ in critic.named_parameters()]
        self._engine = Engine(self._twin, lambda judged, _: self._twin.deemed_fake(judged), clip=clip)

    def step(self, closure: None = None) -> None:  # type: ignore[override]  # a run has one gradient a step, and no closure
        """Add the mean gradient of made rows, then learn."""
        del closure
        given = self.param_groups[0]["params"]
        self._twin.load_state_dict({name: one.detach() for name, one in zip(self._names, given, strict=True)})
        rows = self._course.fakes(self._course.settings.batch)
        summed = self._engine.sum(rows, torch.zeros(len(rows)))
        for name, one in zip(self._names, given, strict=True):
            one.grad = (0 if one.grad is None else one.grad) + summed.sums[name].to(one) / len(rows)
        super().step()
