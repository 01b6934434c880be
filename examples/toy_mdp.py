"""A small world to learn policies in, with returns that are known exactly: a made-up clinic.

A patient is in one of a few states; at each visit one of two treatments is given, and a reward tells how well the
patient is. What a policy is worth comes from dynamic programming and not from samples, so that an update can be judged.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sfumato.errors import InvalidInput

__all__ = ["CLINIC", "World", "exact_return", "policy", "trajectories"]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Where ``moves[state][action]`` are the chances of the next states, ``rewards[state]`` what a visit there brings.

    Everybody starts in state 0 and makes ``visits`` visits. Public: every field; there is no data in it.
    """

    moves: tuple[tuple[tuple[float, ...], ...], ...]
    rewards: tuple[float, ...]
    visits: int

    def __post_init__(self) -> None:
        rows = [row for actions in self.moves for row in actions]
        if len(self.moves) != len(self.rewards) or any(len(row) != len(self.rewards) for row in rows):
            raise InvalidInput("a world has chances of all its states for each state and action; nothing was done.")
        if any(abs(sum(row) - 1) > 1e-9 or min(row) < 0 for row in rows):
            raise InvalidInput("the chances of the next states are not negative and add up to 1; nothing was done.")


CLINIC = World(
    moves=(
        ((0.7, 0.2, 0.1), (0.3, 0.6, 0.1)),  # ill: the second treatment helps
        ((0.1, 0.8, 0.1), (0.4, 0.5, 0.1)),  # better: the first one keeps it so
        ((0.2, 0.2, 0.6), (0.6, 0.2, 0.2)),  # relapsed: the second one brings back
    ),
    rewards=(0.0, 1.0, -1.0),
    visits=6,
)


def policy(states: int, actions: int) -> nn.Linear:
    """A table of logits as a model: one-hot states in, logits of actions out, even at first.

    >>> policy(3, 2)(torch.eye(3)).detach().abs().sum()
    tensor(0.)
    """
    made = nn.Linear(states, actions, bias=False)
    nn.init.zeros_(made.weight)
    return made


def exact_return(world: World, model: nn.Module) -> float:
    """The expected sum of rewards over all visits, by going backwards through them.

    >>> round(exact_return(CLINIC, policy(3, 2)), 4)
    1.7121
    """
    with torch.no_grad():
        chances = model(torch.eye(len(world.rewards))).double().softmax(1)
    moves = torch.tensor(world.moves, dtype=torch.float64)
    rewards = torch.tensor(world.rewards, dtype=torch.float64)
    step = torch.einsum("sa,san->sn", chances, moves)
    value = torch.zeros_like(rewards)
    for _ in range(world.visits):
        value = rewards + step @ value
    return float(value[0])


def trajectories(
    world: World, model: nn.Module, number: int, *, baseline: Sequence[float] = (), seed: str = "clinic"
) -> tuple[Tensor, Tensor]:
    """Invented patients treated by a policy: one-hot states (number × visits × states) and targets for the loss.

    The targets are the action taken and what it brought: the sum of the rewards after it, less the ``baseline`` of that
    visit (public numbers, none by default). Chance comes from a hash of the seed: patients are invented, not noise.

    >>> states, targets = trajectories(CLINIC, policy(3, 2), 10)
    >>> states.shape, targets.shape
    (torch.Size([10, 6, 3]), torch.Size([10, 6, 2]))
    """
    with torch.no_grad():
        chances = model(torch.eye(len(world.rewards))).double().softmax(1)
    moves = torch.tensor(world.moves, dtype=torch.float64).cumsum(2)
    draws = _uniform(2 * number * world.visits, seed).view(world.visits, 2, number, 1)
    state, seen, taken, brought = torch.zeros(number, dtype=torch.long), [], [], []
    for visit in range(world.visits):
        seen.append(state)
        action = (draws[visit, 0] > chances.cumsum(1)[state]).sum(1).clamp(max=chances.shape[1] - 1)
        state = (draws[visit, 1] > moves[state, action]).sum(1).clamp(max=len(world.rewards) - 1)
        taken.append(action)
        brought.append(torch.tensor(world.rewards)[state])
    brought[-1] = torch.zeros(number)  # after the last visit nothing is counted
    to_go = torch.stack(brought, 1).flip(1).cumsum(1).flip(1)
    less = torch.tensor(tuple(baseline) or (0.0,) * world.visits)
    states = nn.functional.one_hot(torch.stack(seen, 1), len(world.rewards)).float()
    return states, torch.stack([torch.stack(taken, 1).float(), to_go - less], 2)


def _uniform(number: int, seed: str) -> Tensor:
    text = b"".join(hashlib.sha256(f"{seed}:{i}".encode()).digest() for i in range(-(-number // 8)))
    words = torch.frombuffer(bytearray(text), dtype=torch.int32)[:number].double()
    return (words + 2**31 + 0.5) / 2**32
