"""A made-up emergency ward that is staffed by what is released about it: a loop that is closed over privacy.

Each hour a controller sees a private total of arrivals and whether there was an alarm. It sets the nurses of the next
hour and whether ambulances are sent elsewhere, and by that it decides who arrives next. It has no other way to the
patients. Everybody here is invented, so that the cost of the loop may be shown beside that of one without privacy.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.core.extras import need
from sfumato.reports.plots.theme import dressed, palette

__all__ = ["HOURS", "PEOPLE", "Controller", "Visits", "Week", "closed_loop", "drawn", "fixed_rota", "visits"]

HOURS = 7 * 24
PEOPLE = 4_000
TREATED, LEAST, MOST = 2, 2, 30  # patients a nurse treats in an hour, and nurses of a shift
WAIT, NURSE, AWAY = 1, 3, 4  # what an hour of waiting, an hour of a nurse and a patient sent away cost
SPARE = 1.15  # nurses beyond what is expected, in the rota and in the loop alike
CROWDED, CALLED_IN, SHIFT = 30, 6, 4
SURPRISE = 10.0**2  # of arrivals in an hour: the square of what they differ from other years
ALARMS, SURGE = 4, 40
DELTA = Fraction(1, 10**6)


def expected(hour: int) -> float:
    """Arrivals in an hour of the day, as known from other years: few at night, most in the afternoon."""
    return 14 - 8 * math.cos(2 * math.pi * (hour % 24 - 3) / 24)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Visits:
    """Who wants to come in each hour, and who of them would come by ambulance."""

    wanted: Sequence[Sequence[str]]
    by_ambulance: Sequence[Sequence[bool]]

    def arriving(self, hour: int, *, diverted: bool) -> list[str]:
        """Who comes in an hour: whether somebody does is a matter of that visit and of what was decided in public."""
        chosen = zip(self.wanted[hour], self.by_ambulance[hour], strict=True)
        return [person for person, carried in chosen if not (diverted and carried)]


def visits(seed: int = 1) -> Visits:
    """A week of invented visits with two surges that nobody expected."""
    chance = np.random.default_rng(seed)
    rates = np.array([expected(hour) for hour in range(HOURS)])
    for start in (40, 110):
        rates[start : start + 5] += 30
    numbers = chance.poisson(rates)
    who = [[f"p{one}" for one in chance.integers(PEOPLE, size=number)] for number in numbers]
    return Visits(wanted=who, by_ambulance=[(chance.random(number) < 0.5).tolist() for number in numbers])


@dataclass(slots=True, kw_only=True)
class Controller:
    """Decides by released numbers and by what it decided before. It holds a twin of the queue.

    With A patients arrived and C that the nurses could have treated, A − C − min(A − C so far) of them wait: totals are
    all that the twin needs, and an error of a total shifts the queue by twice that at most, however long the loop runs.
    The twin also predicts from what is known of other years, and trusts a total by as much as its margin says.
    """

    nurses: int = 8
    diverted: bool = False
    waiting: float = 0.0
    """How many it believes to wait."""
    _able: int = field(default=0, init=False)
    _lowest: float = field(default=0.0, init=False)
    _extra: int = field(default=0, init=False)

    def see(self, hour: int, total: float, margin: float, *, alarm: bool) -> None:
        """Take in what was released of an hour, and decide on the next."""
        able = TREATED * self.nurses
        self._able += able
        gap = round(total) - self._able
        self._lowest = min(self._lowest, gap)
        predicted = max(0.0, self.waiting + expected(hour) - able)
        noise = (margin / 2) ** 2 if margin >= 1 / 2 else 0.0  # totals are whole: rounding takes a smaller error off
        trust = SURPRISE / (SURPRISE + noise)
        self.waiting = trust * (gap - self._lowest) + (1 - trust) * predicted
        self._extra = SHIFT if alarm else max(0, self._extra - 1)
        wanted = math.ceil((self.waiting + SPARE * expected(hour + 1)) / TREATED)
        self.nurses = min(MOST, max(LEAST, wanted + (CALLED_IN if self._extra else 0)))
        self.diverted = self.waiting > CROWDED


@dataclass(slots=True, kw_only=True)
class Week:
    """What happened in a week: patients that waited and nurses by hour, alarms, and those who were sent away."""

    waited: list[int] = field(default_factory=list)
    nurses: list[int] = field(default_factory=list)
    alarms: list[int] = field(default_factory=list)
    sent_away: int = 0
    spent: Fraction = Fraction(0)

    @property
    def cost(self) -> int:
        """Of waiting, of nurses and of those who were sent elsewhere, together."""
        return WAIT * sum(self.waited) + NURSE * sum(self.nurses) + AWAY * self.sent_away

    def lived(self, came: int, wanted: int, nurses: int) -> None:
        """An hour in the ward."""
        before = self.waited[-1] if self.waited else 0
        self.waited.append(max(0, before + came - TREATED * nurses))
        self.nurses.append(nurses)
        self.sent_away += wanted - came


def closed_loop(given: Visits, epsilon: int | Fraction | None) -> Week:
    """Run the loop on private totals and alarms for ``epsilon``; on exact ones if None, as nobody may with patients.

    Guarantee: persons, each with up to two visits in the week, are protected together by (ε, 10⁻⁶)-DP in all that the
    controller ever sees, though it decides by that who arrives next: four fifths of ε go to totals, the rest to alarms.
    """
    week, controller = Week(), Controller()
    desk = _Exact() if epsilon is None else _Private(Fraction(epsilon))
    for hour in range(HOURS):
        came = given.arriving(hour, diverted=controller.diverted)
        week.lived(len(came), len(given.wanted[hour]), controller.nurses)
        total, margin, alarm = desk.told(came)
        week.alarms += [hour] if alarm else []
        controller.see(hour, total, margin, alarm=alarm)
    week.spent = desk.spent
    return week


def fixed_rota(given: Visits) -> Week:
    """The same week with nurses by what is known of other years alone; it needs no data."""
    week = Week()
    for hour in range(HOURS):
        nurses = math.ceil(SPARE * expected(hour) / TREATED)
        week.lived(len(given.wanted[hour]), len(given.wanted[hour]), nurses)
    return week


class _Private:
    """The desk that counts arrivals: two open streams, charged before the first hour."""

    def __init__(self, epsilon: Fraction) -> None:
        self._vault = sf.Vault(
            unit=sf.user("patient", relation="add/remove"),
            budget=sf.Budget(epsilon=epsilon, delta=DELTA),
            name="emergency ward",
        )
        stream = self._vault.stream(
            name="arrivals", version="1", horizon=HOURS, bounds=(0, 500), limit=sf.Limit(groups=2, rows_per_group=1)
        )
        self._totals = stream.running_total().open(epsilon=epsilon * Fraction(4, 5), delta=DELTA)
        self._watch = stream.alarms(threshold=SURGE, alarms=ALARMS).open(epsilon=epsilon / 5)

    @property
    def spent(self) -> Fraction:
        return self._vault.spent.epsilon

    def told(self, came: Sequence[str]) -> tuple[float, float, bool]:
        told = self._totals.add(people=came)
        alarm = not self._watch.halted and self._watch.check(people=came).alarm
        return float(told), told.margin, bool(alarm)


class _Exact:
    """The same without privacy, with the same limit on visits."""

    spent = Fraction(0)

    def __init__(self) -> None:
        self._came: dict[str, int] = {}
        self._total = self._alarms = 0

    def told(self, came: Sequence[str]) -> tuple[float, float, bool]:
        counted = 0
        for person in set(came):
            self._came[person] = self._came.get(person, 0) + 1
            counted += self._came[person] <= 2
        self._total += counted
        alarm = counted >= SURGE and self._alarms < ALARMS
        self._alarms += alarm
        return float(self._total), 0.0, alarm


def drawn(costs: Mapping[Fraction, Sequence[int]], exact: Week, rota: Week, weeks: Mapping[str, Week]) -> Any:
    """What the loop cost at each ε beside the loop without privacy and the rota; and who waited in some weeks."""
    altair = need("altair", "pip install 'sfumato[plots]'")
    colours = palette("light")
    runs = [{"epsilon": float(epsilon), "cost": cost} for epsilon, seen in costs.items() for cost in seen]
    least, most = min(one["epsilon"] for one in runs), max(one["epsilon"] for one in runs)
    across = altair.X(
        "epsilon:Q",
        title="ε of the week",
        scale=altair.Scale(type="log", domain=[least * 0.8, most * 1.25]),
        axis=altair.Axis(grid=False, values=[float(one) for one in costs], format="~g"),
    )
    up = altair.Y("cost:Q", title="cost of the week", scale=altair.Scale(zero=False), axis=altair.Axis(format=",d"))
    base = altair.Chart(altair.Data(values=runs)).encode(x=across)
    known = [
        {"epsilon": least * 0.8, "cost": rota.cost, "name": "rota, no data"},
        {"epsilon": least * 0.8, "cost": exact.cost, "name": "loop without privacy"},
    ]
    lines = altair.Chart(altair.Data(values=known)).encode(y=up)
    price = altair.layer(
        lines.mark_rule(color=colours.quiet, strokeDash=[4, 3]),
        lines.mark_text(align="left", dy=-7, color=colours.quiet, fontSize=11).encode(x=across, text="name:N"),
        base.mark_line(color=colours.mark, strokeWidth=1.5).encode(y="mean(cost):Q"),
        base.mark_circle(color=colours.mark, size=26, opacity=0.7).encode(y=up),
    ).properties(width=330, height=230)
    highest = max(max(week.waited) for week in weeks.values())
    panels = [
        altair.Chart(altair.Data(values=[{"hour": at, "waiting": count} for at, count in enumerate(week.waited)]))
        .mark_area(color=colours.band, line={"color": colours.mark, "strokeWidth": 1})
        .encode(
            x=altair.X(
                "hour:Q",
                title="hour" if place == len(weeks) else None,
                scale=altair.Scale(domain=[0, HOURS], nice=False),
                axis=altair.Axis(grid=False, values=list(range(0, HOURS + 1, 24)), labels=place == len(weeks)),
            ),
            y=altair.Y(
                "waiting:Q", title="waiting", scale=altair.Scale(domain=[0, highest]), axis=altair.Axis(tickCount=3)
            ),
        )
        .properties(width=330, height=54, title={"text": name, "fontSize": 11, "anchor": "start", "offset": 2})
        for place, (name, week) in enumerate(weeks.items(), 1)
    ]
    return dressed(
        altair.hconcat(price, altair.vconcat(*panels, spacing=4), spacing=30),
        title="A ward that is staffed by private totals",
        subtitle=[
            "Left: each dot is one week, the line their mean. Right: patients who wait, hour by hour.",
            "The patients are invented; that is why the loop without privacy can be drawn beside.",
        ],
        language="en",
        theme="light",
    )
