"""Studies at ε = 1 beside lifelines, SciPy and statsmodels on public data; writes the table of a page of the docs.

``python -m scripts.compare_studies`` releases every study once and writes what it found between the marks of
docs/reference/studies-beside-peers.md; ``--dry`` only prints it. Noise comes from the operating system, so the figures
are others each time. What does not change is checked: the figure of the same rows without noise lies in the interval of
ours at a confidence of 1 − 10⁻⁹, because that interval is for the population, which is further away than these rows.
"""

import argparse
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
PAGE = ROOT / "docs" / "reference" / "studies-beside-peers.md"
START, END = "<!-- figures: written by scripts/compare_studies.py -->\n", "<!-- end of figures -->\n"
EPSILON = 1
NORMAL = 1.959964
LEVEL, SURE = "19/20", "999999999/1000000000"
FACTOR = re.compile(r"(?:C\()?(\w+)\)?\[T\.(.+)\]")
Span = tuple[float, float, float]
"""An estimate and its 95% interval."""
Study = Callable[[str], Iterator["Line"]]
"""What releases a study of some data, and finds the same figures without noise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One figure of ours beside that of a peer on the same rows."""

    data: str
    rows: int
    figure: str
    peer: str
    ours: Span
    theirs: Span
    sure: tuple[float, float]
    ratio: bool = False
    """Whether it is a ratio, whose interval is measured on a logarithmic scale."""

    @property
    def difference(self) -> float:
        """How far ours is from theirs."""
        return self.ours[0] - self.theirs[0]

    @property
    def widths(self) -> float:
        """How many times wider our interval is."""
        if self.ratio:
            if self.ours[1] <= 0:
                return math.inf
            return math.log(self.ours[2] / self.ours[1]) / math.log(self.theirs[2] / self.theirs[1])
        return (self.ours[2] - self.ours[1]) / (self.theirs[2] - self.theirs[1])

    @property
    def holds(self) -> bool:
        """Whether theirs lies in our interval of almost certainty."""
        return self.sure[0] <= self.theirs[0] <= self.sure[1]


def lines(names: Sequence[str] = ()) -> Iterator[Line]:
    """Every figure, or those of some data."""
    for name, compared in COMPARED.items():
        if not names or name in names:
            for study in compared:
                yield from study(name)


def page(found: Sequence[Line]) -> str:
    """The table in Markdown."""
    head = "| data | rows | figure | ours, 95% interval | without noise | peer | difference | interval, times as wide |"
    rows = [
        f"| {each.data} | {each.rows:,} | {each.figure} | {_span(each.ours)} | {_span(each.theirs)} | {each.peer} "
        f"| {_short(each.difference)} | {each.widths:.2f} |"
        for each in found
    ]
    return "\n".join([head, "|---|---|---|---|---|---|---|---|", *rows]) + "\n"


def _span(span: Span) -> str:
    from sfumato.core.rounding import fixed, places_of

    known = [size for size in (span[0] - span[1], span[2] - span[0]) if 0 < size < math.inf]
    places = places_of(min(known)) if known else 4
    return f"{fixed(span[0], places)} ({fixed(span[1], places, -1)}, {fixed(span[2], places, 1)})"


def _short(number: float) -> str:
    return f"{number:.2g}"


def _frame(name: str) -> Any:
    import pandas as pd

    if name == "diabetes-130":
        rows = pd.read_parquet(DATA / "diabetes-130-us-hospitals" / "diabetic_data.parquet")
        return rows.sort_values("encounter_id").groupby("patient_nbr", as_index=False).first()
    frame = pd.read_csv(DATA / "survival" / f"{name}.csv.gz")
    for column in GROUPS.get(name, ()):
        frame[column] = frame[column].astype(str)
    return frame


def _table(name: str) -> Any:
    """The rows in a vault of their own; of the stays, the first of each patient."""
    import sfumato as sf

    budget = sf.Budget(epsilon=100)
    keys, bounds = KEYS[name], BOUNDS[name]
    if name != "diabetes-130":
        import pyarrow as pa

        frame = _frame(name)
        columns = [each for each in frame.columns if each in {*keys, *bounds, *EVENTS}]
        vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=budget, name=name, population=len(frame))
        rows = pa.Table.from_pandas(frame[columns], preserve_index=False).replace_schema_metadata(None)
        return vault.table(rows, name=name, version="1", keys=keys, bounds=bounds)
    vault = sf.Vault(unit=sf.user("patient_nbr", relation="add/remove"), budget=budget, name=name, population=71_518)
    stays = vault.table(
        DATA / "diabetes-130-us-hospitals" / "diabetic_data.parquet",
        name="stays",
        version="1999-2008",
        limit=sf.Limit(groups=1, rows_per_group=1),
        keys=keys,
        bounds=bounds,
    )
    first = {column: sf.first(column, by="encounter_id") for column in (*keys, *bounds)}
    return stays.per_person(**first)


EVENTS = ("arrest", "cens", "death", "status")
GROUPS = {"rossi": ("fin",), "nafld1": ("male",)}
KEYS: dict[str, dict[str, list[Any]]] = {
    "rossi": {"fin": ["0", "1"]},
    "gbsg2": {"horTh": ["no", "yes"]},
    "flchain": {"sex": ["F", "M"], "death": [0, 1]},
    "nafld1": {"male": ["0", "1"], "status": [0, 1]},
    "diabetes-130": {
        "gender": ["Female", "Male"],
        "diabetesMed": ["No", "Yes"],
        "readmitted": ["NO", ">30", "<30"],
    },
}
BOUNDS: dict[str, dict[str, tuple[float, float]]] = {
    "rossi": {"week": (0, 52), "age": (16, 50), "prio": (0, 20)},
    "gbsg2": {"time": (0, 2700), "age": (20, 80), "tsize": (0, 120)},
    "flchain": {"futime": (0, 5400), "age": (50, 101), "kappa": (0, 6)},
    "nafld1": {"futime": (0, 7300), "age": (18, 98), "bmi": (15, 60)},
    "diabetes-130": {
        "time_in_hospital": (1, 14),
        "num_medications": (1, 40),
        "number_inpatient": (0, 6),
        "number_diagnoses": (1, 16),
    },
}


def _held(name: str, frame: Any) -> Any:
    """The frame with its values held to the declared bounds, as ours are."""
    held = frame.copy()
    for column, (low, high) in BOUNDS[name].items():
        held[column] = held[column].clip(low, high)
    return held


def _shares(event: str, group: str, *, is_event: object = 1) -> Study:
    """The difference of two shares."""

    def compared(name: str) -> Iterator[Line]:
        from statsmodels.stats.proportion import confint_proportions_2indep

        import sfumato as sf

        frame = _frame(name)
        result = _table(name).two_sample(sf.col(event) == is_event, by=group).release(epsilon=EPSILON)
        first, second = (frame.loc[frame[group] == key, event] == is_event for key in KEYS[name][group])
        counts = (first.sum(), len(first), second.sum(), len(second))
        ends = confint_proportions_2indep(*counts, compare="diff")
        yield Line(
            data=name,
            rows=len(frame),
            figure=f"difference of shares, `{event}` by `{group}`",
            peer="statsmodels",
            ours=(result.estimate, *result.interval(LEVEL)),
            theirs=(first.mean() - second.mean(), *ends),
            sure=result.interval(SURE),
        )

    return compared


def _means(value: str, group: str) -> Study:
    """The difference of two means, by Welch's test."""

    def compared(name: str) -> Iterator[Line]:
        from scipy import stats

        frame = _held(name, _frame(name)).dropna(subset=[value])
        result = _table(name).two_sample(value, by=group).release(epsilon=EPSILON)
        first, second = (frame.loc[frame[group] == key, value] for key in KEYS[name][group])
        ends = stats.ttest_ind(first, second, equal_var=False).confidence_interval()
        yield Line(
            data=name,
            rows=len(first) + len(second),
            figure=f"difference of means, `{value}` by `{group}`",
            peer="SciPy",
            ours=(result.estimate, *result.interval(LEVEL)),
            theirs=(first.mean() - second.mean(), ends.low, ends.high),
            sure=result.interval(SURE),
        )

    return compared


def _survival(time: str, event: str, group: str, *, at: int, horizon: int, steps: int | None = None) -> Study:
    """Survival at a time, the restricted mean time and the hazard ratio, by group."""

    def compared(name: str) -> Iterator[Line]:
        from lifelines import CoxPHFitter, KaplanMeierFitter

        import sfumato as sf

        frame = _frame(name)
        study = _table(name).survival(time, sf.col(event) == 1, by=group, steps=steps)
        result = study.release(epsilon=EPSILON)
        keys = KEYS[name][group]
        fits = {key: KaplanMeierFitter().fit(*(frame.loc[frame[group] == key, each] for each in (time, event)))
                for key in keys}  # fmt: skip
        survived, means, ratio = result.at(at), result.rmst(horizon), result.hazard_ratio()
        for place, key in enumerate(keys):
            fit = fits[key]
            share = float(fit.predict(at))
            low, high = fit.confidence_interval_.loc[:at].iloc[-1]
            yield _line(name, frame, f"survival at {at:,} of `{time}`, `{group}` = {key}", survived, place,
                        (share, low, high))  # fmt: skip
            yield _line(name, frame, f"mean time until {horizon:,} of `{time}`, `{group}` = {key}", means, place,
                        _mean_time(fit, horizon))  # fmt: skip
        cox = CoxPHFitter().fit(
            frame[[time, event]].assign(group=(frame[group] == keys[1]).astype(int)), duration_col=time, event_col=event
        )
        ends = cox.summary.loc["group", ["exp(coef)", "exp(coef) lower 95%", "exp(coef) upper 95%"]]
        yield _line(name, frame, f"hazard ratio of `{event}`, `{group}` = {keys[1]}", ratio, 0, tuple(map(float, ends)))

    return compared


def _mean_time(fit: Any, horizon: float) -> Span:
    """The area under a curve of lifelines up to a time, with Greenwood's variance of it.

    What lifelines gives beside it is the variance of a person's time, and not that of this estimate.
    """
    import numpy as np

    events = fit.event_table.query("observed > 0 and index <= @horizon")
    times = np.array([0.0, *events.index, horizon])
    levels = np.array([1.0, *fit.predict(events.index)])
    pieces = levels * np.diff(times)
    left = np.cumsum(pieces[::-1])[::-1][1:]  # the area after each event
    d, n = events["observed"].to_numpy(), events["at_risk"].to_numpy()
    half = NORMAL * float(np.sqrt(np.sum(left**2 * d / (n * (n - d)))))
    mean = float(pieces.sum())
    return mean, mean - half, mean + half


def _line(name: str, frame: Any, figure: str, result: Any, place: int, theirs: Span) -> Line:
    """A row of a table of ours beside what lifelines finds."""

    def ends(level: str) -> tuple[float, float]:
        found = result.table(None, level).columns
        return float(found["low"][place]), float(found["high"][place])

    value = float(result.table().columns["estimate"][place])
    ours = (value, *ends(LEVEL))
    return Line(data=name, rows=len(frame), figure=figure, peer="lifelines", ours=ours, theirs=theirs, sure=ends(SURE))


def _linear(formula: str, *, robust: bool = False) -> Study:
    """Every coefficient but the intercept of a linear regression; ``robust``, with standard errors of a sandwich."""

    def compared(name: str) -> Iterator[Line]:
        import statsmodels.formula.api as smf

        frame = _of_groups(name, _held(name, _frame(name)), formula)
        result = _table(name).linear_regression(formula, robust=robust).release(epsilon=EPSILON)
        fitted = smf.ols(formula, frame).fit(cov_type="HC1" if robust else "nonrobust")
        kind = "robust linear" if robust else "linear"
        yield from _coefficients(name, f"{kind} regression, `{formula}`", result, fitted)

    return compared


def _logistic(formula: str, *, event: object, cuts: dict[str, list[float]] | None = None) -> Study:
    """Every coefficient but the intercept of a logistic regression, on numbers or classes of them."""

    def compared(name: str) -> Iterator[Line]:
        import pandas as pd
        import statsmodels.formula.api as smf

        outcome = formula.partition(" ~ ")[0]
        frame = _of_groups(name, _held(name, _frame(name)), formula)
        for column, edges in (cuts or {}).items():
            names = [f"[{low}, {high})" for low, high in pairwise(edges)]
            frame[column] = pd.cut(frame[column], edges, right=False, labels=names).astype(str)
        frame[outcome] = (frame[outcome] == event).astype(int)
        study = _table(name).logistic_regression(formula, cuts=cuts, event=event)
        fitted = smf.logit(formula, frame).fit(disp=0)
        yield from _coefficients(name, f"logistic regression, `{formula}`", study.release(epsilon=EPSILON), fitted)

    return compared


def _poisson(formula: str) -> Study:
    """Every coefficient but the intercept of a Poisson regression, with standard errors of a sandwich."""

    def compared(name: str) -> Iterator[Line]:
        import statsmodels.formula.api as smf

        frame = _of_groups(name, _held(name, _frame(name)), formula)
        result = _table(name).poisson_regression(formula).release(epsilon=EPSILON)
        fitted = smf.poisson(formula, frame).fit(disp=0, cov_type="HC1")
        yield from _coefficients(name, f"Poisson regression, `{formula}`", result, fitted)

    return compared


def _of_groups(name: str, frame: Any, formula: str) -> Any:
    """The rows whose words are among those that were declared."""
    for column, levels in KEYS[name].items():
        frame = frame[frame[column].isin(levels)] if column in formula else frame
    return frame.copy()


def _coefficients(name: str, figure: str, result: Any, fitted: Any) -> Iterator[Line]:
    ends, ours, sure = fitted.conf_int(), result.interval(LEVEL), result.interval(SURE)
    for term, value in fitted.params.items():
        called = _called(term)
        if called != "Intercept":
            yield Line(
                data=name,
                rows=int(fitted.nobs),
                figure=f"{figure}: `{called}`",
                peer="statsmodels",
                ours=(result.coefficients[called], *ours[called]),
                theirs=(value, *ends.loc[term]),
                sure=sure[called],
            )


def _called(term: str) -> str:
    """The name of a coefficient of statsmodels with us: C(sex)[T.M] is sex[M], age[T.[65, 80)] is age[65, 80)."""
    found = FACTOR.fullmatch(term)
    if found is None:
        return term
    column, level = found.groups()
    return f"{column}{level}" if level.startswith("[") else f"{column}[{level}]"


COMPARED: dict[str, tuple[Study, ...]] = {
    "rossi": (_shares("arrest", "fin"), _survival("week", "arrest", "fin", at=26, horizon=52)),
    "gbsg2": (
        _shares("cens", "horTh"),
        _means("tsize", "horTh"),
        _survival("time", "cens", "horTh", at=1000, horizon=2000, steps=90),
    ),
    "flchain": (
        _shares("death", "sex"),
        _means("kappa", "sex"),
        _survival("futime", "death", "sex", at=3000, horizon=4500, steps=90),
        _linear("kappa ~ age + C(sex)"),
        _logistic("death ~ C(sex) + age", event=1, cuts={"age": [50, 60, 70, 80, 102]}),
        _logistic("death ~ age + kappa + C(sex)", event=1),
    ),
    "nafld1": (
        _shares("status", "male"),
        _means("bmi", "male"),
        _survival("futime", "status", "male", at=3000, horizon=5000, steps=73),
        _linear("bmi ~ age + C(male)"),
        _logistic("status ~ C(male) + age", event=1, cuts={"age": [18, 45, 60, 75, 99]}),
        _logistic("status ~ age + bmi + C(male)", event=1),
    ),
    "diabetes-130": (
        _shares("readmitted", "diabetesMed", is_event="<30"),
        _means("time_in_hospital", "diabetesMed"),
        _linear("time_in_hospital ~ num_medications + number_diagnoses + C(gender)"),
        _linear("time_in_hospital ~ num_medications + number_diagnoses + C(gender)", robust=True),
        _logistic("diabetesMed ~ C(gender) + number_diagnoses", event="Yes", cuts={"number_diagnoses": [1, 5, 8, 17]}),
        _logistic("diabetesMed ~ num_medications + number_diagnoses + time_in_hospital + C(gender)", event="Yes"),
        _poisson("number_inpatient ~ number_diagnoses + C(gender)"),
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or print its table."""
    options = argparse.ArgumentParser(prog="python -m scripts.compare_studies", description=__doc__)
    options.add_argument("--dry", action="store_true", help="print the table and write nothing")
    options.add_argument("names", nargs="*", metavar="DATA", help=f"some of {', '.join(COMPARED)}; else all")
    chosen = options.parse_args(arguments)
    found = list(lines(chosen.names))
    wrong = [each for each in found if not each.holds]
    if chosen.dry or chosen.names:
        print(page(found))
    else:
        before, _, rest = PAGE.read_text("utf-8").partition(START)
        PAGE.write_text(before + START + "\n" + page(found) + "\n" + END + rest.partition(END)[2], "utf-8")
    for each in wrong:
        print(f"{each.data}, {each.figure}: {each.theirs[0]} does not lie in {each.sure}")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
