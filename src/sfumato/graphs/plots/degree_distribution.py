"""The degrees of a network as a staircase on its band: straight axes for few degrees, logarithmic ones for many."""

import math
from collections.abc import Sequence
from fractions import Fraction
from types import ModuleType

from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput
from sfumato.graphs.plots.degree_counts import Class, DegreeCounts, Span, counts_of, widening
from sfumato.inference.consistency import Adjusted
from sfumato.reports.amounts import amount
from sfumato.reports.catalogue import message
from sfumato.reports.columns import magnitude
from sfumato.reports.limited import limit_lines, truth
from sfumato.reports.plots.labels import clean
from sfumato.reports.plots.theme import Palette, dressed, palette

__all__ = ["degrees", "reach", "spans_of", "staircase"]

OUTWARD = {"low": False, "least": False, "high": True, "most": True}  # which way the ends of intervals are rounded

STRAIGHT = 100  # more degrees than this are drawn on logarithmic axes unless asked otherwise
WIDTH, HEIGHT = 600, 280
SCALES = ("auto", "linear", "log")
GAP = 0.6  # what holds all larger degrees stands apart


def degrees(
    release: Release,
    language: str = "en",
    theme: str = "light",
    *,
    scale: str = "auto",
    at_least: bool | None = None,
) -> Chart:
    """Draw the nodes by their number of links, each number on its 95% interval and on the one that holds all at once.

    Takes releases of ``degree_histogram()``, with a cap that was chosen or not, and of ``edges_and_degrees()``, at edge
    and at node level. With ``at_least`` the numbers are of nodes with at least as many links: so it is unless said
    otherwise where the cap was chosen, because these are the numbers that were drawn then. ``scale`` is ``linear``,
    ``log`` (for both axes: degrees are pooled into classes that widen, and the height is nodes per degree) or ``auto``,
    which takes logarithms beyond 100 degrees.

    Guarantee: the bands are the release's own intervals, those of its sums where numbers are added up; nothing else is
    drawn. They cover the added noise, and not what a degree cap cut off.

    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.edge(relation="add/remove"), budget=sf.Budget(epsilon=4), name="contacts")
    >>> wards = vault.graph([(0, 1), (1, 2)], name="wards", version="1", nodes=9)
    >>> degrees(wards.degree_histogram().release(epsilon=1)).to_dict()["title"]["text"]
    'wards: nodes by their number of links'
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    if scale not in SCALES:
        raise InvalidInput(f"scale = {scale!r} is not one of {', '.join(SCALES)}; nothing was drawn.")
    counts, colours = counts_of(release), palette(theme)
    rising = counts.chosen if at_least is None else at_least
    log = scale == "log" or (scale == "auto" and counts.most + 1 - counts.first > STRAIGHT)
    if log and counts.most < 2:
        raise InvalidInput("logarithmic axes need degrees of 2 or more; nothing was drawn. Say scale='linear'.")
    found = counts.classes(spans_of(counts, log=log, at_least=rising))
    shown = [each for each in found if not log or (each.first > 0 and (each.last is not None or rising))]
    title = "network_plot.at_least" if rising else "network_plot.degrees"
    return dressed(
        staircase(altair, shown, colours, language, log=log, at_least=rising),
        title=message(language, title, dataset=clean(only_release(release).statement.dataset.name)),
        subtitle=[
            _band(release, shown, language),
            *limit_lines(release, language),
            *_about(release, counts, language),
            *([message(language, "network_plot.foot" if rising else "network_plot.pooled")] if log else []),
            *_apart([each for each in found if each not in shown], language),
        ],
        language=language,
        theme=theme,
    )


def staircase(
    altair: ModuleType,
    shown: Sequence[Class],
    colours: Palette,
    language: str,
    *,
    log: bool = False,
    at_least: bool = False,
    size: tuple[int, int] = (WIDTH, HEIGHT),
    up_to: tuple[float, float] | None = None,
    named: bool = True,
) -> Chart:
    """The classes as steps on their bands; ``up_to`` is what the y-axis covers, ``named`` whether it has words."""
    rows, foot = _rows(shown, log=log, at_least=at_least)
    low, top = up_to or reach(shown)
    top = max(row["most"] for row in rows) if log else top
    kind = {"type": "log" if log else "linear", "nice": not log, "clamp": log}
    zero = {"condition": {"test": "datum.value === 0", "value": colours.band}, "value": colours.line}
    axis = {"values": _decades(foot, top), "format": "~g"} if log else {"format": ",d", "tickCount": 6}
    y = altair.Y(
        "least:Q",
        scale=altair.Scale(domain=[foot if log else low, top], **kind),
        axis=altair.Axis(
            title=_height(language, log=log, at_least=at_least) if named else None,
            labelOpacity=1 if named else 0,  # kept, so that panels side by side stay in line
            gridColor=zero,
            **axis,
        ),
    )
    ends = [rows[0]["from"], rows[-1]["to"]]
    x = altair.X(
        "from:Q",
        scale=altair.Scale(type=kind["type"], domain=ends, nice=False),
        axis=_degree_axis(altair, shown, language, log=log),
    )
    base = altair.Chart(altair.Data(values=rows)).encode(x=x, x2="to:Q", tooltip=_tips(altair, language))
    wide = base.mark_rect(color=colours.faint, stroke=colours.faint, strokeWidth=0.6)
    near = base.mark_rect(color=colours.band, stroke=colours.band, strokeWidth=0.6)
    steps = base.mark_rule(color=colours.mark, strokeWidth=2.4)
    layers = [wide.encode(y=y, y2="most:Q"), near.encode(y="low:Q", y2="high:Q"), steps.encode(y="value:Q")]
    return altair.layer(*layers).properties(width=size[0], height=size[1])


def reach(shown: Sequence[Class]) -> tuple[float, float]:
    """The least and the most that a straight axis has to show."""
    numbers = [float(number) for each in shown for number in (each.value, *each.joint)]
    return min(0.0, *numbers), max(numbers)


def spans_of(counts: DegreeCounts, *, log: bool = False, at_least: bool = False) -> list[Span]:
    """What is added up: a step for each class, and with ``at_least`` everything from its first degree on."""
    last = counts.most - 1 if counts.open else counts.most
    classes = [(degree, degree) for degree in range(counts.first, last + 1)]
    if log:
        first = max(counts.first, 1)
        classes = [*([(0, 0)] if counts.first == 0 else []), *widening(first, last)]
    if counts.open:
        classes.append((counts.most, counts.most))
    return [(start, counts.most) for start, _ in classes] if at_least else classes


def _rows(shown: Sequence[Class], *, log: bool, at_least: bool) -> tuple[list[ChartRow], float]:
    """What is drawn of each class, and the foot of a logarithmic axis, at which what lies below it is cut."""
    heights = [
        {name: float(number) / (each.width if log and not at_least else 1) for name, number in _numbers(each).items()}
        for each in shown
    ]
    above = [row[name] for row in heights for name in ("value", "high") if row[name] > 0]
    foot = 10.0 ** math.floor(math.log10(min(above, default=1.0))) if log else -math.inf
    rows: list[ChartRow] = []
    for place, (each, height) in enumerate(zip(shown, heights, strict=True)):
        after = shown[place + 1].first if place + 1 < len(shown) else each.first + 1
        last = after - 1 if at_least else each.first if each.last is None else each.last
        gap = GAP if each.last is None and not at_least else 0.0
        rows.append(
            {"from": each.first - 0.5 + gap, "to": last + 0.5 + gap, "class": _class(each, at_least=at_least)}
            | {f"shown_{name}": _written(number, up=OUTWARD.get(name)) for name, number in _numbers(each).items()}
            | {name: max(number, foot) for name, number in height.items()}
        )
    return rows, foot


def _numbers(each: Class) -> ChartRow:
    ends = {"low": each.each[0], "high": each.each[1], "least": each.joint[0], "most": each.joint[1]}
    return {"value": each.value, **ends}


def _class(each: Class, *, at_least: bool) -> str:
    if at_least or each.last is None:
        return f"{each.first}+"
    return str(each.first) if each.width == 1 else f"{each.first}–{each.last}"


def _height(language: str, *, log: bool, at_least: bool) -> str:
    if at_least:
        return message(language, "network_plot.nodes_at_least")
    if log:
        return message(language, "network_plot.per_degree")
    return message(language, "network_plot.nodes")


def _degree_axis(altair: ModuleType, shown: Sequence[Class], language: str, *, log: bool) -> Chart:
    title = message(language, "network_plot.links")
    steps = [size * 10**power for power in range(8) for size in (1, 2, 5)]
    first, last = shown[0].first, shown[-1].first if shown[-1].last is None else max(shown[-1].first, shown[-1].last)
    if log:
        values: list[float] = [step for step in steps if first <= step <= last]
        return altair.Axis(title=title, values=values, format=",d", grid=False, labelOverlap=True)
    step = next(step for step in steps if last - first <= 14 * step)
    values = [*range(-(-first // step) * step, last + 1, step)]
    if shown[-1].last is not None or shown[0].last is None:  # the last step alone is open
        return altair.Axis(title=title, values=values, format=",d", grid=False)
    values = [*(value for value in values if last - value > GAP * step), last + GAP]
    words = f"datum.value > {last} ? '{last}+' : format(datum.value, ',d')"
    return altair.Axis(title=title, values=values, grid=False, labelExpr=words)


def _decades(foot: float, top: float) -> list[float]:
    """The powers of ten of an axis."""
    return [10.0**power for power in range(round(math.log10(foot)), math.ceil(math.log10(max(top, foot * 10))) + 1)]


def _tips(altair: ModuleType, language: str) -> list[Chart]:
    words = {
        "class": "network_plot.classes",
        "shown_value": "network_plot.value",
        "shown_low": "column.low",
        "shown_high": "column.high",
        "shown_least": "network_plot.joint_low",
        "shown_most": "network_plot.joint_high",
    }
    return [altair.Tooltip(f"{field}:N", title=message(language, word)) for field, word in words.items()]


def _apart(left: Sequence[Class], language: str) -> list[str]:
    """Words for what has no place on logarithmic axes: no link, and open ends."""
    words = []
    for each in left:
        low, high = _written(each.each[0], up=False), _written(each.each[1], up=True)
        facts = {"value": _written(each.value), "low": low, "high": high}
        if each.last is None:
            words.append(message(language, "network_plot.apart_more", degree=f"{each.first:,}", **facts))
        elif each.last == 0:
            words.append(message(language, "network_plot.apart_none", **facts))
    return [" ".join(words)] if words else []


def _band(release: Release, shown: Sequence[Class], language: str) -> str:
    """What the band is, with its margins where all numbers have the same."""
    facts = {"numbers": f"{len(shown):,}", "amount": amount(release.statement.spend, language)}
    facts["truth"] = truth(release, language, "number")
    margins = {(Fraction(each.each[1] - each.value), Fraction(each.joint[1] - each.value)) for each in shown}
    if len(margins) > 1:
        return message(language, "network_plot.degrees_band", **facts)
    ((margin, joint),) = margins
    facts |= {"margin": magnitude(margin, 4), "joint": magnitude(joint, 4)}
    return message(language, "network_plot.degrees_margin", **facts)


def _about(release: Release, counts: DegreeCounts, language: str) -> list[str]:
    """Who is protected, what a cap left out, and what the line is."""
    unit = message(language, f"unit.{release.statement.unit.KIND.removeprefix('unit.')}")
    lines = [message(language, "network_plot.protects", unit=unit)]
    if counts.cap is not None:
        word = "network_plot.cap_chosen" if counts.chosen else "network_plot.cap"
        lines.append(message(language, word, cap=f"{counts.cap:,}"))
    if isinstance(counts.figure, Adjusted):
        lines.append(message(language, "network_plot.fallen"))
    return lines


def _written(number: float | Fraction, *, up: bool | None = None) -> str:
    """A number with one digit after the point, if it is not whole; the ends of an interval are rounded outward."""
    if number == int(number):
        return f"{int(number):,}".replace("-", "−")
    tenths = Fraction(number) * 10
    rounded = round(tenths) if up is None else math.ceil(tenths) if up else math.floor(tenths)
    return f"{rounded / 10:,.1f}".replace("-", "−")
