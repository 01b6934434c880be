"""A release that is only thought of: the figures that the claims name, worked out and not written down."""

import re
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import InvalidInput
from sfumato.reports.catalogue import messages
from sfumato.reports.words import what_if
from sfumato.reports.words.what_if import nearest
from tests.core.truth import mp, number
from tests.reports.readers import out_of_thousand, units_of
from tests.reports.test_explain_messages import FORBIDDEN

PERSON = sf.user("id", relation="add/remove")
HALF = {language: what_if(unit=PERSON, epsilon=0.5, prior=0.1, language=language) for language in ("en", "zh")}
LANGUAGES = ("en", "zh")


@pytest.mark.claim("S1-30")
def test_a_belief_in_absence_falls_and_rises_no_further_than_stated() -> None:
    assert (
        "Whoever is 90% sure that a given person is not in the data can, after it, be about 84.52% sure at the least "
        "and about 93.69% at the most." in HALF["en"]
    )
    assert "10% chance that this person is in the data can, after it, think at most about 15.48%" in HALF["en"]
    assert "有 90% 的把握认为某个人不在数据中的人，看过之后，把握最低约为 84.52%，最高约为 93.69%" in HALF["zh"]
    assert "此人在数据中的可能性是 10% 的人，看过之后，判断最高约为 15.48%" in HALF["zh"]
    for text in HALF.values():  # rounded outward as well
        assert {"845", "937", "155", "63", "232", "39"} <= set(re.findall(r"\d+", out_of_thousand(text)))


@pytest.mark.claim("S1-31")
def test_the_error_of_the_continuous_law_and_of_the_one_that_runs() -> None:
    assert "mean absolute error is 2, and 95 of 100 errors lie within about ±5.99." in HALF["en"]
    assert (
        "mean absolute error is about 1.919, and ±6 covers at least 96.2 in 100. ±5 would cover about 93.8"
        in HALF["en"]
    )
    assert "平均绝对误差为 2，100 次中约有 95 次误差不超过 ±5.99 左右" in HALF["zh"]
    assert "平均绝对误差约为 1.919，±6 至少覆盖 96.2%。若取 ±5，则约覆盖 93.8%" in HALF["zh"]


@pytest.mark.claim("S1-32")
def test_ten_releases_cost_ten_times() -> None:
    assert "10 releases cost 10 times as much as one: ε = 5, δ = 0 for all together" in HALF["en"]
    assert "10 次发布的消耗是一次的 10 倍：合计 ε = 5、δ = 0" in HALF["zh"]
    with_delta = what_if(unit=PERSON, epsilon=0.5, delta=1e-7, language="en")
    assert "10 times as much as one: ε = 5, δ = 1/1,000,000" in with_delta
    assert "cost" not in what_if(unit=PERSON, epsilon=0.5, releases=1)


@pytest.mark.claim("S1-30", "S1-31", "S1-32")
def test_the_figures_are_worked_out_and_not_written_into_the_messages() -> None:
    for language in LANGUAGES:
        for words in messages(language).values():
            bare = re.sub(r"\{\w+\}", "", words)
            assert not re.search(r"84\.5|93\.6|15\.4|5\.99|1\.919|96\.2|93\.8|\bten\b|十倍", bare)


@settings(max_examples=30, deadline=None)
@given(
    epsilon=st.fractions(Fraction(1, 50), 8, max_denominator=50),
    prior=st.integers(1, 999).map(lambda thousandths: Fraction(thousandths, 1000)),
    unit=st.sampled_from([*units_of("add/remove"), *units_of("replace")]),
    releases=st.integers(2, 20),
)
def test_other_inputs_get_other_figures(epsilon: Fraction, prior: Fraction, unit: Any, releases: int) -> None:
    english, chinese = (
        what_if(unit=unit, epsilon=epsilon, prior=prior, releases=releases, language=each) for each in LANGUAGES
    )
    e, p = mp.exp(number(epsilon)), number(prior)
    for belief in (e * p / (1 - p + e * p), p / (p + e * (1 - p))):
        percent = Fraction(str(mp.nstr(100 * belief, 30)))
        shown = nearest(percent, 2)
        if shown in ("0", "100"):  # certainty is not what the promise leaves
            assert f" {shown}%" not in english
            assert f"约为 {shown}%" not in chinese  # a bound that is rounded outward may reach it
        else:
            assert f"{shown}%" in english
            assert f"{shown}%" in chinese
    assert f"{releases} times as much" in english
    assert f"{releases} 倍" in chinese
    for text, language in ((english, "en"), (chinese, "zh")):
        assert not re.search(FORBIDDEN[language], text, re.IGNORECASE)
    assert not re.search("[A-Za-z]", chinese)
    assert ("is not in the data" in english) is (unit.relation.value == "add/remove")


@pytest.mark.parametrize("relation", ["add/remove", "replace"])
def test_with_a_delta_the_text_counts_guesses(relation: str) -> None:
    unit = sf.user("id", relation=relation)
    english, chinese = (what_if(unit=unit, epsilon=1, delta=1e-6, language=each) for each in LANGUAGES)
    assert "at most 732 times" in english
    assert "最多猜对 732 次" in chinese
    assert ("881" in english) is (relation == "add/remove")  # a trait, at 2ε and (1 + e)δ
    assert "standard deviation of about 4.225" in english
    assert "not the chance that something goes wrong" in english
    assert not re.search("[A-Za-z]", chinese)


def test_no_narrower_margin_is_named_where_there_is_none() -> None:
    assert "would cover" not in what_if(unit=PERSON, epsilon=5)


@pytest.mark.parametrize("prior", [0, 1, "1/3", "1/10000"])
def test_a_prior_is_a_number_of_thousandths(prior: object) -> None:
    with pytest.raises(InvalidInput, match="thousandths"):
        what_if(unit=PERSON, epsilon=1, prior=prior)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0}, {"epsilon": 1, "releases": 0}, {"epsilon": 1, "moved": 0}, {"epsilon": 10**5}]
)
def test_what_promises_nothing_has_no_text(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        what_if(unit=PERSON, **{"releases": 11} | wrong)
