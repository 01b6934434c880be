"""The burn-down of a budget: what was spent after each charge, and where the account stops."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from fractions import Fraction
from itertools import accumulate, pairwise
from types import ModuleType
from typing import Any  # days and times, as was asked before

from sfumato.core.budget import Budget
from sfumato.core.exact import decimal_up, fraction_text
from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.errors import InvalidInput
from sfumato.reports.catalogue import counted, message
from sfumato.reports.plots.labels import clean, distinct
from sfumato.reports.plots.theme import Palette, dressed, palette

__all__ = ["burn_down"]

Entry = tuple[str | date, Budget]
FEW, MOST_NAMED = 5, 24  # labels that can stand straight, and labels that can stand at all
WIDTH, HEIGHT = 520, 220


def burn_down(entries: Sequence[Entry], budget: Budget, language: str = "en", theme: str = "light") -> Chart:
    """Draw what had been spent after each charge: steps that rise towards the line where the account stops.

    ``entries`` are the charges in the order in which they were made, each with a label, or each with the day or time
    at which it was made (a time without a zone is read as UTC). Charges add up, as in basic composition. A budget with
    δ gets a second panel for δ.
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    colours = palette(theme)
    if not isinstance(budget, Budget) or not all(isinstance(cost, Budget) for _, cost in entries):
        raise InvalidInput("a burn-down takes pairs of a label and an sf.Budget, and an sf.Budget; nothing was drawn.")
    whens = [when for when, _ in entries]
    timed = bool(whens) and all(isinstance(when, date) for when in whens)
    if not timed and not all(isinstance(when, str) for when in whens):
        raise InvalidInput("label all charges with text, or all with a day or time; nothing was drawn.")
    panels = []
    for sign, cap, costs in (
        ("ε", budget.epsilon, [cost.epsilon for _, cost in entries]),
        ("δ", budget.delta, [cost.delta for _, cost in entries]),
    ):
        if sign == "ε" or cap:
            look = _Look(altair=altair, language=language, colours=colours, sign=sign, cap=cap)
            sums = [Fraction(0), *accumulate(costs)]
            panels.append(
                _at_times(look, whens, sums) if timed else _in_order(look, [clean(when) for when in whens], sums)
            )
    spent = sum((cost for _, cost in entries), start=Budget.none())
    facts = {
        "spent": _amount(spent, language),
        "total": _amount(budget, language),
        "charges": counted(language, "charge", len(entries)),
    }
    return dressed(
        panels[0] if len(panels) == 1 else altair.vconcat(*panels, spacing=24),
        title=message(language, "plot.burn_down"),
        subtitle=[message(language, "plot.burn_down_so_far", **facts)],
        language=language,
        theme=theme,
        labels=[clean(when) for when in whens],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What both ways to draw a panel share."""

    altair: ModuleType
    language: str
    colours: Palette
    sign: str
    cap: Fraction

    def upright(self, most: Fraction) -> Chart:
        """The axis of what is spent, with room above the line where it stops."""
        top = float(max(self.cap, most)) * 1.12 or 1.0
        axis = self.altair.Axis(
            title=self.spent,
            tickCount=5,
            format="~g" if self.sign == "ε" else ".1~e",
            labelExpr="datum.value === 0 ? '0' : datum.label",
        )
        return self.altair.Y("before:Q", axis=axis, scale=self.altair.Scale(domain=[0, top], nice=False))

    @property
    def spent(self) -> str:
        return message(self.language, "plot.spent_after", sign=self.sign)

    def tips(self) -> list[Chart]:
        """What the mouse shows of a charge."""
        return [self.altair.Tooltip("name:N", title=" "), self.altair.Tooltip("text:N", title=self.spent)]

    def with_stop(self, *layers: Chart) -> Chart:
        """The layers, and the line where the account stops."""
        words = message(self.language, "plot.stops", sign=self.sign, total=_exact(self.sign, self.cap))
        stop = self.altair.Chart(self.altair.Data(values=[{"cap": float(self.cap), "words": words}])).encode(y="cap:Q")
        rule = stop.mark_rule(color=self.colours.ink, strokeWidth=1.5, strokeDash=[6, 3])
        text = stop.mark_text(align="left", baseline="bottom", dy=-4, color=self.colours.ink, fontSize=12)
        named = text.encode(x=self.altair.value(4), text="words:N")
        return self.altair.layer(*layers, rule, named).properties(width=WIDTH, height=HEIGHT)

    def steps(self, rows: list[ChartRow], x: Chart, most: Fraction) -> Chart:
        """A stair with a light area under it."""
        base = self.altair.Chart(self.altair.Data(values=rows)).encode(x=x, y=self.upright(most), tooltip=self.tips())
        area = base.mark_area(interpolate="step-after", color=self.colours.faint)
        line = base.mark_line(interpolate="step-after", color=self.colours.mark, strokeWidth=2.5)
        return self.with_stop(area, line)


def _in_order(look: _Look, names: Sequence[str], sums: Sequence[Fraction]) -> Chart:
    """A column for each charge, light what was spent before and dark what it added; a stair if they are many."""
    altair = look.altair
    if len(names) > MOST_NAMED:
        rows = [
            {"place": place, "name": name, "before": float(spent), "text": decimal_up(spent)}
            for place, (name, spent) in enumerate(zip(["", *names], sums, strict=True))
        ]
        axis = altair.Axis(title=message(look.language, "plot.charges"), grid=False, format=",d", labelFlush=False)
        x = altair.X("place:Q", axis=axis, scale=altair.Scale(domain=[0, len(names)], nice=False))
        return look.steps(rows, x, sums[-1])
    rows = [
        {"name": name, "before": float(before), "after": float(after), "text": decimal_up(after)}
        for name, (before, after) in zip(distinct(names), pairwise(sums), strict=True)
    ]
    straight = len(rows) <= FEW
    axis = altair.Axis(
        title=None,
        labelAngle=0 if straight else -40,
        labelColor=look.colours.ink,
        labelLimit=WIDTH // max(len(rows), 1) if straight else 110,
    )
    scale = altair.Scale(paddingInner=0.06, paddingOuter=0.1)
    base = altair.Chart(altair.Data(values=rows)).encode(
        x=altair.X("name:N", sort=None, axis=axis, scale=scale), tooltip=look.tips()
    )
    light = base.mark_bar(color=look.colours.faint).encode(y=look.upright(sums[-1]), y2=altair.datum(0))
    dark = base.mark_bar(color=look.colours.mark).encode(y="before:Q", y2="after:Q")
    return look.with_stop(light, dark)


def _at_times(look: _Look, whens: Sequence[Any], sums: Sequence[Fraction]) -> Chart:
    """A stair whose steps stand at the times of the charges."""
    moments = [_moment(when) for when in whens]
    if moments != sorted(moments):
        raise InvalidInput("the charges must stand in the order of their times; nothing was drawn.")
    rows = [
        {
            "when": moment.timestamp() * 1000,
            "name": moment.strftime("%Y-%m-%d %H:%M"),
            "before": float(spent),
            "text": decimal_up(spent),
        }
        for moment, spent in zip([moments[0], *moments], sums, strict=True)
    ]
    axis = look.altair.Axis(title=None, format="%Y-%m-%d", grid=False, labelFlush=False, labelOverlap=True, tickCount=5)
    x = look.altair.X("when:T", axis=axis, scale=look.altair.Scale(type="utc"))
    return look.steps(rows, x, sums[-1])


def _moment(when: date) -> datetime:
    moment = when if isinstance(when, datetime) else datetime.combine(when, time())
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _amount(budget: Budget, language: str) -> str:
    epsilon, delta = _exact("ε", budget.epsilon), _exact("δ", budget.delta)
    return message(language, "plot.amount_delta" if budget.delta else "plot.amount", epsilon=epsilon, delta=delta)


def _exact(sign: str, amount: Fraction) -> str:
    return fraction_text(amount) if sign == "ε" else decimal_up(amount)
