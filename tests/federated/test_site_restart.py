"""A site that is killed between its charge and its answer sends what was stored, and is charged once."""

from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.signature import SigningKey
from sfumato.errors import Refused
from sfumato.federated import Hospital, InProcess, SiteAgreement, SumPhase
from sfumato.federated.messages import packed, unpacked
from sfumato.federated.site_rounds import SiteRound, SiteRounds
from sfumato.governance.ledger import Ledger
from tests.federated.hospitals import ONCE, SPEND, parts_of
from tests.governance.homes import ACCOUNT, PATIENT, Home, furnished, sqlite_home

ROWS = pa.table({"patient_id": [1, 2, 3]})


class Killed(BaseException):
    """What ends a process in the middle."""


def reopened(home: Home, folder: Path, members: dict[str, str]) -> tuple[Ledger, sf.Vault, Hospital]:
    ledger = home.open()
    vault = sf.Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT, population=900)
    table = vault.table(ROWS, name="visits", version="2026-10", limit=ONCE)
    south = {"north": vault.public_key, "south": SigningKey.new().public_text}
    return (
        ledger,
        vault,
        Hospital(table, agreement=SiteAgreement(members=members or south, sites_per_person=1), folder=folder),
    )


class Restarting:
    """Reaches a site that is killed when it has charged, before it wrote down that it answered."""

    def __init__(self, home: Home, folder: Path, members: dict[str, str], south: Hospital) -> None:
        self._home, self._folder, self._members = home, folder, members
        self._south = InProcess([south])
        self.answers: list[bytes] = []
        self.spent: list[sf.Budget] = []

    def ask(self, site: str, request: bytes) -> bytes | None:
        if site != self._members["north"]:
            return self._south.ask(site, request)
        parts = parts_of(site, request)
        if parts[0] == SumPhase.MASK.value.encode():
            self._killed(request)
        ledger, vault, north = reopened(self._home, self._folder, self._members)
        first, second = north.answer(request), north.answer(request)
        assert first == second
        self.answers.append(first)
        self.spent.append(vault.spent)
        if parts[0] == SumPhase.MASK.value.encode():
            self._other_shares(north, parts)
        north.close()
        ledger.close()
        return second

    def _killed(self, request: bytes) -> None:
        keep = SiteRounds.keep

        def until_it_answers(self: SiteRounds, digest: str, state: SiteRound) -> None:
            if len(state.site.sent) > SumPhase.MASK.order:
                raise Killed
            keep(self, digest, state)

        ledger, vault, north = reopened(self._home, self._folder, self._members)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SiteRounds, "keep", until_it_answers)
            with pytest.raises(Killed):
                north.answer(request)
        self.spent.append(vault.spent)
        north.close()
        ledger.close()

    def _other_shares(self, north: Hospital, parts: tuple[bytes, ...]) -> None:
        head, digest, told = parts
        with pytest.raises(Refused, match="answers once"):
            north.answer(packed([head, digest, packed(unpacked(told)[:1])]))


@pytest.mark.long
def test_a_site_that_is_killed_after_its_charge_sends_the_stored_numbers(tmp_path: Path) -> None:
    home, folder = sqlite_home(tmp_path), tmp_path / "rounds"
    furnished(home).close()
    south = sf.Vault(unit=PATIENT, budget=sf.Budget(epsilon=5, delta=1e-6), name="south")
    ledger, vault, first = reopened(home, folder, {})
    first.close()
    members = {"north": vault.public_key, "south": south.public_key}
    ledger.close()
    there = Hospital(
        south.table(ROWS, name="visits", version="1", limit=ONCE),
        agreement=SiteAgreement(members=members, sites_per_person=1),
    )
    transport = Restarting(home, folder, members, there)
    network = sf.consortium(
        name="network",
        unit=PATIENT,
        budget=sf.Budget(epsilon=5, delta=1e-6),
        sites=members,
        sites_per_person=1,
        transport=transport,
    )
    release = network.table(name="visits", limit=ONCE).count().release(**SPEND)
    assert network.verify(release).survivors == (1, 2)
    assert {spent.epsilon for spent in transport.spent[3:]} == {1}
    assert sorted(path.suffix for path in folder.iterdir()) == [".lock", ".round"]
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
    held = next(path for path in folder.iterdir() if path.suffix == ".round").read_bytes()
    assert transport.answers[1] not in held  # what is kept is sealed


def test_foul_shares_are_refused_before_anything_is_charged() -> None:
    from tests.federated.hospitals import network

    net = network()
    ask = InProcess.ask

    def fouled(self: InProcess, site: str, request: bytes) -> bytes | None:
        parts = parts_of(site, request)
        if parts[0] == SumPhase.MASK.value.encode():
            return ask(self, site, packed([*parts[:2], b"foul"]))
        return ask(self, site, request)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(InProcess, "ask", fouled)
        with pytest.raises(Refused, match="0 sites are in the phase 'mask'"):
            net.stays.count().release(**SPEND)
    assert all(vault.spent.epsilon == 0 for vault in net.vaults.values())
    assert net.stays.count().release(**SPEND, fresh=True).statement.query.survivors == (1, 2, 3)
