"""The server of a secure sum: it collects messages phase by phase, passes them on, and opens the sum in the end.

It is a value too: receiving gives a new server. All that it holds is what sites sent, so that its stored state is the
transcript of the round, and whoever has that can open the same sum and check every signature again.
"""

from dataclasses import dataclass, replace

import numpy as np

from sfumato.core.documents import Json, canonical
from sfumato.errors import InvalidInput, Refused
from sfumato.federated import masks, shamir
from sfumato.federated.messages import SumMessage, SumPhase, opened, packed, unpacked
from sfumato.federated.site_secrets import commitment, noise_words
from sfumato.federated.terms import RoundTerms
from sfumato.federated.views import (
    agreement,
    pair_mask_key,
    public_keys,
    seeds_promised,
    shown_shares,
    survivors_of,
)
from sfumato.noise.poisson_noise import sample_skellam
from sfumato.noise.sampler import IntArray

__all__ = ["SumResult", "SumServer", "verify_round"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumResult:
    """What a round gave: the sum over the survivors, with their noise, and who they are by number."""

    terms: RoundTerms
    total: IntArray
    survivors: tuple[int, ...]

    @property
    def missing(self) -> int:
        """How many sites left before their numbers arrived."""
        return self.terms.parties.sites - len(self.survivors)


@dataclass(frozen=True, slots=True, kw_only=True)
class SumServer:
    """One round as the server sees it: the messages of the phases that are over, and those of the one that is not."""

    terms: RoundTerms
    over: tuple[tuple[SumMessage, ...], ...] = ()
    open: tuple[SumMessage, ...] = ()

    @property
    def phase(self) -> SumPhase:
        """The phase whose messages are awaited."""
        return list(SumPhase)[len(self.over)]

    @property
    def awaited(self) -> tuple[int, ...]:
        """The sites that may still send in this phase, by number: those of the phase before that have not."""
        before = {one.sender for one in self.over[-1]} if self.over else set(range(1, self.terms.parties.sites + 1))
        return tuple(sorted(before - {one.sender for one in self.open})) if self.phase is not SumPhase.DONE else ()

    @property
    def least(self) -> int:
        """How many sites this phase needs."""
        few = self.phase in (SumPhase.AGREE, SumPhase.REVEAL)
        return self.terms.parties.threshold if few else self.terms.parties.present

    def receive(self, data: bytes) -> "SumServer":
        """Take a message of a site; the same bytes twice are one message, and different ones are refused."""
        if self.phase is SumPhase.DONE:
            raise Refused("the round is over; the message was not used.")
        message = opened(self.terms, self.phase, data)
        for one in self.open:
            if one.sender == message.sender:
                if one.raw == data:
                    return self
                raise Refused(
                    f"site {message.sender} has sent another message in this phase; the new one was not used."
                )
        if message.sender not in self.awaited:
            raise Refused(f"site {message.sender} has left the round in an earlier phase; its message was not used.")
        self._check(message)
        return replace(self, open=tuple(sorted((*self.open, message), key=lambda one: one.sender)))

    def close(self) -> tuple["SumServer", bytes]:
        """End the phase; give what is sent to every site that is in it, empty after the last."""
        if len(self.open) < self.least:
            raise Refused(
                f"{len(self.open)} sites are in the phase {self.phase.value!r} and {self.least} are needed; the round "
                "gives no sum. Begin another one, with new terms."
            )
        server = replace(self, over=(*self.over, self.open), open=())
        return server, server.told

    @property
    def told(self) -> bytes:
        """What sites are sent for the phase that is awaited: it follows from the messages of the one before."""
        if not self.over or self.phase is SumPhase.DONE:
            return b""
        if self.phase is SumPhase.AGREE:
            return canonical(_listed(self.over[-1])).encode()
        return packed([one.raw for one in self.over[-1]])

    def _check(self, message: SumMessage) -> None:
        """Refuse a message that this phase has no use for."""
        match message.phase:
            case SumPhase.MASK:
                if len(message.payload) != self.terms.length * masks.lane(self.terms.bits).itemsize:
                    raise Refused(f"site {message.sender} sent numbers of another length; they were not used.")
            case SumPhase.AGREE if message.body != (self.open[0].body if self.open else self._agreement()):
                raise Refused(f"site {message.sender} signed another list of survivors; it was not used.")
            case SumPhase.REVEAL if len(message.payload) != shamir.SHARE * len(self._shown()):
                raise Refused(f"site {message.sender} showed other shares than the list asks for; they were not used.")

    def _agreement(self) -> Json:
        keys, shares, masked = (self.over[phase.order] for phase in (SumPhase.ADVERTISE, SumPhase.SHARE, SumPhase.MASK))
        listed = tuple((one.sender, one.mark) for one in masked)
        return agreement(packed([one.raw for one in keys]), packed([one.raw for one in shares]), listed)

    def _shown(self) -> list[tuple[int, int]]:
        """Which shares each site shows, in their order: whose, and which of its secrets."""
        survivors = survivors_of(self.over[SumPhase.AGREE.order][0].body)
        missing = self.terms.parties.sites - len(survivors)
        return [
            (one.sender, number)
            for one in self.over[SumPhase.SHARE.order]
            for number in shown_shares(self.terms, survived=one.sender in survivors, missing=missing)
        ]

    def result(self) -> SumResult:
        """The sum, once all phases are over: exact modulo 2^bits, and refused where sites showed wrong shares."""
        if self.phase is not SumPhase.DONE:
            raise Refused(f"the round is in the phase {self.phase.value!r}; there is no sum yet.")
        secrets = self._opened_secrets()
        masked = self.over[SumPhase.MASK.order]
        kind = masks.lane(self.terms.bits)
        total = np.zeros(self.terms.length, dtype=kind)
        for one in masked:
            np.add(total, np.frombuffer(one.payload, dtype=kind), out=total)
        survivors = tuple(one.sender for one in masked)
        for (place, number), secret in secrets.items():
            self._unmask(total, place, number, secret, survivors)
        return SumResult(terms=self.terms, total=self.terms.whole(total), survivors=survivors)

    def _unmask(
        self, total: masks.Residues, place: int, number: int, secret: bytes, survivors: tuple[int, ...]
    ) -> None:
        """Take out of the sum what one secret put in: a site's own mask, a piece of its noise, or masks with others."""
        terms = self.terms
        if number == 1:
            masks.subtract_mask(total, masks.derived(secret, "own mask", terms.digest, place))
        elif number > 1 and terms.noise is not None:
            variance = terms.noise.pieces(terms.parties)[number - 1]
            seeds = [b""] * (number - 1) + [secret]
            drawn = sample_skellam(variance, terms.length, noise_words(terms, seeds, place, number - 1))
            np.subtract(total, terms.residues(drawn), out=total)
        else:
            keys = public_keys({one.sender: one for one in self.over[0]}, "mask")
            private = masks.private_key(secret)
            for other in survivors:
                key = pair_mask_key(terms, private, keys[other], place, other)
                (masks.subtract_mask if other < place else masks.add_mask)(total, key)

    def _opened_secrets(self) -> dict[tuple[int, int], bytes]:
        """The secrets that shares open, each checked against what its site advertised."""
        advertised = {one.sender: one for one in self.over[0]}
        keys = public_keys(advertised, "mask")
        found = {}
        for at, (place, number) in enumerate(self._shown()):
            held = slice(at * shamir.SHARE, (at + 1) * shamir.SHARE)
            shares = {one.sender: one.payload[held] for one in self.over[SumPhase.REVEAL.order]}
            secret = shamir.joined(shares, self.terms.parties.threshold)
            if number:
                promised = seeds_promised(self.terms, advertised[place])[number - 1]
                sound = commitment(self.terms, place, number - 1, secret) == promised
            else:
                sound = masks.public_half(secret) == keys[place]
            if not sound:
                raise Refused(f"the shares of a secret of site {place} do not give it; the round gives no sum.")
            found[place, number] = secret
        return found

    def to_bytes(self) -> bytes:
        """The transcript so far: the terms and every message, as they were sent."""
        phases = [*self.over, self.open]
        return packed([self.terms.to_json().encode(), *(packed([one.raw for one in phase]) for phase in phases)])

    @classmethod
    def from_bytes(cls, data: bytes) -> "SumServer":
        """The server whose state was stored: every message is received again, and every signature must hold."""
        head, *phases = unpacked(data) or (b"",)
        server = cls(terms=RoundTerms.from_json(head.decode()))
        if len(phases) not in range(1, len(SumPhase) + 1):
            raise InvalidInput("this is not the transcript of a round; it was not read.")
        for number, phase in enumerate(phases):
            for message in unpacked(phase):
                server = server.receive(message)
            if number < len(phases) - 1:
                server, _ = server.close()
        return server


def verify_round(transcript: bytes, terms: RoundTerms) -> SumResult:
    """Check a finished round from its transcript alone, and give its sum again.

    Guarantee: every message is signed by its site for exactly these terms, at least ``threshold`` survivors signed one
    list of survivors, which names the very numbers that were added, and what the shares opened is what the sites had
    advertised. Whoever holds the transcript learns what the server learned.
    """
    server = SumServer.from_bytes(transcript)
    if server.terms != terms:
        raise Refused("this is the transcript of a round with other terms; it was not verified.")
    return server.result()


def _listed(masked: tuple[SumMessage, ...]) -> list[Json]:
    return [[one.sender, one.mark] for one in masked]
