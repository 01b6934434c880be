"""Papers for the board: written from the record as it stands, and entered again once they are signed."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from sfumato.core.budget import Budget
from sfumato.core.signature import SigningKey
from sfumato.errors import Refused
from sfumato.governance.ballots import UNSET, Ballot, Matter
from sfumato.governance.board import Action, Choice, Proposal, Reasons, Veto
from sfumato.governance.decision_state import DecisionState
from sfumato.governance.entries import Acted
from sfumato.governance.ledger_state import asked_for, dataset_line, touched
from sfumato.governance.terms import after

if TYPE_CHECKING:
    from sfumato.governance.minutes import Minutes
    from sfumato.governance.transaction import Transaction

__all__ = ["LASTS", "Desk"]

LASTS = timedelta(days=14)
"""How long a proposal waits for its decision, and a ballot for being handed in."""


@dataclass(frozen=True, slots=True)
class Desk:
    """Where papers are written and taken back: the record in one transaction, and the time that an entry would bear."""

    transaction: "Transaction"
    at: str

    @property
    def decisions(self) -> DecisionState:
        """What was decided so far."""
        return self.transaction.decision_state()

    @property
    def minutes(self) -> "Minutes":
        """The minutes of the board, which must have been seated."""
        return self.decisions.sitting()

    def vote(self, number: int) -> Ballot:
        """A paper to vote on a request, which can be handed in as long as the request is open."""
        asked = self.minutes.at(self.at).undecided(number, "The vote was not counted.")
        return self._paper(Matter.VOTE, expires=asked.expires, proposal=asked)

    def withdrawal(self, number: int) -> Ballot:
        """A paper to take a request back."""
        asked = self.minutes.at(self.at).undecided(number, "It was not withdrawn.")
        return self._paper(Matter.WITHDRAW, expires=asked.expires, proposal=asked)

    def veto(self, community: str, dataset: str) -> Ballot:
        """A paper to veto a dataset: it never expires."""
        self.minutes.board.community(community)
        return self._paper(Matter.VETO, expires=None, community=community, dataset=dataset)

    def lift(self, community: str, dataset: str) -> Ballot:
        """A paper to lift the veto that stands now, and no other."""
        number, stands = self.decisions.vetoed.get((community, dataset)), self._standing(community, dataset)
        if number is None or stands is None:
            raise Refused(f"no veto of {community!r} over {dataset!r} stands; nothing was entered.")
        ends = after(self.at, LASTS)
        return self._paper(Matter.LIFT, expires=ends, community=community, dataset=dataset, veto=number, vetoed=stands)

    def request(
        self,
        *,
        by: str,
        action: Action,
        subject: str,
        reasons: Reasons,
        account: str | None,
        datasets: Sequence[str],
        sites: Sequence[str],
        amount: Budget | None,
        lasts: timedelta,
    ) -> Ballot:
        """A paper to ask the board, with all datasets and sites that the request concerns."""
        decisions = self.decisions
        self.minutes.board.key_of(by)
        if account is not None:
            asked_for(self.transaction, account)
        for dataset in datasets if action is Action.DATASET else ():
            asked_for(self.transaction, dataset_line(dataset))  # people and cap are fixed before anybody votes
        named = (*datasets, *sorted(touched(self.transaction, account) - set(datasets)))
        where = {site for dataset in named for site in decisions.sites_of(dataset)}
        ends = after(self.at, lasts)
        asked = Proposal(
            number=1,
            at=UNSET,
            expires=ends,
            proposer=by,
            action=action,
            account=account,
            datasets=named,
            sites=(*sites, *sorted(where - set(sites))),
            amount=amount,
            subject=subject,
            reasons=reasons,
        )
        return self._paper(Matter.REQUEST, expires=ends, proposal=asked)

    def signed(self, paper: Ballot, by: str, key: SigningKey | None, choice: Choice | None, reason: str) -> Ballot:
        """A paper signed at once, by somebody who is at the ledger with a key."""
        known = self.minutes.board.key_of(by)
        if key is None or key.public_text != known:
            raise Refused(
                f"{by!r} acts by signature, with the key whose public half is {known}. Nothing was entered. "
                + ("Give your key: key=…, or --key FILE" if key is None else "Give your own key.")
            )
        return paper.signed(key, choice=choice, reason=reason)

    def entered(self, ballot: Ballot) -> Acted:
        """The entry of a signed ballot. What is not exactly what the record says is refused here or on entering it."""
        decisions, minutes = self.decisions, self.minutes
        if ballot.signature is None:
            raise Refused("this paper is not signed; nothing was entered. Sign it: sfumato ballot sign")
        act, bound = ballot.act(self.at, len(minutes.proposals) + 1), ballot.bound()
        decisions.check_new(act, bound)
        if (ballot.ledger, ballot.board) == (decisions.ledger, decisions.board_entry):
            self._check_paper(ballot)
        return Acted(at=self.at, act=act, signature=ballot.signature, bound=bound)

    def _check_paper(self, ballot: Ballot) -> None:
        """Refuse a paper whose context, which no signature covers by itself, is not that of the record."""
        row = self.transaction.row(ballot.head)
        if row is None or row.digest != ballot.digest:
            raise Refused(
                f"this ballot was written for a record with another entry {ballot.head}: that of a copy that went its "
                "own way, or one that was lost. It was not entered. Ask for a new paper: sfumato ballot write"
            )
        asked = None if ballot.matter is Matter.REQUEST else ballot.proposal
        stands = None
        if ballot.matter is Matter.LIFT:
            stands = self._standing(str(ballot.community), str(ballot.dataset))
        if (
            ballot.keys != self.minutes.board.keys
            or (asked is not None and asked != self.minutes.proposal(asked.number))
            or (ballot.vetoed is not None and ballot.vetoed != stands)
        ):
            raise Refused(
                "this ballot does not show what the record holds: it was altered, or what it is about has changed. "
                "It was not entered. Ask for a new paper: sfumato ballot write"
            )

    def _standing(self, community: str, dataset: str) -> Veto | None:
        return next((veto for veto in self.minutes.vetoes(dataset) if veto.community == community), None)

    def _paper(
        self,
        matter: Matter,
        *,
        expires: str | None,
        proposal: Proposal | None = None,
        community: str | None = None,
        dataset: str | None = None,
        veto: int | None = None,
        vetoed: Veto | None = None,
    ) -> Ballot:
        end, decisions = self.transaction.end(), self.decisions
        return Ballot(
            matter=matter,
            ledger=decisions.ledger,
            board=decisions.board_entry,
            head=end.number,
            digest=end.digest,
            expires=expires,
            nonce=secrets.token_hex(16),
            keys=self.minutes.board.keys,
            proposal=proposal,
            community=community,
            dataset=dataset,
            veto=veto,
            vetoed=vetoed,
        )
