"""The frontier of ε and error: what more privacy, or less, would cost in accuracy."""

from fractions import Fraction
from typing import Any

from sfumato.core.exact import Exact, positive
from sfumato.core.extras import need
from sfumato.core.query import Mechanism
from sfumato.core.release import Release, only_release
from sfumato.core.statement import Statement
from sfumato.errors import Unsupported
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.reports.amounts import amount
from sfumato.reports.catalogue import message
from sfumato.reports.plots.labels import clean
from sfumato.reports.plots.theme import dressed, palette

__all__ = ["frontier", "recalibrated"]

CONFIDENCE = Fraction(19, 20)
FACTORS = tuple(Fraction(round(2 ** (step / 4) * 10**6), 10**6) for step in range(-8, 9))  # a quarter to four times
SHOWN = FACTORS[::4]  # those that are powers of two


def recalibrated(said: Statement, epsilon: Exact) -> Mechanism:
    """The mechanism of a release as it would be at another ε: same kind, same sensitivity, same δ."""
    asked, moved = positive(epsilon, "epsilon"), said.sensitivity
    match said.mechanism:
        case Laplace() if moved.l1 is not None:
            return Laplace.calibrated(l1=moved.l1, epsilon=asked)
        case Gaussian() if moved.l2 is not None:
            return Gaussian.calibrated(l2=moved.l2, epsilon=asked, delta=said.spend.delta)
    raise Unsupported(f"a {said.mechanism.KIND} cannot be calibrated to another ε here; nothing was drawn.")


def frontier(release: Release, language: str = "en", theme: str = "light") -> Any:
    """Draw the 95% margin that the same mechanism would have at other ε, with the ε of this release marked.

    Public: all of it. The sensitivity and the kind of mechanism decide the curve; no data is opened and no noise drawn.
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    said, colours = only_release(release).statement, palette(theme)
    chosen, numbers = said.spend.epsilon, len(said.values)
    laws = {factor: recalibrated(said, chosen * factor).law for factor in FACTORS}
    lines = {message(language, "plot.each"): 1}
    if numbers > 1:
        lines[message(language, "plot.at_once", numbers=f"{numbers:,}")] = numbers
    rows: list[dict[str, Any]] = [
        {"line": line, "epsilon": float(chosen * factor), "margin": law.margin(CONFIDENCE, numbers=count)}
        for line, count in lines.items()
        for factor, law in laws.items()
    ]
    marked = [
        {"epsilon": float(chosen * factor), "margin": margin, "text": f"±{margin:,}", "chosen": factor == 1}
        for factor in SHOWN
        for margin in (laws[factor].margin(CONFIDENCE),)
    ]
    values = [row["epsilon"] for row in marked]
    x = altair.X(
        "epsilon:Q",
        axis=altair.Axis(title="ε", values=values, format=".4~r", grid=False),
        scale=altair.Scale(type="log", base=2, domain=[values[0], values[-1]], nice=False, padding=44),
    )
    most = max(1, *(row["margin"] for row in rows))
    y = altair.Y(
        "margin:Q",
        axis=altair.Axis(title=message(language, "plot.margin_axis"), tickCount=5, format=",d", tickMinStep=1),
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
            altair.Tooltip("margin:Q", title=message(language, "plot.margin_axis"), format=",d"),
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
        title=message(language, "plot.frontier", dataset=clean(said.dataset.name)),
        subtitle=[
            message(language, "plot.frontier_chosen", amount=amount(said.spend, language), margin=marked[2]["text"])
        ],
        language=language,
        theme=theme,
    )
