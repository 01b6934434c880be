"""The distribution of the added noise: how likely each error is, and the margin that holds nearly all of them."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

from sfumato.core.enclosures import Enclosure
from sfumato.core.exact import Exact, fraction_text, probability
from sfumato.core.extras import need
from sfumato.core.foreign import Chart
from sfumato.core.query import Law
from sfumato.core.release import Release, only_release
from sfumato.core.search import least_whole
from sfumato.errors import Unsupported
from sfumato.inference.figure import Figure
from sfumato.inference.inversion import FINE, Spread
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.laws import LadderBound, Sum
from sfumato.laws.margins import WholeNumberLaw
from sfumato.reports.catalogue import message
from sfumato.reports.columns import CONFIDENCE, described, drawable, magnitude
from sfumato.reports.plots.labels import clean
from sfumato.reports.plots.theme import dressed, palette

__all__ = ["Carried", "law", "noise", "shares"]

MOST_BARS = 181
REACH = 2  # how many margins are drawn to each side


@runtime_checkable
class Tailed(Protocol):
    """A symmetric law, known by its tail."""

    def tail(self, size: Any) -> Enclosure:  # a whole number, or of a continuous law any rational
        """P(|z| > size)."""
        ...


@dataclass(frozen=True)
class Carried:
    """The distribution of the noise that a computed figure carries, in the units of that figure."""

    KIND: ClassVar[str] = "law.carried"
    form: LinearCombination

    @cached_property
    def spread(self) -> Spread:
        """The law by inversion."""
        return self.form.spread()

    @property
    def step(self) -> Fraction | None:
        """The lattice that it lies on; None where that is too fine to be seen."""
        return self.spread.step if self.spread.whole else None

    def margin(self, confidence: Exact, *, numbers: int = 1) -> Fraction:
        """Within this the error of one number lies with this confidence."""
        return self.form.margin(probability(confidence, "confidence"))

    def tail(self, size: Fraction) -> Enclosure:
        """P(|z| > size) for the eye: what an inversion takes off a distance to be sure is given back."""
        taken = 0 if self.spread.whole else FINE * Fraction(self.spread.deviation)
        beyond = 1 - Fraction(self.spread.within(size + taken))
        return Enclosure(beyond, beyond)


def noise(release: Release, language: str = "en", theme: str = "light", *, column: str | None = None) -> Chart:
    """Draw the error distribution of each number of a release.

    Counts and sums have their own distribution, in their own units. Of other columns, and where there are several and
    none is picked, the distribution of the numbers behind them is drawn, in units of what one row brings.
    """
    said = only_release(release).statement
    if isinstance(said.law, LadderBound):
        raise Unsupported(
            "the error of a ladder has a distribution that depends on the graph and is private; nothing was drawn. "
            "Draw its intervals."
        )
    about = clean(said.dataset.name)
    chosen = drawable(release, column)
    if said.query.measure is not None:
        return law(said.law, language, theme, about=about)
    first = chosen[0].figure
    if len(chosen) == 1 and isinstance(first, Figure):
        facts = {"dataset": about, "name": clean(chosen[0].name)}
        words = (message(language, "plot.law_column", **facts), message(language, "plot.error_column", **facts))
        return law(Carried(first.forms[0]), language, theme, words=words)
    if column is not None:
        raise Unsupported(
            f"the error of {column!r} has no single distribution, because it depends on the figure itself; nothing was "
            "drawn. Draw its intervals, or leave the column out to see the noise behind all of them."
        )
    words = (message(language, "plot.law_rows", dataset=about), message(language, "plot.error_rows"))
    unit = Fraction(1, described(release.statement).height)
    behind = LinearCombination(Fraction(0), {Noise(said.identifier, 0, said.law): unit})
    return law(Carried(behind), language, theme, words=words)


def law(
    drawn: Law | Carried,
    language: str = "en",
    theme: str = "light",
    *,
    confidence: Exact = CONFIDENCE,
    about: str = "",
    words: tuple[str, str] | None = None,
) -> Chart:
    """Draw how likely each error is, dark within the margin and light beyond.

    A wide law is drawn in bars of several whole numbers each, a continuous one in thin bars. Works for every symmetric
    law with a tail: those of single mechanisms and those of sums and differences. ``about`` names a dataset in the
    title; ``words`` are another title and the name of the axis. Public: all of it; a law says nothing about data.
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    if not isinstance(drawn, Tailed):
        raise Unsupported(f"a {drawn.KIND} has no tail to draw; nothing was drawn.")
    colours, level = palette(theme), probability(confidence, "confidence")
    title = message(language, "plot.law_of", dataset=about) if about else message(language, "plot.law")
    title, axis = words or (title, message(language, "plot.error"))
    margin, step = Fraction(drawn.margin(level)), _step(drawn)
    width, bars = shares(drawn, margin)
    single = width == step
    rows = [
        {
            "low": float(place - width / 2),
            "high": float(place + width / 2),
            "share": float(share),
            "within": abs(place) <= margin,
            "error": _signed(place) if single else _range(place, width, step),
        }
        for place, share in bars
    ]
    below = altair.Axis(
        title=axis,
        format="+,d" if step == 1 else "+,~r",
        grid=False,
        labelExpr="datum.value === 0 ? '0' : datum.label",
        labelFlush=False,
        **({"tickMinStep": 1} if step == 1 else {}),
    )
    top = message(language, "plot.chance" if single else "plot.chance_of", width=_shown(width))
    chart = (
        altair.Chart(altair.Data(values=rows))
        .mark_rect()
        .encode(
            x=altair.X("low:Q", axis=below, scale=altair.Scale(nice=False)),
            x2="high:Q",
            y=altair.Y("share:Q", axis=altair.Axis(title=top, format="~%", tickCount=4)),
            y2=altair.datum(0),
            color=altair.condition("datum.within", altair.value(colours.mark), altair.value(colours.band)),
            tooltip=[
                altair.Tooltip("error:N", title=axis),
                altair.Tooltip("share:Q", title=top, format=".2~%"),
            ],
        )
    )
    edge = float(margin + (step or 0) / 2)  # behind the last error that lies within
    ends = [{"at": side * edge, "text": _signed(side * margin)} for side in (-1, 1)]
    edges = altair.Chart(altair.Data(values=ends)).encode(x="at:Q")
    rules = edges.mark_rule(color=colours.quiet, strokeDash=[3, 3])
    names = edges.mark_text(color=colours.ink, fontSize=12, fontWeight="bold", baseline="bottom", dy=-4)
    return dressed(
        altair.layer(chart, rules, names.encode(y=altair.value(0), text="text:N")).properties(width=520, height=200),
        title=title,
        subtitle=[message(language, "plot.law_margin", confidence=fraction_text(100 * level), margin=_shown(margin))],
        language=language,
        theme=theme,
    )


def shares(drawn: Tailed, margin: Fraction) -> tuple[Fraction, list[tuple[Fraction, Fraction]]]:
    """How wide a bar is, and for each bar its middle and the chance of an error in it.

    On a lattice a bar holds an odd number of its points, so that all bars hold as many.

    >>> from sfumato.laws import DiscreteLaplace
    >>> width, bars = shares(DiscreteLaplace(scale=Fraction(2)), Fraction(6))
    >>> str(width), len(bars), round(float(dict(bars)[Fraction(0)]), 4)
    ('1', 25, 0.2449)
    """
    step = _step(drawn)
    if step is None:
        width, sides = 2 * REACH * margin / MOST_BARS, MOST_BARS // 2
        first = width / 2
    else:
        reach = REACH * max(math.ceil(margin / step), 3)
        points = -(-(2 * reach + 1) // MOST_BARS) // 2 * 2 + 1
        width, first, sides = points * step, points // 2 * step, -(-reach // points)
    blind = _blind(drawn, step or margin / 4096)
    beyond = [_beyond(drawn, first + width * place, blind) for place in range(sides + 1)]
    right = [(width * place, (beyond[place - 1] - beyond[place]) / 2) for place in range(1, sides + 1)]
    left = [(-place, share) for place, share in reversed(right)]
    return width, [*left, (Fraction(0), 1 - beyond[0]), *right]


def _step(drawn: Tailed) -> Fraction | None:
    """The step of the lattice that the errors lie on; None if they are continuous."""
    if isinstance(drawn, Carried):
        return drawn.step
    if isinstance(drawn, Sum):
        if not all(isinstance(term.law, WholeNumberLaw) for term in drawn.terms):
            return None
        return Fraction(1, math.lcm(*(term.coefficient.denominator for term in drawn.terms)))
    return Fraction(1) if isinstance(drawn, WholeNumberLaw) else None


def _blind(drawn: Tailed, unit: Fraction) -> Fraction:
    """The size below which the tail of a sum on a coarser lattice says nothing: it is rounded outward by so much."""
    if not isinstance(drawn, Sum):
        return Fraction(0)
    return unit * least_whole(lambda count: 0.5 - (drawn.tail(count * unit).high < 1))


def _beyond(drawn: Tailed, size: Fraction, blind: Fraction) -> Fraction:
    """P(|z| > size) for the eye: the middle of its enclosure, or for a coarser lattice the law on that lattice."""
    if blind:
        return drawn.tail(size + blind).high
    tail = drawn.tail(int(size) if isinstance(drawn, WholeNumberLaw) else size)
    return (tail.low + tail.high) / 2


def _range(place: Fraction, width: Fraction, step: Fraction | None) -> str:
    reach = (width - (step or 0)) / 2
    return f"{_signed(place - reach)} … {_signed(place + reach)}"


def _signed(number: Fraction) -> str:
    sign = "+" if number > 0 else "−" if number < 0 else ""
    return f"{sign}{_shown(abs(number))}"


def _shown(number: Fraction) -> str:
    return f"{number.numerator:,}" if number.denominator == 1 else magnitude(number)
