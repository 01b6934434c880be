"""Hostile senders: nothing that is sent raises an error, what is impossible is counted, and lies have a known reach."""

import copy
import pickle
import threading
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

from sfumato.errors import InvalidInput, Refused
from sfumato.local import (
    MEANS,
    ORACLES,
    Collection,
    DuchiMean,
    HybridMean,
    Inbox,
    KaryResponse,
    LocalHash,
    OptimisedUnary,
    SubsetSelection,
    counts,
    estimate_mean,
    estimate_shares,
    sift,
    write_report,
)
from sfumato.local import reports as simulated
from sfumato.noise import SystemBits

ASKED = [
    *(oracle.calibrated(epsilon=1, values=11) for oracle in ORACLES if hasattr(oracle, "calibrated")),
    *(oracle(epsilon=1, values=11) for oracle in ORACLES if not hasattr(oracle, "calibrated")),
    DuchiMean(epsilon=1),
    HybridMean.calibrated(epsilon=1, steps=64),
    HybridMean.calibrated(epsilon="1/2", steps=64),  # without piecewise reports
]
JUNK = [-1, 10**400, 1.0, 0.5, True, None, "0", [0], {}, float("nan"), b"", b"\x00" * 9, b"\xff\xff", bytearray(2)]
TEXTS = [
    *("", " ", "{", "null", "true", "-1", "1.0", "1e3", "0x1", "007", "٣", "9" * 41, "[" * 100_000, '"', '"0"', '"zz"'),
    *('"FFFF"', "'00'", '"' + "00" * 10**6 + '"', "\x00", "0\n1"),
]


def named(asked: object) -> str:
    return repr(asked).replace("Fraction", "")


def honest(asked) -> object:
    return asked.report(0, SystemBits())


@pytest.mark.parametrize("asked", ASKED, ids=named)
def test_junk_is_impossible_and_honest_reports_are_not(asked) -> None:
    for junk in JUNK:
        assert not asked.possible(junk), junk
    own = [honest(asked) for _ in range(40)]
    assert sift(asked, [*own, *JUNK]) == (own, len(JUNK))
    if not isinstance(asked, LocalHash):
        assert all(asked.possible(report) for report in asked.outputs())


@pytest.mark.parametrize("asked", ASKED, ids=named)
def test_the_aggregator_refuses_junk_with_a_count_and_never_crashes(asked) -> None:
    job = estimate_mean if isinstance(asked, MEANS) else counts
    own = [honest(asked) for _ in range(5)]
    for junk in JUNK:
        with pytest.raises(InvalidInput, match="1 of 6 reports"):
            job(asked, [*own, junk])
    for wrong in (
        np.array([0.5]),
        np.array(["x"]),
        np.array([[0.0]]),
        np.array([None]),
        np.zeros((2, 9), dtype=np.uint8),
    ):
        with pytest.raises(InvalidInput, match="nothing was counted"):
            job(asked, wrong)


def test_arrays_and_values_out_of_range_are_refused() -> None:
    asked = KaryResponse(epsilon=1, values=4)
    with pytest.raises(InvalidInput, match="2 of 3 reports"):
        counts(asked, np.array([-1, 0, 4]))
    assert counts(asked, np.array([3, 3], dtype=np.uint8)).tolist() == [0, 0, 0, 2]
    assert counts(asked, np.array([], dtype=np.int64)).tolist() == counts(asked, []).tolist() == [0, 0, 0, 0]
    for wrong in ([4], [-1], [0.0], [[0]]):
        with pytest.raises(InvalidInput, match="values must be"):
            counts(asked, [0], values=wrong)


def test_a_set_of_another_size_is_refused() -> None:
    """All values at once would pull every estimate up."""
    asked = SubsetSelection(epsilon=1, values=16, size=4)
    full, right = np.full((1, 2), 0xFF, dtype=np.uint8), np.array([[0x0F, 0]], dtype=np.uint8)
    assert counts(asked, right).sum() == 4
    with pytest.raises(InvalidInput, match="1 of 2 reports"):
        counts(asked, np.concatenate((right, full)))
    assert not asked.possible(b"\xff\xff")
    assert asked.possible(b"\x0f\x00")


@pytest.mark.parametrize("asked", ASKED, ids=named)
def test_whatever_is_sent_the_inbox_stands(asked) -> None:
    inbox = Inbox(Collection(name="asked", ask=asked))
    unreadable = [*TEXTS, *(junk for junk in JUNK if junk != "0"), -5, object()]
    for text in unreadable:
        assert not inbox.take(text), text
    assert inbox.take(write_report(honest(asked)))
    assert inbox.take(f" {write_report(honest(asked))}\n")
    assert not inbox.take('"' + "ff" * 9 + '"')
    assert not inbox.take("9" * 40)
    assert inbox.refused == {"unreadable": len(unreadable), "impossible": 2}
    assert len(inbox.reports) == 2


def yes_or_no(**more) -> Inbox:
    return Inbox(Collection(name="asked", ask=KaryResponse(epsilon=1, values=2), **more))


def test_a_sender_is_heard_once_in_a_round() -> None:
    inbox = yes_or_no(reports=2)
    assert [inbox.take("1", sender="a", round=at) for at in (1, 1, 2, 2)] == [True, False, True, False]
    assert not inbox.take("7", sender="b", round=1)  # refused, and not held against the sender
    assert [inbox.take("0", sender="b", round=1) for _ in range(2)] == [True, False]
    assert inbox.refused == {"too many": 3, "impossible": 1}
    assert (inbox.reports_of(1), inbox.reports_of(2)) == ([1, 0], [1])
    inbox.reports_of(1).append(1)
    assert inbox.reports_of(1) == [1, 0]
    for wrong in (0, 3, None):
        with pytest.raises(InvalidInput, match="round"):
            inbox.reports_of(wrong)


def test_reports_of_several_rounds_are_not_pooled() -> None:
    inbox = yes_or_no(reports=2)
    with pytest.raises(InvalidInput, match="in which round"):
        inbox.take("1", sender="a")
    inbox.take("1", sender="a", round=1)
    with pytest.raises(Refused, match=r"not independent.*reports_of"):
        inbox.reports  # noqa: B018
    one = yes_or_no()
    assert one.take("1")
    assert one.take("0", round=1)
    assert one.reports == one.reports_of(1) == [1, 0]


@pytest.mark.parametrize("at", [0, -1, 3, True, "1", 1.0, [1], float("nan"), 10**30])
def test_a_round_that_does_not_exist_is_counted(at) -> None:
    inbox = yes_or_no(reports=2)
    assert not inbox.take("1", sender="a", round=at)
    assert inbox.refused == {"no such round": 1}


@pytest.mark.parametrize("sender", [[1], {}, set(), 0.5, float("nan"), object(), bytearray(b"a")])
def test_a_sender_who_is_no_token_is_counted(sender) -> None:
    inbox = yes_or_no()
    assert not inbox.take("1", sender=sender)
    assert inbox.refused == {"no such sender": 1}
    assert [inbox.take("1", sender=name) for name in ("a", b"a", 7, "a", b"a", 7)] == [True] * 3 + [False] * 3


def test_one_percent_of_liars_move_the_share_of_a_round_by_two_points() -> None:
    """10 of 1,000 send '1' as often as they can, in each of 52 rounds; the other answers are the same without them."""
    inbox, honest_ones = yes_or_no(reports=52), [str(int(i % 1000 < 269)) for i in range(990)]
    for i, text in enumerate(honest_ones):
        inbox.take(text, sender=f"honest {i}", round=1)
    for liar in range(10):
        for _ in range(52):
            inbox.take("1", sender=f"liar {liar}", round=1)
    ask = inbox.collection.ask
    moved = [
        estimate_shares(ask, [*map(int, honest_ones), *[lie] * 10]).estimates[1] * sign
        for lie, sign in ((1, 1), (0, -1))
    ]
    found = estimate_shares(ask, inbox.reports_of(1))
    assert found.reports == 1000
    assert found.estimates[1] == pytest.approx(moved[0])
    assert 0.0215 < sum(moved) < 0.0217 == pytest.approx(10 * float(ask.pull) / 1000, abs=1e-4)


@pytest.mark.alpha(1e-9)
def test_intervals_of_a_round_cover_where_those_of_all_rounds_do_not() -> None:
    """300 surveys of 60 persons who send one memoised report 20 times: misses at 5%, limit by the exact law, α 1e-9."""
    surveys, ask = 300, KaryResponse(epsilon=1, values=2)
    limit = binom.isf(1e-9, surveys, 0.05)
    sent = np.asarray(simulated(ask, np.tile(np.arange(60) % 2, surveys))).reshape(surveys, 60)
    misses = pooled = 0
    for survey in sent:
        inbox = yes_or_no(reports=20, memoised=True, distinct=1)
        for i, report in enumerate(survey.tolist()):
            inbox.take(str(report), sender=i, round=1)
        shares = estimate_shares(ask, inbox.reports_of(1))
        misses += not shares.low[1] <= 0.5 <= shares.high[1]
        shares = estimate_shares(ask, np.tile(survey, 20))
        pooled += not shares.low[1] <= 0.5 <= shares.high[1]
    assert misses <= limit < pooled


def test_what_is_no_row_of_reports_is_refused() -> None:
    asked, bits = KaryResponse(epsilon=1, values=2), OptimisedUnary(epsilon=1, values=8)
    for wrong in (None, 7, {0: 1}, {0, 1}, "01", b"\x01", bytearray(1), memoryview(b"\x00")):
        for job in (counts, estimate_shares, sift):
            for ask in (asked, bits):
                with pytest.raises(InvalidInput, match="reports came as"):
                    job(ask, wrong)
        with pytest.raises(InvalidInput, match="reports came as"):
            estimate_mean(DuchiMean(epsilon=1), wrong)
    assert counts(asked, iter([0, 0, 1])).tolist() == [2, 1]


def test_where_all_reports_are_piecewise_none_is_of_the_other_kind() -> None:
    asked = HybridMean(epsilon=1, window=2, share=1, steps=4)
    assert [asked.possible(report) for report in (0, 1, 2, asked.kinds - 1, asked.kinds)] == [False] * 2 + [
        True
    ] * 2 + [False]
    assert list(asked.outputs()) == list(range(2, 8))
    assert asked.reach == asked.piecewise.reach
    assert sum(asked.probability(report, 0) for report in asked.outputs()) == 1
    with pytest.raises(InvalidInput, match="1 of 2 reports"):
        estimate_mean(asked, np.array([1, 2]))
    assert HybridMean(epsilon=1, window=2, share="1/2", steps=4).possible(0)


@pytest.mark.parametrize(
    "asked", [KaryResponse(epsilon=1, values=4), LocalHash.calibrated(epsilon=1, values=4)], ids=named
)
def test_a_lie_moves_an_estimate_by_its_pull_and_no_further(asked) -> None:
    own = [honest(asked) for _ in range(50)]
    for value in range(4):
        moves = []
        for lie in asked.outputs():
            for instead in (0, 1):
                before = estimate_shares(asked, [*own, own[instead]]).estimates[value]
                moves.append(abs(estimate_shares(asked, [*own, lie]).estimates[value] - before) * 51)
        assert max(moves) <= float(asked.pull) * (1 + 1e-9)
    assert asked.pull == 1 / (asked.hit - asked.stray)


def test_unary_reports_may_support_everything() -> None:
    """A well-formed lie: all bits. It is possible, and pulls every estimate at once."""
    asked = OptimisedUnary(epsilon=1, values=11)
    assert asked.possible(b"\xff\x07")
    assert counts(asked, [b"\xff\x07"]).tolist() == [1] * 11


class Meeting:
    """A text that is read only when all senders are there, or after a moment: the gap in which a check grows old."""

    def __init__(self, ask: KaryResponse, senders: int) -> None:
        self.ask, self.together = ask, threading.Barrier(senders)

    def possible(self, report: object) -> bool:
        with suppress(threading.BrokenBarrierError):
            self.together.wait(timeout=0.2)
        return self.ask.possible(report)


@pytest.mark.parametrize("name", ["a", None])
def test_threads_do_not_make_a_sender_heard_twice_and_lose_no_count(name: str | None) -> None:
    """All eight pass the first check before any is kept; of one sender one report counts, of strangers all do."""
    asked, senders = KaryResponse(epsilon=1, values=2), 8
    inbox, answers = yes_or_no(), []
    meeting = Meeting(asked, senders)
    inbox.collection = SimpleNamespace(reports=1, ask=meeting)  # type: ignore[assignment]
    threads = [threading.Thread(target=lambda: answers.append(inbox.take("1", sender=name))) for _ in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = senders if name is None else 1
    assert (answers.count(True), len(inbox.reports_of(1))) == (kept, kept)
    assert inbox.refused == ({} if name is None else {"too many": senders - kept})


def test_an_inbox_is_not_copied_since_the_copy_would_hear_everybody_again() -> None:
    inbox = yes_or_no()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(Refused, match=r"hear every sender again.*nothing was copied"):
            copied(inbox)


def test_a_forked_inbox_takes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = yes_or_no()
    monkeypatch.setattr("sfumato.local.inbox.os.getpid", lambda: -1)
    with pytest.raises(Refused, match=r"another process.*nothing was taken"):
        inbox.take("1", sender="a")
