"""Consistency: hours that add up to days and weeks, groups that add up to their total, from several releases at once.

One running total is consistent as it is: its hours are differences of totals, and add up to its days. Where several
streams tell of the same steps at different resolutions, or by group and in all, they contradict each other by their
noise. Generalised least squares over the known noise finds the one series that fits them all best; whatever is added up
from it agrees, and is at least as exact as each release alone.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.core.exact import natural
from sfumato.core.release import Release
from sfumato.errors import InvalidInput
from sfumato.inference.derived import Label
from sfumato.streams.post.linear import Linear, LinearPart
from sfumato.streams.post.measurements import MOST, Measured

if TYPE_CHECKING:
    from sfumato.streams.strategy_encoder import Floats

__all__ = ["Seasons", "consistent"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seasons:
    """The fitted number of every step and group, and the sums that are made of them."""

    cells: "Floats"  # steps × groups
    free: "Floats"  # the same before they were held to 0 from below
    parts: tuple[LinearPart, ...]
    groups: tuple[str, ...]
    sources: tuple[Release, ...]
    floor: float | None

    def by(self, width: int = 1, *, by_group: bool = True) -> Linear:
        """The sums over ``width`` steps in a row, by group or over all groups; steps are counted from 1, by ``width``.

        Where steps are left over at the end, their sum is left out.
        """
        import numpy as np

        steps, many = self.cells.shape
        count = steps // natural(width, "width", most=steps)
        apart = by_group and bool(self.groups)
        sums = np.zeros((count * (many if apart else 1), steps * many))
        for place in range(count):
            for group in range(many):
                row = place * many + group if apart else place
                sums[row, group + many * np.arange(place * width, (place + 1) * width)] = 1
        labels: dict[str, tuple[Label, ...]] = {
            "step": tuple(place + 1 for place in range(count) for _ in range(many if apart else 1))
        }
        if apart:
            labels["group"] = tuple(group for _ in range(count) for group in self.groups)
        return Linear(
            numbers=tuple((sums @ self.cells.ravel()).tolist()),
            parts=tuple(part.picked(sums) for part in self.parts),
            labels=labels,
            measure="number",
            sources=self.sources,
            floor=self.floor,
            centres=None if self.floor is None else tuple((sums @ self.free.ravel()).tolist()),
        )


def consistent(*given: Release | tuple[Release, int], non_negative: bool = False) -> Seasons:
    """Fit one series to releases of running totals of the same steps.

    Each is a release, or a pair of a release and how many of the finest steps one of its steps holds: ``hourly,
    (daily, 24)``. A release without groups speaks of the sum over the groups of the others. With ``non_negative`` the
    fit stays from 0 on, as counts are: that is less wrong, and no longer linear; its intervals are those of the linear
    fit without what lies below 0 and stretched to the fit where need be; they cover as often.

    Guarantee: post-processing; nothing is charged. Without ``non_negative`` unbiased, and of the least variance that a
    linear unbiased fit to these releases has. Assumes: the streams counted the same things, none held to its bounds or
    its limit where another was not.

    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=2), name="arrivals")
    >>> hours = vault.stream(name="er", version="1", horizon=48).running_total().open(epsilon=1)
    >>> days = vault.stream(name="er", version="1", horizon=2, bounds=(0, 999)).running_total().open(epsilon=1)
    >>> _ = hours.add_many([2] * 48), days.add_many([48, 48])
    >>> fit = consistent(hours.close(), (days.close(), 24))
    >>> abs(sum(fit.by(1).values[:24]) - fit.by(24).values[0]) < 1e-9
    True
    """
    import numpy as np
    from scipy.linalg import cho_factor, cho_solve

    read = [_read(each) for each in given]
    if not read:
        raise InvalidInput("consistency needs a release; nothing was computed.")
    steps = min(measured.query.told * width for measured, width in read)
    named = {measured.query.groups for measured, _ in read if measured.query.groups}
    if len(named) > 1:
        raise InvalidInput("the releases have different groups; nothing was computed.")
    groups = next(iter(named), ())
    many = max(1, len(groups))
    if steps * many > MOST or not any(width == 1 for _, width in read):
        raise InvalidInput(
            f"a fit needs one release of the finest steps and takes up to {MOST:,} steps and groups together; nothing "
            "was computed."
        )
    rows = [_rows(measured, width, steps, many) for measured, width in read]
    normal = sum(matrix.T @ matrix / measured.variance for (measured, _), (matrix, _) in zip(read, rows, strict=True))
    try:
        factor = cho_factor(normal)
    except np.linalg.LinAlgError:
        raise InvalidInput("these releases do not separate every step and group; nothing was computed.") from None
    maps = [
        cho_solve(factor, matrix.T / measured.variance) for (measured, _), (matrix, _) in zip(read, rows, strict=True)
    ]
    free = np.sum([taken @ y for taken, (_, y) in zip(maps, rows, strict=True)], axis=0)
    cells = _from_zero(np.asarray(normal), free) if non_negative else free
    return Seasons(
        cells=cells.reshape(steps, many),
        free=free.reshape(steps, many),
        parts=tuple(
            LinearPart(mechanism=measured.mechanism, weights=taken)
            for (measured, _), taken in zip(read, maps, strict=True)
        ),
        groups=groups,
        sources=tuple(measured.release for measured, _ in read),
        floor=0.0 if non_negative else None,
    )


def _read(given: Release | tuple[Release, int]) -> tuple[Measured, int]:
    release, width = given if isinstance(given, tuple) else (given, 1)
    return Measured.of(release), natural(width, "width")


def _rows(measured: Measured, width: int, steps: int, many: int) -> "tuple[Floats, Floats]":
    """What the measurements of a release add up of all cells, and these; what lies beyond ``steps`` is left out."""
    import numpy as np

    own = max(1, len(measured.query.groups))
    told = steps // width
    matrix = measured.matrix[:, :told]
    inside = ~(measured.matrix[:, told:] != 0).any(axis=1)
    spread = np.repeat(matrix[inside], width, axis=1)
    fine = np.zeros((spread.shape[0], steps))
    fine[:, : spread.shape[1]] = spread
    y = measured.y[inside]
    if own == 1:
        return np.repeat(fine, many, axis=1), y[:, 0]
    return np.asarray(np.kron(fine, np.eye(many)), dtype=np.float64), y.ravel()


def _from_zero(normal: "Floats", cells: "Floats") -> "Floats":
    """The nearest series without a negative number, in the metric of the noise."""
    import numpy as np
    from scipy.optimize import nnls

    root = np.linalg.cholesky(normal).T
    scale = np.sqrt(np.diag(normal).mean())
    found, _ = nnls(root / scale, root @ cells / scale, maxiter=30 * len(cells))
    return np.asarray(found)
