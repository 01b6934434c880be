"""Forecasts from releases alone: the same phase of earlier seasons, weighed down the older they are.

x̂(T + h) = Σ_j w_j·x̃(T + h − j·season), the w_j falling off by (1 − weight): seasonal exponential smoothing; with
weight 1 it is the last season again. x̃ are the released steps. Its error has two parts: the noise of the
x̃ in it, whose law is known, and how much the exact series changes from season to season, which is worked out from the
past errors of the same forecast less the noise that was in them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from sfumato.core.exact import Exact, natural
from sfumato.core.release import Release
from sfumato.errors import InvalidInput
from sfumato.inference.derived import Derived, Label
from sfumato.laws.margins import level_of
from sfumato.streams.post.measurements import Measured

if TYPE_CHECKING:
    from sfumato.streams.strategy_encoder import Floats

__all__ = ["WEIGHTS", "Forecast", "forecast"]

WEIGHTS = (1.0, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0.05)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Forecast(Derived):
    """Numbers of steps to come.

    :meth:`interval` is a prediction interval for the exact number of the step, not for a noisy one: ``noise`` is the
    standard deviation that the privacy noise gives the forecast, ``change`` how much the exact series moves. About as
    sure as it says, if the series goes on as it went; no bound.
    """

    caveat: ClassVar[str | None] = "stream.forecast"
    covers: ClassVar[str] = "stream_plot.model_band"
    numbers: tuple[float, ...]
    noise: tuple[float, ...]
    change: tuple[float, ...]
    seen: tuple[int, ...]
    weight: float
    labels: Mapping[str, tuple[Label, ...]]
    measure: str
    sources: tuple[Release, ...]

    @property
    def values(self) -> tuple[float, ...]:
        """The numbers."""
        return self.numbers

    def _data_interval(self, confidence: Exact = Fraction(19, 20), *, joint: bool = False) -> list[tuple[float, float]]:
        """Low and high of each exact number to come; with ``joint`` of all of them, by the union bound."""
        from scipy.stats import t

        doubt = float(1 - level_of(confidence)) / (len(self.numbers) if joint else 1)
        found = []
        for value, noise, change, seen in zip(self.numbers, self.noise, self.change, self.seen, strict=True):
            margin = float(t.ppf(1 - doubt / 2, seen)) * math.hypot(noise, change)
            found.append((value - margin, value + margin))
        return found


def forecast(release: Release, *, steps: int, season: int = 1, weight: float | None = None) -> Forecast:
    """Forecast the next ``steps`` steps of a stream from its release, with prediction intervals.

    ``season`` is how many steps a season has (24 of hours, 7 of days; 1 for a series without one). ``weight`` is that
    of the newest season, from 0 to 1; without it the one is taken that forecast the released past best.

    Guarantee: post-processing; nothing is charged. Assumes, for the intervals alone, that the series goes on as it went
    and that its changes are roughly normal.

    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=1), name="arrivals")
    >>> running = vault.stream(name="er", version="1", horizon=70).running_total().open(epsilon=1)
    >>> _ = running.add_many([5, 9, 2, 2, 3, 8, 9] * 10)
    >>> forecast(running.close(), steps=7, season=7).labels["step"]
    (71, 72, 73, 74, 75, 76, 77)
    """
    import numpy as np

    natural(steps, "steps", most=10_000)
    natural(season, "season")
    if weight is not None and not 0 < weight <= 1:
        raise InvalidInput(f"weight = {weight} must be above 0 and at most 1; nothing was computed.")
    measured = Measured.of(release)
    told, ahead = measured.query.told, -(-steps // season)
    if told < (ahead + 2) * season:
        raise InvalidInput(
            f"{told} steps do not hold {ahead + 2} seasons of {season}, which a forecast of {steps} steps is judged "
            "by; nothing was computed."
        )
    if measured.query.groups:
        raise InvalidInput("a forecast is of one series, and this release has groups; nothing was computed.")
    matrix = measured.matrix
    back = np.asarray(np.linalg.solve(matrix.T @ matrix, matrix.T), dtype=np.float64)  # x̃ = back·Y, for a tree too
    taken = WEIGHTS if weight is None else (float(weight),)
    best = min(taken, key=lambda one: float((_errors(back, told, season, one, 1) @ measured.y[:, 0]).var()))
    newest = [told + place - (place // season + 1) * season for place in range(steps)]
    rows = np.array([_row(place, told, season, best) for place in newest]) @ back
    changes = [_change(measured, back, season, best, number + 1) for number in range(ahead)]
    return Forecast(
        numbers=tuple((rows @ measured.y[:, 0]).tolist()),
        noise=tuple(np.sqrt(measured.variance * (rows**2).sum(axis=1)).tolist()),
        change=tuple(changes[place // season][0] for place in range(steps)),
        seen=tuple(changes[place // season][1] for place in range(steps)),
        weight=best,
        labels={"step": tuple(range(told + 1, told + steps + 1))},
        measure="number",
        sources=(release,),
    )


def _row(newest: int, told: int, season: int, weight: float) -> "Floats":
    """By what each of ``told`` steps counts in a forecast from a place (from 0) and those of its phase before it."""
    import numpy as np

    places = np.arange(newest, -1, -season)
    fading = weight * (1 - weight) ** np.arange(len(places))
    fading[-1] = (1 - weight) ** (len(places) - 1)  # the oldest stands for all before it
    found = np.zeros(told)
    found[places] = fading
    return found


def _errors(back: "Floats", told: int, season: int, weight: float, ahead: int) -> "Floats":
    """Rows by which the measurements make the past errors of a forecast some seasons ahead.

    Half of the past is there to learn from, half to be judged by.
    """
    import numpy as np

    first = (ahead + (told // season - ahead) // 2) * season
    rows = np.array([-_row(step - ahead * season, told, season, weight) for step in range(first, told)])
    rows[np.arange(told - first), np.arange(first, told)] += 1
    return np.asarray(rows @ back)


def _change(measured: Measured, back: "Floats", season: int, weight: float, ahead: int) -> tuple[float, int]:
    """How much the exact series moves in some seasons, and from how many past errors that is known.

    The mean square of the errors less that of the noise in them, and one standard error of it on top.
    """
    import numpy as np

    errors = _errors(back, measured.query.told, season, weight, ahead)
    noisy = float(np.mean((errors @ measured.y[:, 0]) ** 2))
    noise = measured.variance * float(np.mean((errors**2).sum(axis=1)))
    return math.sqrt(max(0.0, noisy - noise) + noisy * math.sqrt(2 / len(errors))), len(errors)
