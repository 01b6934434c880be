"""Comparisons of groups as users ask for them: through a vault, with one charge, in words and tables."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, NotDeclared, Refused, Unsupported
from sfumato.studies.comparison import TwoSampleResult
from sfumato.studies.result import StudyResult
from sfumato.tables.table import Table

pytestmark = [pytest.mark.claim("S1-09"), pytest.mark.alpha(1e-9)]

SURE = Fraction(10**9 - 1, 10**9)
SIZE = 400


def trial(difference: float, *, unit: str = "rows", size: int = SIZE) -> Table:
    """Two arms of this size: in B a share of 0.2 + ``difference`` has the event, and values are higher by so much."""
    g = np.random.default_rng(5)
    steps = np.arange(size) / size
    events = np.concatenate([steps < 0.2, steps < 0.2 + difference])
    scores = np.concatenate([steps, np.minimum(steps + difference, 1.0)])
    columns = {
        "id": np.arange(2 * size),
        "arm": ["A"] * size + ["B"] * size,
        "event": events,
        "score": scores,
        "site": [("x", "y", "z")[place % 3] for place in range(2 * size)],
        "grade": g.integers(0, 3, 2 * size),
    }
    protected = sf.record(relation="add/remove") if unit == "rows" else sf.user("id", relation="add/remove")
    vault = sf.Vault(unit=protected, budget=sf.Budget(epsilon=1000), name="trial")
    return vault.table(
        pa.table(columns),
        name="trial",
        version="1",
        keys={"arm": ["A", "B"], "site": ["x", "y", "z"], "grade": [0, 1, 2]},
        bounds={"score": (0, 1)},
        limit=None if unit == "rows" else sf.Limit(groups=2, rows_per_group=3),
    )


WAYS: dict[str, Callable[[Table], object]] = {
    "chi-square": lambda table: table.two_sample("event", by="arm"),
    "exact": lambda table: table.two_sample("event", by="arm", test="exact"),
    "condition": lambda table: table.two_sample(sf.col("score") >= 0.8, by="arm"),
    "welch": lambda table: table.two_sample("score", by="arm"),
    "rank": lambda table: table.two_sample("score", by="arm", test="rank"),
    "edges": lambda table: table.two_sample("score", by="arm", test="rank", bins=[0.2, 0.5, 0.8]),
    "blocks": lambda table: table.two_sample("event", by="arm", blocks="site"),
    "contingency": lambda table: table.contingency("arm", sf.col("event") == True),  # noqa: E712
    "trend": lambda table: table.contingency("arm", "event", test="trend"),
}


@pytest.mark.parametrize("way", WAYS)
def test_groups_that_differ_are_found(way: str) -> None:
    result = WAYS[way](trial(0.4)).release(epsilon=20)
    assert result.p_value <= 0.001
    assert result.p_value >= 1 / 10_000


@pytest.mark.parametrize("way", WAYS)
def test_groups_that_are_equal_are_not(way: str) -> None:
    """The rows are the same in both arms, so that nothing but a little noise is between them."""
    result = WAYS[way](trial(0.0)).release(epsilon=20)
    assert result.p_value > 0.2


@pytest.mark.parametrize("way", ["chi-square", "exact", "welch", "blocks"])
def test_the_interval_holds_the_truth(way: str) -> None:
    result = WAYS[way](trial(0.3)).release(epsilon=5)
    low, high = result.interval(SURE)
    steps = np.arange(SIZE) / SIZE
    truth = float(steps.mean() - np.minimum(steps + 0.3, 1).mean()) if way == "welch" else -0.3
    assert low <= truth <= high
    assert low <= result.estimate <= high


def test_one_charge_and_the_same_result_each_time() -> None:
    table = trial(0.1)
    first = table.two_sample("event", by="arm").release(epsilon=1)
    again = table.two_sample("event", by="arm").release(epsilon=1)
    (release,) = first.sources
    assert release.charged.epsilon == 1
    assert again.sources[0].repeated
    assert first.p_value == again.p_value
    assert first.tables() == again.tables()
    assert first.replicates == 9_999


def test_a_missing_truth_value_counts_nowhere() -> None:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1000), name="trial")
    rows = pa.table({"arm": ["A", "A", "B", "B"] * 50, "event": [True, None, False, None] * 50})
    table = vault.table(rows, name="trial", version="1", keys={"arm": ["A", "B"]})
    result = table.two_sample("event", by="arm").release(epsilon=50)
    assert result.table("groups").columns["n"] == [50.0, 50.0]


def test_groups_are_named_in_the_order_asked_for() -> None:
    one = trial(0.4).two_sample("event", by="arm", groups=("B", "A")).release(epsilon=20)
    assert one.table("groups").columns["group"] == ["B", "A"]
    assert one.estimate > 0.3


def test_a_group_below_its_noise_gives_no_verdict() -> None:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1000), name="trial")
    rows = pa.table({"arm": ["A"] * 100, "event": [True, False] * 50})
    table = vault.table(rows, name="trial", version="1", keys={"arm": ["A", "B"]})
    result = table.two_sample("event", by="arm").release(epsilon=40)
    assert math.isnan(result.p_value)
    assert any("No verdict" in result.word(note) for note in result.notes)
    assert result.facts[1][1] == "–"


def lost(way: str) -> TwoSampleResult:
    """A comparison whose groups are lost in the noise."""
    result = WAYS[way](trial(0.3, size=40)).release(epsilon="1/1000")  # type: ignore[attr-defined]  # a study
    assert isinstance(result, TwoSampleResult)
    return result


@pytest.mark.parametrize(
    ("way", "possible"),
    [("chi-square", (-1, 1)), ("exact", (-1, 1)), ("welch", (-1, 1)), ("rank", (0, 1)), ("blocks", (-1, 1))],
)
def test_groups_that_are_lost_in_noise_have_no_estimate_and_an_interval_of_all_that_is_possible(
    way: str, possible: tuple[float, float]
) -> None:
    """An interval around noise covered a difference of shares of 0.94 in 59% of cases (30 in each group, ε = 0.05)."""
    result = lost(way)
    if math.isnan(result.p_value):  # by chance both groups may seem large
        assert math.isnan(result.estimate)
        assert result.interval() == possible
        assert any("no estimate" in result.word(note) for note in result.notes)
        assert str(result)


def test_a_mean_of_nobody_gets_no_verdict_and_the_rows_that_were_released() -> None:
    rows = pa.table({"arm": ["A"] * 50, "score": [0.5] * 50})
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1000), name="trial")
    table = vault.table(rows, name="t", version="1", keys={"arm": ["A", "B"]}, bounds={"score": (0, 1)})
    result = table.two_sample("score", by="arm").release(epsilon=100)
    groups = result.table("groups").columns
    assert math.isnan(result.p_value)
    assert groups["n"][1] == pytest.approx(0, abs=1)
    assert groups["mean"][0] == pytest.approx(0.5, abs=0.1)
    assert math.isnan(groups["mean"][1])  # type: ignore[arg-type]  # a number


def test_shares_far_apart_in_small_groups_and_means_near_their_noise_say_so() -> None:
    small = trial(0.75, size=40).two_sample("event", by="arm").release(epsilon=40)
    assert any("far apart" in small.word(note) for note in small.notes)
    large = trial(0.3).two_sample("event", by="arm").release(epsilon=40)
    assert not any("far apart" in large.word(note) for note in large.notes)
    one = trial(0.3).two_sample("score", by="arm").release(epsilon=40)
    assert not any("five times" in one.word(note) for note in one.notes)
    near = one.compared.__class__(**{**vars(one.compared), "noise_in_rows": (10_000.0, 10_000.0)})
    assert [str(note) for note in near.notes if "near_noise" in str(note)]


def test_a_slope_says_of_which_share_it_is_and_scores_are_finite() -> None:
    table = trial(0.3)
    trend = table.contingency("grade", "event", test="trend").release(epsilon=1)
    assert any("share with True" in trend.word(note) and "0 = 0" in trend.word(note) for note in trend.notes)
    with pytest.raises(InvalidInput, match="finite"):
        table.contingency("grade", "event", test="trend", scores=[1, 2, math.nan])


def test_one_declared_group_is_refused_without_naming_it_twice() -> None:
    with pytest.raises(InvalidInput, match="has one; nothing was done"):
        trial(0.3).with_keys(arm=["A"]).two_sample("event", by="arm")


def test_persons_count_once_or_the_study_is_refused() -> None:
    table = trial(0.3, unit="persons")
    for asked in (
        lambda: table.two_sample("event", by="arm"),
        lambda: table.contingency("arm", "grade"),
    ):
        with pytest.raises(Refused, match="per_person"):
            asked()
    persons = table.per_person(arm=sf.first("arm", by="score"), event=sf.any(sf.col("event") == True))  # noqa: E712
    assert persons.two_sample("event", by="arm").release(epsilon=20).p_value < 0.001
    once = table.with_limit(sf.Limit(groups=1, rows_per_group=1))
    assert once.two_sample("event", by="arm").release(epsilon=20).p_value < 0.001


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (lambda t: t.two_sample("event", by="site"), "compares two groups"),
        (lambda t: t.two_sample("event", by="site", groups=("x", "q")), "no declared group"),
        (lambda t: t.two_sample("event", by="site", groups=("x", "x")), "names the two groups"),
        (lambda t: t.two_sample("event", by="arm", test="t"), "not known"),
        (lambda t: t.two_sample("score", by="arm", test="exact"), "compares shares"),
        (lambda t: t.two_sample("event", by="arm", test="rank"), "compares values"),
        (lambda t: t.two_sample("site", by="arm"), "categories"),
        (lambda t: t.two_sample("score", by="arm", bins=5), "bins"),
        (lambda t: t.two_sample("score", by="arm", test="rank", bins=1), "between 2 and 200"),
        (lambda t: t.two_sample("score", by="arm", blocks="site"), "blocks"),
        (lambda t: t.two_sample(3, by="arm"), "an outcome is"),
        (lambda t: t.group_by("site").two_sample("event", by="arm"), "groups the table itself"),
        (lambda t: t.contingency("arm", "site", test="trend"), "a trend is one of a share"),
        (lambda t: t.contingency("arm", "site", test="t"), "'chi-square' and 'trend'"),
        (lambda t: t.contingency("arm", "site", scores=[1, 2]), "for test='trend'"),
        (lambda t: t.contingency("arm", "event", test="trend", scores=[1, 1]), "needs 2 finite numbers"),
    ],
)
def test_what_cannot_be_asked_is_refused(asked: Callable[[Table], object], words: str) -> None:
    with pytest.raises((InvalidInput, NotDeclared), match=words):
        asked(trial(0.1))


def test_a_preview_says_what_can_be_found() -> None:
    table = trial(0.1)
    shown = str(table.two_sample("event", by="arm").preview(epsilon=1, rows=200))
    assert "10% against 21% or more" in shown
    assert "Nothing was read or spent" in shown
    assert "no verdict is likely" in str(table.two_sample("score", by="arm", test="rank").preview(epsilon=0.1, rows=30))
    assert "difference of means" in str(table.two_sample("score", by="arm").preview(epsilon=1, rows=200))
    assert "Say rows=" in str(table.two_sample("score", by="arm").preview(epsilon=1))


@pytest.mark.parametrize("way", WAYS)
def test_a_result_speaks_both_languages_and_has_tables(way: str) -> None:
    result: StudyResult = WAYS[way](trial(0.3)).release(epsilon=5)
    words = [result.title, *(word for fact in result.facts for word in fact), *result.notes]
    english, chinese = ([result.word(word, language) for word in words] for language in ("en", "zh"))
    assert len(english) == len(chinese)
    assert any("simulations" in text for text in english)
    assert any("模拟" in text for text in chinese)
    assert "p_value" in result.table("test").columns
    assert result.to_arrow().num_rows >= 1


def test_the_picture_is_a_forest_plot() -> None:
    result = trial(0.3).two_sample("event", by="arm").release(epsilon=5)
    picture = result.picture()
    assert (picture.kind, picture.log, picture.reference) == ("forest", True, 1.0)
    assert [row.at for row in picture.rows] == ["ratio", "odds ratio"]
    assert trial(0.3).two_sample("score", by="arm").release(epsilon=5).picture().reference == 0.0


# ------------------------------------------------------------------------------------------------- released numbers


def compared(table: Table, column: str, **measures: object) -> TwoSampleResult:
    found = table.group_by("arm").agg(**measures).release(epsilon=20)[column]
    return sf.compare(found.at(arm="A"), found.at(arm="B"), names=("A", "B"))


def test_released_shares_means_and_counts_are_compared() -> None:
    for difference, found in ((0.4, True), (0.0, False)):
        table = trial(difference)
        shares = compared(table, "event", event=sf.proportion("event"), n=sf.count())
        means = compared(table, "score", score=sf.mean("score"))
        spread = compared(table, "score", score=sf.mean("score"), spread=sf.variance("score"))
        events = compared(table, "n", n=sf.count(sf.col("event") == True))  # noqa: E712
        for result in (shares, means, spread, events):
            assert (result.p_value <= 0.001) is found
            low, high = result.interval(SURE)
            assert low <= result.estimate <= high
        assert shares.table().columns["quantity"] == ["difference", "ratio", "odds ratio"]
        assert any("sharper" in means.word(note) for note in means.notes)
        assert spread.table("test").columns["test"] == ["welch"]
        widths = [high - low for low, high in (spread.interval(), means.interval())]
        assert widths[0] < widths[1]
        assert any("两组" in events.word(note, "zh") for note in events.notes)


def test_a_compared_share_is_that_of_a_study() -> None:
    """The same cells with the same noise have the same intervals, whichever way they were asked for."""
    result = compared(trial(0.2), "event", event=sf.proportion("event"))
    study = trial(0.2).two_sample("event", by="arm").release(epsilon=20)
    assert result.estimate == pytest.approx(study.estimate, abs=0.02)
    widths = [high - low for low, high in (result.interval(), study.interval())]
    assert widths[0] == pytest.approx(widths[1], rel=0.05)


def released(table: Table, **measures: object) -> Release:
    return table.group_by("arm").agg(**measures).release(epsilon=20)


def test_what_cannot_be_compared_is_refused() -> None:
    table = trial(0.2)
    both = released(table, event=sf.proportion("event"), score=sf.mean("score"), spread=sf.variance("score"))
    share, mean, spread = (both[name] for name in ("event", "score", "spread"))
    with pytest.raises(InvalidInput, match="has 2 numbers"):
        sf.compare(share, share)
    with pytest.raises(InvalidInput, match="same noise"):
        sf.compare(share.at(arm="A"), share.at(arm="A"))
    with pytest.raises(InvalidInput, match="cannot be compared"):
        sf.compare(share.at(arm="A"), mean.at(arm="B"))
    with pytest.raises(Unsupported, match="neither a share"):
        sf.compare(spread.at(arm="A"), spread.at(arm="B"))
    with pytest.raises(InvalidInput, match="columns"):
        sf.compare(both, both)
    with pytest.raises(InvalidInput, match="takes releases"):
        sf.compare([1], [2])
    with pytest.raises(InvalidInput, match="two texts"):
        sf.compare(share.at(arm="A"), share.at(arm="B"), names=("A",))


def test_rows_of_one_person_are_not_compared_as_independent() -> None:
    found = released(trial(0.2, unit="persons"), event=sf.proportion("event"))["event"]
    with pytest.raises(Refused, match="several rows"):
        sf.compare(found.at(arm="A"), found.at(arm="B"))


def test_numbers_of_two_releases_say_what_is_assumed() -> None:
    table = trial(0.3)
    one, two = (table.where(sf.col("arm") == arm).proportion("event").release(epsilon=20) for arm in "AB")
    result = sf.compare(one, two)
    assert len(result.sources) == 2
    assert any("different releases" in result.word(note) for note in result.notes)


def test_numbers_that_limits_cut_differently_are_refused() -> None:
    once = trial(0.2, unit="persons").with_limit(sf.Limit(groups=1, rows_per_group=1))
    grouped = once.group_by("arm").proportion("event").release(epsilon=5)["proportion"]
    alone = once.where(sf.col("arm") == "B").proportion("event").release(epsilon=5)
    with pytest.raises(Refused, match="cut these releases differently"):
        sf.compare(grouped.at(arm="A"), alone)


def test_variances_and_correlations_are_picked_by_label() -> None:
    found = released(trial(0.2), spread=sf.variance("score"), both=sf.covariance("score", "score"))
    assert found["spread"].at(arm="B").values == found["spread"].values[1:]
    assert found["both"].at(arm="A").labels == {}


def test_a_number_without_bounds_is_refused_with_the_bounds_to_declare() -> None:
    rows = pa.table({"arm": ["A", "B"] * 5, "sbp": [120.5] * 10})
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="trial")
    table = vault.table(rows, name="t", version="1", keys={"arm": ["A", "B"]})
    with pytest.raises(InvalidInput, match=r"declare bounds=\{'sbp': \(low, high\)\}"):
        table.two_sample("sbp", by="arm").release(epsilon=1)
    assert vault.spent.epsilon == 0
