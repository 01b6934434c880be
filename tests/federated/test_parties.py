"""Who may leave, who may collude and how many open a secret: impossible numbers are refused with the reason."""

import pytest

from sfumato.errors import InvalidInput
from sfumato.federated import Parties, RoundTerms, ServerTrust
from tests.federated.rounds import agreed

CURIOUS, LYING = ServerTrust.CURIOUS, ServerTrust.LYING


def test_every_combination_is_possible_just_where_the_inequalities_say_so() -> None:
    for m in range(2, 12):
        for t in range(m):
            for c in range(m):
                for threshold in range(1, m + 1):
                    for server in ServerTrust:
                        enough = 2 * threshold > m + c if server is LYING else threshold > c
                        possible = enough and 2 <= threshold <= m - t and m - t - c >= 1
                        try:
                            Parties(sites=m, missing=t, colluding=c, server=server, threshold=threshold)
                        except InvalidInput:
                            assert not possible
                        else:
                            assert possible


@pytest.mark.parametrize("t", [1, 2, 3, 5])
def test_as_many_that_leave_as_collude_need_one_more_than_three_times_as_many_sites(t: int) -> None:
    assert Parties(sites=3 * t + 1, missing=t, colluding=t, server=LYING).threshold == 2 * t + 1
    with pytest.raises(InvalidInput, match=f"or take {3 * t + 1} sites or more"):
        Parties(sites=3 * t, missing=t, colluding=t, server=LYING)


def test_six_sites_of_which_two_collude_with_a_lying_server_can_lose_one() -> None:
    assert Parties(sites=6, missing=1, colluding=2, server=LYING).threshold == 5
    with pytest.raises(InvalidInput, match="threshold of at least 5, and 2 sites that leave allow at most 4"):
        Parties(sites=6, missing=2, colluding=2, server=LYING)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"threshold": 2}, "too low"),
        ({"threshold": 6}, "too high"),
        ({"missing": 4, "colluding": 2}, "no honest one is left"),
        ({"server": "lying"}, "a ServerTrust"),
        ({"sites": 1}, "sites"),
    ],
)
def test_the_reason_is_said(changed: dict[str, object], said: str) -> None:
    whole: dict[str, object] = {"sites": 6, "missing": 1, "colluding": 2, "server": CURIOUS, "threshold": 4} | changed
    with pytest.raises(InvalidInput, match=said):
        Parties(**whole)  # type: ignore[arg-type]


def test_terms_are_read_as_they_were_written_and_refused_where_they_cannot_be() -> None:
    terms = agreed()
    assert RoundTerms.from_json(terms.to_json()) == terms
    assert RoundTerms.from_json(terms.to_json()).digest == terms.digest
    for wrong, said in (
        ({"roster": terms.roster[:5]}, "different keys"),
        ({"roster": (*terms.roster[:5], terms.roster[0])}, "different keys"),
        ({"run": " "}, "which run"),
        ({"bits": 63}, "bits"),
        ({"length": 0}, "length"),
    ):
        fields = {name: getattr(terms, name) for name in ("run", "number", "roster", "parties", "length", "bits")}
        with pytest.raises(InvalidInput, match=said):
            RoundTerms(**{**fields, **wrong})


def test_too_few_bits_for_all_sites_are_refused() -> None:
    with pytest.raises(InvalidInput, match="do not hold the sum"):
        agreed(200, 2, bits=8)
