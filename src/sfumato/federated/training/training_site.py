"""A site that trains with others: its own rows, its own ledger, its own committee; it answers bytes with bytes."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.budget import Budget
from sfumato.core.exact import Exact
from sfumato.core.interrupts import FAILED, attempt
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.errors import InvalidInput, NotDeclared, Refused, SfumatoError
from sfumato.federated.agreement import SiteAgreement
from sfumato.federated.messages import SumPhase, unpacked
from sfumato.federated.proposal import SiteVote
from sfumato.federated.site import SumSite
from sfumato.federated.training.contributions import SiteContributions
from sfumato.federated.training.run_exports import RunExports
from sfumato.federated.training.shared_rounds import SharedRounds
from sfumato.federated.training.site_run import RunRound, SiteRun
from sfumato.federated.training.training_proposal import TrainingProposal
from sfumato.federated.training.written import written
from sfumato.gate.sealed import locked, read_sealed, write_sealed
from sfumato.gate.session import Opened, SessionGate
from sfumato.learning.person_updates import Model, PersonUpdates

if TYPE_CHECKING:
    from sfumato.learning.trainer import Trainer

__all__ = ["PROPOSE_RUN", "READY", "TRAIN", "RunCommittee", "SiteModels", "TrainingSite"]

TRAIN, PROPOSE_RUN, READY = b"train", b"propose", b"ready"
RunCommittee = Callable[[TrainingProposal], bool]
SiteModels = Callable[[TrainingProposal], PersonUpdates]
"""The model of a run, as this site computes with it; refused where the site has none. Reads nothing."""


def _everything(proposal: TrainingProposal) -> bool:
    del proposal
    return True


class TrainingSite:
    """One site that takes part in training runs; made by ``vault.training_site``.

    ``committee`` sees each run, with its model, its noise and its whole privacy loss, before any key is made, and says
    whether the site takes part; :meth:`leave` takes it out of a run that has begun. In ``folder``, with a vault whose
    ledger is a file or a service, runs outlive the process.

    Guarantee: nothing but votes, keys and masked numbers leaves. Before a row is read the site's own ledger is charged
    for the whole run, once; numbers leave at most once for each round that was charged for, and asked again the site
    sends the bytes that it wrote down. Who is in a round is drawn here, by the operating system's generator, and told
    to nobody, nor is how many. Assumes: what the secure sum assumes of the server and the other sites; that the model
    and the loss, which are this site's own code, compute the loss of a unit from that unit alone.
    """

    def __init__(
        self,
        gate: SessionGate,
        models: SiteModels,
        dataset: Dataset,
        *,
        agreement: SiteAgreement,
        committee: RunCommittee | None = None,
        folder: str | Path | None = None,
        heads: "Callable[[Model, str, Exact], Trainer] | None" = None,
    ) -> None:
        if not isinstance(agreement, SiteAgreement):
            raise InvalidInput("a site says what it agreed to: agreement=federated.SiteAgreement(…). Nothing was done.")
        self._gate, self._models, self._dataset, self._heads = gate, models, dataset, heads
        self._key, self._agreement, self._committee = gate.notary.key, agreement, committee or _everything
        if self.public_key not in agreement.members.values():
            raise InvalidInput("the members do not name this site's key, vault.public_key; nothing was done.")
        self._exports, self._one_at_a_time = RunExports(self.public_key, gate), RLock()
        self._folder, self._held = None if folder is None else Path(folder), contextlib.ExitStack()
        if self._folder is not None:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._held.enter_context(locked(self._folder / "training", what="site"))
        self._proposals, self._declined, self._left = dict[str, TrainingProposal](), dict[str, str](), set[str]()
        self._begun, self._runs = dict[str, RunRound](), dict[str, SiteRun]()
        self._people = dict[str, SiteContributions]()

    @property
    def public_key(self) -> str:
        """The key that this site is known by."""
        return self._key.public_text

    @property
    def declined(self) -> Mapping[str, str]:
        """Which runs this site declined, by their digests, and who was against: for the site's own eyes."""
        return dict(self._declined)

    @property
    def runs(self) -> Mapping[str, int]:
        """The runs that were charged here since the site was opened, and the last round that numbers left for."""
        return {digest: run.last for digest, run in self._runs.items()}

    def leave(self, run: str) -> None:
        """Take no part in a run any more, from the next step on; what was charged stays charged."""
        self._left.add(run)
        if self._folder is not None:
            written(self._path(run, "left"), b"")

    def head_trainer(self, model: Model, head: str, *, clip: Exact = 1) -> "Trainer":
        """A trainer for a head of this site's own on a model that was trained with others; the body stays as it is.

        ``head`` names the layers that are fitted, by the beginning of their names. ``fit`` of what is returned charges
        this vault. A head is fitted after the run and is in no message: one that learned from raw rows during the run
        would make what every person sends depend on all others, and no bound on one person would hold.
        """
        if self._heads is None:
            raise NotDeclared("heads are fitted by a site that its vault made: vault.training_site(…).")
        return self._heads(model, head, clip)

    def close(self) -> None:
        """Leave the folder to another process."""
        for run in self._runs.values():
            run.forget()
        self._held.close()

    def answer(self, request: bytes) -> bytes:
        """Answer what a coordinator sent; whatever is not a step of a run is refused, whatever is wrong with it."""
        with self._one_at_a_time:
            try:
                return self._answered(self._agreement.request(request, self.public_key))
            except SfumatoError:
                raise
            except (ValueError, ArithmeticError, LookupError, TypeError):
                raise Refused("this is not a step of a run that this site can answer; nothing was sent.") from None

    def _answered(self, request: bytes) -> bytes:
        match unpacked(request):
            case (head, verb, text) if head == TRAIN and verb == PROPOSE_RUN:
                return self._voted(TrainingProposal.from_json(text.decode()))
            case (head, verb, digest, _) if head == TRAIN and verb == READY:
                return self._vote(digest.decode(), joins=self._takes_part(digest.decode()))
            case (head, verb, digest, number, weights, *roster) if (
                head == TRAIN and verb == SumPhase.ADVERTISE.value.encode()
            ):
                return self._advertised(digest.decode(), int(number), weights, tuple(one.decode() for one in roster))
            case (head, verb, digest, number, told) if head == TRAIN:
                return self._stepped(_phase(verb), digest.decode(), int(number), told)
        raise InvalidInput("this is not a step of a training run; nothing was sent.")

    def _voted(self, proposal: TrainingProposal) -> bytes:
        digest = proposal.digest
        why = None if self._takes_part(digest) else self._against(proposal)
        if why is None:
            self._proposals[digest] = proposal
            if self._folder is not None:
                written(self._path(digest, "proposal"), proposal.to_json().encode())
        else:
            self._declined[digest] = why
        return self._vote(digest, joins=why is None)

    def _vote(self, digest: str, *, joins: bool) -> bytes:
        return self._exports.vote(SiteVote(joins=joins, proposal=digest).signed(self._key), digest)

    def _takes_part(self, digest: str) -> bool:
        return self._find_proposal(digest) is not None and not self._has_left(digest) and self._may_go_on(digest)

    def _may_go_on(self, digest: str) -> bool:
        """Whether what was charged may still be read: a veto in the ledger takes the site out before keys are made."""
        try:
            self._current(digest)
            if digest in self._runs:
                self._runs[digest].check()
        except SfumatoError:
            return False
        return not self._gate.notary.ledger.closed(self._dataset)

    def _has_left(self, digest: str) -> bool:
        return digest in self._left or (self._folder is not None and self._path(digest, "left").exists())

    def _against(self, proposal: TrainingProposal) -> str | None:
        """Who is against taking part: what was declared, the committee, or the ledger. None where nobody is."""
        if self._has_left(proposal.digest):
            return "committee"
        try:
            self._check_own(proposal)
            price = self._gate.price(proposal.query(self._dataset), *self._terms_of(proposal))
        except SfumatoError:
            return "declaration"
        if attempt(lambda: bool(self._committee(proposal))) is not True:
            return "committee"
        if self._gate.notary.ledger.closed(self._dataset):
            return "closed"
        try:
            self._gate.notary.ledger.check_fits([(price.charge, price.event)], datasets=[self._dataset])
        except SfumatoError:
            return "budget"
        return None

    def _terms_of(self, proposal: TrainingProposal) -> tuple[SharedRounds, Limit | None, Budget]:
        query = proposal.query(self._dataset)
        return proposal.mechanism, query.limit(self._gate.unit), proposal.spend

    def _check_own(self, proposal: TrainingProposal) -> None:
        """Refuse a run about another model, other units, or with less protection than was agreed."""
        self._agreement.check(proposal)
        training, updates = proposal.training, self._models(proposal)
        if proposal.unit != self._gate.unit:
            raise Refused("who is protected is not what this site declared; nothing was sent.")
        if (training.model, training.parameters) != (updates.form, updates.parameters):
            raise Refused("the model is not the one that this site was given; nothing was sent.")
        if (training.units, training.records) != (updates.units, updates.records):
            raise Refused("what counts of one person is not what this site declared; nothing was sent.")

    def _find_proposal(self, digest: str) -> TrainingProposal | None:
        if digest not in self._proposals and self._folder is not None:
            path = self._path(digest, "proposal")
            if path.exists():
                found = TrainingProposal.from_json(path.read_text())
                if found.digest == digest:
                    self._proposals[digest] = found
        return self._proposals.get(digest)

    def _open_proposal(self, digest: str) -> TrainingProposal:
        found = self._find_proposal(digest)
        if found is None or self._has_left(digest):
            raise Refused("this site takes no part in this run; no key was made and nothing was sent.")
        return found

    def _advertised(self, digest: str, number: int, weights: bytes, roster: tuple[str, ...]) -> bytes:
        proposal = self._open_proposal(digest)
        self._agreement.check_roster(roster)
        terms = proposal.terms(number, roster)
        self._people_of(proposal).check_weights(weights)
        current = self._current(digest)
        if current is None or current.site.terms.digest != terms.digest:
            if current is not None and current.has_sent_numbers and number <= current.number:
                raise Refused("this site has sent its numbers of this round, and sends them once; nothing was sent.")
            current = RunRound(number=number, weights=weights, site=SumSite.begin(terms, self._key))
            self._keep(digest, current)
        elif current.weights != weights:
            raise Refused("this site has begun this round with other weights; nothing was sent.")
        return self._exports.message(current.site.sent[0], terms, SumPhase.ADVERTISE)

    def _stepped(self, phase: SumPhase, digest: str, number: int, told: bytes) -> bytes:
        proposal, current = self._open_proposal(digest), self._current(digest)
        if current is None or current.number != number:
            raise Refused("this site is in no such round of the run; nothing was sent.")
        numbers = None
        match phase:
            case SumPhase.SHARE:
                site, message = current.site.share(told)
            case SumPhase.MASK if current.has_sent_numbers:
                site, message = current.site.mask(told, np.zeros(current.site.terms.length, dtype=np.int64))
                numbers = self._runs[digest].numbers(current)
            case SumPhase.MASK:
                return self._masked(proposal, digest, current, told)
            case SumPhase.AGREE:
                site, message = current.site.agree(told)
            case SumPhase.REVEAL:
                site, message = current.site.reveal(told)
                site = site.forgetful()
            case _:
                raise InvalidInput("this is not a step of a round; nothing was sent.")
        if site is not current.site:
            self._keep(digest, replace(current, site=site))
        return self._exports.message(message, site.terms, phase, numbers)

    def _masked(self, proposal: TrainingProposal, digest: str, current: RunRound, told: bytes) -> bytes:
        """Charge the run if this is its first round; then read, add up, mask, write down and send."""
        terms, people = current.site.terms, self._people_of(proposal)
        people.check_ready()
        current.site.check_shares(told)  # before anything is read
        if digest not in self._runs:
            self._charge(proposal, digest)
        run = self._runs[digest]
        found = attempt(lambda: people.numbers(current, run.last, run.sums))
        if found is FAILED:
            run.fail()
            raise Refused("this site ended its part in the run; the charge is kept and nothing was sent.")
        values, sums = found
        site, message = current.site.mask(told, values)
        numbers = run.send(replace(current, site=site), sums)
        return self._exports.message(message, terms, SumPhase.MASK, numbers)

    def _charge(self, proposal: TrainingProposal, digest: str) -> None:
        """Charge the whole run, or find its charge after a restart."""
        query = proposal.query(self._dataset)
        key = None if self._folder is None else f"training run across sites {digest}"
        opened = self._gate.open(query, *self._terms_of(proposal), idempotency=key)
        self._runs[digest] = self._made(proposal, digest, opened).start()

    def _made(self, proposal: TrainingProposal, digest: str, opened: Opened) -> SiteRun:
        path = None if self._folder is None else self._path(digest, "run")
        return SiteRun(self._gate, opened, self._key, path, rounds=proposal.training.rounds)

    def _current(self, digest: str) -> RunRound | None:
        if digest not in self._runs and self._folder is not None and self._path(digest, "run").exists():
            proposal = self._open_proposal(digest)
            opened = self._gate.find(
                proposal.query(self._dataset),
                *self._terms_of(proposal),
                idempotency=f"training run across sites {digest}",
                charge=None,
            )
            self._runs[digest] = self._made(proposal, digest, opened).resume()
        charged = self._runs[digest].round if digest in self._runs else None
        return charged or self._uncharged(digest)

    def _uncharged(self, digest: str) -> RunRound | None:
        """The round whose keys were made before anything was charged or read."""
        if digest not in self._begun and self._folder is not None and self._path(digest, "begun").exists():
            _, _, body = read_sealed(self._path(digest, "begun"), self._gate.secret("begun"), what=SiteRun.WHAT)
            self._begun[digest] = RunRound.from_bytes(body, self._key)
        return self._begun.get(digest)

    def _keep(self, digest: str, current: RunRound) -> None:
        if digest in self._runs:
            self._runs[digest].keep(current)
            return
        if self._folder is not None:
            path, secret = self._path(digest, "begun"), self._gate.secret("begun")
            write_sealed(path, secret, {"run": digest}, {}, current.to_bytes(), SiteRun.WHAT)
        self._begun[digest] = current

    def _people_of(self, proposal: TrainingProposal) -> SiteContributions:
        digest = proposal.digest
        if digest not in self._people:
            secret = self._gate.secret(f"rows of {self._dataset.name}")
            turns = self._gate.secret(f"turns of run {digest}")
            self._people[digest] = SiteContributions(
                updates=self._models(proposal), proposal=proposal, rows_key=secret, turns_key=turns
            )
        return self._people[digest]

    def _path(self, digest: str, what: str) -> Path:
        if self._folder is None or len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise InvalidInput("the digest of a run has 64 hexadecimal digits; nothing was sent.")
        return self._folder / f"{digest}.{what}"


def _phase(head: bytes) -> SumPhase:
    for phase in SumPhase:
        if phase.value.encode() == head:
            return phase
    raise InvalidInput("this is not a step of a round; nothing was sent.")
