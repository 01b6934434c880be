"""Invented arrivals in emergency departments: a file for each day, week and month, in which no real person occurs."""

from datetime import timedelta
from pathlib import Path

from sfumato.demo.network import REGIONS
from sfumato.governance.periods import Cadence, Period, period_of

__all__ = ["write_arrivals"]

EACH_DAY = 9_000
WEEKDAYS = (1.12, 1.04, 1.0, 0.98, 1.0, 0.9, 0.96)
SHARES = (0.15, 0.13, 0.12, 0.11, 0.10, 0.09, 0.08, 0.07, 0.06, 0.05, 0.035, 0.005)
OUTBREAK, GROWTH = REGIONS[5], 1.05
"""A region whose arrivals grow by this factor each day, so that there is something to be seen."""


def write_arrivals(folder: Path, *, month: Period, patients: int, seed: int = 2026) -> tuple[Period, ...]:
    """Write the arrivals of all weeks that begin or end in a month; the periods that are whole.

    One row is one patient who came in that period; nobody is in the file of a period twice.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Seeded and insecure: it invents fictional people, and the same ones each time. Noise never comes from it.
    draw = np.random.default_rng(seed)
    first = month.first - timedelta(days=month.first.weekday())
    days = [first + timedelta(days=place) for place in range((month.last - first).days + 1)]
    folder.mkdir(parents=True)
    shares = np.array(SHARES) / sum(SHARES)
    size = EACH_DAY * patients // 20_000
    parts: dict[Period, list[pa.Table]] = {}
    for place, day in enumerate(days):
        weights = shares.copy()
        weights[REGIONS.index(OUTBREAK)] *= GROWTH**place
        came = int(draw.poisson(size * WEEKDAYS[day.weekday()] * weights.sum()))
        home = draw.choice(len(REGIONS), size=came, p=weights / weights.sum())
        who = draw.choice(40 * patients, size=came, replace=False)
        rows = pa.table({"patient_id": who, "region": pa.array(REGIONS).take(pa.array(home))})
        for every in (Cadence.DAILY, Cadence.WEEKLY, Cadence.MONTHLY):
            parts.setdefault(period_of(every, day), []).append(rows)
    whole = tuple(period for period in parts if period.first >= first and period.last <= month.last)
    for period in whole:
        together = pa.concat_tables(parts[period])
        once = np.sort(np.unique(together["patient_id"].to_numpy(), return_index=True)[1])
        pq.write_table(together.take(pa.array(once)), folder / f"{period.label}.parquet")
    return whole
