"""State survives: sites and server are stored and read after every message, and go on as if nothing had been."""

import numpy as np
import pytest

from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, Refused
from sfumato.federated import SumPhase, SumServer, SumSite
from tests.federated.rounds import agreed, kept, keys_of, numbers


def again(site: SumSite) -> SumSite:
    return SumSite.from_bytes(site.to_bytes(), site.key)


def test_a_round_in_which_everybody_is_killed_after_every_message_gives_the_same_sum() -> None:
    terms = agreed(sites=4, missing=1)
    values, leaving = numbers(terms), {2: SumPhase.MASK}
    sites = {n: again(SumSite.begin(terms, key)) for n, key in enumerate(keys_of(4), start=1)}
    server, told = SumServer(terms=terms), b""
    for phase in list(SumPhase)[:-1]:
        for n in tuple(sites):
            if leaving.get(n) is phase:
                del sites[n]
                continue
            site = sites[n]
            match phase:
                case SumPhase.ADVERTISE:
                    after, message = site, site.sent[0]
                case SumPhase.SHARE:
                    after, message = site.share(told)
                case SumPhase.MASK:
                    after, message = site.mask(told, values[n - 1])
                case SumPhase.AGREE:
                    after, message = site.agree(told)
                case _:
                    after, message = site.reveal(told)
            sites[n] = again(after)
            assert sites[n].sent[phase.order] == message
            server = SumServer.from_bytes(server.receive(message).to_bytes()).receive(message)
        server, told = server.close()
        assert SumServer.from_bytes(server.to_bytes()) == server
    assert server.result().total.tolist() == kept(terms, values, leaving).tolist()
    with pytest.raises(Refused, match="the round is over"):
        server.receive(sites[1].sent[4])


def test_a_site_makes_no_step_before_its_turn_and_answers_no_second_question() -> None:
    terms = agreed(sites=3, missing=1)
    site = SumSite.begin(terms, keys_of(3)[0])
    with pytest.raises(Refused, match="not come to this phase"):
        site.mask(b"", np.zeros(5, dtype=np.int64))
    others = [SumSite.begin(terms, key) for key in keys_of(3)[1:]]
    from sfumato.federated.messages import packed

    everybody = packed([site.sent[0], *(one.sent[0] for one in others)])
    after, message = site.share(everybody)
    assert after.share(everybody) == (after, message)
    with pytest.raises(Refused, match="answers once"):
        after.share(packed([site.sent[0], others[0].sent[0]]))


def test_state_of_another_key_or_no_state_is_refused() -> None:
    terms = agreed(sites=3, missing=1)
    site = SumSite.begin(terms, keys_of(3)[0])
    with pytest.raises(InvalidInput, match="another key"):
        SumSite.from_bytes(site.to_bytes(), keys_of(3)[1])
    with pytest.raises(InvalidInput, match="not in the roster"):
        SumSite.begin(terms, SigningKey.new())
    with pytest.raises(InvalidInput, match="not the state"):
        SumSite.from_bytes(b"", keys_of(3)[0])


def test_the_server_takes_one_message_of_each_site_in_each_phase() -> None:
    terms = agreed(sites=3, missing=1)
    first, second = SumSite.begin(terms, keys_of(3)[0]), SumSite.begin(terms, keys_of(3)[0])
    server = SumServer(terms=terms).receive(first.sent[0])
    assert server.receive(first.sent[0]) is server
    assert server.awaited == (2, 3)
    with pytest.raises(Refused, match="has sent another message"):
        server.receive(second.sent[0])
    with pytest.raises(Refused, match="no sum yet"):
        server.result()
    for wrong in (b"", bytes(80), first.sent[0][:100]):
        with pytest.raises(InvalidInput, match="t was not read"):
            server.receive(wrong)


def test_numbers_of_another_shape_or_kind_are_refused() -> None:
    from tests.federated.rounds import until_masked

    terms = agreed(sites=3, missing=1)
    for wrong in (np.zeros(4, dtype=np.int64), np.zeros(5), np.zeros((5, 1), dtype=np.int64)):
        with pytest.raises(InvalidInput, match="gives 5 whole numbers"):
            until_masked(terms, [wrong] * 3)  # type: ignore[list-item]
