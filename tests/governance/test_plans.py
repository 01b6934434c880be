"""Plans: the cap is never exceeded, the split is the best one, and a plan that does not fit says what binds."""

import itertools
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.accounting import epsilon as accounting_epsilon
from sfumato.accounting import zcdp
from sfumato.accounting.filters import ZCDPFilter
from sfumato.core.budget import Budget
from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.core.units import Unit, event, record, user
from sfumato.errors import BudgetExceeded, InvalidInput, NotDeclared, Refused
from sfumato.governance.periods import Cadence, period_of, periods
from sfumato.governance.plans import (
    DECLARATIONS,
    Accounting,
    Aim,
    FigureSource,
    Fixed,
    Margin,
    MeanError,
    Plan,
    PlannedRelease,
    Schedule,
    combine,
    ideal_epsilon,
    least_amount,
    shortfall,
    solve,
)
from sfumato.governance.plans.many_errors import GaussianSum, LaplaceSum
from sfumato.governance.plans.split import fill, root_share
from sfumato.laws import DiscreteLaplace
from sfumato.laws.sums import Sum

LONG = os.environ.get("SFUMATO_LONG") == "1"

PATIENT = user("patient_id", relation="add/remove")
WITHIN_5 = Margin(margin=5, confidence=Fraction(19, 20))
D, W, M, Q, Y = Cadence.DAILY, Cadence.WEEKLY, Cadence.MONTHLY, Cadence.QUARTERLY, Cadence.YEARLY


def release(name: str, every: Cadence, **fields: object) -> PlannedRelease:
    return PlannedRelease(**{"name": name, "every": every, "l1": Fraction(1), **fields})  # type: ignore[arg-type]


def plan(*releases: PlannedRelease, epsilon: object = 8, aim: Aim = Aim.LEAST_VARIANCE, **fields: object) -> Plan:
    cap = fields.pop("cap", None) or Budget(epsilon=epsilon)  # type: ignore[arg-type]
    whole = {"name": "board", "year": 2026, "unit": PATIENT, "cap": cap, "releases": releases, "aim": aim, **fields}
    return Plan(**whole)  # type: ignore[arg-type]


def variance(schedule: Schedule) -> Fraction:
    """Σ n·w·2(Δ/ε)² of a plan without derived figures, worked out by hand."""
    total = Fraction(0)
    for line in schedule.lines:
        asked = schedule.plan.release(line.name)
        total += line.periods * asked.weight * 2 * (asked.l1 / line.amount) ** 2
    return total


DASHBOARD = tuple(
    release(name, every, wanted=WITHIN_5) for name, every in (("daily", D), ("weekly", W), ("monthly", M))
)


@pytest.mark.claim("S1-11")
def test_a_dashboard_within_5_costs_what_the_textbook_says_and_less_with_whole_numbers() -> None:
    whole = plan(*DASHBOARD, epsilon=300, aim=Aim.LEAST_COST)
    counts = [whole.periods(each) for each in DASHBOARD]
    ideal = sum(counts) * ideal_epsilon(WITHIN_5, DASHBOARD[0])
    assert counts == [365, 52, 12]
    assert 257 < ideal < Fraction(2571, 10)
    assert ideal_epsilon(MeanError(error=Fraction(4)), DASHBOARD[0]) == Fraction(1, 4)
    schedule = solve(whole)
    assert schedule.total == 429 * least_amount(WITHIN_5, DASHBOARD[0], Accounting.BASIC) < ideal
    assert all(schedule.margin(each.name) <= 5 for each in DASHBOARD)


@pytest.mark.parametrize("every", list(Cadence))
@pytest.mark.parametrize("year", [2024, 2026, 2028, 2032])
def test_periods_cover_a_year_without_gap_or_overlap(every: Cadence, year: int) -> None:
    found = periods(every, year)
    assert all(period.last.year == year for period in found)
    assert all(
        here.last < there.first and (there.first - here.last).days == 1 for here, there in itertools.pairwise(found)
    )
    assert all(period_of(every, period.first) == period == period_of(every, period.last) for period in found)
    assert len({period.label for period in found}) == len(found)


@pytest.mark.claim("S1-11")
def test_the_split_is_proportional_to_the_cube_root_and_better_than_any_point_of_a_grid() -> None:
    heavy = release("quarter", Q, l1=Fraction(3), weight=Fraction(5))
    light = release("year", Y, weight=Fraction(2))
    schedule = solve(plan(heavy, light, epsilon=2))
    ratio = float(schedule.line("quarter").amount / schedule.line("year").amount)
    assert ratio == pytest.approx((5 * 9 / 2) ** (1 / 3), rel=1e-5)
    assert schedule.method == "closed form"
    best = variance(schedule)
    steps = 400
    grid = min(
        4 * 5 * 2 * (3 / Fraction(2 * k, 4 * steps)) ** 2 + 2 * 2 * (1 / (2 - Fraction(2 * k, steps))) ** 2
        for k in range(1, steps)
    )
    assert best < grid * Fraction(100_001, 100_000)
    for wrong in (Fraction(1, 2), Fraction(1)):  # the twin: another exponent is visibly worse
        shares = [root_share(each.weight * each.l1**2, wrong) for each in (heavy, light)]
        worse = fill(shares, [4, 1], [Fraction(0)] * 2, Fraction(2))
        assert 40 * (3 / worse[0]) ** 2 + 4 * (1 / worse[1]) ** 2 > best * Fraction(101, 100)


@pytest.mark.claim("S1-11")
@pytest.mark.parametrize("power", [1, 2])
def test_the_optimiser_finds_the_closed_form(power: int) -> None:
    counts, times, spreads = [365, 52, 12], [365, 52, 12], [Fraction(2), Fraction(18), Fraction(1, 2)]
    floors = [Fraction(0), Fraction(0), Fraction(1, 10)]
    figures = [
        combine.CombinedFigure(counts=Fraction(count), sources=((place, spread),))
        for place, (count, spread) in enumerate(zip(counts, spreads, strict=True))
    ]
    exact = fill([root_share(spread, Fraction(1, power + 1)) for spread in spreads], times, floors, Fraction(8))
    found = combine.least_variance(
        figures, times, floors, Fraction(8), power=power, starts=[[Fraction(1, 100)] * 2 + [Fraction(1, 10)]]
    )
    assert sum(count * amount for count, amount in zip(times, found, strict=True)) <= 8
    assert combine.objective(figures, found, power) == pytest.approx(combine.objective(figures, exact, power), rel=1e-6)
    for one, other in zip(found, exact, strict=True):
        assert float(one) == pytest.approx(float(other), rel=1e-3)


def test_equal_worst_errors_and_no_smaller_worst_error_on_a_grid() -> None:
    quarter, year = release("quarter", Q, l1=Fraction(3)), release("year", Y, weight=Fraction(4))
    schedule = solve(plan(quarter, year, epsilon=2, aim=Aim.LEAST_WORST))
    worst = [Fraction(3) / schedule.line("quarter").amount, 2 / schedule.line("year").amount]
    assert float(worst[0]) == pytest.approx(float(worst[1]), rel=1e-5)
    grid = min(max(3 / Fraction(k, 2000), 2 / (2 - Fraction(4 * k, 2000))) for k in range(1, 1000))
    assert max(worst) < grid * Fraction(100_001, 100_000)


def test_a_floor_is_kept_and_the_rest_is_split_as_well_as_can_be() -> None:
    schedule = solve(
        plan(release("quarter", Q, wanted=WITHIN_5), release("year", Y, weight=Fraction(10**6)), epsilon=4)
    )
    least = least_amount(WITHIN_5, schedule.plan.releases[0], Accounting.BASIC)
    assert schedule.line("quarter").amount == least
    assert 4 - 4 * least - Fraction(1, 10**5) < schedule.line("year").amount <= 4 - 4 * least


def test_the_other_aims_of_a_fixed_release_leave_it_alone() -> None:
    fixed = release("month", M, wanted=Fixed(epsilon=Fraction(1, 10)))
    for aim in Aim:
        schedule = solve(plan(fixed, release("quarter", Q, wanted=WITHIN_5), epsilon=5, aim=aim))
        assert schedule.line("month").amount == Fraction(1, 10)
        assert schedule.noise("month") == ("laplace", Fraction(10))


targets = st.one_of(
    st.none(),
    st.builds(Margin, margin=st.integers(5, 500), confidence=st.sampled_from([Fraction(1, 2), Fraction(19, 20)])),
    st.builds(MeanError, error=st.fractions(1, 100, max_denominator=7)),
    st.builds(Fixed, epsilon=st.fractions(Fraction(1, 1000), 1, max_denominator=1000)),
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    aim = draw(st.sampled_from(list(Aim)))
    accounting = draw(st.sampled_from(list(Accounting)))
    unit: Unit = draw(st.sampled_from([PATIENT, record(relation="replace"), event(relation="add/remove")]))
    releases = []
    for number in range(draw(st.integers(1, 3))):
        wanted = draw(targets)
        if wanted is None and aim is Aim.LEAST_COST:
            wanted = WITHIN_5
        releases.append(
            release(
                f"r{number}",
                draw(st.sampled_from(list(Cadence))),
                l1=draw(st.fractions(Fraction(1, 3), 9, max_denominator=7)),
                l2_squared=draw(st.fractions(Fraction(1, 3), 9, max_denominator=7)),
                weight=draw(st.fractions(Fraction(1, 100), 100, max_denominator=100)),
                wanted=wanted,
            )
        )
    finest = min(releases, key=lambda each: list(Cadence).index(each.every))
    if finest.every is D:
        releases = [
            replace(each, sums=finest.name) if each.every is not D and draw(st.booleans()) else each
            for each in releases
        ]
    cap = Budget(epsilon=draw(st.fractions(Fraction(1, 10), 400, max_denominator=97)), delta=Fraction(1, 10**6))
    return plan(*releases, cap=cap, aim=aim, accounting=accounting, unit=unit, year=draw(st.sampled_from([2026, 2028])))


@pytest.mark.claim("S1-11")
@settings(max_examples=60 if LONG else 20, deadline=None)
@given(whole=plans(), level=st.fractions(Fraction(1, 10), 500, max_denominator=89))
def test_no_schedule_exceeds_its_cap_or_misses_a_target(whole: Plan, level: Fraction) -> None:
    left = Budget(epsilon=level, delta=Fraction(1, 10**7))
    try:
        schedule = solve(whole, levels={"hospital": left})
    except BudgetExceeded:
        return  # what a refusal says is tested below
    paid = Fraction(0)
    for line in schedule.lines:
        asked = whole.release(line.name)
        paid += whole.charged(asked) * line.amount if line.source is not FigureSource.DERIVED else 0
        if line.source is FigureSource.DERIVED:
            assert line.amount == line.total == 0
        if isinstance(asked.wanted, Margin):
            assert schedule.margin(line.name, asked.wanted.confidence) <= asked.wanted.margin
    assert paid == schedule.total
    for budget in (whole.cap, left):
        if whole.accounting is Accounting.BASIC:
            assert paid <= budget.epsilon
        else:
            assert paid <= ZCDPFilter.within(budget).rho
    assert schedule.guarantee.epsilon <= whole.cap.epsilon


@pytest.mark.parametrize("accounting", list(Accounting))
def test_the_tight_figure_of_a_plan_is_smaller_than_what_is_charged(accounting: Accounting) -> None:
    cap = Budget(epsilon=8, delta=Fraction(1, 10**6))
    daily = release("daily", D, l2_squared=1, weight=Fraction(1, 50))
    schedule = solve(plan(daily, release("monthly", M, l2_squared=1), cap=cap, accounting=accounting))
    assert len(schedule.events()) == 377
    assert basic_epsilon(schedule) == schedule.total
    assert schedule.tight(Fraction(1, 10**6)) < schedule.guarantee.epsilon
    assert schedule.tight(Fraction(1, 10**6)) > schedule.guarantee.epsilon / 10


def basic_epsilon(schedule: Schedule) -> Fraction:
    """The charge, worked out again from the events by the accountant."""
    if schedule.plan.accounting is Accounting.BASIC:
        return accounting_epsilon(schedule.events(), delta=0, method="basic")
    rho = zcdp.compose(schedule.events()).rho
    assert schedule.total * Fraction(999_999, 1_000_000) <= rho <= schedule.total  # σ is rounded up
    return schedule.total


def test_zcdp_splits_rho_by_the_square_root_and_allows_more_than_sums() -> None:
    parts = (release("daily", D, l2_squared=1), release("monthly", M, l2_squared=4, weight=Fraction(9)))
    cap = Budget(epsilon=8, delta=Fraction(1, 10**6))
    schedule = solve(plan(*parts, cap=cap, accounting=Accounting.ZCDP))
    assert float(schedule.line("monthly").amount / schedule.line("daily").amount) == pytest.approx(6, rel=1e-5)
    noise, sigma = schedule.noise("daily")
    assert noise == "gaussian"
    assert 1 / (2 * sigma**2) <= schedule.line("daily").amount
    pure = solve(plan(*parts, cap=cap))
    assert sigma**2 < 2 * pure.noise("daily")[1] ** 2 / 10
    assert schedule.guarantee.epsilon <= 8


@pytest.mark.claim("S1-11")
def test_an_infeasible_plan_names_what_binds_and_every_remedy_works() -> None:
    whole = plan(*DASHBOARD, epsilon=8, aim=Aim.LEAST_COST)
    with pytest.raises(BudgetExceeded) as refused:
        solve(whole)
    text = str(refused.value)
    assert "the plan's own cap is ε = 8" in text
    assert "largest part is 'daily'" in text
    needed = 429 * least_amount(WITHIN_5, DASHBOARD[0], Accounting.BASIC)
    assert "a cap of ε = 230.8878," in text
    assert needed == Fraction("230.8878")
    assert solve(replace(whole, cap=Budget(epsilon=needed))).left == 0
    with pytest.raises(BudgetExceeded):
        solve(replace(whole, cap=Budget(epsilon=needed - Fraction(1, 10**12))))
    least = shortfall.LeastCost(derived=(), amounts=(needed / 429,) * 3, total=needed)
    short = shortfall.explain(whole, Fraction(8), "the cap", least, {})
    assert short.widened is not None
    assert f"all margins {short.widened / 100:g} times as wide" in text

    def widened(percent: int) -> Plan:
        target = Margin(margin=5 * percent // 100, confidence=Fraction(19, 20))
        return replace(whole, releases=tuple(replace(each, wanted=target) for each in DASHBOARD))

    assert solve(widened(short.widened)).total <= 8
    with pytest.raises(BudgetExceeded):
        solve(widened(short.widened - 1))
    assert short.remedies == ()  # no release alone makes up for it
    roomy = replace(whole, cap=Budget(epsilon=60))
    with pytest.raises(BudgetExceeded, match="for 'daily' alone") as refused:
        solve(roomy)
    margin = int(str(refused.value).split("a margin of ±")[1].split()[0])
    coarser = replace(DASHBOARD[0], wanted=Margin(margin=margin, confidence=Fraction(19, 20)))
    assert solve(replace(roomy, releases=(coarser, *DASHBOARD[1:]))).total <= 60


def test_the_level_with_the_least_left_binds_and_is_named() -> None:
    whole = plan(release("year", Y, wanted=Fixed(epsilon=Fraction(1))), epsilon=8, aim=Aim.LEAST_COST)
    levels = {"hospital": Budget(epsilon=3), "oncology": Budget(epsilon=Fraction(1, 2))}
    with pytest.raises(BudgetExceeded, match=r"what 'oncology' has left is ε = 0\.5"):
        solve(whole, levels=levels)
    assert solve(whole, levels={**levels, "oncology": Budget(epsilon=1)}).binding == "what 'oncology' has left"


def test_a_price_of_ones_own_is_charged_as_it_is() -> None:
    whole = plan(release("year", Y, wanted=WITHIN_5), aim=Aim.LEAST_COST)
    assert solve(whole, prices={"year": lambda asked: Fraction(2, 7)}).total == Fraction(2, 7)
    with pytest.raises(InvalidInput, match="no release named 'month'"):
        solve(whole, prices={"month": lambda asked: Fraction(1)})


@pytest.mark.claim("S1-11")
def test_disjoint_days_are_charged_once_for_an_event_and_every_time_for_a_person() -> None:
    daily = release("daily", D, wanted=Fixed(epsilon=Fraction(1, 10)))
    cost = {
        unit: solve(plan(daily, epsilon=40, aim=Aim.LEAST_COST, unit=unit)).total
        for unit in (PATIENT, record(relation="add/remove"), event(relation="add/remove"), event(relation="replace"))
    }
    assert list(cost.values()) == [Fraction(365, 10), Fraction(365, 10), Fraction(1, 10), Fraction(2, 10)]
    monthly = plan(daily, epsilon=40, aim=Aim.LEAST_COST, unit=event(relation="add/remove"), stretch=M)
    assert solve(monthly).total == Fraction(31, 10)


@pytest.mark.claim("S1-11")
def test_weeks_are_derived_where_that_is_cheaper_and_released_where_it_is_not() -> None:
    daily = release("daily", D, wanted=WITHIN_5)
    loose = release("weekly", W, wanted=Margin(margin=30, confidence=Fraction(19, 20)), sums="daily")
    schedule = solve(plan(daily, loose, epsilon=300, aim=Aim.LEAST_COST))
    assert schedule.line("weekly").source is FigureSource.DERIVED
    assert schedule.total == 365 * least_amount(WITHIN_5, daily, Accounting.BASIC)
    assert schedule.margin("weekly") <= 30
    assert "weekly: 52 derived, each a sum of 7 of 'daily', free" in str(schedule)
    tight = replace(loose, wanted=WITHIN_5)
    schedule = solve(plan(daily, tight, epsilon=3000, aim=Aim.LEAST_COST))
    assert schedule.line("weekly").source is FigureSource.OWN
    values = {way.derived: way.value for way in schedule.compared}
    assert values[()] == schedule.total
    assert values[("weekly",)] > values[()]  # type: ignore[operator]


def test_a_sum_of_noises_has_the_law_of_their_convolution() -> None:
    for scale, parts in ((Fraction(2), 7), (Fraction(7, 3), 3), (Fraction(1, 3), 31)):
        ours = LaplaceSum(scale=scale, parts=parts)
        exact = Sum(parts=(DiscreteLaplace(scale=scale),) * parts)
        for confidence in (Fraction(1, 2), Fraction(19, 20), Fraction(999, 1000)):
            margin = ours.margin(confidence)
            assert margin == exact.margin(confidence)
            assert ours.covers(margin, confidence)
            assert not ours.covers(margin - 1, confidence)


@pytest.mark.parametrize(("sigma", "parts"), [(Fraction(3), 7), (Fraction(40), 31), (Fraction(1, 5), 7)])
def test_a_sum_of_gaussian_noises_never_claims_a_margin_below_the_true_one(sigma: Fraction, parts: int) -> None:
    ours = GaussianSum(sigma=sigma, parts=parts)
    margin = ours.margin(Fraction(19, 20))
    exact = 1.95996 * float(ours.variance) ** 0.5 if sigma > 1 else 0
    assert exact - 1 <= margin <= exact + 4 * parts**0.5 + 1


def test_a_combined_figure_beats_both_and_no_point_of_a_grid_beats_it() -> None:
    month = release("month", M)
    year = release("year", Y, weight=Fraction(40), sums="month")
    whole = plan(month, year, epsilon=4)
    schedule = solve(whole)
    values = {(way.way, way.derived): way.value for way in schedule.compared}
    assert schedule.method == "constrained optimisation"
    assert schedule.line("year").source is FigureSource.COMBINED
    best = values[FigureSource.COMBINED, ("year",)]
    assert best is not None
    assert best < min(
        value for key, value in values.items() if key[0] is not FigureSource.COMBINED and value is not None
    )

    def worth(each: Fraction) -> Fraction:
        own = 4 - 12 * each
        return 12 * 2 / each**2 + 40 * 2 / (own**2 + each**2 / 12)

    grid = min(worth(Fraction(k, 3000)) for k in range(1, 1000))
    assert best < grid * Fraction(1001, 1000)
    share = schedule.line("year").own_share
    own, each = schedule.line("year").amount ** 2, schedule.line("month").amount ** 2 / 12
    assert float(share) == pytest.approx(float(own / (own + each)), rel=1e-6)


def test_plans_and_schedules_are_documents() -> None:
    schedule = solve(plan(release("month", M), release("year", Y, weight=Fraction(40), sums="month"), epsilon=4))
    text = canonical(encode(schedule))
    again = Registry(DECLARATIONS).decode(parse(text))
    assert again == schedule
    assert solve(again.plan) == schedule


@pytest.mark.parametrize(
    ("error", "words", "make"),
    [
        (InvalidInput, "one name", lambda: plan(release("a", D), release("a", W))),
        (NotDeclared, "states no accuracy", lambda: plan(release("a", D), aim=Aim.LEAST_COST)),
        (NotDeclared, "no cap above 0", lambda: plan(release("a", D), epsilon=0)),
        (NotDeclared, "needs a cap with δ", lambda: plan(release("a", D), accounting=Accounting.ZCDP)),
        (Refused, "weeks fill nothing", lambda: plan(release("w", W), release("m", M, sums="w"))),
        (Refused, "do not fill it", lambda: plan(release("m", M), release("n", M, sums="m"))),
        (InvalidInput, "no release named 'd'", lambda: plan(release("m", M, sums="d"))),
        (InvalidInput, "2 number", lambda: plan(release("d", D), release("m", M, sums="d", numbers=2))),
        (InvalidInput, "stretch belongs to", lambda: plan(release("d", D), stretch=D)),
        (InvalidInput, "at least 1", lambda: plan()),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(error: type[Exception], words: str, make: object) -> None:
    with pytest.raises(error, match=words):
        make()  # type: ignore[operator]


@pytest.mark.long
def test_planning_without_sums_needs_neither_numpy_nor_scipy() -> None:
    code = (
        "import sys; from fractions import Fraction; from sfumato.core.budget import Budget;"
        "from sfumato.core.units import user; from sfumato.governance.plans import *;"
        "r = PlannedRelease(name='d', every=Cadence.DAILY, l1=1);"
        "solve(Plan(name='p', year=2026, unit=user('p', relation='replace'), cap=Budget(epsilon=1), releases=(r,),"
        "           aim=Aim.LEAST_VARIANCE)); print([n for n in ('numpy', 'scipy') if n in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
