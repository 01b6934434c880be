"""A site in a secure sum: five steps, each of which takes what the server sent and gives the bytes to send.

A site is a value: a step gives a new site and leaves the old one as it was. Store the new one, then send. A step that
was made gives the stored bytes again, to the same question only: no mask hides two texts.
"""

import secrets
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from cryptography.exceptions import InvalidTag

from sfumato.core.documents import Json, canonical, parse
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, Refused
from sfumato.federated import masks, shamir
from sfumato.federated.messages import (
    SumMessage,
    SumPhase,
    fingerprint,
    mark_of,
    marked,
    opened,
    packed,
    sealed,
    unpacked,
)
from sfumato.federated.site_secrets import SiteSecrets, commitment, noise_words
from sfumato.federated.terms import RoundTerms
from sfumato.federated.views import (
    agreement,
    numbered,
    pair_mask_key,
    public_keys,
    sealed_shares,
    share_count,
    shown_shares,
    survivors_of,
)
from sfumato.noise.poisson_noise import sample_skellam
from sfumato.noise.sampler import IntArray

__all__ = ["SumSite"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SumSite:
    """One site in one round. ``sent`` are its messages so far, ``heard`` what the server sent before each of them.

    Guarantee: against the server of the terms with up to ``colluding`` other sites, nothing about this site's numbers
    leaves but what the sum of all survivors says. It signs one list of survivors, and shows of each site one secret:
    what hides the numbers of a survivor's sum, or what it shared with the others if it left.
    Sensitive: all of it; keep it as a key is kept.
    """

    terms: RoundTerms
    key: SigningKey
    hidden: SiteSecrets
    sent: tuple[bytes, ...]
    heard: tuple[bytes, ...] = ()
    kept: tuple[tuple[int, bytes], ...] = ()
    """The shares of other sites' secrets that this one keeps, by number of the site, once it has them."""
    met: tuple[tuple[int, bytes, bytes], ...] = field(default=(), compare=False)
    """By number of a site: what was agreed with it for sealed shares, and its public key for masks. Not stored: both
    follow from the keys that were advertised and are found again where they are missing."""
    marked: str = field(default="", compare=False)
    """The fingerprint of the numbers that were sent. Not stored."""

    @classmethod
    def begin(cls, terms: RoundTerms, key: SigningKey) -> "SumSite":
        """Make keys for a round; ``sent[0]`` advertises their public halves. Leave no earlier round's state in use."""
        hidden = SiteSecrets.new(share_count(terms) - 2)
        place = terms.place(key.public_text)
        body: Json = {
            "channel": masks.public_half(hidden.channel).hex(),
            "mask": masks.public_half(hidden.mask).hex(),
            "seeds": [commitment(terms, place, number, seed) for number, seed in enumerate(hidden.seeds)],
        }
        return cls(terms=terms, key=key, hidden=hidden, sent=(sealed(terms, key, SumPhase.ADVERTISE, body),))

    @property
    def place(self) -> int:
        """The number of this site, from 1 on."""
        return self.terms.place(self.key.public_text)

    def share(self, advertised: bytes) -> tuple["SumSite", bytes]:
        """Take the keys of all sites; give shares of this site's secrets, each sealed for the site that keeps it."""
        met = list[tuple[int, bytes, bytes]]()
        site, message = self._step(1, advertised, partial(self._shared, met=met))
        return (replace(site, met=tuple(met)) if met else site), message

    def check_shares(self, shared: bytes) -> None:
        """Refuse shares that :meth:`mask` would refuse, before any number is at hand; nothing is sent by this."""
        self._step(2, shared, self._checked)

    def mask(self, shared: bytes, values: IntArray) -> tuple["SumSite", bytes]:
        """Take the shares of all sites; give this site's numbers: clamped, with its noise, under all masks.

        ``values`` are whole numbers, one for each of ``terms.length``. They are read once, and in a round of zeros not
        at all.
        """
        kept, marks = list[tuple[int, bytes]](), list[str]()
        site, message = self._step(2, shared, partial(self._masked, values=values, kept=kept, marks=marks))
        return (replace(site, kept=tuple(kept), met=(), marked=marks[0]) if kept else site), message

    def agree(self, survivors: bytes) -> tuple["SumSite", bytes]:
        """Take the list of those whose numbers arrived; sign it, the one list that this site signs in the round."""
        return self._step(3, survivors, self._agreed)

    def reveal(self, agreed: bytes) -> tuple["SumSite", bytes]:
        """Take the signatures of the list; give one share of each site: of its own mask, or of its key if it left."""
        return self._step(4, agreed, self._revealed)

    def _step(self, number: int, heard: bytes, make: Callable[[bytes], bytes]) -> tuple["SumSite", bytes]:
        if len(self.sent) > number:
            if self.heard[number - 1] != heard:
                raise Refused("this site has answered another text in this phase, and answers once; nothing was sent.")
            return self, self.sent[number]
        if len(self.sent) < number:
            raise Refused("this site has not come to this phase of the round; nothing was sent.")
        made = make(heard)
        return replace(self, sent=(*self.sent, made), heard=(*self.heard, heard)), made

    def _messages(self, phase: SumPhase, data: bytes, least: int, *, proven: bool = False) -> dict[int, SumMessage]:
        """The messages of a phase by their senders: enough of them, one of each, and this site's own among them."""
        parts, own = unpacked(data), self.sent[phase.order]
        read = [opened(self.terms, phase, part, proven=proven or part == own) for part in parts]
        found = {one.sender: one for one in read}
        if len(found) != len(parts) or len(found) < least:
            raise Refused(
                f"{len(found)} sites are in the phase {phase.value!r} and at least {least} different ones must be; "
                "nothing was sent."
            )
        if self.place not in found or found[self.place].raw != own:
            raise Refused(
                "this site's own message is missing in what the server sent, or was altered; nothing was sent."
            )
        return found

    def _shared(self, advertised: bytes, met: list[tuple[int, bytes, bytes]]) -> bytes:
        met += self._meet(self._messages(SumPhase.ADVERTISE, advertised, self.terms.parties.present))
        places = [place for place, _, _ in met]
        split = [shamir.split(one, places, self.terms.parties.threshold) for one in self.hidden.shared]
        boxes = list[bytes]()
        for place, secret, _ in met:
            box, beside = masks.channel(secret, self.terms.digest, self.place, place)
            nonce = secrets.token_bytes(masks.NONCE)
            boxes.append(nonce + box.encrypt(nonce, b"".join(shares[place] for shares in split), beside))
        return sealed(self.terms, self.key, SumPhase.SHARE, {"keys": fingerprint(advertised)}, b"".join(boxes))

    def _meet(self, advertised: Mapping[int, SumMessage]) -> list[tuple[int, bytes, bytes]]:
        """What is agreed with each site for sealed shares, and its public key for masks, in the order of numbers."""
        channels, keys = (public_keys(advertised, use) for use in ("channel", "mask"))
        private = masks.private_key(self.hidden.channel)
        return [(place, masks.shared_secret(private, channels[place]), keys[place]) for place in sorted(advertised)]

    def _known(self) -> tuple[tuple[int, bytes, bytes], ...]:
        """The sites that advertised keys; found again where this site was stored in between."""
        return self.met or tuple(self._meet(self._messages(SumPhase.ADVERTISE, self.heard[0], 0, proven=True)))

    def _checked(self, shared: bytes) -> bytes:
        self._pair_masks(self._shares(shared))
        return b""

    def _masked(self, shared: bytes, values: IntArray, kept: list[tuple[int, bytes]], marks: list[str]) -> bytes:
        opened_shares = self._shares(shared)
        kept += sorted(opened_shares.items())
        total = self.terms.residues(self._input(values))
        masks.add_mask(total, masks.derived(self.hidden.seeds[0], "own mask", self.terms.digest, self.place))
        for place, mask in self._pair_masks(opened_shares):
            (masks.add_mask if self.place < place else masks.subtract_mask)(total, mask)
        np.bitwise_and(total, total.dtype.type((1 << self.terms.bits) - 1), out=total)
        made, mark = marked(self.terms, self.key, SumPhase.MASK, {"shares": fingerprint(shared)}, total.tobytes())
        marks.append(mark)
        return made

    def _pair_masks(self, places: Collection[int]) -> list[tuple[int, bytes]]:
        """The keys of the masks that this site has in common with others, by number."""
        private = masks.private_key(self.hidden.mask)
        return [
            (place, pair_mask_key(self.terms, private, key, self.place, place))
            for place, _, key in self._known()
            if place in places and place != self.place
        ]

    def _input(self, values: IntArray) -> IntArray:
        """This site's numbers as they are sent: clamped, and with noise."""
        terms = self.terms
        if values.shape != (terms.length,) or values.dtype.kind != "i":
            raise InvalidInput(f"a site gives {terms.length} whole numbers; nothing was sent.")
        most = 0 if terms.zero else terms.limit
        whole: IntArray = np.clip(values.astype(np.int64, copy=False), -most, most)
        if terms.noise is not None:
            for k, variance in enumerate(terms.noise.pieces(terms.parties)):
                whole += sample_skellam(variance, terms.length, noise_words(terms, self.hidden.seeds, self.place, k))
        return whole

    def _agreed(self, survivors: bytes) -> bytes:
        listed = numbered(parse(survivors.decode("utf-8", errors="replace")))
        places = {place for place, _ in listed}
        if not places <= {place for place, _ in self.kept} or len(places) < self.terms.parties.present:
            raise Refused(
                f"the list of survivors names {len(places)} sites; at least {self.terms.parties.present} must be on "
                "it, all of which shared their keys. Nothing was signed."
            )
        if dict(listed).get(self.place) != (self.marked or mark_of(self.sent[SumPhase.MASK.order])):
            raise Refused("this site is not on the list with the numbers that it sent; nothing was signed.")
        return sealed(self.terms, self.key, SumPhase.AGREE, agreement(self.heard[0], self.heard[1], listed))

    def _revealed(self, agreed: bytes) -> bytes:
        found = self._messages(SumPhase.AGREE, agreed, self.terms.parties.threshold)
        own = found[self.place].body
        survivors = survivors_of(own)
        if any(one.body != own or one.sender not in survivors for one in found.values()):
            raise Refused("the sites did not sign one list of survivors; nothing was shown.")
        missing = self.terms.parties.sites - len(survivors)
        shown = b"".join(
            shares[number * shamir.SHARE : (number + 1) * shamir.SHARE]
            for place, shares in self.kept
            for number in shown_shares(self.terms, survived=place in survivors, missing=missing)
        )
        return sealed(self.terms, self.key, SumPhase.REVEAL, {"list": fingerprint(canonical(own).encode())}, shown)

    def _shares(self, shared: bytes) -> dict[int, bytes]:
        """The shares that other sites sealed for this one, opened.

        A sealed share proves its sender by itself, and the list that sites sign names what all of them saw.
        """
        found = self._messages(SumPhase.SHARE, shared, self.terms.parties.present, proven=True)
        met = self._known()
        secrets_of = {place: secret for place, secret, _ in met}
        seen, turn = fingerprint(self.heard[0]), list(secrets_of).index(self.place)
        held = dict[int, bytes]()
        for place, one in found.items():
            if place not in secrets_of:
                raise Refused(f"site {place} has advertised no keys; nothing was sent.")
            sealed_share = sealed_shares(self.terms, one, seen, len(met))[turn]
            box, beside = masks.channel(secrets_of[place], self.terms.digest, place, self.place)
            try:
                held[place] = box.decrypt(sealed_share[: masks.NONCE], sealed_share[masks.NONCE :], beside)
            except InvalidTag:
                raise Refused(f"the share of site {place} was altered on its way; nothing was sent.") from None
        return held

    def to_bytes(self) -> bytes:
        """The whole state but the signing key, to be stored before anything is sent. Sensitive: it holds secrets."""
        hidden = packed([self.hidden.mask, self.hidden.channel, *self.hidden.seeds])
        return packed([self.terms.to_json().encode(), hidden, packed(self.sent), packed(self.heard), self._kept()])

    def forgetful(self) -> "SumSite":
        """The site at the end of its round: it sends again what it had sent, and has no secret left to lose."""
        nothing = SiteSecrets(
            mask=bytes(masks.KEY), channel=bytes(masks.KEY), seeds=tuple(bytes(masks.KEY) for _ in self.hidden.seeds)
        )
        return replace(self, hidden=nothing, kept=(), met=())

    def _kept(self) -> bytes:
        return packed([place.to_bytes(4, "big") + shares for place, shares in self.kept])

    @classmethod
    def from_bytes(cls, data: bytes, key: SigningKey) -> "SumSite":
        """The site whose state was stored; it goes on where it stopped, and sends again what it had sent."""
        parts = unpacked(data)
        if len(parts) != 5:
            raise InvalidInput("this is not the state of a site in a secure sum; it was not read.")
        mask, channel, *seeds = unpacked(parts[1])
        hidden = SiteSecrets(mask=mask, channel=channel, seeds=tuple(seeds))
        terms = RoundTerms.from_json(parts[0].decode())
        kept = tuple((int.from_bytes(one[:4], "big"), one[4:]) for one in unpacked(parts[4]))
        site = cls(terms=terms, key=key, hidden=hidden, sent=unpacked(parts[2]), heard=unpacked(parts[3]), kept=kept)
        if opened(terms, SumPhase.ADVERTISE, site.sent[0]).sender != site.place:
            raise InvalidInput("this state belongs to a site with another key; nothing was sent.")
        return site
