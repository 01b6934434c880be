"""Rounds of a private critic whose noisy gradients come from elsewhere: what a coordinator learns across sites."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from sfumato.core.exact import Exact, positive
from sfumato.errors import InvalidInput
from sfumato.learning.generative.course import GeneratorCourse, GeneratorSettings, NetworkOptimizer, PairOptimizer
from sfumato.learning.generative.networks import CellCritic, NetworkCritic, PairCritic, begun
from sfumato.learning.person_updates import Loss, flat_weights, put_weights

__all__ = ["CRITIC_RATES", "CriticRounds", "critic_of", "loss_of"]

CRITIC_RATES = {"pairs": 0.5, "network": 1e-3}
Vector = npt.NDArray[np.float64]


def critic_of(sizes: Sequence[int], settings: GeneratorSettings, seed: int) -> CellCritic:
    """A critic of rows with columns of these sizes, that has learned nothing. Public."""
    if settings.critic not in CRITIC_RATES:
        raise InvalidInput(f"critic is one of {', '.join(CRITIC_RATES)}; nothing was done.")
    if settings.critic == "pairs":
        return PairCritic(sizes)
    return begun(lambda: NetworkCritic(sizes, hidden=settings.critic_hidden), seed)


def loss_of(critic: CellCritic) -> Loss:
    """What real rows teach a critic: to take them for real. No made row and no other row is in it."""

    def loss(judged: Tensor, targets: Tensor) -> Tensor:
        del targets
        return critic.deemed_real(judged)

    return loss


class CriticRounds:
    """A server optimizer for a critic: takes noisy gradients of real rows, adds made ones, and teaches a generator.

    Guarantee: :meth:`step` is a function of its arguments and of what was declared. It is handed released numbers and
    has no handle of any data, so the critic's weights and the generator's are post-processing of what was released.
    What it must remember lies in what it gives to be kept: a run that is taken up again learns the same, bit by bit.
    Public: all of it. Proof: docs/proofs/generative.md
    """

    def __init__(
        self, sizes: Sequence[int], *, settings: GeneratorSettings, clip: Exact, lr: float | None = None, seed: int = 0
    ) -> None:
        self.critic = critic_of(sizes, settings, seed)
        self._sizes, self._settings, self._seed = tuple(sizes), settings, seed
        self._clip = float(positive(clip, "clip"))
        self._lr = CRITIC_RATES[settings.critic] if lr is None else float(positive(lr, "lr"))

    def step(
        self, weights: Vector, update: Vector, kept: tuple[Vector, ...], number: int
    ) -> tuple[Vector, tuple[Vector, ...]]:
        """Learn from the noisy gradient of one round; ``number`` counts from 1."""
        course = self.course(kept, number - 1)
        course.draw_anew(self._seed, number)
        put_weights(self.critic, weights.astype(np.float32))
        optimizer = self._optimizer(course)
        _put_state(optimizer, kept[1:], number - 1)
        _put_gradient(self.critic, update)
        optimizer.step()
        course.learn({name: one.detach() for name, one in self.critic.named_parameters()})
        after = flat_weights(self.critic).astype(np.float64)
        return after, (course.kept(), *_state(optimizer))

    def course(self, kept: tuple[Vector, ...], rounds: int) -> GeneratorCourse:
        """The generator as it was after so many rounds, from what they kept."""
        made = GeneratorCourse(self._sizes, self.critic, None, seed=self._seed, settings=self._settings)
        if kept:
            made.take_up(kept[0], rounds)
        return made

    def _optimizer(self, course: GeneratorCourse) -> PairOptimizer | NetworkOptimizer:
        given = list(self.critic.parameters())
        if self._settings.critic == "pairs":
            return PairOptimizer(given, course=course, lr=self._lr)
        return NetworkOptimizer(given, critic=self.critic, course=course, clip=self._clip, lr=self._lr)


def _put_gradient(critic: CellCritic, update: Vector) -> None:
    given, at = torch.from_numpy(update.astype(np.float32)), 0
    for one in critic.parameters():
        one.grad = given[at : at + one.numel()].reshape(one.shape).clone()
        at += one.numel()


def _names(optimizer: torch.optim.Optimizer) -> tuple[str, ...]:
    return ("real",) if isinstance(optimizer, PairOptimizer) else ("exp_avg", "exp_avg_sq")


def _state(optimizer: torch.optim.Optimizer) -> tuple[Vector, ...]:
    """What an optimizer remembers of each weight, one vector for each kind of it."""
    weights = optimizer.param_groups[0]["params"]
    return tuple(
        torch.cat([optimizer.state[one][name].flatten() for one in weights]).double().numpy()
        for name in _names(optimizer)
    )


def _put_state(optimizer: PairOptimizer | NetworkOptimizer, kept: Sequence[Vector], steps: int) -> None:
    """Give an optimizer its memory back, after so many steps."""
    for name, vector in zip(_names(optimizer), kept, strict=False):
        given, at = torch.from_numpy(vector).float(), 0
        for one in optimizer.param_groups[0]["params"]:
            optimizer.state[one][name] = given[at : at + one.numel()].reshape(one.shape).clone()
            if isinstance(optimizer, NetworkOptimizer):
                optimizer.state[one]["step"] = torch.tensor(float(steps))
            at += one.numel()
    if isinstance(optimizer, PairOptimizer):
        optimizer.go_on(steps)
