"""A coordinator signs what it asks, and goes on after a kill: the same round, one charge, one transcript."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, Refused
from sfumato.federated import Consortium, InProcess, SiteAgreement, SumPhase
from sfumato.federated.coordinator_rounds import CoordinatorRounds
from sfumato.federated.messages import packed
from sfumato.federated.signed_requests import opened_request, signed_request
from sfumato.federated.site_rounds import SiteRounds
from sfumato.governance.ledger import Ledger
from tests.federated.hospitals import FACTS, SPEND, UNIT, Network, network, parts_of, without_noise

PHASES = [phase.value for phase in list(SumPhase)[:-1]]


class Killed(BaseException):
    """What ends a process in the middle."""


class Killing:
    """Reaches sites until a phase comes to one of them; there the coordinator is killed."""

    def __init__(self, inner: InProcess, phase: str | None) -> None:
        self._inner, self._phase = inner, phase

    def ask_all(self, requests: Mapping[str, bytes]) -> Mapping[str, bytes | None]:
        answers = {}
        for site, request in requests.items():
            answers[site] = self._inner.ask(site, request)
            if self._phase is not None and parts_of(site, request)[0] == self._phase.encode():
                raise Killed  # one site has answered, and nobody has written down what
        return answers

    def ask(self, site: str, request: bytes) -> bytes | None:
        return self._inner.ask(site, request)


def begun(net: Network, folder: Path, phase: str | None = None) -> tuple[Ledger, Consortium, Any]:
    """The coordinator of hospitals, with a ledger and a folder that last."""
    first = not (folder / "ledger.db").exists()
    folder.mkdir(exist_ok=True)
    url, key, anchor = folder / "ledger.db", folder / "ledger.key", folder / "anchor"
    if first:
        SigningKey.new().save(key)
        ledger = Ledger.create(str(url), key=key, anchor=anchor)
        cap = sf.Budget(epsilon=9, delta=1e-6)
        ledger.open_account("network", unit=UNIT, cap=cap, reason="test")
        ledger.declare_population("patients", unit=UNIT, cap=cap, reason="test")
        ledger.declare_dataset(Dataset(name="stays", edition="1"), population="patients", cap=cap)
    else:
        ledger = Ledger.open(str(url), key=key, anchor=anchor)
    vault = sf.Vault(unit=UNIT, ledger=ledger, account="network", population=900)
    members = {name: site.public_key for name, site in net.sites.items()}
    way = Killing(InProcess(list(net.sites.values())), phase)
    network = vault.consortium(sites=members, missing=1, sites_per_person=1, transport=way, folder=folder / "rounds")
    return ledger, network, (vault, network.table(name="stays", whole=["weeks"], **FACTS))


@pytest.mark.parametrize("phase", ["mask", pytest.param("reveal", marks=pytest.mark.long), "agree"])
def test_a_coordinator_that_is_killed_in_a_round_goes_on_with_it(
    phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_noise(monkeypatch)
    net = network()
    ledger, consortium, (_, stays) = begun(net, tmp_path / "home", phase)
    with pytest.raises(Killed):
        stays.group_by("sex").count().release(**SPEND)
    consortium.close()
    ledger.close()
    ledger, consortium, (vault, stays) = begun(net, tmp_path / "home")
    release = stays.group_by("sex").count().release(**SPEND)
    assert release.values == (5, 4)
    assert vault.spent.epsilon == 1
    assert {site.spent.epsilon for site in net.vaults.values()} == {1}
    assert consortium.votes == dict.fromkeys(net.sites, "joins")
    consortium.close()
    ledger.close()
    ledger, consortium, (vault, stays) = begun(net, tmp_path / "home")
    again = stays.group_by("sex").count().release(**SPEND)
    assert (again.repeated, consortium.verify(again).survivors) == (True, (1, 2, 3))
    assert sorted(path.suffix for path in (tmp_path / "home" / "rounds").iterdir()) == [".lock", ".transcript"]
    consortium.close()
    ledger.close()


def test_files_of_a_round_are_sealed_and_belong_to_their_round(tmp_path: Path) -> None:
    key, folder = SigningKey.new(), tmp_path / "rounds"
    rounds = CoordinatorRounds(key, folder)
    with pytest.raises(Refused, match="running elsewhere"):
        CoordinatorRounds(key, folder)
    one, two = rounds.store(b"one"), rounds.store(b"two")
    assert rounds.transcript(one) == b"one"
    (folder / f"{one}.transcript").write_bytes((folder / f"{two}.transcript").read_bytes())
    with pytest.raises(InvalidInput, match="named after"):
        rounds.transcript(one)
    changed = bytearray((folder / f"{two}.transcript").read_bytes())
    changed[-1] ^= 1
    (folder / f"{two}.transcript").write_bytes(bytes(changed))
    with pytest.raises(Refused, match="sealed with the key"):
        rounds.transcript(two)
    for foul in ("", "../secret", two[:-1], "0" * 64):
        with pytest.raises(InvalidInput, match="no transcript"):
            rounds.transcript(foul)
    rounds.close()


def test_a_round_of_a_site_is_not_read_under_another_name(tmp_path: Path) -> None:
    key = SigningKey.new()
    rounds = SiteRounds(key, tmp_path)
    for name in ("a" * 64, "b" * 64):
        (tmp_path / f"{name}.round").write_bytes(b"not sealed")
        with pytest.raises(Refused, match="not a state of a round"):
            rounds.find(name)
    rounds.close()


def test_a_site_that_knows_its_coordinator_answers_nobody_else() -> None:
    net = network()
    coordinator, stranger, site = SigningKey.new(), SigningKey.new(), net.sites["north"]
    paper = SiteAgreement(
        members={name: one.public_key for name, one in net.sites.items()},
        sites_per_person=1,
        missing=1,
        coordinator=coordinator.public_text,
    )
    request = packed([b"propose", b"{}"])
    assert paper.request(signed_request(coordinator, site.public_key, request), site.public_key) == request
    for foul, why in (
        (request, "not signed"),
        (signed_request(stranger, site.public_key, request), "not signed"),
        (signed_request(coordinator, net.sites["west"].public_key, request), "another site"),
        (signed_request(coordinator, site.public_key, request) + b"x", "not signed"),
        (signed_request(coordinator, site.public_key, request)[:40], "another site|not signed"),
    ):
        with pytest.raises(Refused, match=why):
            paper.request(foul, site.public_key)
    with pytest.raises(Refused, match="another site"):
        opened_request(signed_request(stranger, site.public_key, b""), site=stranger.public_text, coordinator="")
    with pytest.raises(InvalidInput, match="public key"):
        SiteAgreement(members=paper.members, sites_per_person=1, missing=1, coordinator="nobody")
