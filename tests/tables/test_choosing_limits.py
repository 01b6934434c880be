"""Contributions, suggested limits and bounds, and counts beyond the limit, through what users call."""

import os
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.audit.keys import stops
from sfumato.core.documents import parse
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.mechanisms import LimitSearch
from sfumato.noise import SystemWords
from sfumato.reports.verify import verify
from sfumato.reports.words import AUDIENCES
from sfumato.tables import Table
from sfumato.tables.queries.layered_count import LayeredCount
from sfumato.tables.queries.limit_suggestion import LimitSuggestion, half_doublings
from tests.alpha import likely
from tests.parts import dataset

LONG = os.environ.get("SFUMATO_LONG") == "1"
LEVEL = Fraction(19, 20)
SMALL = [1] * 30 + [2] * 20 + [3] * 9 + [12]


def vault(relation: str = "add/remove") -> sf.Vault:
    return sf.Vault(unit=sf.user("id", relation=relation), budget=sf.Budget(epsilon=10**6), name="trial")


def table_of(rows: Any, relation: str = "add/remove", **declared: Any) -> Table:
    """A table in which each person has so many rows, alternating between two places; costs are rows in hundreds."""
    counts = np.asarray(rows)
    ids = np.repeat(np.arange(len(counts)), counts)
    frame = pa.table({"id": ids, "place": ids % 2, "cost": 100.0 * np.repeat(counts, counts)})
    return vault(relation).table(frame, name="visits", version="1", keys={"place": [0, 1]}, **declared)


def verified(release: Release) -> None:
    outcome = verify(parse(release.certificate.text))  # type: ignore[arg-type]
    assert outcome.consistent, str(outcome)


# ------------------------------------------------------------------------------------------------ what users call


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_contributions_are_shown_in_powers_of_two(relation: str) -> None:
    table = table_of(SMALL, relation)
    release = table.contributions(most=8).release(epsilon=50_000)
    frame = release.to_arrow()
    assert frame["rows"].to_pylist() == ["1", "2", "3-4", "5-8", ">8"]
    assert release.values == (30, 20, 9, 0, 1)
    assert release.statement.limit is None
    verified(release)
    grouped = table.group_by("place").contributions(most=2).release(epsilon=50_000)
    assert list(zip(*(grouped.to_arrow()[name].to_pylist() for name in ("rows_per_group", "groups")), strict=True)) == [
        ("1", "1"),
        ("1", "2"),
        ("2", "1"),
        ("2", "2"),
        (">2", "1"),
        (">2", "2"),
    ]
    assert sum(grouped.values) == len(SMALL)


def test_a_limit_is_suggested_charged_certified_and_used() -> None:
    table = table_of([1] * 400 + [5] * 200 + [60])
    asked = table.suggest_limit(spend=1, most=64)
    assert asked.preview(epsilon=10).spend == sf.Budget(epsilon=10)
    suggested = asked.release(epsilon=10)
    assert suggested.values[0] in half_doublings(64)
    assert suggested.charged == sf.Budget(epsilon=10)
    assert suggested.to_arrow().to_pydict() == {"rows": [suggested.values[0]]}
    verified(suggested)
    limited = table.with_limit(suggested)
    assert limited.limit == sf.Limit(groups=1, rows_per_group=suggested.values[0])
    count = limited.count().release(epsilon=1)
    assert count.statement.limit == limited.limit
    verified(count)
    assert table.suggest_limit(spend=1, most=64).release(epsilon=10).repeated
    with pytest.raises(NotDeclared, match=r"needs a limit.*nothing was spent.*suggest_limit"):
        table.count().release(epsilon=1)


def test_groups_and_rows_are_suggested_together() -> None:
    suggested = table_of(SMALL).group_by("place").suggest_limit(spend=[1, Fraction(1, 2)]).release(epsilon=10**5)
    assert suggested.statement.query.names == ("groups", "rows_per_group")
    assert suggested.values[0] == 1  # nobody is in two places
    assert suggested.statement.mechanism.thresholds == (6, 6)  # 2 persons for each of 2 groups at a mean of 1.5
    assert table_of(SMALL).with_limit(suggested).limit.groups == 1
    verified(suggested)


def test_another_limit_is_another_question_with_its_own_noise() -> None:
    table = table_of(SMALL, limit=sf.Limit(groups=1, rows_per_group=1))
    wider = table.with_limit(sf.Limit(groups=1, rows_per_group=4))
    assert [each.count().preview(epsilon=1).sensitivity.l1.value for each in (table, wider)] == [1, 4]
    first, second = (each.count().release(epsilon=10**4) for each in (table, wider))
    assert not second.repeated
    assert (first.values, second.values) == ((60,), (30 + 40 + 27 + 4,))
    for each in (first, second):
        verified(each)
    assert table.count().release(epsilon=10**4).repeated
    assert wider.where("place = 0").sql("SELECT COUNT(*) AS n FROM visits").preview(epsilon=1).limit == wider.limit
    with pytest.raises(InvalidInput, match=r"takes an sf.Limit or the release of suggest_limit"):
        table.with_limit(first)
    held = sf.Vault(unit=sf.record(relation="replace"), budget=sf.Budget(epsilon=1), name="rows")
    records = held.table(pa.table({"id": [1]}), name="t").with_limit(sf.Limit(groups=1, rows_per_group=1))
    with pytest.raises(Refused, match="a limit means nothing for single rows"):
        records.count()


def test_a_suggested_limit_cannot_be_forged() -> None:
    suggested = table_of(SMALL).suggest_limit(spend=1, most=8).release(epsilon=1)
    from tests.reports.forgeries import signed_anew

    for change in (
        lambda said: said["values"].__setitem__(0, 5),
        lambda said: said["mechanism"]["thresholds"].__setitem__(0, 1),
        lambda said: said["mechanism"]["candidates"][0].append(9),
        lambda said: said["query"].__setitem__("most", 9),
    ):
        document = parse(suggested.certificate.text)
        change(document["statement"])  # type: ignore[index]
        signed_anew(document)  # type: ignore[arg-type]
        assert not verify(document).consistent  # type: ignore[arg-type]


def test_bounds_are_suggested_on_the_sides_where_values_are() -> None:
    table = table_of([1] * 50 + [3] * 60)
    suggested = table.suggest_bounds("cost", most=2**16).release(epsilon=1000)
    assert table.with_bounds(cost=suggested).bounds["cost"] == (0, 384)
    signed = table.suggest_bounds(200 - sf.col("cost"), most=2**16).release(epsilon=1000)
    assert table.with_bounds(cost=signed).bounds["cost"] == (-128, 128)
    nobody = table.where("cost > 10000").suggest_bounds("cost", most=64).release(epsilon=1000)
    assert table.with_bounds(cost=nobody).bounds["cost"] == (-64, 64)
    for each in (suggested, signed, nobody):
        verified(each)
    with pytest.raises(InvalidInput, match="not grouped"):
        table.group_by("place").suggest_bounds("cost", most=8)


def test_a_person_with_many_rows_counts_once_in_bounds() -> None:
    release = table_of([2000, 1]).suggest_bounds("cost", most=2**20).release(epsilon=10**4)
    assert sum(release.values) == 2


@pytest.mark.parametrize("method", ["contributions", "suggest_limit", "suggest_bounds"])
@pytest.mark.parametrize("unit", [sf.record(relation="add/remove"), sf.family(2, "id", relation="add/remove")])
def test_only_persons_are_counted_by_what_they_have(unit: Any, method: str) -> None:
    held = sf.Vault(unit=unit, budget=sf.Budget(epsilon=1), name="rows")
    table = held.table(pa.table({"id": [1], "cost": [1.0]}), name="t")
    asked: dict[str, Callable[[], Any]] = {
        "contributions": table.contributions,
        "suggest_limit": lambda: table.suggest_limit(spend=1),
        "suggest_bounds": lambda: table.suggest_bounds("cost", most=8),
    }
    with pytest.raises(Refused, match=r"is not one person.*nothing was spent"):
        asked[method]().release(epsilon=1)
    assert held.spent.epsilon == 0


def test_rows_beyond_the_limit_count_up_to_the_most() -> None:
    table = table_of(SMALL, limit=sf.Limit(groups=1, rows_per_group=2))
    release = table.count(uncut_to=12).release(epsilon=10**5)
    assert [release[name].values for name in ("count", "within_limit")] == [(sum(SMALL),), (30 + 40 + 18 + 2,)]
    verified(release)
    expected = table.count(uncut_to=12).preview(epsilon=1)
    drawn = table.count(uncut_to=12).release(epsilon=1)
    for name in ("count", "within_limit"):
        low, high = drawn[name].interval()[0]
        assert (high - low) / 2 == expected.margins[name]
    assert expected.margins["count"] > expected.margins["within_limit"]
    assert expected.margins["within_limit"] == pytest.approx(2 * table.count().preview(epsilon=1).margin, rel=0.2)
    with pytest.raises(InvalidInput, match="not above the limit"):
        table.count(uncut_to=2)
    with pytest.raises(NotDeclared, match="there is none"):
        table_of(SMALL).count(uncut_to=2)
    with pytest.raises(Refused, match="keeps 1 of 2 groups"):
        table.group_by("place").count(uncut_to=12).release(epsilon=1)
    two = table.with_limit(sf.Limit(groups=2, rows_per_group=2)).group_by("place").count(uncut_to=12)
    places = two.release(epsilon=10**5)
    assert sum(places["count"].values) == sum(SMALL)
    verified(places)


def test_who_has_more_than_the_most_is_cut_and_the_words_say_so() -> None:
    """A person beyond the most is planted."""
    table = table_of([*SMALL, 500], limit=sf.Limit(groups=1, rows_per_group=2))
    release = table.count(uncut_to=12).release(epsilon=10**5)
    assert release["count"].values == (sum(SMALL) + 12,)
    for audience in AUDIENCES:
        said = release.explain("en", audience)
        assert "up to 12 rows of each person" in said
        assert "12 行" in release.explain("zh", audience)
    assert "where people have more, the figures are too low" in release.explain("en")


def test_every_reader_is_told_in_both_languages() -> None:
    table = table_of(SMALL, "replace", limit=sf.Limit(groups=2, rows_per_group=2))
    asked = [
        table.contributions(),
        table.group_by("place").where("cost > 1").contributions(),
        table.suggest_limit(spend=1),
        table.group_by("place").suggest_limit(spend=1),
        table.where("place = 0").suggest_bounds("cost", most=4096),
        table.count(uncut_to=9),
        table.group_by("place").where("cost > 1").count(uncut_to=9),
    ]
    for question in asked:
        release = question.release(epsilon=1)
        for language in ("en", "zh"):
            texts = {release.explain(language, audience) for audience in AUDIENCES}
            assert len(texts) == len(AUDIENCES)
        assert release._repr_html_()


# --------------------------------------------------------------------------------------------------- how good it is


def people(name: str) -> Any:
    """Rows of each person: readmissions, a sample of it, or a heavy tail; made once, from public or invented data."""
    invented = np.random.default_rng(2026)
    if name == "pareto":
        return np.minimum(np.floor(invented.pareto(1.5, 30_000) + 1), 4096).astype(int)
    if name == "heavier":
        return np.minimum(np.floor(invented.pareto(1.1, 10_000) + 1), 4096).astype(int)
    if name == "geometric":
        return invented.geometric(0.6, 3_000)
    path = dataset("diabetes-130-us-hospitals/diabetic_data.parquet")
    ids = pq.read_table(path, columns=["patient_nbr"])["patient_nbr"].to_numpy()
    rows = np.unique(ids, return_counts=True)[1]
    return rows if name == "readmissions" else invented.choice(rows, 3_000)


def total_errors(rows: Any, most: int, epsilon: float, questions: int, share: Fraction) -> tuple[float, float]:
    """The root of the mean squared error with a suggested limit, its price paid, and with the best fixed limit.

    Cut and noise together; with the exact law of the search, which its draws are audited against.
    """
    total = Fraction(str(epsilon)) * questions
    first = total * share
    each = (total - first) / questions
    run = LimitSearch.calibrated(candidates=[half_doublings(most)], epsilon=first, spend=[each])
    limits = np.array(run.candidates[0])
    chance = stops(run, [int((rows > limit).sum()) for limit in limits[:-1]])

    def squared(limit: int, spend: float) -> float:
        return float(rows.sum() - np.minimum(rows, limit).sum()) ** 2 + 2 * (limit / spend) ** 2

    suggested = sum(p * squared(int(limit), float(each)) for p, limit in zip(chance, limits, strict=True))
    fixed = min(squared(limit, epsilon) for limit in range(1, most + 1))
    return suggested**0.5, fixed**0.5


ONE, TEN = (1, Fraction(1, 2)), (10, Fraction(1, 6))
GOALS = [
    ("readmissions", 64, ONE, 2.6),
    ("sample", 64, ONE, 2.6),
    ("geometric", 64, ONE, 2.6),
    ("pareto", 1024, ONE, 2.6),
    ("heavier", 1024, ONE, 2.6),
    ("readmissions", 64, TEN, 1.4),
    ("sample", 64, TEN, 1.5),
    ("geometric", 64, TEN, 1.5),
    ("pareto", 1024, TEN, 2.0),
    ("heavier", 1024, TEN, 1.8),
]


@pytest.mark.parametrize(("name", "most", "plan", "goal"), GOALS, ids=lambda it: str(it))
def test_a_suggested_limit_errs_little_more_than_the_best_fixed_one(
    name: str, most: int, plan: tuple[int, Fraction], goal: float
) -> None:
    rows = people(name)
    found = {}
    for epsilon in (0.1, 0.3, 1, 3) if not LONG else (0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3):
        suggested, fixed = total_errors(rows, most, epsilon, *plan)
        found[epsilon] = suggested / fixed
    assert max(found.values()) <= goal, found


def test_the_search_reads_what_the_error_is_worked_out_from() -> None:
    """The counts that the product hands to the search are the persons above each limit."""
    rows = people("geometric")
    table = table_of(rows)
    query = table.suggest_limit(spend=1, most=16).query
    assert isinstance(query, LimitSuggestion)
    [above] = table._gate._stores["tables"].read(query)
    assert above == [int((rows > limit).sum()) for limit in query.candidates[0][:-1]]


@pytest.mark.alpha(1e-9)
@pytest.mark.parametrize("delta", [0, 1e-6])
@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(1, 5)])
def test_counts_beyond_the_limit_lie_in_their_intervals(share: Fraction, delta: float) -> None:
    """Where nobody has more than the most; 93% in place of 95% is found, and an interval of one noise alone."""
    rows, draws = people("geometric"), 200_000 if LONG else 20_000
    table = table_of(rows, limit=sf.Limit(groups=1, rows_per_group=2))
    asked = table.count(uncut_to=int(rows.max()), uncut_share=share)
    preview, query = asked.preview(epsilon=1, delta=delta), asked.query
    assert isinstance(query, LayeredCount)
    exact = table._gate._stores["tables"].read(query)
    noisy: Any = preview.mechanism
    lower, upper = (
        np.array(noisy.add_noise([number] * draws, SystemWords())) / step
        for number, step in zip(exact, query.steps, strict=True)
    )
    inside = int((np.abs(lower + upper - rows.sum()) <= float(preview.margins["count"])).sum())
    assert inside / draws >= 0.945 or likely(inside, draws, 0.95, alpha=1e-9)
    assert inside < 0.99 * draws
    alone = int((np.abs(lower + upper - rows.sum()) <= float(preview.margins["within_limit"])).sum())
    assert alone < 0.93 * draws
