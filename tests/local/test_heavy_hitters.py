"""Heavy hitters: planted texts are found, the plan is public, and everybody reports once."""

import numpy as np
import pytest

from sfumato.errors import InvalidInput, Refused
from sfumato.local import HeavyHitters, PrefixSearch, advised, reports
from sfumato.noise import SystemBits

PLAN = PrefixSearch(epsilon=3, alphabet="-abcd", length=5, step=2, kept=6)


def asked(search: HeavyHitters, texts: list[str]) -> object:
    places = np.array([search.plan.place(text, search.candidates) for text in texts])
    return reports(search.oracle, places)


def test_planted_texts_are_found() -> None:
    """6,000 persons a round, two texts of 30% and 20%: each is more than 10 standard errors above nobody's."""
    crowd = ["abcd"] * 1800 + ["dd"] * 1200 + ["".join("abcd"[(i >> 2 * j) % 4] for j in range(5)) for i in range(3000)]
    search = HeavyHitters(PLAN)
    for _ in range(PLAN.rounds):
        search.answer(asked(search, crowd))
    best = search.found[:2]
    assert [hitter.text for hitter in best] == ["abcd-", "dd---"]
    for hitter, share in zip(best, (0.3, 0.2), strict=True):
        assert abs(hitter.estimate - share) < 0.06
        assert hitter.low <= hitter.estimate <= hitter.high
    with pytest.raises(Refused, match="over"):
        search.answer([0])


def test_a_search_that_is_not_over_has_found_nothing() -> None:
    with pytest.raises(Refused, match="round 1 of 3"):
        HeavyHitters(PLAN).found  # noqa: B018


def test_candidates_follow_the_plan() -> None:
    assert PLAN.rounds == 3
    assert len(PLAN.first()) == 25
    assert len(PLAN.extended(["abcd", "dcba"])) == 10  # one symbol is left
    assert PLAN.place("ab", ("a-", "ab")) == 1
    assert PLAN.place("c", ("a-", "ab")) == 2  # none of them
    assert PLAN.place("a", ("a-", "ab")) == 0  # filled up
    assert PLAN.loss().guarantee.epsilon == 3
    assert PLAN.report("abcd", PLAN.first(), SystemBits()) >= 0


def test_the_advised_oracle_errs_least() -> None:
    assert advised(epsilon=1, values=2).KIND == "local.kary_response"
    assert advised(epsilon=4, values=1024).variance() < 0.0759


@pytest.mark.parametrize(
    "wrong",
    [
        {"alphabet": "a"},
        {"alphabet": "aa"},
        {"length": 0},
        {"step": 6},
        {"kept": 100_000},
        {"epsilon": 0},
    ],
)
def test_wrong_plans_are_refused(wrong) -> None:
    with pytest.raises(InvalidInput):
        PrefixSearch(**({"epsilon": 1, "alphabet": "ab", "length": 5} | wrong))


def test_a_foreign_symbol_is_refused_without_being_repeated() -> None:
    with pytest.raises(InvalidInput) as refused:
        PLAN.place("zeppelin", PLAN.first())
    assert "zeppelin" not in str(refused.value)
