"""True against false positives of both attacks on both models, with logarithmic axes, and what the guarantee allows."""

from types import ModuleType

from sfumato.audit.membership_study import MembershipStudy
from sfumato.audit.reference_models import ModelMembership
from sfumato.core.exact import decimal_up
from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.reports.catalogue import message
from sfumato.reports.plots.theme import Palette, dressed, palette

__all__ = ["FEW", "roc_chart"]

SIDE = 270
POINTS = 120
FEW = 20  # others who were named: where there are fewer, a curve says little
TICKS = [10.0**place for place in range(-5, 1)]


def roc_chart(study: MembershipStudy, language: str = "en", theme: str = "light") -> Chart:
    """Draw the unprotected model on the left and the private one on the right, on the same axes; an Altair chart.

    Shaded is where fewer than 20 others were named: there a few people move a curve, above a limit too.
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    colours = palette(theme)
    lines = {name: message(language, f"membership_page.{name}") for name in ("stated", "curve", "guess")}
    attacks = [each.attack for each in study.private]
    names = [*attacks, *lines.values()]
    scale = {
        "tone": altair.Scale(
            domain=names, range=[colours.mark, colours.band, colours.ink, colours.quiet, colours.faint]
        ),
        "dash": altair.Scale(domain=names, range=[[1, 0], [1, 0], [6, 4], [2, 3], [1, 0]]),
    }
    least = 1 / max(each.others for each in study.private)
    allowed = [
        *_limit(study, lines["stated"], least, curve=False),
        *_limit(study, lines["curve"], least, curve=True),
    ]
    guess: list[ChartRow] = [{"line": lines["guess"], "false": at, "true": at} for at in (least, 1.0)]
    panels = [
        _panel(altair, [*_curves(found, least), *more, *guess], least, language, scale, colours, title)
        for found, more, title in (
            (study.overfitted, [], message(language, "membership_page.overfitted")),
            (
                study.private,
                allowed,
                message(language, "membership_page.private", epsilon=decimal_up(study.epsilon)),
            ),
        )
    ]
    return dressed(
        altair.hconcat(*panels, spacing=34),
        title=message(language, "membership_page.curves"),
        subtitle=[message(language, "membership_page.shaded_short", few=FEW)],
        language=language,
        theme=theme,
    )


def _curves(found: tuple[ModelMembership, ...], least: float) -> list[ChartRow]:
    """Points of the attacks; those without a true or a false positive lie off the logarithmic axes."""
    return [
        {"line": each.attack, "false": false, "true": true}
        for each in found
        for false, true in each.roc
        if false >= least and true >= least
    ]


def _limit(study: MembershipStudy, name: str, least: float, *, curve: bool) -> list[ChartRow]:
    allowed = study.curve if curve else study.curve.stated
    places = [least ** (1 - place / POINTS) for place in range(POINTS + 1)]
    return [{"line": name, "false": at, "true": allowed.most(at)} for at in places]


def _panel(
    altair: ModuleType,
    rows: list[ChartRow],
    least: float,
    language: str,
    scale: dict[str, Chart],
    colours: Palette,
    title: str,
) -> Chart:
    def axis(name: str) -> Chart:
        return altair.Axis(
            title=message(language, f"membership_page.{name}_axis"),
            values=[tick for tick in TICKS if tick >= least],
            format="~%",
        )

    logarithmic = altair.Scale(type="log", domain=[least, 1], nice=False, clamp=True)
    x = altair.X("false:Q", scale=logarithmic, axis=axis("false"))
    y = altair.Y("true:Q", scale=logarithmic, axis=axis("true"))
    corner: ChartRow = {"false": least, "few": min(1.0, FEW * least), "true": least, "all": 1.0}
    shaded = altair.Chart(altair.Data(values=[corner])).mark_rect(color=colours.faint, opacity=0.3)
    legend = altair.Legend(title=None, symbolType="stroke", symbolSize=400, columns=3, columnPadding=36, labelLimit=0)
    lines = (
        altair.Chart(altair.Data(values=rows))
        .mark_line(strokeWidth=2, clip=True)
        .encode(
            x=x,
            y=y,
            color=altair.Color("line:N", scale=scale["tone"], legend=legend),
            strokeDash=altair.StrokeDash("line:N", scale=scale["dash"], legend=legend),
        )
    )
    return altair.layer(shaded.encode(x=x, x2="few:Q", y=y, y2="all:Q"), lines).properties(
        width=SIDE, height=SIDE, title=altair.TitleParams(title, fontSize=13, anchor="start")
    )
