"""A site against a coordinator that wants its numbers alone: weaker terms, two lists, foul bytes, votes that tell."""

import contextlib
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.documents import canonical
from sfumato.core.signature import SigningKey
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput, Refused
from sfumato.federated import Hospital, PersonRounding, SiteAgreement, SiteProposal, SumPhase
from sfumato.federated.messages import opened, packed
from sfumato.federated.proposal import SiteVote
from sfumato.federated.server import _listed
from sfumato.federated.site_rounds import SiteRounds
from sfumato.federated.summed import sent
from tests.federated.hospitals import ONCE, SPEND, Network, network, parts_of
from tests.governance.homes import ACCOUNT, PATIENT, furnished, sqlite_home

ROWS = pa.table({"patient_id": [1, 2, 3]})


class Caught:
    """A way to sites on which the first question is caught, and nobody answers."""

    def __init__(self) -> None:
        self.proposal: SiteProposal | None = None

    def ask(self, site: str, request: bytes) -> bytes | None:
        self.proposal = self.proposal or SiteProposal.from_json(parts_of(site, request)[1].decode())
        return None


def caught(table: Any, connect: Callable[[Caught], None]) -> SiteProposal:
    """The proposal that an honest coordinator would send."""
    way = Caught()
    connect(way)
    with pytest.raises(Refused):
        table.count().release(**SPEND)
    assert way.proposal is not None
    return way.proposal


def vote(site: Hospital, proposal: SiteProposal) -> bool:
    answer = site.answer(packed([b"propose", proposal.to_json().encode()]))
    return SiteVote.opened(answer, key=site.public_key, proposal=proposal.digest).joins


@pytest.fixture
def four() -> Network:
    rows = {name: {"patient": [n], "sex": ["F"], "age": [50], "weeks": [1]} for n, name in enumerate("abcd")}
    return network(rows, missing=1, sites_per_person=2)


@pytest.mark.parametrize(
    "weaker", [{"lying": False}, {"missing": 2}, {"sites_per_person": 1}, {"lying": False, "missing": 3}]
)
def test_a_question_with_less_protection_than_was_agreed_is_declined(four: Network, weaker: dict[str, Any]) -> None:
    asked = caught(four.stays, four.consortium.connect)
    site = four.sites["a"]
    assert vote(site, asked)
    assert not vote(site, replace(asked, **weaker))
    assert list(site.declined.values()) == ["declaration"]


def test_colluders_that_were_agreed_are_not_left_out() -> None:
    keys = {name: SigningKey.new().public_text for name in "abcdefg"}
    paper = SiteAgreement(members=keys, sites_per_person=1, missing=1, colluding=1)
    with pytest.raises(Refused, match="what protects them"):
        paper.check(_proposal(tuple(keys.values()), colluding=0))
    paper.check(_proposal(tuple(keys.values()), colluding=2))


def _proposal(sites: tuple[str, ...], *, colluding: int) -> SiteProposal:
    net = network(missing=0)
    return replace(caught(net.stays, net.consortium.connect), sites=sites, missing=0, colluding=colluding)


def test_a_round_of_too_few_sites_is_not_begun(four: Network) -> None:
    asked = caught(four.stays, four.consortium.connect)
    paper = SiteAgreement(
        members={name: site.public_key for name, site in four.sites.items()}, missing=1, sites_per_person=2
    )
    assert paper.least_sites == 3
    with pytest.raises(Refused, match="at least 3"):
        paper.check_roster(asked.sites[:2])
    with pytest.raises(Refused, match="at least 3"):
        paper.check_roster((asked.sites[0], asked.sites[0], asked.sites[1]))


def test_what_a_vote_tells_is_the_same_whoever_was_against() -> None:
    answers = set()
    for net in (network(budget=0.5), network(committees={"north": lambda proposal: False})):
        asked = caught(net.stays, net.consortium.connect)
        said = net.sites["north"].answer(packed([b"propose", asked.to_json().encode()]))
        answers.add(said[64:].replace(asked.digest.encode(), b"digest"))
    assert len(answers) == 1


def test_a_committee_that_fails_has_not_agreed() -> None:
    net = network(committees={"north": lambda proposal: bool(1 / 0)})
    asked = caught(net.stays, net.consortium.connect)
    assert not vote(net.sites["north"], asked)


@pytest.mark.parametrize("field", ["step", "sites_per_person", "number"])
def test_proposals_with_impossible_numbers_are_not_read(four: Network, field: str) -> None:
    asked = caught(four.stays, four.consortium.connect)
    text = canonical(dict(_parsed(asked), **{field: -1})).encode()
    with pytest.raises(InvalidInput):
        SiteProposal.from_json(text.decode())
    for request in (
        packed([b"propose", text]),
        packed([b"propose", b"\xff\xfe"]),
        b"",
        b"\xff" * 9,
        packed([b"x"] * 3),
    ):
        with pytest.raises((InvalidInput, Refused)):
            four.sites["a"].answer(request)
    roster = packed([b"advertise", asked.to_json().encode(), b"\xff"])
    with pytest.raises((InvalidInput, Refused)):
        four.sites["a"].answer(roster)


def _parsed(proposal: SiteProposal) -> dict[str, Any]:
    from sfumato.core.documents import parse

    found = parse(proposal.to_json())
    assert isinstance(found, dict)
    return found


class Round:
    """Four sites with numbers that have been sent, and the two lists that a lying server would have signed."""

    def __init__(self, sites: Sequence[Hospital], asked: SiteProposal) -> None:
        self.roster = tuple(site.public_key for site in sites)
        terms = asked.terms(self.roster)
        self.digest = terms.digest.hex().encode()
        begin = packed([b"advertise", asked.to_json().encode(), *map(str.encode, self.roster)])
        keys = packed([site.answer(begin) for site in sites])
        shares = packed([site.answer(packed([b"share", self.digest, keys])) for site in sites])
        numbers = [site.answer(packed([b"mask", self.digest, shares])) for site in sites]
        found = [opened(terms, SumPhase.MASK, one) for one in numbers]
        self.lists = [
            packed([b"agree", self.digest, canonical(_listed(tuple(part))).encode()]) for part in (found, found[1:])
        ]


@pytest.fixture
def lasting(tmp_path: Path) -> Iterator[tuple[Callable[[], Hospital], list[Hospital], SiteProposal]]:
    """A site with a ledger and a folder, which can be opened anew, three more beside it, and a question to them."""
    home = sqlite_home(tmp_path)
    ledger = furnished(home)
    vault = sf.Vault(unit=PATIENT, ledger=ledger, account=ACCOUNT, population=900)
    table = vault.table(ROWS, name="visits", version="2026-10", limit=ONCE)
    vaults = [sf.Vault(unit=PATIENT, budget=sf.Budget(epsilon=5, delta=1e-6), name=name) for name in "bcd"]
    members = {"a": vault.public_key, **{name: one.public_key for name, one in zip("bcd", vaults, strict=True)}}
    paper = SiteAgreement(members=members, sites_per_person=1, missing=1)
    others = [Hospital(one.table(ROWS, name="visits", version="1", limit=ONCE), agreement=paper) for one in vaults]
    asks = sf.consortium(
        name="net", unit=PATIENT, budget=sf.Budget(epsilon=5, delta=1e-6), sites=members, missing=1, sites_per_person=1
    )
    asked = caught(asks.table(name="visits", limit=ONCE), asks.connect)
    yield lambda: Hospital(table, agreement=paper, folder=tmp_path / "rounds"), others, asked
    ledger.close()


Lasting = tuple[Callable[[], Hospital], list[Hospital], SiteProposal]


def test_a_folder_from_a_backup_signs_no_second_list(lasting: Lasting, tmp_path: Path) -> None:
    reopened, others, asked = lasting
    site = reopened()
    made = Round([*others, site], asked)
    shutil.copytree(tmp_path / "rounds", tmp_path / "backup")
    first = site.answer(made.lists[0])
    site.close()
    shutil.rmtree(tmp_path / "rounds")
    shutil.copytree(tmp_path / "backup", tmp_path / "rounds")
    restored = reopened()
    with pytest.raises(Refused):
        restored.answer(made.lists[1])
    assert restored.answer(made.lists[0]) == first
    restored.close()


def test_without_the_ledger_a_backup_would_sign_it(
    lasting: Lasting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hospital, "_remember_list", lambda self, digest, told: None)
    reopened, others, asked = lasting
    site = reopened()
    made = Round([*others, site], asked)
    shutil.copytree(tmp_path / "rounds", tmp_path / "backup")
    site.answer(made.lists[0])
    site.close()
    shutil.rmtree(tmp_path / "rounds")
    shutil.copytree(tmp_path / "backup", tmp_path / "rounds")
    restored = reopened()
    assert restored.answer(made.lists[1])
    restored.close()


def test_two_processes_do_not_have_one_folder(lasting: Lasting) -> None:
    reopened, _others, _asked = lasting
    site = reopened()
    with pytest.raises(Refused, match="elsewhere"):
        reopened()
    site.close()
    reopened().close()


def test_two_threads_get_one_list_signed(four: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    sites = list(four.sites.values())
    made = Round(sites, caught(four.stays, four.consortium.connect))
    keep, both = SiteRounds.keep, threading.Barrier(2, timeout=1)

    def slowly(self: SiteRounds, digest: str, state: Any) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):  # the other one waits before this, as it should
            both.wait()
        keep(self, digest, state)

    monkeypatch.setattr(SiteRounds, "keep", slowly)
    signed: list[bytes] = []

    def ask(request: bytes) -> None:
        try:
            signed.append(sites[3].answer(request))
        except Refused:
            return

    threads = [threading.Thread(target=ask, args=(one,)) for one in made.lists]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(signed) == 1


def test_at_its_end_a_round_has_no_secrets_left(four: Network) -> None:
    release = four.stays.count().release(**SPEND)
    assert len(release.statement.query.survivors) == 4
    for site in four.sites.values():
        (state,) = site._rounds._known.values()
        assert set(state.site.hidden.mask + state.site.hidden.channel + b"".join(state.site.hidden.seeds)) == {0}
        assert state.site.kept == ()


def test_who_is_replaced_may_change_the_site_and_both_round() -> None:
    net = network()
    of = net.stays.mean("age").query
    add = sent(of, sf.user("patient", relation="add/remove"), ONCE, step=8, sites_per_person=1)
    swap = sf.user("patient", relation="replace")
    assert swap.relation is Relation.REPLACE
    moved, exact = sent(of, swap, ONCE, step=8, sites_per_person=1), of.sensitivity(swap, ONCE)
    assert moved.linf.value == exact.linf.value / 8 + 2
    assert add.linf.value == of.sensitivity(sf.user("patient", relation="add/remove"), ONCE).linf.value / 8 + 1


def test_rows_of_any_length_are_shortened() -> None:
    rule = PersonRounding(dimensions=4, norm=Fraction(1), unit=Fraction(1, 10))
    for row in ([2**32, 0, 0, 0], [2**62, -(2**62), 1, 0], [-(2**63), 0, 0, 0]):
        out = rule.shortened(np.array([row], dtype=np.int64))
        assert int((out * out).sum()) <= rule.l2_squared
