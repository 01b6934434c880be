"""Hostile senders: nothing that is sent raises an error, what is impossible is counted, and lies have a known reach."""

import numpy as np
import pytest

from sfumato.errors import InvalidInput
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


def test_a_sender_is_heard_as_often_as_was_agreed() -> None:
    inbox = Inbox(Collection(name="asked", ask=KaryResponse(epsilon=1, values=2), reports=2))
    assert [inbox.take("1", sender="a") for _ in range(4)] == [True, True, False, False]
    assert not inbox.take("7", sender="b")  # refused, and not held against the sender
    assert [inbox.take("0", sender="b") for _ in range(3)] == [True, True, False]
    assert inbox.refused == {"too many": 3, "impossible": 1}
    assert estimate_shares(inbox.collection.ask, inbox.reports).reports == 4


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
