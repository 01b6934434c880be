"""Two ways to have many draws of one release: many groups in one release, or the mechanism of a certificate.

*Groups.* Where a unit is in one group, each group of one release is a release of its own with noise of its own: what
comes out of as many groups as asked is what the vault released, and nothing else.

*The mechanism of the certificate.* Where a release has one answer, the answers on both neighbours are read off releases
through the vault whose ε is so large that their noise is nil, and the mechanism that the vault calibrated and stated
for the ε attacked is drawn from as often as asked.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Protocol

from sfumato import laws, noise
from sfumato.audit.ways import Heard
from sfumato.core.budget import Budget
from sfumato.core.foreign import Array
from sfumato.core.release import Release
from sfumato.core.units import Unit
from sfumato.vault import Vault

__all__ = [
    "DELTA",
    "HALF_CHARGED",
    "LARGEST",
    "Releases",
    "drawn_again",
    "in_groups",
    "likelihood",
    "new_vault",
    "undercharged",
]

DELTA = Fraction(1, 10**5)
LARGEST = 10**6
"""An ε at which noise on whole numbers is nil, and noise on finer ones at most some parts in 10^5 of that attacked."""
BUDGET = Budget(epsilon=LARGEST, delta=Fraction(1, 10**4))
POPULATION = 9_000
GROUPS = 50_000
HALF_CHARGED = "half of it is charged"
PART = 100_000
LEAST = 1e-4  # of the largest move: what is less is noise of the reading
Releases = Callable[[int, int], Release]


class Noising(Protocol):
    """A mechanism that adds independent noise to each number."""

    def add_noise(self, exact: Sequence[int], words: noise.Words) -> tuple[int, ...]:
        """Add fresh noise to each number."""
        ...


def new_vault(unit: Unit) -> Vault:
    """A vault for invented data, with a budget that nothing here exceeds."""
    return Vault(unit=unit, budget=BUDGET, name="audit", population=POPULATION)


def in_groups(
    release: Callable[[int, int, int], Release], *, epsilon: int = 1, wide: int = 1
) -> Callable[[int, int], Heard]:
    """Scores of the groups of as many releases as it takes.

    ``release`` takes how many units could be told apart, how often each counts, and ε; what is about one of them is
    ``wide`` numbers of each block, side by side. The score is the likelihood ratio that the certificate states.
    """

    @cache  # read off once: both neighbours are scored in the same way
    def move() -> Array:
        return _rows(release(2, 1, LARGEST), 2, wide)[0] - _rows(release(2, 0, LARGEST), 2, wide)[0]

    def play(size: int, times: int) -> Heard:
        import numpy as np

        scores, left, number, last = [], size, 0, None
        while left > 0:
            units = min(left, max(1, GROUPS // wide))
            last = release(units, times, epsilon)
            scores.append(likelihood(_rows(last, units, wide), move(), last.statement.law))
            left, number = left - units, number + 1
        assert last is not None  # noqa: S101 - narrows the type
        return Heard(
            scores=np.concatenate(scores), epsilon=last.charged.epsilon, delta=last.charged.delta, releases=number
        )

    return play


def _rows(release: Release, units: int, wide: int) -> Array:
    """The numbers about each unit, one row for each of them: blocks come one after the other."""
    import numpy as np

    held = np.array(release.statement.values, dtype=np.float64).reshape(-1, units, wide)
    return held.transpose(1, 0, 2).reshape(units, -1)


def drawn_again(release: Releases, *, epsilon: int = 1) -> Callable[[int, int], Heard]:
    """Scores of the mechanism that a certificate names, on the answers of both neighbours.

    ``release`` takes how often the unit counts and ε, and answers with a release through a vault.
    """

    @cache  # read off once: both neighbours are scored in the same way
    def answers(times: int) -> Array:
        import numpy as np

        return np.array(release(times, LARGEST).statement.values, dtype=np.int64)

    def play(size: int, times: int) -> Heard:
        import numpy as np

        without, with_it, asked = (answers(many) for many in (0, 1, times))
        moved = np.flatnonzero(np.abs(with_it - without) > LEAST * np.abs(with_it - without).max())
        made = release(times, epsilon)
        parts = [min(PART, size - first) for first in range(0, size, PART)]
        scores = [
            likelihood(
                _noisy(made, asked[moved], part) - without[moved], (with_it - without)[moved], made.statement.law
            )
            for part in parts
        ]
        return Heard(scores=np.concatenate(scores), epsilon=made.charged.epsilon, delta=made.charged.delta, releases=2)

    return play


def _noisy(release: Release, exact: Array, size: int) -> Array:
    """This many draws of the mechanism of a release, one row each."""
    import numpy as np

    mechanism: Noising = release.statement.mechanism  # type: ignore[assignment]  # those that are drawn again add noise
    told = mechanism.add_noise(np.tile(exact, size).tolist(), noise.SystemWords())
    return np.array(told, dtype=np.float64).reshape(size, len(exact))


def likelihood(rows: Array, move: Array, law: object) -> Array:
    """The log of how much likelier each row is with the move than without, as the stated law has it."""
    import numpy as np

    if isinstance(law, laws.DiscreteLaplace):
        ratio = (np.abs(rows) - np.abs(rows - move)).sum(axis=1) / float(law.scale)
        return np.round(ratio, 9)
    along = move / max(1e-300, float((move * move).sum()) ** 0.5)
    found: Array = rows @ along
    return found


def undercharged(play: Callable[[int, int], Heard], by: int = 2) -> Callable[[int, int], Heard]:
    """A broken copy: the same, where the certificate has half (or less) of the ε that the noise was calibrated for."""

    def broken(size: int, times: int) -> Heard:
        heard = play(size, times)
        return replace(heard, epsilon=heard.epsilon / by)

    return broken
