"""What someone can come to believe about one unit: before and after, for every belief to start from."""

from collections.abc import Iterator
from fractions import Fraction

from sfumato.core import adversary
from sfumato.core.exact import decimal_up, fraction_text
from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.core.guarantees import Pure
from sfumato.core.release import Release, only_release
from sfumato.core.statement import Statement
from sfumato.core.units import Family, Record, Relation
from sfumato.reports.catalogue import in_chinese, message
from sfumato.reports.frequencies import believed, frequencies, so_many
from sfumato.reports.plots.icon_array import ALL, Thousand, icons, thousands
from sfumato.reports.plots.theme import dressed, palette

__all__ = ["belief", "people"]

STEPS = 40


def belief(release: Release, language: str = "en", theme: str = "light") -> Chart:
    """Draw how far any belief about one unit can move, by all releases of the account up to this one.

    Guarantee: Bayes' rule with the ε spent so far, everything else in the data known; rounded against us. Under
    add/remove the wider band is about a trait of someone known to be in the data, for which 2ε counts. With δ > 0 no
    such curve holds; then the best guess from even odds is drawn, as in :func:`people`.
    """
    said = only_release(release).statement
    if said.account.spent.delta:
        return people(release, language, theme)
    altair = need("altair", "pip install 'sfumato[plots]'")
    colours, spent = palette(theme), Pure(epsilon=said.account.spent.epsilon)
    bands = [(_about(said, language), spent, colours.mark)]
    if said.unit.relation is Relation.ADD_REMOVE:
        bands.append((_about(said, language, trait=True), spent.group(2), colours.band))
    whole, form, tip = (1, "~%", ".1~%") if in_chinese(language) else (ALL, ",d", ",d")  # out of 1,000, or per cent
    rows = [row for name, guarantee, _ in reversed(bands) for row in _curve(name, guarantee, whole)]
    names, shades = [name for name, _, _ in bands], [colour for _, _, colour in bands]
    scale = altair.Scale(domain=[0, whole])
    ticks = {"values": [0, whole / 4, whole / 2, whole * 3 / 4, whole], "format": form, "labelFlush": False}
    x = altair.X("prior:Q", scale=scale, axis=altair.Axis(title=message(language, "plot.before_axis"), **ticks))
    y = altair.Y("low:Q", scale=scale, axis=altair.Axis(title=message(language, "plot.after_axis"), **ticks))
    legend = altair.Legend(title=None, columns=1, symbolType="square", symbolOpacity=1)
    base = altair.Chart(altair.Data(values=rows)).encode(
        x=x, color=altair.Color("about:N", scale=altair.Scale(domain=names, range=shades), legend=legend)
    )
    tips = [
        altair.Tooltip("about:N", title=" "),
        *(
            altair.Tooltip(f"{field}:Q", title=message(language, f"plot.{word}"), format=tip)
            for field, word in (("prior", "before"), ("low", "after_low"), ("high", "after_high"))
        ),
    ]
    unmoved = altair.Chart(altair.Data(values=[{"prior": 0, "low": 0}, {"prior": whole, "low": whole}]))
    moved = believed(spent)
    layers = [
        base.mark_area(opacity=0.28).encode(y=y, y2="high:Q", tooltip=tips),
        base.mark_line(strokeWidth=2).encode(y="low:Q"),
        base.mark_line(strokeWidth=2).encode(y="high:Q"),
        unmoved.mark_line(color=colours.quiet, strokeDash=[4, 4], strokeWidth=1.2).encode(x="prior:Q", y="low:Q"),
    ]
    # The larger figure stands above its line and the smaller one below, where nothing else is drawn.
    for end, place in (
        (moved.high, {"align": "right", "dx": -7, "dy": -7}),
        (moved.low, {"align": "left", "dx": 7, "dy": 9}),
    ):
        mark = altair.Chart(altair.Data(values=[_point(moved.prior, end, whole, language)]))
        mark = mark.encode(x="prior:Q", y="end:Q")
        layers.append(mark.mark_point(filled=True, size=60, color=colours.mark, opacity=1))
        figure = {"fontSize": 12, "fontWeight": "bold", **place}
        halo = mark.mark_text(stroke=colours.paper, strokeWidth=3, strokeOpacity=0.8, color=colours.paper, **figure)
        layers += [halo.encode(text="text:N"), mark.mark_text(color=colours.ink, **figure).encode(text="text:N")]
    ends = {"prior": moved.prior, "low": moved.low, "high": moved.high}
    facts = {name: so_many(count, language) for name, count in ends.items()}
    return dressed(
        altair.layer(*layers).properties(width=360, height=360),
        title=message(language, "plot.belief"),
        subtitle=[
            message(language, "plot.belief_spent", epsilon=fraction_text(spent.epsilon)),
            message(language, "plot.belief_example", **facts),
        ],
        language=language,
        theme=theme,
    )


def people(release: Release, language: str = "en", theme: str = "light") -> Chart:
    """Draw what the account's releases can teach about one unit as dots out of 1,000.

    Pure: a chance of 100 in 1,000 that the unit is in the data (under replace: has a trait), and the least and the most
    that it can become. With δ > 0: how many of 1,000 guesses from even odds are right, at the most, beside the 500 that
    are right by chance; (e^ε + δ)/(1 + e^ε), rounded up.
    """
    said = only_release(release).statement
    spent = said.account.spent
    about, epsilon = _about(said, language), fraction_text(spent.epsilon)
    moved = frequencies(release)
    if not moved.guess:
        note = message(language, "plot.belief_spent", epsilon=epsilon)
        return icons(moved.prior, moved.low, moved.high, language, theme, about=about, note=note)
    return thousands(
        [
            Thousand(word=message(language, "plot.guess_before"), dark=moved.prior),
            Thousand(word=message(language, "plot.guess_after"), dark=moved.high),
        ],
        title=message(language, "plot.guesses"),
        subtitle=[
            message(language, "plot.guess_about", about=about),
            message(language, "plot.belief_spent_delta", epsilon=epsilon, delta=decimal_up(spent.delta)),
        ],
        language=language,
        theme=theme,
    )


def _about(said: Statement, language: str, *, trait: bool = False) -> str:
    """What the belief is about: being in the data, or under replace, and where asked, a trait."""
    unit = said.unit
    member = message(
        language, f"member.{unit.KIND.removeprefix('unit.')}", size=unit.size if isinstance(unit, Family) else 1
    )
    if unit.relation is Relation.ADD_REMOVE and not trait:
        return message(language, "plot.about_presence", member=member)
    about = "plot.about_content" if isinstance(unit, Record) else "plot.about_trait"
    return message(language, f"{about}_inside" if trait else about, member=member)


def _point(prior: int, end: int, whole: int, language: str) -> ChartRow:
    return {"prior": prior * whole / ALL, "end": end * whole / ALL, "text": so_many(end, language)}


def _curve(name: str, guarantee: Pure, whole: int) -> Iterator[ChartRow]:
    for step in range(STEPS + 1):
        share = Fraction(step, STEPS)
        bound = adversary.belief(guarantee, share**2 * (3 - 2 * share))  # denser at both ends, where the curve bends
        ends = {"low": float(whole * bound.low), "high": float(whole * bound.high)}
        yield {"about": name, "prior": float(whole * bound.prior), **ends}
