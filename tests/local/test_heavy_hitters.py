"""Heavy hitters: planted texts are found, the plan is public, and everybody reports once."""

import threading

import numpy as np
import pytest

from sfumato.errors import InvalidInput, Refused
from sfumato.local import HeavyHitters, PrefixSearch, advised, aggregate, reports, search_from_json

PLAN = PrefixSearch(epsilon=3, alphabet="-abcd", length=5, step=2, kept=6)


def asked(search: HeavyHitters, texts: list[str]) -> object:
    places = np.array([search.plan.place(text, search.candidates) for text in texts])
    return reports(search.oracle, places)


@pytest.mark.alpha(1e-9)
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
    assert PLAN.checked(list(PLAN.first())) == PLAN.first()
    assert PLAN.checked(PLAN.extended(["abcd"])) == PLAN.extended(["abcd"])  # the last round is a shorter step


def test_the_advised_oracle_errs_least() -> None:
    assert advised(epsilon=1, values=2).KIND == "local.kary_response"
    assert advised(epsilon=4, values=1024).variance() < 0.0759


@pytest.mark.parametrize(
    "wrong",
    [
        {"alphabet": "a"},
        {"alphabet": "aa"},
        {"alphabet": ["a", "b"]},
        {"length": 0},
        {"step": 6},
        {"kept": 100_000},
        {"epsilon": 0},
    ],
)
def test_wrong_plans_are_refused(wrong) -> None:
    with pytest.raises(InvalidInput):
        PrefixSearch(**({"epsilon": 1, "alphabet": "ab", "length": 5} | wrong))


@pytest.mark.parametrize("text", ["é", "ab cd", "zeppelin", "\ud800", "abé"])
def test_a_foreign_text_is_none_of_the_candidates_in_every_round(text: str) -> None:
    for candidates in (PLAN.first(), PLAN.extended(["ab"]), PLAN.extended(["abcd"])):
        assert PLAN.place(text, candidates) == len(candidates)


def test_what_is_cut_off_does_not_count_and_no_text_is_the_empty_one() -> None:
    assert PLAN.place("abcdaé", ("abcda", "dddda")) == 0
    assert PLAN.place("", PLAN.first()) == PLAN.first().index("--")
    for wrong in (None, 7, b"ab"):
        with pytest.raises(InvalidInput, match="came as"):
            PLAN.place(wrong, PLAN.first())


def test_a_short_plan_does_not_hang_a_device() -> None:
    """Each of these took seconds, or for ever, where the power was computed or the text filled up."""
    for length, step in ((10**9, 1), (10**9, 10**7), (10**18, 10**18)):
        with pytest.raises(InvalidInput, match="length must be at most 4,096"):
            PrefixSearch(epsilon=1, alphabet="ab", length=length, step=step)
    text = PrefixSearch(epsilon=1, alphabet="ab", length=4096, step=1).to_json()
    with pytest.raises(InvalidInput, match="length"):
        search_from_json(text.replace("4096", "1000000000"))
    with pytest.raises(InvalidInput, match="candidates"):
        PrefixSearch(epsilon=1, alphabet="ab", length=4096, step=4096, kept=1)
    assert len(PrefixSearch(epsilon=1, alphabet="ab", length=14, step=14, kept=1).first()) == 1 << 14
    with pytest.raises(InvalidInput, match="candidates"):
        PrefixSearch(epsilon=1, alphabet="ab", length=15, step=15, kept=1)


def test_threads_answer_a_round_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are past the check before either has moved on; a round that is skipped would leave texts cut short."""
    plan = PrefixSearch(epsilon=2, alphabet="ab", length=2, step=1, kept=2)
    search, together, estimate = HeavyHitters(plan), threading.Barrier(2), aggregate.estimate_shares
    sent = [0, 1, 2] * 40
    found: list[object] = []

    def meeting(*asked: object, **said: object) -> object:
        together.wait(timeout=60)
        return estimate(*asked, **said)

    def answer() -> None:
        try:
            found.append(search.answer(sent))
        except Refused as refused:
            found.append(refused)

    monkeypatch.setattr(aggregate, "estimate_shares", meeting)
    threads = [threading.Thread(target=answer) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [type(each) for each in found].count(Refused) == 1
    assert search.round == 1
    assert {len(candidate) for candidate in search.candidates} == {2}
