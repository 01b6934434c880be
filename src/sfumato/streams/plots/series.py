"""A series of totals as a line on its bands, step by step: alone, by group, or at two levels of protection."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput, Unsupported
from sfumato.inference.derived import Derived
from sfumato.reports.amounts import amount
from sfumato.reports.catalogue import counted, message
from sfumato.reports.columns import CONFIDENCE, described
from sfumato.reports.limited import limit_lines, truth
from sfumato.reports.particulars import protected
from sfumato.reports.plots.labels import clean
from sfumato.reports.plots.theme import Palette, dressed, palette
from sfumato.reports.words.rendering import render
from sfumato.streams.describe import level_of
from sfumato.streams.total import RunningTotal

__all__ = ["DrawnSeries", "course", "event_and_person", "lines", "series"]

MOST_PANELS = 12
MOST_POINTS = 600  # of one line: more cannot be distinguished on paper
WIDTH, HEIGHT, SMALL = 600, 260, 110


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnSeries:
    """What is drawn of one series: a row for each step that is shown, by group."""

    rows: tuple[ChartRow, ...]
    groups: tuple[str, ...]
    numbers: int
    every: int

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the most that an axis has to show."""
        numbers = [row[name] for row in self.rows for name in ("least", "most")]
        return min(0.0, *numbers), max(1.0, *numbers)


def course(given: Release | Derived) -> DrawnSeries:
    """Read off a release of a stream, or what was computed from one, what a picture shows of it."""
    if isinstance(given, Derived):
        figure = given
    elif isinstance(only_release(given).statement.query, RunningTotal):
        figure = given["total"]
    else:
        raise InvalidInput("this is not a series of a stream; nothing was drawn. Take a release of running totals.")
    if "step" not in figure.labels or not len(figure.values):
        raise Unsupported("there are no totals here to draw: none was released, or none was kept. Nothing was drawn.")
    steps = figure.labels["step"]
    names = [clean(group) for group in figure.labels.get("group", ("",) * len(steps))]
    groups = tuple(dict.fromkeys(names))
    every = -(-(len(steps) // len(groups)) // MOST_POINTS)
    last, first = steps[-1], steps[0]
    near, wide = figure.interval(CONFIDENCE), figure.interval(CONFIDENCE, joint=True)
    rows = [
        {"step": step, "group": name, "value": float(value), "low": float(low), "high": float(high)}
        | {"least": float(least), "most": float(most)}
        for step, name, value, (low, high), (least, most) in zip(steps, names, figure.values, near, wide, strict=True)
        if (int(step) - int(first)) % every == 0 or step == last
    ]
    return DrawnSeries(rows=tuple(rows), groups=groups, numbers=len(figure.values), every=every)


def series(
    given: Release | Derived, language: str = "en", theme: str = "light", *, then: Derived | None = None
) -> Chart:
    """Draw a series on its 95% bands: dark for one step at a time, light for all steps at once.

    Takes a release of running totals, or figures that were computed from one and go by step. Groups have a panel each,
    on one scale, up to twelve. ``then`` are figures of later steps, a forecast: dashed, on the same bands. Beyond 600
    steps some are left out, and the picture says so.

    Guarantee: the bands are the intervals of what is drawn; nothing else is. They cover what those intervals cover.

    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=1), name="arrivals")
    >>> running = vault.stream(name="er", version="1", horizon=9).running_total().open(epsilon=1)
    >>> _ = running.add_many([3, 5, 4])
    >>> series(running.close()).to_dict()["title"]["text"]
    'er: running total, step by step'
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    found, colours = course(given), palette(theme)
    later = None if then is None else course(then)
    if len(found.groups) > MOST_PANELS:
        raise Unsupported(
            f"{len(found.groups)} groups do not fit one picture; nothing was drawn. Draw some: release['total'].at(…)."
        )
    sources = given.sources if isinstance(given, Derived) else (given,)
    facts = {"dataset": clean(sources[0].statement.dataset.name)}
    total = not isinstance(given, Derived) or given.measure == "total"
    title = message(language, "stream_plot.series" if total else "stream_plot.series_of", **facts)
    axis = message(language, "stream_plot.total" if total else "stream_plot.value")
    panels = [
        lines(
            altair,
            [row for row in found.rows if row["group"] == group],
            colours,
            language,
            axis=axis,
            size=(WIDTH, HEIGHT if len(found.groups) == 1 else SMALL),
            up_to=_both(found, later),
            then=() if later is None else [row for row in later.rows if row["group"] == group],
            heading=group,
            named=group == found.groups[-1],
        )
        for group in found.groups
    ]
    return dressed(
        panels[0] if len(panels) == 1 else altair.vconcat(*panels, spacing=18),
        title=title,
        subtitle=[
            _band(given, found, language),
            *limit_lines(given, language),
            *([] if isinstance(given, Derived) else [_protects(given, language)]),
            *([message(language, "stream_plot.smoothed_bias")] if getattr(given, "biased", False) else []),
            *([message(language, "stream_plot.then")] if then is not None else []),
            *_thinned(found, language),
        ],
        language=language,
        theme=theme,
        labels=found.groups,
    )


def event_and_person(event: Release, person: Release, language: str = "en", theme: str = "light") -> Chart:
    """Draw two releases of running totals side by side on one scale: what it costs to protect more.

    Each panel says what it protects and at which ε; the bands are those of :func:`series`.
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    both, colours = [(release, course(release)) for release in (event, person)], palette(theme)
    if any(len(found.groups) > 1 for _, found in both):
        raise InvalidInput("one total at each level is compared, and one of these has groups; nothing was drawn.")
    reach = [found.reach for _, found in both]
    up_to = (min(low for low, _ in reach), max(high for _, high in reach))
    panels = [
        lines(
            altair,
            found.rows,
            colours,
            language,
            axis=message(language, "stream_plot.total") if place == 0 else "",
            size=(WIDTH // 2 + 10, HEIGHT),
            up_to=up_to,
            heading=_level(release, language),
        )
        for place, (release, found) in enumerate(both)
    ]
    return dressed(
        altair.hconcat(*panels, spacing=24),
        title=message(language, "stream_plot.levels", dataset=clean(event.statement.dataset.name)),
        subtitle=[message(language, "stream_plot.levels_band")],
        language=language,
        theme=theme,
    )


def lines(
    altair: ModuleType,
    rows: Sequence[ChartRow],
    colours: Palette,
    language: str,
    *,
    axis: str,
    size: tuple[int, int],
    up_to: tuple[float, float],
    then: Sequence[ChartRow] = (),
    heading: str = "",
    named: bool = True,
) -> Chart:
    """One panel: the wide band, the near band, the line, and what comes after it; ``named`` gives steps their word."""
    zero = {"condition": {"test": "datum.value === 0", "value": colours.band}, "value": colours.line}
    y = altair.Y(
        "least:Q",
        scale=altair.Scale(domain=list(up_to), nice=True, zero=False),
        axis=altair.Axis(title=axis or None, format=",.8~g", tickCount=5 if size[1] > SMALL else 3, gridColor=zero),
    )
    ends = [min(row["step"] for row in (*rows, *then)), max(row["step"] for row in (*rows, *then))]
    x = altair.X(
        "step:Q",
        scale=altair.Scale(domain=ends if ends[0] < ends[1] else [ends[0] - 1, ends[0] + 1], nice=False),
        axis=altair.Axis(
            title=message(language, "stream_plot.step") if named else None,
            format=",d",
            grid=False,
            tickMinStep=1,
            labelFlush=False,
        ),
    )
    tips = [
        altair.Tooltip("step:Q", title=message(language, "stream_plot.step"), format=",d"),
        *(
            altair.Tooltip(f"{name}:Q", title=message(language, words), format=",.9~g")
            for name, words in (
                ("value", "plot.value"),
                ("low", "column.low"),
                ("high", "column.high"),
                ("least", "stream_plot.joint_low"),
                ("most", "stream_plot.joint_high"),
            )
        ),
    ]

    def layers(data: Sequence[ChartRow], dash: list[int]) -> list[Chart]:
        base = altair.Chart(altair.Data(values=list(data))).encode(x=x, tooltip=tips)
        if len(data) == 1:  # a band of one step has no width
            bars = [("least", "most", colours.faint, 14), ("low", "high", colours.band, 14)]
            drawn = [
                base.mark_rule(color=colour, strokeWidth=wide).encode(
                    y=y if low == "least" else f"{low}:Q", y2=f"{high}:Q"
                )
                for low, high, colour, wide in bars
            ]
            return [*drawn, base.mark_tick(color=colours.mark, thickness=3, size=18).encode(y="value:Q")]
        return [
            base.mark_area(color=colours.faint).encode(y=y, y2="most:Q"),
            base.mark_area(color=colours.band).encode(y="low:Q", y2="high:Q"),
            base.mark_line(color=colours.mark, strokeWidth=2, strokeDash=dash).encode(y="value:Q"),
        ]

    drawn = [*layers(rows, [1, 0]), *(layers(then, [5, 3]) if then else [])]
    panel = altair.layer(*drawn).properties(width=size[0], height=size[1])
    if not heading:
        return panel
    return panel.properties(title={"text": heading, "fontSize": 12, "anchor": "start", "frame": "group", "offset": 6})


def _both(found: DrawnSeries, later: DrawnSeries | None) -> tuple[float, float]:
    low, high = found.reach
    return (low, high) if later is None else (min(low, later.reach[0]), max(high, later.reach[1]))


def _band(given: Release | Derived, found: DrawnSeries, language: str) -> str:
    numbers = f"{found.numbers:,}"
    if isinstance(given, Derived):
        words = getattr(given, "covers", "stream_plot.exact_band")
        return message(language, words, numbers=numbers, truth=truth(given, language, "number"))
    facts = {"amount": amount(given.statement.spend, language), "truth": truth(given, language, "total")}
    if found.numbers == 1:
        return message(language, "stream_plot.series_band_one", **facts)
    return message(language, "stream_plot.series_band", numbers=numbers, **facts)


def _unit(release: Release, language: str) -> str:
    said = release.statement
    own = described(said).facts.get("unit")
    return protected(said.unit, language) if own is None else render(own, language)


def _protects(release: Release, language: str) -> str:
    return message(language, "stream_plot.protects", unit=_unit(release, language))


def _level(release: Release, language: str) -> str:
    """What is protected, in few words, and at which ε."""
    said = release.statement
    assert isinstance(said.query, RunningTotal)  # noqa: S101 - course() has refused all others
    width, spent = counted(language, "step", said.query.times), amount(said.spend, language)
    return message(language, f"stream_plot.level_{level_of(said.query, said.unit)}", width=width, amount=spent)


def _thinned(found: DrawnSeries, language: str) -> list[str]:
    if found.every == 1:
        return []
    steps = counted(language, "step", found.numbers // len(found.groups))
    return [message(language, "stream_plot.thinned", every=f"{found.every:,}", steps=steps)]
