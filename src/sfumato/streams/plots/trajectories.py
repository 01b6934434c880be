"""What adversaries reach against streams, beside what the privacy guarantee allows them."""

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.core.budget import Budget
from sfumato.core.extras import need
from sfumato.core.foreign import Chart
from sfumato.errors import InvalidInput
from sfumato.reports.amounts import amount
from sfumato.reports.catalogue import message
from sfumato.reports.plots.labels import clean
from sfumato.reports.plots.theme import dressed, palette

__all__ = ["Curve", "advantages", "trajectories"]

WIDTH, HEIGHT, STEP = 520, 260, 34


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """How often an adversary is right, for each length of a stream, and what the guarantee for one person allows."""

    name: str
    steps: tuple[int, ...]
    right: tuple[float, ...]
    allowed: tuple[float, ...]

    def __post_init__(self) -> None:
        if not len(self.steps) == len(self.right) == len(self.allowed) > 0:
            raise InvalidInput("a curve has as many lengths as guesses and bounds, at least one; nothing was drawn.")


def trajectories(curves: Sequence[Curve], language: str = "en", theme: str = "light", *, blind: float) -> Chart:
    """Draw how often an adversary guesses right as a stream grows longer, at several levels of protection.

    Solid: what was reached. Dashed, in the same tone: the most that the guarantee allows for one person over all steps.
    Public: outcomes of an experiment on invented people; no release and no data of anybody is in it.

    >>> curve = Curve(name="event", steps=(1, 10), right=(0.55, 0.8), allowed=(0.6, 0.99))
    >>> trajectories([curve], blind=0.5).to_dict()["title"]["text"]
    'What an adversary can make of the releases'
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    colours = palette(theme)
    if not 1 <= len(curves) <= 2:
        raise InvalidInput("one or two curves can be distinguished by tone; nothing was drawn.")
    tones, layers = (colours.mark, colours.band), []
    x = altair.X(
        "steps:Q",
        scale=altair.Scale(type="log", nice=False),
        axis=altair.Axis(title=message(language, "stream_plot.adversary_steps"), format=",d", grid=False, tickCount=5),
    )
    axis = altair.Axis(title=message(language, "stream_plot.adversary_axis"), format=",d", tickCount=6)
    y, most = (
        altair.Y(f"{name}:Q", scale=altair.Scale(domain=[0, 1000], nice=False), axis=axis)
        for name in ("right", "allowed")
    )
    for tone, curve in zip(tones, curves, strict=False):
        pairs = zip(curve.steps, curve.right, curve.allowed, strict=True)
        rows = [{"steps": one, "right": 1000 * right, "allowed": 1000 * bound} for one, right, bound in pairs]
        base = altair.Chart(altair.Data(values=rows)).encode(x=x)
        layers += [
            base.mark_line(color=tone, strokeWidth=1.5, strokeDash=[5, 4]).encode(y=most),
            base.mark_line(color=tone, strokeWidth=2.5, point={"color": tone, "size": 40}).encode(y=y),
        ]
        name = {**rows[-1], "name": clean(curve.name)}
        layers.append(
            altair.Chart(altair.Data(values=[name]))
            .mark_text(align="left", dx=10, color=colours.ink, fontSize=12)
            .encode(x=x, y=y, text="name:N")
        )
    rule = altair.Chart(altair.Data(values=[{"right": 1000 * blind}])).mark_rule(color=colours.line).encode(y=y)
    return dressed(
        altair.layer(rule, *layers).properties(width=WIDTH, height=HEIGHT),
        title=message(language, "stream_plot.adversary"),
        subtitle=[
            message(language, "stream_plot.adversary_guess"),
            message(language, "stream_plot.adversary_blind", blind=f"{1000 * blind:,.0f}"),
        ],
        language=language,
        theme=theme,
        labels=[curve.name for curve in curves],
    )


def advantages(
    found: Sequence[tuple[str, float]], bound: float, spend: Budget, language: str = "en", theme: str = "light"
) -> Chart:
    """Draw the advantage of several adversaries as bars, and the bound of a guarantee as a line.

    >>> advantages([("AR(1) filter", 0.03)], 0.1, Budget(epsilon="1/10")).to_dict()["title"]["text"]
    'Adversaries against one series'
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    colours = palette(theme)
    if not found:
        raise InvalidInput("there is no adversary to draw; nothing was drawn.")
    rows = [{"name": clean(name), "size": 1000 * size, "shown": f"{1000 * size:.1f}"} for name, size in found]
    names = altair.Axis(title=None, labelLimit=260, labelColor=colours.ink, labelFontSize=12, grid=False)
    top = 1.25 * 1000 * max(bound, *(size for _, size in found))
    base = altair.Chart(altair.Data(values=rows)).encode(
        y=altair.Y("name:N", sort=None, axis=names),
        x=altair.X(
            "size:Q",
            scale=altair.Scale(domain=[0, top], nice=False),
            axis=altair.Axis(title=message(language, "stream_plot.advantage_axis"), tickCount=5, format=",.6~g"),
        ),
    )
    words = message(language, "stream_plot.bound", size=f"{1000 * bound:.1f}")
    limit = altair.Chart(altair.Data(values=[{"size": 1000 * bound, "words": words}])).encode(x="size:Q")
    drawn = altair.layer(
        base.mark_bar(height=14, color=colours.band, cornerRadiusEnd=3),
        base.mark_text(align="left", dx=6, color=colours.ink, fontSize=12).encode(text="shown:N"),
        limit.mark_rule(color=colours.ink, strokeWidth=1.5, strokeDash=[6, 3]),
        limit.mark_text(align="left", dx=6, color=colours.quiet, fontSize=11).encode(
            y=altair.value(-6), text="words:N"
        ),
    ).properties(width=WIDTH - 100, height=altair.Step(STEP))
    return dressed(
        drawn,
        title=message(language, "stream_plot.advantage"),
        subtitle=[message(language, "stream_plot.advantage_band", amount=amount(spend, language))],
        language=language,
        theme=theme,
        labels=[name for name, _ in found],
    )
