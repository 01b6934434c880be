"""A site of a consortium: its own table, its own ledger and its own committee; it answers bytes with bytes."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock

import numpy as np

from sfumato.core.budget import Budget
from sfumato.core.interrupts import attempt
from sfumato.core.question import Intended
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, Refused, SfumatoError
from sfumato.federated.agreement import SiteAgreement
from sfumato.federated.export_gate import ExportGate
from sfumato.federated.masks import lane
from sfumato.federated.messages import SumPhase, fingerprint, sealed, unpacked
from sfumato.federated.proposal import SiteProposal, SiteVote
from sfumato.federated.share_store import ShareStore
from sfumato.federated.site import SumSite
from sfumato.federated.site_rounds import SiteRound, SiteRounds
from sfumato.federated.summed import Summable, check_summable
from sfumato.gate.release import ReleaseGate
from sfumato.tables.held_rows import held_rows
from sfumato.tables.table import Table

__all__ = ["PROPOSE", "Committee", "Hospital"]

PROPOSE = "propose"
Committee = Callable[[SiteProposal], bool]


def _everything(proposal: SiteProposal) -> bool:
    del proposal
    return True


class Hospital:
    """One site: a declared table, behind its vault.

    ``agreement`` is what the sites agreed on paper, this one (the ``public_key`` of its vault) among the members: a
    question to others, or with less protection, is declined. ``committee`` sees each question before any key is made
    and says whether the site takes part. In ``folder``, with a vault whose ledger is a file or a service, rounds
    outlive the process; one process at a time has the folder, until :meth:`close`.

    Guarantee: nothing but votes, keys and masked numbers leaves (:class:`~sfumato.federated.export_gate.ExportGate`).
    Before a row is read for a round the site's own ledger is charged for what the sum says about a person who is in
    as many sites as was declared; the same round asked again is answered with the same bytes and charged once. It
    signs one list of survivors a round, and the ledger remembers which: a folder from an older copy signs no other.
    Whoever asks is told that a question was declined and not why; :attr:`declined` tells the site.
    Assumes: what the secure sum assumes of the server and of the other sites.
    """

    def __init__(
        self,
        table: Table,
        *,
        agreement: SiteAgreement,
        committee: Committee = _everything,
        folder: str | Path | None = None,
    ) -> None:
        held = held_rows(table)
        if held is None:
            raise InvalidInput("a site has a table as its vault declared it; nothing was done. Give vault.table(…).")
        self._table, self._store, self._notary = table, held.store, held.notary
        if not isinstance(agreement, SiteAgreement):
            raise InvalidInput("a site says what it agreed to: agreement=federated.SiteAgreement(…). Nothing was done.")
        if self.public_key not in agreement.members.values():
            raise InvalidInput("the members do not name this site's key, vault.public_key; nothing was done.")
        self._agreement, self._declined, self._one_at_a_time = agreement, dict[str, str](), RLock()
        self._committee, self._lasting = committee, folder is not None
        self._rounds = SiteRounds(held.notary.key, None if folder is None else Path(folder))
        self._gate = ReleaseGate(notary=held.notary, stores=(ShareStore(held.store, self._rounds),))
        self._exports = ExportGate(self.public_key)

    @property
    def public_key(self) -> str:
        """The key that this site is known by."""
        return self._notary.key.public_text

    @property
    def declined(self) -> Mapping[str, str]:
        """Which questions this site declined, by their digests, and who was against: for the site's own eyes."""
        return dict(self._declined)

    def close(self) -> None:
        """Leave the folder to another process."""
        self._rounds.close()

    def answer(self, request: bytes) -> bytes:
        """Answer what a coordinator sent; whatever is not a step of a round is refused, whatever is wrong with it."""
        with self._one_at_a_time:
            try:
                return self._answered(self._agreement.request(request, self.public_key))
            except SfumatoError:
                raise
            except (ValueError, ArithmeticError, LookupError, TypeError):
                raise Refused("this is not a step of a round that this site can answer; nothing was sent.") from None

    def _answered(self, request: bytes) -> bytes:
        parts = unpacked(request)
        match parts:
            case (head, proposal) if head == PROPOSE.encode():
                return self._voted(_read(proposal))
            case (head, proposal, *roster) if head == SumPhase.ADVERTISE.value.encode():
                return self._begun(_read(proposal), tuple(one.decode() for one in roster))
            case (head, digest, told):
                return self._stepped(_phase(head), digest.decode(), told)
        raise InvalidInput("this is not a step of a round; nothing was sent.")

    def _voted(self, proposal: SiteProposal) -> bytes:
        why = self._against(proposal)
        if why is not None:
            self._declined[proposal.digest] = why
        vote = SiteVote(joins=why is None, proposal=proposal.digest)
        return self._exports.vote(vote.signed(self._notary.key), proposal.digest)

    def _against(self, proposal: SiteProposal) -> str | None:
        """Who is against taking part: what was declared, the committee, or the ledger. None where nobody is."""
        try:
            of = self._own(proposal)
            share = proposal.share(of, round="", keys="", sites=len(proposal.sites))
        except SfumatoError:
            return "declaration"
        if attempt(lambda: bool(self._committee(proposal))) is not True:
            return "committee"
        try:
            self._gate.check_fits([Intended(query=share, spend=proposal.spend)], reads=None)
        except SfumatoError:
            return "budget"
        return None

    def _own(self, proposal: SiteProposal) -> Summable:
        """The question about this site's table; refused where what is declared here is not what was proposed."""
        of = replace(check_summable(proposal.of), dataset=self._table.dataset)
        self._agreement.check(proposal)
        if proposal.unit != self._notary.unit:
            raise Refused("who is protected is not what this site declared; nothing was sent.")
        self._store.check(of)
        if self._store.limit(of) != proposal.limit:
            raise Refused("what counts of one person is not what this site declared; nothing was sent.")
        self._store.check_fit(of)
        return of

    def _begun(self, proposal: SiteProposal, roster: tuple[str, ...]) -> bytes:
        self._agreement.check_roster(roster)
        terms = proposal.terms(roster)
        digest = terms.digest.hex()
        state = self._rounds.find(digest)
        if state is None:
            if self._against(proposal) is not None:
                raise Refused("this site does not take part in this question; no key was made and nothing was sent.")
            state = SiteRound(proposal=proposal, site=SumSite.begin(terms, self._notary.key))
            self._rounds.keep(digest, state)
        return self._exports.message(state.site.sent[0], terms, SumPhase.ADVERTISE)

    def _stepped(self, phase: SumPhase, digest: str, told: bytes) -> bytes:
        state = self._rounds.open(digest)
        release = None
        match phase:
            case SumPhase.SHARE:
                site, message = state.site.share(told)
            case SumPhase.MASK:
                release = self._charged(digest, told)
                state = self._rounds.open(digest)
                site, message = _with_numbers(state, release)
            case SumPhase.AGREE:
                site, message = state.site.agree(told)
                self._remember_list(digest, told)
            case SumPhase.REVEAL:
                site, message = state.site.reveal(told)
                site = site.forgetful()
            case _:
                raise InvalidInput("this is not a step of a round; nothing was sent.")
        self._rounds.keep(digest, replace(state, site=site))
        return self._exports.message(message, site.terms, phase, release)

    def _remember_list(self, digest: str, told: bytes) -> None:
        """Have the ledger hold the one list that this site signs; refused where it holds another. It costs nothing."""
        if self._lasting:
            self._notary.ledger.reserve(
                Budget.none(),
                datasets=[self._table.dataset],
                idempotency=f"list of survivors in the sum across sites {digest}",
                question=fingerprint(told),
            )

    def _charged(self, digest: str, told: bytes) -> Release:
        """Charge, read, mask and store; the same numbers again for the same shares, and none for others."""
        state = self._rounds.open(digest)
        terms = state.site.terms
        if state.answering and state.answering != told:
            raise Refused("this site has answered other shares in this round, and answers once; nothing was sent.")
        if not state.answering:
            state.site.check_shares(told)  # before the charge
            self._rounds.keep(digest, replace(state, answering=told))
        of, keys = self._own(state.proposal), fingerprint(state.site.sent[0])
        return self._gate.release(
            state.proposal.share(of, round=digest, keys=keys, sites=len(terms.roster)),
            state.proposal.spend,
            fresh=False,
            idempotency=f"share in the sum across sites {digest} {keys}" if self._lasting else None,
            reads=None,
        )


def _with_numbers(state: SiteRound, release: Release) -> tuple[SumSite, bytes]:
    """The site once it has sent the numbers of a release: the bytes follow from the stored numbers alone."""
    site, shared = state.site, state.answering
    if len(site.sent) > SumPhase.MASK.order:
        return site, site.sent[SumPhase.MASK.order]
    payload = np.array(release.values, dtype=lane(site.terms.bits)).tobytes()
    message = sealed(site.terms, site.key, SumPhase.MASK, {"shares": fingerprint(shared)}, payload)
    empty, _ = site.mask(shared, np.zeros(site.terms.length, dtype=np.int64))
    return replace(empty, sent=(*site.sent, message), marked=""), message


def _read(text: bytes) -> SiteProposal:
    return SiteProposal.from_json(text.decode())


def _phase(head: bytes) -> SumPhase:
    for phase in SumPhase:
        if phase.value.encode() == head:
            return phase
    raise InvalidInput("this is not a step of a round; nothing was sent.")
