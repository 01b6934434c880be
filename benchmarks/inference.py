"""Studies beside their non-private counterparts in SciPy, statsmodels and lifelines, on the same 100,000 rows.

Each study is timed twice: as users call it, from the table to the result with its intervals and p-value, which holds
reading, adding up, noise, the charge and the certificate; and from a release that is there already, which is
post-processing alone. Neither side reads a file: ours has the rows as an Arrow table, the others as a pandas frame.
Where a result draws a parametric bootstrap, the draws are timed apart, without a counterpart. Rows are invented from a
fixed seed; each row is a person of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness import PAIRS, compare, write

ROWS, DAYS = 100_000, 365
AGES = [18, 40, 65, 80, 96]
WARDS = ("medicine", "surgery", "geriatrics", "intensive care")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A study of a table, and what is done without privacy with the same rows."""

    study: Callable[[Any], Any]
    peer: str
    plainly: Callable[[Any], object]
    read: Callable[[Any], object] = lambda result: result.tables()
    """What is computed of the result: all that the counterpart computes, and more."""


def run(*, smoke: bool) -> Path:
    """Measure all cases; a smoke run takes a hundredth of the rows."""
    rows = _rows(ROWS // 100 if smoke else ROWS)
    frame, table = rows.to_pandas(), _table(rows)
    pairs = 2 if smoke else PAIRS
    measured: dict[str, object] = {}
    for name, case in CASES.items():
        study = case.study(table)
        release = _released(study)
        peers = {case.peer: lambda case=case: case.plainly(frame)}
        measured[f"{name}: release and result"] = compare(
            lambda case=case: case.read(case.study(table).release(epsilon=1, fresh=True)), peers, pairs=pairs
        )
        measured[f"{name}: result alone"] = compare(
            lambda case=case, study=study, release=release: case.read(study.made(release)), peers, pairs=pairs
        )
    shares = table.two_sample("died", by="arm")
    release = _released(shares)
    drawn = compare(lambda: shares.made(release).p_value, {}, pairs=pairs)
    measured["two shares: parametric bootstrap"] = drawn | {"draws": shares.made(release).replicates}
    return write("inference", measured, smoke=smoke)


def _released(study: Any) -> Any:
    (release,) = study.release(epsilon=1).sources
    return release


def _rows(number: int) -> pa.Table:
    chance = np.random.default_rng(0)  # invented persons, nothing private
    arm = chance.integers(0, 2, number)
    ward = chance.integers(0, len(WARDS), number)
    age = chance.uniform(18, 95, number)
    sbp = 100 + 0.4 * age - 3 * arm + chance.normal(0, 15, number)
    odds = np.exp(-4 + 0.03 * age - 0.3 * arm + 0.2 * ward)
    exits = chance.exponential(900 - 100 * arm, number)
    gone = chance.uniform(0, 2 * DAYS, number)
    return pa.table(
        {
            "arm": np.array(["control", "treated"])[arm],
            "ward": np.array(WARDS)[ward],
            "age": age,
            "sbp": np.clip(sbp, 70, 240),
            "died": chance.uniform(size=number) < odds / (1 + odds),
            "days": np.minimum(np.minimum(exits, gone), DAYS).astype(np.int64) + 1,
            "event": exits < np.minimum(gone, DAYS),
        }
    )


def _table(rows: pa.Table) -> Any:
    import sfumato as sf

    vault = sf.Vault(
        unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1_000), name="benchmark", population=len(rows)
    )
    return vault.table(
        rows,
        name="patients",
        version="1",
        keys={"arm": ["control", "treated"], "ward": list(WARDS), "died": [False, True]},
        bounds={"age": (18, 95), "sbp": (70, 240), "days": (0, DAYS + 1)},
    )


def _two_shares(frame: Any) -> object:
    import pandas as pd
    from statsmodels.stats.proportion import confint_proportions_2indep, proportions_chisquare

    counts = pd.crosstab(frame["arm"], frame["died"])
    (first, second), (n, m) = counts[True], counts.sum(axis=1)
    ends = [confint_proportions_2indep(first, n, second, m, compare=each) for each in ("diff", "ratio", "odds-ratio")]
    return proportions_chisquare([first, second], [n, m]), ends


def _two_means(frame: Any) -> object:
    from scipy import stats

    first, second = (frame.loc[frame["arm"] == arm, "sbp"] for arm in ("control", "treated"))
    found = stats.ttest_ind(first, second, equal_var=False)
    return found.pvalue, found.confidence_interval()


def _survival(frame: Any) -> object:
    from lifelines import KaplanMeierFitter
    from lifelines.statistics import logrank_test

    arms = [frame[frame["arm"] == arm] for arm in ("control", "treated")]
    curves = [KaplanMeierFitter().fit(arm["days"], arm["event"]) for arm in arms]
    first, second = arms
    return (
        [(curve.survival_function_, curve.confidence_interval_, curve.median_survival_time_) for curve in curves],
        logrank_test(first["days"], second["days"], first["event"], second["event"]).p_value,
    )


def _survived(result: Any) -> object:
    return result.tables(), result.median().tables(), result.log_rank().tables()


def _linear(frame: Any) -> object:
    import statsmodels.formula.api as smf

    fitted = smf.ols("sbp ~ age + C(arm) + C(ward)", frame).fit()
    return fitted.params, fitted.pvalues, fitted.conf_int()


def _logistic(frame: Any) -> object:
    import pandas as pd
    import statsmodels.formula.api as smf

    classes = frame.assign(died=frame["died"].astype(int), age=pd.cut(frame["age"], AGES, right=False))
    fitted = smf.logit("died ~ C(arm) + C(ward) + C(age)", classes).fit(disp=0)
    return fitted.params, fitted.pvalues, fitted.conf_int()


CASES = {
    "two shares": Case(
        study=lambda table: table.two_sample("died", by="arm"),
        peer="statsmodels, chi-square and intervals",
        plainly=_two_shares,
    ),
    "two means": Case(
        study=lambda table: table.two_sample("sbp", by="arm"), peer="SciPy, Welch's test", plainly=_two_means
    ),
    "survival by arm": Case(
        study=lambda table: table.survival(time="days", event="event", until=DAYS, by="arm"),
        peer="lifelines, Kaplan–Meier and log-rank",
        plainly=_survival,
        read=_survived,
    ),
    "linear regression": Case(
        study=lambda table: table.linear_regression("sbp ~ age + C(arm) + C(ward)"),
        peer="statsmodels, OLS by formula",
        plainly=_linear,
    ),
    "logistic regression": Case(
        study=lambda table: table.logistic_regression("died ~ C(arm) + C(ward) + age", cuts={"age": AGES}),
        peer="statsmodels, Logit by formula",
        plainly=_logistic,
    ),
}
