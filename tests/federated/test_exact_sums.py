"""The sum is exact whoever leaves in which phase, and the transcript gives it again."""

import numpy as np
import pytest

from sfumato.errors import Refused, SfumatoError
from sfumato.federated import RoundTerms, SumPhase, round_in_process, verify_round
from tests.federated.rounds import PHASES, agreed, kept, keys_of, numbers, patterns, unlike_patterns

CURIOUS = {"sites": 6, "missing": 2}
LYING = {"sites": 7, "missing": 2, "colluding": 2, "lying": True}


def check(terms: RoundTerms, leaving: dict[int, SumPhase]) -> None:
    values = numbers(terms)
    found = round_in_process(terms, keys_of(terms.parties.sites), values, leaving=leaving).result()
    assert found.total.tolist() == kept(terms, values, leaving).tolist()
    before = [n for n, phase in leaving.items() if phase.order <= SumPhase.MASK.order]
    assert found.missing == len(before)
    assert not set(before) & set(found.survivors)


@pytest.mark.claim("S0-25")
@pytest.mark.parametrize("first", range(3))
@pytest.mark.parametrize("terms", [agreed(**CURIOUS), agreed(**LYING)], ids=["curious", "lying"])  # type: ignore[arg-type]
def test_whoever_leaves_in_whatever_phase_the_sum_of_the_others_is_exact(terms: RoundTerms, first: int) -> None:
    """All kinds of patterns, a third of them in each case; every pattern in the longer test."""
    unlike = list(unlike_patterns(terms.parties.sites, terms.parties.missing))
    assert len(unlike) == 21
    for leaving in unlike[first::3]:
        check(terms, leaving)


@pytest.mark.long
@pytest.mark.parametrize(
    ("terms", "count"),
    [(agreed(**CURIOUS), 406), (agreed(**LYING), 561)],  # type: ignore[arg-type]
    ids=["curious", "lying"],
)
def test_every_site_and_every_phase(terms: RoundTerms, count: int) -> None:
    every = list(patterns(terms.parties.sites, terms.parties.missing))
    assert len(every) == count
    for leaving in every:
        check(terms, leaving)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_fifty_sites_of_which_some_leave(seed: int) -> None:
    terms = agreed(sites=50, missing=12, colluding=12, lying=True, bits=40)
    random = np.random.default_rng(seed)
    who = random.choice(50, size=12 - seed, replace=False) + 1
    phases = [PHASES[at] for at in random.integers(len(PHASES), size=who.size)]
    check(terms, dict(zip(who.tolist(), phases, strict=True)))


@pytest.mark.parametrize("bits", [8, 12, 16, 20, 32, 33, 62])
def test_the_largest_numbers_of_all_sites_do_not_wrap(bits: int) -> None:
    terms = agreed(sites=3, missing=1, bits=bits, length=2)
    ends = [np.array([-terms.limit, terms.limit])] * 3
    assert round_in_process(terms, keys_of(3), ends).result().total.tolist() == [-3 * terms.limit, 3 * terms.limit]
    assert 3 * (terms.limit + 1) > 2 ** (bits - 1) - 1
    far = [np.array([-(2**62), 2**62])] * 3
    assert round_in_process(terms, keys_of(3), far).result().total.tolist() == [-3 * terms.limit, 3 * terms.limit]


def test_one_more_than_may_leave_gets_no_sum() -> None:
    terms = agreed(sites=3, missing=1)
    for phase in list(SumPhase)[:-1]:
        with pytest.raises(Refused, match="are needed; the round gives no sum"):
            round_in_process(terms, keys_of(3), numbers(terms), leaving={1: phase, 2: phase})


@pytest.mark.claim("S0-25")
def test_a_transcript_gives_the_sum_again_and_one_that_was_altered_does_not() -> None:
    terms = agreed(sites=3, missing=1)
    values = numbers(terms)
    server = round_in_process(terms, keys_of(3), values, leaving={2: SumPhase.MASK})
    text = server.to_bytes()
    assert verify_round(text, terms).total.tolist() == (values[0] + values[2]).tolist()
    with pytest.raises(Refused, match="other terms"):
        verify_round(text, agreed(sites=3, missing=1, number=2))
    for place in range(len(terms.to_json()) + 40, len(text), len(text) // 12):
        altered = bytearray(text)
        altered[place] ^= 1
        with pytest.raises(SfumatoError):
            verify_round(bytes(altered), terms)
