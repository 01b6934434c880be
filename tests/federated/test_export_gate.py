"""What leaves a site: votes, keys and charged, masked numbers; and nothing else, whoever asks."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.release import Release
from sfumato.core.signature import SigningKey
from sfumato.errors import Refused
from sfumato.federated import RoundTerms, SumPhase
from sfumato.federated.export_gate import ExportGate
from sfumato.federated.messages import opened, sealed
from sfumato.federated.proposal import SiteVote
from tests.federated.hospitals import SPEND, Network, network

Sent = tuple[bytes, RoundTerms, SumPhase, object]


@pytest.fixture(scope="module")
def round_of() -> tuple[Network, list[Sent]]:
    """A network after one round, and what the gate of the first site let out."""
    found: list[Sent] = []
    net = network(
        {"north": {"patient": [1], "sex": ["F"], "age": [40], "weeks": [1]}}
        | {"south": {"patient": [2], "sex": ["M"], "age": [50], "weeks": [2]}},
        missing=0,
    )
    own, let_out = net.sites["north"].public_key, ExportGate.message

    def watched(self: ExportGate, data: object, terms: RoundTerms, phase: SumPhase, release: object = None) -> bytes:
        if self._key == own:
            found.append((bytes(data), terms, phase, release))  # type: ignore[call-overload]
        return let_out(self, data, terms, phase, release)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ExportGate, "message", watched)
        net.stays.count().release(**SPEND)
    return net, found


def masked(found: list[Sent]) -> tuple[bytes, RoundTerms, Release]:
    data, terms, _, release = next(one for one in found if one[2] is SumPhase.MASK)
    assert isinstance(release, Release)
    return data, terms, release


@pytest.mark.claim("S1-14")
def test_numbers_leave_with_the_release_that_was_charged_for_them_alone(round_of: tuple[Network, list[Sent]]) -> None:
    net, found = round_of
    data, terms, release = masked(found)
    gate = ExportGate(net.sites["north"].public_key)
    assert gate.message(data, terms, SumPhase.MASK, release) == data
    assert opened(terms, SumPhase.MASK, data).payload == np.array(release.values, dtype="<u8").tobytes()
    plain = net.vaults["north"].table(pa.table({"patient": [1]}), name="plain", version="1", limit=net.stays.limit)
    counted = plain.count().release(epsilon=0.5)
    for other in (None, counted, "a model", pa.table({"patient": [1]})):
        with pytest.raises(Refused, match="does not leave this site"):
            gate.message(data, terms, SumPhase.MASK, other)


@pytest.mark.claim("S1-14")
def test_nothing_without_a_guarantee_leaves(round_of: tuple[Network, list[Sent]]) -> None:
    net, found = round_of
    _, terms, release = masked(found)
    gate = ExportGate(net.sites["north"].public_key)
    rows = pa.table({"patient": [1], "age": [40]})
    weights: Any = np.ones(5)
    for what in (rows, weights, {"weights": [0.5]}, b"patient,age\n1,40\n", "rows", release, object()):
        with pytest.raises(Refused, match="does not leave this site"):
            gate.message(what, terms, SumPhase.MASK, release)
        with pytest.raises(Refused):
            gate.vote(what, "0" * 64)
    key = net_key(net)
    for phase in (SumPhase.ADVERTISE, SumPhase.SHARE, SumPhase.AGREE, SumPhase.REVEAL):
        smuggled = sealed(terms, key, phase, {"rows": [[1, 40]]}, b"1,40")
        with pytest.raises(Refused, match="does not leave this site"):
            gate.message(smuggled, terms, phase)
    exact = sealed(terms, key, SumPhase.MASK, {"shares": "0" * 64}, np.array([1], dtype="<u8").tobytes())
    with pytest.raises(Refused, match="does not leave this site"):
        gate.message(exact, terms, SumPhase.MASK, release)
    long = sealed(terms, key, SumPhase.SHARE, {"keys": "0" * 64}, bytes(100_000))
    with pytest.raises(Refused, match="does not leave this site"):
        gate.message(long, terms, SumPhase.SHARE)


def net_key(net: Network) -> SigningKey:
    """The key of the first site, as somebody inside it has it."""
    return net.sites["north"]._notary.key


def test_a_message_or_a_vote_of_another_hand_does_not_leave(round_of: tuple[Network, list[Sent]]) -> None:
    net, found = round_of
    data, terms, _, _ = found[0]
    with pytest.raises(Refused):
        ExportGate(net.sites["south"].public_key).message(data, terms, SumPhase.ADVERTISE)
    vote = SiteVote(joins=True, proposal="0" * 64).signed(SigningKey.new())
    with pytest.raises(Refused, match="not signed by the site"):
        ExportGate(net.sites["south"].public_key).vote(vote, "0" * 64)


def test_what_leaves_is_uniform_numbers_and_the_same_bytes_again(round_of: tuple[Network, list[Sent]]) -> None:
    _, found = round_of
    assert [phase for _, _, phase, _ in found] == list(SumPhase)[:-1]
    _, _, release = masked(found)
    assert not release.columns
    assert "say nothing without those of the other sites" in release.explain()
