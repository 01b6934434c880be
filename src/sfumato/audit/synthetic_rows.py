"""Attacks on synthetic rows as users make them: with one person and without, through a vault, many times."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sfumato.audit.membership import row_density
from sfumato.audit.verdict import Attack
from sfumato.core.budget import Budget
from sfumato.core.exact import Exact
from sfumato.core.foreign import Array
from sfumato.core.units import record
from sfumato.mechanisms import Laplace
from sfumato.tables.table import Table
from sfumato.vault import Vault

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

__all__ = ["MEMBERSHIP", "RESAMPLED", "made_by_vault", "resampled"]

LARGE = Budget(epsilon=10**6, delta="1/1000000")
ROWS = 2_000
RUNS = 60
"""Of each of the two worlds; each is a release, which takes some 20 ms."""
MANY_RUNS = 400
"""Of what makes no release: enough to refute it at the confidence that one row of a long table has."""


def made_by_vault(
    *, epsilon: Exact, delta: Exact = 0, values: int = 2, rows: int = ROWS
) -> "Callable[[Integers], Integers]":
    """A generator for the attacks: ``table.synthesize`` on rows of whole numbers below ``values``, each time anew."""

    opened: dict[bytes, Table] = {}  # a vault for each of the worlds: what is drawn is new each time

    def make(people: "Integers") -> "Integers":
        import numpy as np
        import pyarrow as pa

        names = [f"column {place}" for place in range(people.shape[1])]
        table = opened.get(people.tobytes())
        if table is None:
            vault = Vault(unit=record(relation="add/remove"), budget=LARGE, name="audit")
            data = pa.table({name: people[:, place] for place, name in enumerate(names)})
            keys = {name: list(range(values)) for name in names}
            table = opened[people.tobytes()] = vault.table(data, name="invented", version="1", keys=keys)
        made = table.synthesis(rows=rows).release(epsilon=epsilon, delta=delta, fresh=True).rows
        return np.stack([made[name].to_numpy() for name in names], axis=1)

    return make


def resampled(random: "np.random.Generator", times: int = 5) -> "Callable[[Integers], Integers]":
    """A generator without any protection: rows of the data themselves, drawn again. An attack must see through it."""

    def make(people: "Integers") -> "Integers":
        return people[random.integers(0, len(people), times * len(people))]

    return make


def _scores(make: "Callable[[], Callable[[Integers], Integers]]", *, target: bool) -> Callable[[int], Array]:
    """The density of the rows at the target, in this many runs; 29 people are like the target, and 30 are not."""

    def play(size: int) -> Array:
        import numpy as np

        people = np.repeat([[0], [1]], [30, 29 + target], axis=0)
        maker, one = make(), np.array([[1]])
        return np.array([row_density(maker(people), one)[0] for _ in range(size)])

    return play


def _resampled() -> "Callable[[Integers], Integers]":
    """Of people whose rows are all alike, but for the target's; a million to one that the target's is not drawn."""
    import numpy as np

    make = resampled(np.random.default_rng(), times=15)
    return lambda people: make(np.concatenate([people[people[:, 0] == 0], people[59:]]))


MEMBERSHIP = Attack(
    name="synthetic rows: membership",
    kind=Laplace.KIND,
    epsilon=1.0,
    delta=0.0,
    here=_scores(lambda: made_by_vault(epsilon=1), target=True),
    there=_scores(lambda: made_by_vault(epsilon=1), target=False),
    share=0.0,  # sixty runs prove little of it
    most=RUNS,
)
RESAMPLED = Attack(
    name="synthetic rows resampled from the data: membership",
    kind=Laplace.KIND,
    epsilon=1.0,
    delta=0.0,
    here=_scores(_resampled, target=True),
    there=_scores(_resampled, target=False),
    most=MANY_RUNS,
)
