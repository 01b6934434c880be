"""Shares that were estimated from randomised reports, each as a mark on its interval."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core.budget import Budget
from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.errors import InvalidInput
from sfumato.local.collection import Collection
from sfumato.local.means import MEANS
from sfumato.reports.amounts import amount
from sfumato.reports.catalogue import message
from sfumato.reports.plots.labels import clean, distinct
from sfumato.reports.plots.theme import dressed, palette

if TYPE_CHECKING:
    from sfumato.local.aggregate import Shares

__all__ = ["shares"]

MOST_VALUES = 60
WIDTH, STEP = 540, 26


def shares(
    found: "Shares",
    collection: Collection,
    language: str = "en",
    theme: str = "light",
    *,
    against: Sequence[float] | None = None,
) -> Chart:
    """Draw estimated shares on their 95% intervals, one line a value; an estimate below 0 is drawn where it is.

    ``against`` are shares known from elsewhere, as in a simulation or from a census: drawn as rings.

    Guarantee: nothing but what is given is drawn, and that was computed from randomised reports. The intervals are
    those of ``found``, for each value by itself or for all at once.

    >>> from sfumato.local import Collection, KaryResponse, estimate_shares
    >>> asked = Collection(name="smoking", ask=KaryResponse(epsilon=1, values=2), labels=("no", "yes"))
    >>> chart = shares(estimate_shares(asked.ask, [0] * 60 + [1] * 40), asked)
    >>> chart.to_dict()["title"]["text"]
    'smoking: estimated shares'
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    if isinstance(collection.ask, MEANS) or len(found.estimates) != collection.ask.values:
        raise InvalidInput("these shares are not those of this collection's values; nothing was drawn.")
    if len(found.estimates) > MOST_VALUES:
        raise InvalidInput(f"more than {MOST_VALUES} values do not fit into one picture; nothing was drawn.")
    if round(found.confidence, 9) != 0.95:
        raise InvalidInput("the picture speaks of 95%; nothing was drawn. Estimate with confidence='0.95'.")
    if against is not None and len(against) != len(found.estimates):
        raise InvalidInput("against must have one share for each value; nothing was drawn.")
    names = distinct([clean(label) for label in collection.labels or range(collection.ask.values)])
    rows: list[ChartRow] = [
        {
            "name": name,
            "share": float(found.estimates[place]),
            "low": float(found.low[place]),
            "high": float(found.high[place]),
            "shown": _percent(found.estimates[place]),
            "within": f"{_percent(found.low[place], up=False)} … {_percent(found.high[place], up=True)}",
        }
        | ({} if against is None else {"against": float(against[place])})
        for place, name in enumerate(names)
    ]
    colours = palette(theme)
    least = min(0.0, min(row["share"] for row in rows))
    most = max(max(row["high"], row.get("against", 0.0)) for row in rows)
    below = altair.Axis(title=message(language, "local_plot.share"), format=".0%", tickCount=6)
    scale = altair.Scale(domain=[least, min(1.0, most * 1.04)], nice=False)
    beside = altair.Axis(title=None, grid=False, labelColor=colours.ink, labelFontSize=12, labelLimit=220)
    tips = [
        altair.Tooltip("name:N", title=" "),
        altair.Tooltip("shown:N", title=message(language, "local_plot.share")),
        altair.Tooltip("within:N", title=message(language, "local_plot.interval")),
    ]
    base = altair.Chart(altair.Data(values=rows)).encode(y=altair.Y("name:N", axis=beside, sort=names), tooltip=tips)
    layers = [
        base.mark_bar(height=9, color=colours.band, cornerRadius=2).encode(
            x=altair.X("low:Q", axis=below, scale=scale), x2="high:Q"
        ),
        base.mark_tick(thickness=3, size=17, color=colours.mark, opacity=1).encode(x="share:Q"),
    ]
    if against is not None:
        ring = base.mark_point(shape="circle", size=70, filled=False, strokeWidth=2, color=colours.ink, opacity=1)
        layers.append(ring.encode(x="against:Q"))
    cost = collection.cost()
    one, total = (amount(Budget(epsilon=epsilon), language) for epsilon in (collection.ask.epsilon, cost.given_pattern))
    price = "local_plot.shares_cost" if cost.epsilon is not None else "local_plot.shares_cost_pattern"
    band = "local_plot.shares_band_joint" if found.joint else "local_plot.shares_band"
    return dressed(
        altair.layer(*layers).properties(width=WIDTH, height=STEP * len(rows)),
        title=message(language, "local_plot.shares", collection=clean(collection.name)),
        subtitle=[
            message(language, band, reports=f"{found.reports:,}"),
            message(language, price, one=one, all=total),
            *([] if found.fits else [message(language, "local_plot.shares_unfit")]),
            *([] if against is None else [message(language, "local_plot.shares_against")]),
        ],
        language=language,
        theme=theme,
        labels=names,
    )


def _percent(share: float, *, up: bool | None = None) -> str:
    """A share in per cent; the ends of an interval are rounded outward."""
    steps = Fraction(float(share)) * 1000
    rounded = round(steps) if up is None else math.ceil(steps) if up else math.floor(steps)
    return f"{rounded / 10:.1f}%".replace("-", "−")
