"""Found values and largest groups in words: what may be missing, what δ bounds, how far a choice can be off."""

import math
import re
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.description import Form
from sfumato.core.release import presenter_of
from sfumato.errors import InvalidInput, Unsupported
from sfumato.laws import DiscreteLaplace
from sfumato.mechanisms import NoisyThreshold, OptimalSelection, TopChoice
from sfumato.reports.columns import CONFIDENCE
from sfumato.reports.page import page, snippet
from sfumato.reports.particulars import asked, particulars
from sfumato.reports.publication import publication
from sfumato.reports.words import AUDIENCES, Facts
from sfumato.reports.words.figures import exact
from sfumato.tables.choices import Found, Top
from tests.reports.aggregates import table
from tests.reports.readers import facts
from tests.reports.test_aggregate_words import BLOCKED
from tests.reports.test_page import Reader

LANGUAGES = ("en", "zh")
TOWNS = ("<b>", "West", "North", "South")


def towns(unit: Any = None, **limits: Any) -> Any:
    vault = sf.Vault(
        unit=unit or sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=90, delta=1e-6), name="keys"
    )
    data = pa.table({"id": list(range(800)), "town": [TOWNS[place % 4] for place in range(800)]})
    return vault.table(data, name="v", version="1", keys={"town": TOWNS}, **limits)


def found(*, counted: bool = True, where: Any = None) -> Any:
    rows = towns(limit=sf.Limit(groups=2, rows_per_group=1))
    rows = rows if where is None else rows.where(where)
    return rows.find_keys("town", counted=counted).release(epsilon=20, delta=1e-7)


@pytest.fixture(scope="module")
def counts() -> Any:
    return found()


@pytest.fixture(scope="module")
def names() -> Any:
    return found(counted=False)


@pytest.fixture(scope="module")
def top() -> Any:
    return towns(limit=sf.Limit(groups=1, rows_per_group=1)).group_by("town").top(3).release(epsilon=1)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("reader", AUDIENCES)
def test_every_reader_hears_what_may_be_missing_and_what_delta_bounds(
    counts: Any, names: Any, reader: str, language: str
) -> None:
    missing = {"en": "fewer share may be missing", "zh": "为数更少的取值可能缺失"}[language]
    unsaid = {"en": "values were considered is not said", "zh": "考察了多少个取值，此处不作说明"}[language]
    alone = {
        "en": "a value that one person alone has is shown with a chance of at most ",
        "zh": "被列出的概率不超过 ",
    }
    for release in (counts, names):
        text, said = release.explain(language, reader), release.statement
        share = {"en": "{} persons or more share", "zh": "不少于 {} 人共有"}[language]
        assert missing in text
        assert unsaid in text
        assert share.format(Found.by(said.mechanism).enough) in text
        assert alone[language] + exact(said.guarantee.delta) in text
        assert "4 " + {"en": "values", "zh": "个取值"}[language] in text
    margin = DiscreteLaplace(scale=counts.statement.mechanism.scale).margin(CONFIDENCE)
    assert f"±{margin}" in counts.explain(language, reader)
    assert str(counts.statement.mechanism.threshold) in counts.explain(language, reader)
    assert "±" not in names.explain(language, reader), "there is no count, and so no margin"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("reader", AUDIENCES)
def test_every_reader_hears_that_the_order_was_chosen_with_randomness(top: Any, reader: str, language: str) -> None:
    text, gap = top.explain(language, reader), Top.by(top.statement.mechanism, 4).gap
    for words in {
        "en": (
            "with randomness",
            "fewer rows may stand before one with more",
            f"at most {gap} rows behind",
            "3 groups",
        ),
        "zh": ("随机选出", "记录略少的组可能排在记录较多的组之前", f"最多少 {gap} 行", "选出 3 个组"),
    }[language]:
        assert words in text
    assert "±" not in text
    assert re.search({"en": "without counts", "zh": "不含计数"}[language], text)


def test_conditions_and_limits_are_said() -> None:
    made = found(where=sf.col("id") >= 100)
    assert "Only rows that meet the condition id ≥ 100 were looked at." in made.explain()
    assert "At most 2 values of each person can count" in made.explain()
    assert "At most 2 values of yours can count." in made.explain("en", "patient")
    assert "您所具有的取值，最多计入 2 个取值。" in made.explain("zh", "patient")
    assert (
        asked(made.statement, "en") == "Found values of town, of the rows where id ≥ 100 (at most 2 values per person)"
    )
    grouped = table().where(sf.col("age") >= 20).group_by("sex").top(1).release(epsilon=1)
    assert "Only rows that meet the condition age ≥ 20 were looked at." in grouped.explain()
    assert "none of the 2 groups to choose from are not counted" in grouped.explain()
    assert asked(grouped.statement, "en").startswith("Largest groups by sex, of the rows where age ≥ 20 (at most ")


def test_where_rows_are_protected_the_text_speaks_of_rows() -> None:
    made = towns(sf.record(relation="replace")).find_keys("town").release(epsilon=20, delta=1e-7)
    assert "that enough rows share" in made.explain()
    assert "a value that one row alone has" in made.explain()
    assert "只有一行记录具有的取值" in made.explain("zh")
    assert "person at most" not in made.explain()
    assert "of each person" not in made.explain()
    assert "Rows in which the value is missing do not count." in made.explain()


def test_an_empty_answer_is_said_and_shown() -> None:
    made = found(where=sf.col("id") < 0)
    assert made.statement.found == ()
    assert "none was found" in made.explain()
    assert "未找到" in made.explain("zh")
    assert "how many persons have it" not in made.explain()
    assert "persons no number" in snippet(made)
    assert snippet(made).count("<td>") == 0
    assert "none was found" in page(made, ["en"])


@pytest.mark.long
def test_pages_show_the_answer_and_how_it_was_chosen(counts: Any, names: Any, top: Any) -> None:
    for release in (counts, names, top):
        text = page(release)
        assert {"The answer", "结果"} <= set(Reader(text).texts["h2"])
        assert "The numbers" not in text
        assert '<th scope="row">&lt;b&gt;</th>' in text or release is top
        assert "margin of error of town" not in text, "a name has no margin to show at a glance"
        assert "<b>West" not in text
        assert "mechanism." not in re.sub(r"<pre>.*</pre>", "", text, flags=re.DOTALL)
    assert "margin of error of persons" in page(counts)
    assert Reader(page(counts)).cells[0] == ["town", "persons", "95% interval from", "to"]
    said = {name: dict(particulars(release, "en")) for name, release in (("c", counts), ("n", names), ("t", top))}
    assert said["c"]["noise"].endswith(f"shown from {counts.statement.mechanism.threshold} on")
    assert f"is 1 from {names.statement.mechanism.sure} on" in said["n"]["noise"]
    assert "scale 3 rows" in said["t"]["noise"]
    assert said["c"]["sensitivity"] == "one protected unit moves at most 2 of the counts, each by at most 1"
    assert said["t"]["sensitivity"] == "one protected unit moves each count by at most 1 rows"
    assert asked(counts.statement, "en") == "Found values of town (at most 2 values per person)"
    assert asked(top.statement, "zh") == "按 town 分组后最大的组（每个人最多计入 2 个组，每组最多 1 行）"


@pytest.mark.long
def test_words_come_without_numpy_and_engines(counts: Any, names: Any, top: Any, tmp_path: Path) -> None:
    for name, release in (("counts", counts), ("names", names), ("top", top)):
        path = release.certificate.save(tmp_path / f"{name}.json")
        done = subprocess.run([sys.executable, "-c", BLOCKED, path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip() == release.explain()


def test_they_can_be_published(counts: Any, top: Any) -> None:
    for release in (counts, top):
        made = publication(release, reason="a plan needs it", legal_basis="the statute of the register")
        assert len(made.texts) == 2 * len(AUDIENCES)


@pytest.mark.parametrize(("scale", "threshold"), [(1, 15), (Fraction(1, 10), 3), (7, 100), (Fraction(33, 2), 400)])
def test_enough_persons_pass_a_threshold_and_one_fewer_do_not(scale: Fraction, threshold: int) -> None:
    told = Found.by(NoisyThreshold(keys=1, most=1, scale=scale, threshold=threshold))
    q = math.exp(-1 / scale)

    def passes(persons: int) -> float:
        short = persons - threshold  # shown unless the noise falls below −short
        return 1 - q ** (short + 1) / (1 + q)

    assert passes(told.enough) >= 0.95
    assert told.enough == threshold or passes(told.enough - 1) < 0.95
    assert (told.least, told.counted) == (threshold, True)


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), ("1/10", "1e-3"), (10, "1e-12"), (1, "0.96")])
def test_enough_persons_are_selected_and_one_fewer_are_not(epsilon: Any, delta: str) -> None:
    rule = OptimalSelection.calibrated(keys=1, epsilon=epsilon, delta=delta)
    enough = Found.by(rule).enough
    assert rule.chance(enough) >= CONFIDENCE
    assert rule.chance(enough - 1) < CONFIDENCE
    assert not Found.by(rule).counted


@pytest.mark.parametrize(("choices", "scale"), [(1, 2), (2, 2), (3, 5), (4, Fraction(1, 2))])
def test_the_gap_holds_in_nineteen_of_twenty_whatever_the_counts(choices: int, scale: Fraction) -> None:
    gap = Top.by(TopChoice(choices=choices, scale=scale, monotone=True), 5).gap
    worst = 0.0
    for counts in ([gap + 1, 0, 0, 0, 0], [0] * 5, [9, 7, 5, 3, 1], [2 * gap + 2, gap + 1, 0, 0, 0], [gap, 0, 0, 0, 0]):
        worst = max(worst, _off(counts, choices, float(scale), gap))
    assert worst <= 0.05
    assert _off([gap + 1, 0, 0, 0, 0], choices, float(scale), gap) > 0.05 / 25, "and it is not idly wide"
    narrow = _off([gap // 3 + 1, 0, 0, 0, 0], choices, float(scale), gap // 3)
    assert narrow > 0.05, "a third of the gap would not hold"


def _off(counts: list[int], choices: int, scale: float, gap: int) -> float:
    """The exact chance that some choice is more than so many rows behind the largest that was left."""
    wrong = 0.0
    for order in permutations(range(len(counts)), choices):
        left, chance, off = set(range(len(counts))), 1.0, False
        for place in order:
            most = max(counts[each] for each in left)
            weights = {each: math.exp((counts[each] - most) / scale) for each in left}
            chance *= weights[place] / sum(weights.values())
            off |= most - counts[place] > gap
            left.remove(place)
        wrong += chance if off else 0.0
    return wrong


def test_a_choice_of_all_there_is_between_nothing() -> None:
    assert Top.by(TopChoice(choices=1, scale=100, monotone=True), 1).gap == 0  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="candidates"):
        Top.by(TopChoice(choices=3, scale=1, monotone=True), 2)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", [Form.FOUND, Form.TOP])
def test_a_choice_needs_the_columns_that_it_goes_by(form: Form) -> None:
    with pytest.raises(InvalidInput, match="columns"):
        replace(facts(form).description, columns=())


def test_a_mechanism_that_does_not_belong_to_the_question_has_no_text(counts: Any, top: Any) -> None:
    said = replace(counts.statement, mechanism=top.statement.mechanism)
    forged = replace(counts, presenter=presenter_of(counts), statement=said)
    with pytest.raises(Unsupported, match=r"query\.found_keys by a mechanism\.top"):
        Facts.of(forged)
