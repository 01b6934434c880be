"""The frontier of ε and error: what more privacy, or less, would cost in accuracy."""

from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.exact import Exact, positive
from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.core.query import Law, Mechanism
from sfumato.core.release import Release, only_release
from sfumato.core.statement import Statement
from sfumato.errors import Unsupported
from sfumato.inference.consistency import Adjusted
from sfumato.inference.derived import level_of
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.inference.ratio import Ratio
from sfumato.mechanisms import ADDED_NOISE
from sfumato.reports.amounts import amount
from sfumato.reports.catalogue import message
from sfumato.reports.columns import CONFIDENCE, drawable, magnitude
from sfumato.reports.plots.labels import clean
from sfumato.reports.plots.theme import dressed, palette

__all__ = ["frontier", "recalibrated"]

FACTORS = tuple(Fraction(round(2 ** (step / 4) * 10**6), 10**6) for step in range(-8, 9))  # a quarter to four times
SHOWN = FACTORS[::4]  # those that are powers of two


def recalibrated(said: Statement, epsilon: Exact) -> Mechanism:
    """The mechanism of a release as it would be at another ε: same kind, same sensitivity, same δ."""
    asked, moved = positive(epsilon, "epsilon"), said.sensitivity
    if isinstance(said.mechanism, ADDED_NOISE):
        found = said.mechanism.least(moved, epsilon=asked, delta=said.spend.delta)
        if found is not None:
            return found
    raise Unsupported(f"a {said.mechanism.KIND} cannot be calibrated to another ε here; nothing was drawn.")


def frontier(release: Release, language: str = "en", theme: str = "light", *, column: str | None = None) -> Chart:
    """Draw the 95% margin that the same mechanism would have at other ε, with the ε of this release marked.

    Public: all of it. The sensitivity and the kind of mechanism decide the curve; no data is opened and no noise drawn.
    Where columns are computed, the margin is that of ``column`` in its own units, or of the first that has such a
    curve. Counts and sums have it exactly; of a mean, a share or a ratio it is about that of the group of middle size.
    Variances, covariances and correlations have none.
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    said, colours = only_release(release).statement, palette(theme)
    chosen = said.spend.epsilon
    curve_of = _curve(release, column)
    laws = {factor: recalibrated(said, chosen * factor).law for factor in FACTORS}
    numbers = curve_of.numbers
    lines = {message(language, "plot.each"): False}
    if numbers > 1:
        lines[message(language, "plot.at_once", numbers=f"{numbers:,}")] = True
    rows: list[ChartRow] = [
        {"line": line, "epsilon": float(chosen * factor), "margin": curve_of.shown(curve_of.margin(law, joint=joint))}
        for line, joint in lines.items()
        for factor, law in laws.items()
    ]
    marked = [
        {
            "epsilon": float(chosen * factor),
            "margin": curve_of.shown(margin),
            "text": f"±{magnitude(margin)}",
            "chosen": factor == 1,
        }
        for factor in SHOWN
        for margin in (curve_of.margin(laws[factor], joint=False),)
    ]
    values = [row["epsilon"] for row in marked]
    x = altair.X(
        "epsilon:Q",
        axis=altair.Axis(title="ε", values=values, format=".4~r", grid=False),
        scale=altair.Scale(type="log", base=2, domain=[values[0], values[-1]], nice=False, padding=44),
    )
    most = max(row["margin"] for row in rows) or 1
    ticks = {"format": ",d", "tickMinStep": 1} if curve_of.whole else {"format": ",.8~f"}
    y = altair.Y(
        "margin:Q",
        axis=altair.Axis(title=message(language, "plot.margin_axis"), tickCount=5, **ticks),
        scale=altair.Scale(domain=[-most / 12, most * 1.02], nice=False),  # room below for figures
    )
    names = list(lines)
    tone = altair.Scale(domain=names, range=[colours.mark, colours.band][: len(names)])
    dash = altair.Scale(domain=names, range=[[1, 0], [6, 4]][: len(names)])
    legend = altair.Legend(title=None, symbolSize=500, symbolType="stroke") if numbers > 1 else None
    base = altair.Chart(altair.Data(values=rows)).mark_line(strokeWidth=2, interpolate="monotone")
    curve = base.encode(
        x=x,
        y=y,
        color=altair.Color("line:N", scale=tone, legend=legend),
        strokeDash=altair.StrokeDash("line:N", scale=dash, legend=legend),
        tooltip=[
            altair.Tooltip("line:N", title=" "),
            altair.Tooltip("epsilon:Q", title="ε", format=".4~r"),
            altair.Tooltip(
                "margin:Q", title=message(language, "plot.margin_axis"), format=",d" if curve_of.whole else ",.3~g"
            ),
        ],
    )
    ends = altair.Chart(altair.Data(values=marked)).encode(x="epsilon:Q", y="margin:Q")
    points = ends.mark_point(filled=True, opacity=1, color=colours.mark, strokeWidth=2).encode(
        size=altair.condition("datum.chosen", altair.value(150), altair.value(36))
    )
    figures = ends.mark_text(align="right", baseline="top", dx=-7, dy=7, color=colours.ink).encode(
        text="text:N", size=altair.condition("datum.chosen", altair.value(15), altair.value(11))
    )
    here = (
        altair.Chart(altair.Data(values=[row for row in marked if row["chosen"]]))
        .mark_rule(color=colours.quiet, strokeDash=[3, 3])
        .encode(x="epsilon:Q")
    )
    return dressed(
        altair.layer(here, curve, points, figures).properties(width=480, height=260),
        title=curve_of.title(release, language),
        subtitle=[
            message(
                language,
                "plot.frontier_chosen" if curve_of.exact else "plot.frontier_middle",
                amount=amount(said.spend, language),
                margin=marked[2]["text"],
            )
        ],
        language=language,
        theme=theme,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curve:
    """The margin of a column under any law: that of a linear form, over a number.

    ``forms`` are the forms of all numbers where each has the same error distribution, or that of the middle group
    alone.
    """

    name: str | None
    forms: tuple[LinearCombination, ...]
    under: Fraction
    exact: bool
    whole: bool
    numbers: int

    def margin(self, law: Law, *, joint: bool) -> Fraction:
        """The 95% margin of each number, or of all at once."""
        if self.name is None:
            return Fraction(law.margin(CONFIDENCE, numbers=self.numbers if joint else 1))
        level = level_of(CONFIDENCE, self.forms if joint else self.forms[:1])
        first = self.forms[0]
        swapped = {Noise(noise.identifier, noise.place, law): size for noise, size in first.noises.items()}
        return LinearCombination(Fraction(0), swapped).margin(level) / self.under

    def shown(self, margin: Fraction) -> int | float:
        """A margin for the drawing."""
        return int(margin) if self.whole else float(margin)

    def title(self, release: Release, language: str) -> str:
        """Which noise the picture is about."""
        dataset = clean(release.statement.dataset.name)
        if self.name is None:
            return message(language, "plot.frontier", dataset=dataset)
        return message(language, "plot.frontier_column", dataset=dataset, name=clean(self.name))


def _curve(release: Release, column: str | None) -> _Curve:
    """The curve of the column that is asked for, or of the first that has one."""
    chosen = drawable(release, column)
    if release.statement.query.measure is not None:
        numbers = len(release.values)
        return _Curve(name=None, forms=(), under=Fraction(1), exact=True, whole=True, numbers=numbers)
    for each in chosen:
        drawn = (
            each.figure.raw if isinstance(each.figure, Adjusted) else each.figure
        )  # the noise is that of the raw one
        if isinstance(drawn, Figure):
            forms = drawn.forms
            return _Curve(
                name=each.name, forms=forms, under=Fraction(1), exact=True, whole=each.whole, numbers=len(forms)
            )
        if isinstance(each.figure, Ratio):
            pairs = sorted(zip(each.figure.over, each.figure.under, strict=True), key=lambda pair: pair[1].value)
            over, under = pairs[len(pairs) // 2]
            if under.value > 0:
                form = over.plus(under, -over.value / under.value)
                return _Curve(name=each.name, forms=(form,), under=under.value, exact=False, whole=False, numbers=1)
    raise Unsupported(
        f"the error of {', '.join(each.name for each in chosen)} at another ε is not known beforehand; nothing was "
        "drawn. Counts, sums, means, shares and ratios have such a curve."
    )
