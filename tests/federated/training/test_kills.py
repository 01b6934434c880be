"""Runs that are killed: sites and coordinator go on where they stopped, charge once, and send the same bytes."""

from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato.errors import Refused
from sfumato.federated import InProcess, SiteAgreement, TrainingSite
from sfumato.federated.messages import SumPhase, unpacked
from sfumato.federated.training.run_rounds import RunRounds
from sfumato.federated.training.site_run import SiteRun
from sfumato.governance.ledger import Ledger
from sfumato.learning import Units
from tests.federated.training.networks import SPEND, loss, model, plain, rows, training_network
from tests.governance.homes import ACCOUNT, PATIENT, Home, furnished, sqlite_home


class Killed(BaseException):
    """What ends a process in the middle."""


def test_a_coordinator_that_is_killed_in_any_phase_goes_on_with_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, sent = training_network(), dict[tuple[str, bytes], set[bytes]]()
    ask, collected = InProcess.ask, RunRounds._collected

    def remembered(self: InProcess, site: str, request: bytes) -> bytes | None:
        answer = ask(self, site, request)
        if answer is not None:
            sent.setdefault((site, request), set()).add(answer)
        return answer

    died = set[tuple[int, SumPhase]]()

    def dies(self: RunRounds, server: Any, phase: SumPhase, told: bytes, weights: bytes) -> Any:
        found = collected(self, server, phase, told, weights) if phase.order % 2 else None
        if (server.terms.number, phase) not in died:  # once in each phase, before or after it was written down
            died.add((server.terms.number, phase))
            raise Killed
        return found or collected(self, server, phase, told, weights)

    monkeypatch.setattr(InProcess, "ask", remembered)
    monkeypatch.setattr(RunRounds, "_collected", dies)
    trainer, kills = network.trainer(), 0
    while True:
        try:
            trained = trainer.fit(**SPEND, rounds=2, lr=1.0, folder=tmp_path)
            break
        except Killed:
            kills += 1
    assert kills == 10
    assert trained.rounds == 2
    assert [vault.spent.epsilon for vault in network.vaults.values()] == [3, 3, 3]
    assert {len(answers) for answers in sent.values()} == {1}
    again = trainer.fit(**SPEND, rounds=2, lr=1.0, folder=tmp_path)
    assert again.release.certificate == trained.release.certificate
    assert network.consortium._notary.ledger.spent.epsilon == 3
    with pytest.raises(Refused, match="other settings"):
        trainer.fit(epsilon=2, delta=1e-7, rounds=2, lr=1.0, folder=tmp_path)


def reopened(home: Home, folder: Path, members: dict[str, str]) -> tuple[Ledger, sf.Vault, TrainingSite]:
    ledger = home.open()
    vault = sf.Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT, population=900)
    inputs, targets = rows(30, 0)
    data = Units(
        inputs, targets, ids=list(range(30)), max_records_per_unit=1, n_units=30, name="visits", version="2026-10"
    )
    paper = SiteAgreement(members=members or {"north": vault.public_key, **OTHERS}, sites_per_person=1)
    site = vault.training_site(model(), loss, data=data, agreement=paper, folder=folder)
    return ledger, vault, site


OTHERS = {"south": sf.Vault(unit=PATIENT, budget=sf.Budget(epsilon=1), name="nobody").public_key}


class KilledSites:
    """Reaches a site that is opened anew for each request, after one that died before it wrote its answer down."""

    def __init__(self, home: Home, folder: Path, members: dict[str, str], south: TrainingSite) -> None:
        self._home, self._folder, self._members = home, folder, members
        self._south = InProcess([south])
        self.spent: list[sf.Budget] = []

    def ask(self, site: str, request: bytes) -> bytes | None:
        if site != self._members["north"]:
            return self._south.ask(site, request)
        verb = unpacked(plain(request))[1]
        if verb in (b"agree", b"reveal"):
            self._killed(request)
        ledger, vault, north = reopened(self._home, self._folder, self._members)
        try:
            first = north.answer(request)
            assert north.answer(request) == first
            if verb == b"mask":
                self.spent.append(vault.spent)
            return first
        except Refused:
            return None
        finally:
            north.close()
            ledger.close()

    def _killed(self, request: bytes) -> None:
        def dies(*given: object) -> None:
            raise Killed

        ledger, _, north = reopened(self._home, self._folder, self._members)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SiteRun, "keep", dies)
            with pytest.raises(Killed):
                north.answer(request)
        north.close()
        ledger.close()


@pytest.mark.long
def test_a_site_that_is_killed_again_and_again_is_charged_once_and_sends_what_it_wrote_down(tmp_path: Path) -> None:
    home, folder = sqlite_home(tmp_path), tmp_path / "runs"
    furnished(home).close()
    south = sf.Vault(unit=PATIENT, budget=sf.Budget(epsilon=5, delta=1e-6), name="south")
    ledger, vault, first = reopened(home, folder, {})
    members = {"north": vault.public_key, "south": south.public_key}
    first.close()
    ledger.close()
    inputs, targets = rows(30, 1)
    there = south.training_site(
        model(),
        loss,
        data=Units(inputs, targets, ids=list(range(30)), max_records_per_unit=1, n_units=30, name="v", version="1"),
        agreement=SiteAgreement(members=members, sites_per_person=1),
    )
    transport = KilledSites(home, folder, members, there)
    network = sf.consortium(
        name="network",
        unit=PATIENT,
        budget=sf.Budget(epsilon=5, delta=1e-6),
        sites=members,
        sites_per_person=1,
        transport=transport,
    )
    trained = network.trainer(model(), n_units=60, name="visits").fit(epsilon=1, delta=1e-7, rounds=3, lr=1.0)
    assert trained.rounds == 3
    assert {spent.epsilon for spent in transport.spent} == {1}
    assert all(path.stat().st_mode & 0o077 == 0 for path in folder.iterdir())
