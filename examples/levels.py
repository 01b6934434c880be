"""One series at several levels of protection, released again and again and held beside the truth.

For public data only, to see what a margin is worth: of private data the truth may not be shown, and every further
release would be charged.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sfumato.core.exact import Exact, natural
from sfumato.core.extras import need
from sfumato.errors import InvalidInput
from sfumato.reports.plots.theme import dressed, palette
from sfumato.streams.running import RunningTotals
from sfumato.streams.stream import TotalQuestion

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Level", "released", "side_by_side", "table"]

Steps = Sequence[int] | Sequence[Sequence[int | str]] | Sequence[Mapping[str, int]]
RUNS = 10
PANEL = (330, 230)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Level:
    """What was released at one level: a row a release, a column a number; with the truth and the stated 95% margins."""

    name: str
    exact: "npt.NDArray[np.float64]"
    told: "npt.NDArray[np.float64]"
    margins: "npt.NDArray[np.float64]"

    @property
    def errors(self) -> "npt.NDArray[np.float64]":
        """What was released less the truth."""
        return self.told - self.exact

    @property
    def rmse(self) -> float:
        """The root of the mean squared error, over all numbers of all releases."""
        return float((self.errors**2).mean() ** 0.5)

    @property
    def margin(self) -> float:
        """The stated 95% margin, on average."""
        return float(self.margins.mean())

    @property
    def held(self) -> float:
        """The share of numbers that were off by no more than their margin."""
        return float((abs(self.errors) <= self.margins).mean())


def released(
    name: str,
    question: TotalQuestion,
    steps: Steps,
    *,
    epsilon: Exact,
    delta: Exact = 0,
    exact: Sequence[float] | None = None,
    width: int | None = None,
    runs: int = RUNS,
    unit: int = 1,
) -> Level:
    """Open a question ``runs`` times, each time charged, and hand it the same steps: numbers, ids, or amounts by id.

    Released are the totals after each step, or with a ``width`` the sums of that many consecutive steps. ``exact``
    is what the steps truly were, where that differs from what may count; ``unit`` divides everything.

    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=9, delta=1e-6), name="rides")
    >>> question = vault.stream(name="rides", version="1", horizon=4).running_total()
    >>> released("one ride", question, [5, 6, 7, 8], width=2, runs=2, epsilon=1, delta=1e-7).exact.tolist()
    [11.0, 15.0]
    """
    import numpy as np

    wide = natural(1 if width is None else width, "width")
    if exact is None and not all(isinstance(step, int) for step in steps):
        raise InvalidInput("lists of ids do not say what is true of the steps; nothing was opened. Say exact=….")
    steps = steps[: len(steps) // wide * wide]  # what does not fill a sum is left out
    totals, margins = [], question.margins(epsilon=epsilon, delta=delta)[: len(steps)] if width is None else ()
    for _ in range(natural(runs, "runs")):
        running = question.open(epsilon=epsilon, delta=delta)
        if margins:
            _add(running, steps)
        else:
            margins = tuple(_sum(running, steps[first : first + wide], wide) for first in range(0, len(steps), wide))
        totals.append(running.totals)
    truth = np.cumsum([0, *(exact if exact is not None else steps)])
    every = np.concatenate([np.zeros((len(totals), 1)), np.array(totals)], axis=1)
    ends = np.arange(wide, every.shape[1], wide)
    before = np.zeros_like(ends) if width is None else ends - wide
    return Level(
        name=name,
        exact=(truth[ends] - truth[before]) / unit,
        told=(every[:, ends] - every[:, before]) / unit,
        margins=np.array(margins) / unit,
    )


def table(levels: Iterable[Level]) -> str:
    """What each level cost: its margin, also as a share of the true mean, the error seen, and how often it held."""
    lines = [f"{'protected':28}{'margin':>10}{'of the mean':>13}{'error seen':>12}{'held in':>9}"]
    for level in levels:
        share = level.margin / abs(float(level.exact.mean()))
        lines.append(
            f"{level.name:28}{'±' + _short(level.margin):>10}{_percent(share):>13}{_short(level.rmse):>12}"
            f"{level.held:>9.0%}"
        )
    return "\n".join(lines)


def side_by_side(levels: Sequence[Level], *, title: str, across: str, up: str, language: str = "en") -> Any:
    """Draw the first release at each level beside the others, on one scale, with its margins and the truth."""
    altair = need("altair", "pip install 'sfumato[plots]'")
    if not levels:
        raise InvalidInput("there is no level to draw; nothing was drawn.")
    colours = palette("light")
    ends = [level.told[0] + sign * level.margins for level in levels for sign in (-1, 1)]
    least, most = min(0.0, *(each.min() for each in ends)), max(each.max() for each in ends)
    room = 0.03 * (most - least)
    scale = altair.Scale(domain=[least - (room if least else 0), most + room], nice=False)
    panels = []
    for place, level in enumerate(levels):
        rows = [
            {"at": at, "exact": exact, "told": told, "low": told - margin, "high": told + margin}
            for at, (exact, told, margin) in enumerate(
                zip(level.exact.tolist(), level.told[0].tolist(), level.margins.tolist(), strict=True), 1
            )
        ]
        wide = altair.Scale(domain=[0.4, len(rows) + 0.6], nice=False, zero=False)
        base = altair.Chart(altair.Data(values=rows)).encode(
            x=altair.X("at:Q", title=across, axis=altair.Axis(grid=False, tickMinStep=1), scale=wide)
        )
        # unseen labels keep the panels level with each other
        shown = {"title": up} if place == 0 else {"title": None, "labelOpacity": 0}
        labels = altair.Axis(format=",.0f", tickCount=6, **shown)
        panels.append(
            altair.layer(
                base.mark_rule(color=colours.band, strokeWidth=3, opacity=0.55).encode(
                    y=altair.Y("low:Q", axis=labels, scale=scale), y2="high:Q"
                ),
                base.mark_line(color=colours.quiet, strokeWidth=1.5).encode(y=altair.Y("exact:Q", scale=scale)),
                base.mark_circle(color=colours.mark, size=26, opacity=1).encode(y=altair.Y("told:Q", scale=scale)),
            ).properties(
                width=PANEL[0],
                height=PANEL[1],
                title={"text": level.name, "fontSize": 12, "anchor": "start", "frame": "group"},
            )
        )
    return dressed(
        altair.hconcat(*panels, spacing=0),
        title=title,
        subtitle=[
            "Dots: what was released, on bars of 95%. Line: the truth, which can be drawn as this data is public."
        ],
        language=language,
        theme="light",
    )


def _sum(running: RunningTotals, block: Steps, width: int) -> float:
    """Count a block of steps; the margin of their sum."""
    _add(running, block)
    return running.window(width).margin


def _add(running: RunningTotals, block: Steps) -> None:
    if isinstance(block[0], int):
        running.add_many(block)  # type: ignore[arg-type]
    else:
        for people in block:
            running.add(people=people)


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}"


def _percent(share: float) -> str:
    return f"{share:,.0%}" if share >= 0.1 else f"{share:.1%}"
