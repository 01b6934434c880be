"""The picture of an audit of one run: the bound by number of guesses, of which one counts, and the scores."""

import math

from sfumato.audit.one_run import OneRunAudit, right_guesses
from sfumato.audit.one_run_bounds import curve_bound
from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.errors import InvalidInput
from sfumato.reports.catalogue import message
from sfumato.reports.plots.theme import dressed, palette

__all__ = ["audit_chart"]

WIDTH, HEIGHT = 460, 220
PLACES, BINS = 16, 32


def audit_chart(found: OneRunAudit, language: str = "en", theme: str = "light") -> Chart:
    """Draw the lower bound that other numbers of guesses would have had, the one that counts, and the scores.

    Public: an audit is. The line is for the eye: choosing its highest point would be choosing after looking.
    """
    if not isinstance(found, OneRunAudit):
        raise InvalidInput(
            f"a picture is of an audit, such as audit.trained(…) gives, and not of {type(found).__name__}; nothing was "
            "drawn."
        )
    altair = need("altair", "pip install 'sfumato[plots]'")
    colours = palette(theme)
    guessed = {max(2, found.canaries * place // PLACES // 2 * 2) for place in range(1, PLACES + 1)}
    rows = [_at(found, guesses) for guesses in sorted({*guessed, found.guesses})]
    x = altair.X(
        "guesses:Q",
        scale=altair.Scale(domain=[0, found.canaries], nice=False),
        axis=altair.Axis(title=message(language, "audit_plot.guesses"), format=",d", grid=False, tickCount=5),
    )
    y = altair.Y(
        "bound:Q",
        scale=altair.Scale(domain=[0, 1.2 * max(found.epsilon, found.by_curve)], nice=False),
        axis=altair.Axis(title=message(language, "audit_plot.bound"), tickCount=5),
    )
    fixed = {"guesses": found.guesses, "bound": found.by_curve, "words": message(language, "audit_plot.fixed")}
    end = altair.Chart(altair.Data(values=[fixed])).encode(x=x, y=y)
    claimed = {"bound": found.epsilon, "words": message(language, "audit_plot.line", epsilon=f"{found.epsilon:g}")}
    claim = altair.Chart(altair.Data(values=[claimed])).encode(y=y)
    words = {"align": "left", "color": colours.ink, "fontSize": 12}
    bounds = altair.layer(
        altair.Chart(altair.Data(values=rows)).mark_line(color=colours.band, strokeDash=[3, 3]).encode(x=x, y=y),
        claim.mark_rule(color=colours.quiet, strokeWidth=2),
        claim.mark_text(dx=4, dy=-9, **words).encode(x=altair.value(0), text="words:N"),
        end.mark_point(color=colours.mark, filled=True, size=80, opacity=1),
        end.mark_text(dx=-4, dy=-22, stroke=colours.paper, strokeWidth=5, **words).encode(text="words:N"),
        end.mark_text(dx=-4, dy=-22, **words).encode(text="words:N"),
    ).properties(width=WIDTH, height=HEIGHT)
    power = _power(found)
    names = [message(language, f"audit_plot.{side}") for side in ("inside", "outside")]
    scores = (
        altair.Chart(altair.Data(values=_bins(found, names, power)))
        .mark_line(interpolate="step", strokeWidth=2)
        .encode(
            x=altair.X(
                "score:Q",
                axis=altair.Axis(title=_scores_title(language, power), format="~f", tickCount=6, grid=False),
            ),
            y=altair.Y("number:Q", axis=altair.Axis(title=message(language, "audit_plot.share"), tickCount=5)),
            color=altair.Color(
                "side:N",
                scale=altair.Scale(domain=names, range=[colours.mark, colours.band]),
                legend=altair.Legend(title=None),
            ),
        )
        .properties(width=WIDTH, height=HEIGHT)
    )
    facts = {"epsilon": f"{found.epsilon:g}", "delta": f"{found.delta:g}", "guesses": f"{found.guesses:,}"}
    return dressed(
        altair.vconcat(bounds, scores),
        title=message(language, "audit_plot.title"),
        subtitle=[message(language, "audit_plot.claimed", **facts), message(language, "audit_plot.nothing")],
        language=language,
        theme=theme,
    )


def _at(found: OneRunAudit, guesses: int) -> ChartRow:
    right = right_guesses(found.scores, found.coins, guesses)
    counts = {"canaries": found.canaries, "guesses": guesses, "right": right}
    return {"guesses": guesses, "bound": curve_bound(delta=found.delta, alpha=1 - found.confidence, **counts)}


def _power(found: OneRunAudit) -> int:
    """The power of ten that scores are shown in, so that ticks are short numbers; 0 where they are anyway."""
    largest = float(abs(found.scores).max())
    power = math.floor(math.log10(largest)) if largest else 0
    return 0 if -2 <= power <= 3 else power


def _scores_title(language: str, power: int) -> str:
    if not power:
        return message(language, "audit_plot.scores")
    return message(language, "audit_plot.scores_in", scaled=f"{'×' if power < 0 else '÷'} {10 ** abs(power):,}")


def _bins(found: OneRunAudit, names: list[str], power: int) -> list[ChartRow]:
    import numpy as np

    told = found.scores / 10.0**power
    edges = np.linspace(float(told.min()), float(told.max()), BINS + 1)
    middles = (edges[:-1] + edges[1:]) / 2
    sides = (told[found.coins], told[~found.coins])
    return [
        {"score": float(middle), "number": int(number), "side": name}
        for name, side in zip(names, sides, strict=True)
        for middle, number in zip(middles, np.histogram(side, edges)[0], strict=True)
    ]
