"""Trajectories from releases: which of several known ways through a building did somebody take?

The adversary knows everybody else, and holds a list of trajectories of which one is the true one (a badge log of
somewhere else, a diary, the habits of colleagues). Counts by room were released step by step. The best guess is the
trajectory that fits the released numbers best. At event level each step is protected by itself and the hints of many
steps add up; at user level the whole trajectory is. Claims: S4-16, S4-19.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.core.units import Unit, User
from sfumato.errors import InvalidInput
from sfumato.streams.noise import SeriesNoise
from sfumato.streams.post.measurements import Measured, design
from sfumato.streams.total import RunningTotal

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]
    Integers = npt.NDArray[np.int64]

__all__ = ["ReconstructionRate", "best_guess", "in_rooms", "read_off", "reconstruction", "stream_of_rooms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconstructionRate:
    """How often the adversary named the right trajectory out of ``candidates``, after a number of steps.

    ``epsilon`` and ``delta`` are the guarantee for a person over the whole stream: at event level that of all steps
    together. Public: outcomes of an experiment on invented people.
    """

    steps: int
    candidates: int
    tries: int
    right: int
    epsilon: float
    delta: float

    @property
    def accuracy(self) -> float:
        """The share of right guesses."""
        return self.right / self.tries

    @property
    def blind(self) -> float:
        """The share that guessing without any release gets right."""
        return 1 / self.candidates

    @property
    def allowed(self) -> float:
        """The most that any adversary gets right on average: e^ε·blind + δ, since without the person every guess is as
        good as blind.

        >>> ReconstructionRate(steps=9, candidates=16, tries=1, right=0, epsilon=0.0, delta=0.0).allowed
        0.0625
        """
        return min(1.0, math.exp(min(self.epsilon, 50.0)) * self.blind + self.delta)


def in_rooms(trajectories: "Integers", rooms: int) -> "Integers":
    """Trajectories, a row for each person with a room or −1 in each step, as 0 and 1: people × steps × rooms.

    >>> import numpy as np
    >>> in_rooms(np.array([[1, -1]]), 2).tolist()
    [[[0, 1], [0, 0]]]
    """
    import numpy as np

    return np.equal(np.asarray(trajectories)[:, :, None], np.arange(rooms)).astype(np.int64)


def stream_of_rooms(steps: int, rooms: int, people: int, unit: Unit) -> RunningTotal:
    """Counts by room for a unit: an event, or a person who may be there in every step."""
    return RunningTotal(
        dataset=Dataset(name="rooms", edition="audit"),
        horizon=steps,
        told=steps,
        lower=0,
        upper=max(1, people),
        each=1,
        times=steps if isinstance(unit, User) else 1,
        separation=1,
        groups=tuple(f"room {room}" for room in range(rooms)),
    )


def best_guess(told: "Floats", mechanism: SeriesNoise, others: "Integers", candidates: "Integers") -> int:
    """The candidate that fits the released measurements best: the most likely one under Gaussian noise.

    ``told`` are the measurements in units of 1, a column for each room, ``others`` the exact counts of everybody else
    (steps × rooms), ``candidates`` what each trajectory would add (candidates × steps × rooms).
    """
    import numpy as np

    matrix = design(mechanism.strategy, len(others))
    left = told - matrix @ others
    fits = [float(((left - matrix @ each) ** 2).sum()) for each in candidates]
    return int(np.argmin(fits))


def read_off(release: Release) -> "Floats":
    """The measurements of a release of a stream, as the adversary reads them off its certificate."""
    return Measured.of(release).y


def reconstruction(
    trajectories: "Integers",
    *,
    rooms: int,
    steps: int,
    unit: Unit,
    epsilon: Fraction | int | str,
    delta: Fraction | float | str,
    tries: int,
    candidates: int = 16,
    strategy: str = "best",
) -> ReconstructionRate:
    """Play the attack on a stream of counts by room as it would run for a unit and a spend, and count right guesses.

    The first ``candidates`` people of ``trajectories`` are the list; the others are in the building. In each try
    another of the candidates is there, all equally often, with fresh noise from the operating system.
    """
    import numpy as np

    from sfumato.noise import SystemWords
    from sfumato.streams.strategy_encoder import encoder_of

    ways = in_rooms(np.asarray(trajectories)[:, :steps], rooms)
    if not 2 <= candidates < len(ways) or ways.shape[1] < steps:
        raise InvalidInput("the attack needs two candidates, somebody else, and as many steps; nothing was done.")
    spend, query = Budget.asked(epsilon=epsilon, delta=delta), stream_of_rooms(steps, rooms, len(ways), unit)
    mechanism = query.mechanism(unit, spend, strategy)
    others, listed, words, right = ways[candidates:].sum(axis=0), ways[:candidates], SystemWords(), 0
    exact = [
        np.stack([encoder_of(mechanism.strategy).measure((others + one)[:, room]) for room in range(rooms)], axis=1)
        for one in listed
    ]
    for number in range(tries):
        true = number % candidates
        noise = mechanism.drawn(exact[true].size, words).reshape(exact[true].shape)
        told = (exact[true] + noise) / 2.0**mechanism.strategy.bits
        right += best_guess(told, mechanism, others, listed) == true
    times = 1 if isinstance(unit, User) else steps
    whole = _group(float(spend.epsilon), float(spend.delta), times)
    return ReconstructionRate(
        steps=steps, candidates=candidates, tries=tries, right=right, epsilon=whole[0], delta=whole[1]
    )


def _group(epsilon: float, delta: float, times: int) -> tuple[float, float]:
    """(ε, δ) for a person with a given number of events."""
    total = times * epsilon
    if total > 50:
        return total, 1.0 if delta else 0.0
    added = delta * (math.expm1(total) / math.expm1(epsilon) if epsilon else times)
    return total, min(1.0, added)
