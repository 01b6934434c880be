"""The one way out of a site: votes, keys and shares of secrets, and numbers that were charged and masked."""

import numpy as np

from sfumato.core.release import Release
from sfumato.errors import Refused, SfumatoError
from sfumato.federated import masks, shamir
from sfumato.federated.masks import lane
from sfumato.federated.messages import SumMessage, SumPhase, opened
from sfumato.federated.proposal import SiteVote
from sfumato.federated.summed import SiteShare
from sfumato.federated.terms import RoundTerms
from sfumato.federated.views import share_count
from sfumato.reports.declarations import DECLARATIONS
from sfumato.reports.verify import parsed, verify

__all__ = ["ExportGate"]

BODIES = {
    SumPhase.ADVERTISE: frozenset({"channel", "mask", "seeds"}),
    SumPhase.SHARE: frozenset({"keys"}),
    SumPhase.MASK: frozenset({"shares"}),
    SumPhase.AGREE: frozenset({"keys", "shares", "survivors"}),
    SumPhase.REVEAL: frozenset({"list"}),
}


class ExportGate:
    """Lets out what a site may send, and nothing else.

    Guarantee: bytes leave that are a vote of this site, or a message of a secure sum that this site signed in the form
    of its phase. Numbers leave only as those of a release that this site charged and signed for the round, exactly as
    they were stored. Tables, figures, models and messages of other makers are refused.
    """

    def __init__(self, key: str) -> None:
        self._key = key

    def vote(self, data: object, proposal: str) -> bytes:
        """Let a vote on a question out."""
        if type(data) is not bytes:
            raise _blocked(data)
        SiteVote.opened(data, key=self._key, proposal=proposal)
        return data

    def message(self, data: object, terms: RoundTerms, phase: SumPhase, release: object = None) -> bytes:
        """Let a message of a round out; one with numbers needs the ``release`` that was charged for them."""
        if type(data) is not bytes:
            raise _blocked(data)
        try:
            found = opened(terms, phase, data)
        except SfumatoError:
            raise _blocked(data) from None
        body = found.body
        if terms.roster[found.sender - 1] != self._key or not isinstance(body, dict) or set(body) != BODIES[phase]:
            raise _blocked(data)
        if phase is SumPhase.MASK:
            self._check_charged(found, terms, release)
        elif len(found.payload) > _most(terms, phase):
            raise _blocked(data)
        return data

    def _check_charged(self, found: SumMessage, terms: RoundTerms, release: object) -> None:
        """Refuse numbers that are not those of a release of this site for this round."""
        if type(release) is not Release:
            raise _blocked(release)
        document = parsed(release.certificate.text)
        if not verify(document, key=self._key).authenticated:
            raise _blocked(release)
        said = DECLARATIONS.decode(document["statement"], "statement")
        if type(said.query) is not SiteShare or said.query.round != terms.digest.hex():
            raise _blocked(release)
        if np.array(said.values, dtype=lane(terms.bits)).tobytes() != found.payload:
            raise _blocked(release)


def _most(terms: RoundTerms, phase: SumPhase) -> int:
    """How many bytes a message of secrets may have beside its head: shares for all sites, and no room for rows."""
    each = shamir.SHARE * share_count(terms)
    return {SumPhase.SHARE: each + masks.TAG, SumPhase.REVEAL: each}.get(phase, 0) * len(terms.roster)


def _blocked(what: object) -> Refused:
    """The refusal to let something out; it does not say what is in it."""
    return Refused(
        f"{type(what).__name__} does not leave this site: only votes, keys and numbers that were charged, noised and "
        "masked for a round do. Nothing was sent."
    )
