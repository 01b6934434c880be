"""What a site keeps to itself in a round: two private keys, the seed of its own mask, and seeds of removable noise."""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.errors import InvalidInput
from sfumato.federated import masks
from sfumato.federated.terms import RoundTerms
from sfumato.noise.words import SystemWords, Words

__all__ = ["SiteSecrets", "commitment", "noise_words"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SiteSecrets:
    """``mask`` and ``channel`` are X25519 keys; ``seeds[0]`` makes the site's own mask, ``seeds[k]`` noise piece k.

    All of them come from the operating system, for one round. ``channel`` is the one that is shared with nobody.
    """

    mask: bytes
    channel: bytes
    seeds: tuple[bytes, ...]

    def __post_init__(self) -> None:
        if {len(one) for one in (self.mask, self.channel, *self.seeds)} != {masks.KEY} or not self.seeds:
            raise InvalidInput(f"the secrets of a site have {masks.KEY} bytes each; nothing was sent.")

    @classmethod
    def new(cls, pieces: int) -> "SiteSecrets":
        """Fresh secrets, with seeds for this many removable pieces of noise."""
        mask, channel, *seeds = (secrets.token_bytes(masks.KEY) for _ in range(3 + pieces))
        return cls(mask=mask, channel=channel, seeds=tuple(seeds))

    @property
    def shared(self) -> tuple[bytes, ...]:
        """What is shared with the other sites, in the order of shares."""
        return (self.mask, *self.seeds)


def commitment(terms: RoundTerms, place: int, number: int, seed: bytes) -> str:
    """What a site advertises of a seed, so that wrong shares of it are noticed: nobody finds the seed from it."""
    return hashlib.sha256(masks.derived(seed, "commitment", terms.digest, place, number)).hexdigest()


def noise_words(terms: RoundTerms, seeds: Sequence[bytes], place: int, piece: int) -> Words:
    """Where a piece of a site's noise is drawn from: the operating system, or its seed if it may be taken out again."""
    if piece == 0:
        return SystemWords()
    return masks.KeyWords(masks.derived(seeds[piece], "noise", terms.digest, place, piece))
