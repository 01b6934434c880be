"""The terms of one round: what every site agrees to before it sends anything, and the digest that binds all keys."""

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from sfumato.core import enclosures
from sfumato.core.documents import Registry, canonical, encode, parse
from sfumato.core.exact import natural
from sfumato.core.signature import read_public_key
from sfumato.errors import InvalidInput, Unsupported
from sfumato.federated.masks import Residues, lane
from sfumato.federated.parties import Parties
from sfumato.federated.shared_noise import SharedNoise

__all__ = ["ROOM", "RoundTerms"]

ROOM = Fraction(71, 10)
"""Standard deviations of noise that are left free at either end of the numbers modulo 2^b."""


@dataclass(frozen=True, kw_only=True)
class RoundTerms:
    """One secure sum of ``length`` whole numbers modulo 2^``bits``, by the sites of ``roster`` (their public keys).

    ``noise`` is added by the sites before they mask. In a ``zero`` round every site sends noise alone, whatever it is
    given: a test of the noise. ``run`` and ``number`` say which round of which work this is; no two rounds of a site
    share both.
    Guarantee: the digest covers all of it, and every key and every message of the round is bound to the digest.
    """

    KIND: ClassVar[str] = "federated.round_terms"
    VERSION: ClassVar[int] = 1
    run: str
    number: int
    roster: tuple[str, ...]
    parties: Parties
    length: int
    bits: int
    noise: SharedNoise | None = None
    zero: bool = False

    def __post_init__(self) -> None:
        natural(self.number, "number", least=0)
        natural(self.length, "length")
        natural(self.bits, "bits", least=8, most=62)
        if not self.run.strip():
            raise InvalidInput("a round says which run it belongs to: run='…'. Nothing was agreed.")
        for key in self.roster:
            read_public_key(key)
        if len(set(self.roster)) != len(self.roster) or len(self.roster) != self.parties.sites:
            raise InvalidInput(
                f"the roster names {len(set(self.roster))} different keys and there are {self.parties.sites} sites; "
                "nothing was agreed. Give each site its own key, and as many keys as sites."
            )
        if self.noise is not None:
            self.noise.check(self.parties)
        if self.limit < 1:
            raise InvalidInput(
                f"{self.bits} bits do not hold the sum of {self.parties.sites} sites and its noise; nothing was "
                "agreed. Take more bits, or a coarser unit."
            )

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the canonical text of these terms."""
        return hashlib.sha256(self.to_json().encode()).digest()

    @cached_property
    def limit(self) -> int:
        """What each site's numbers are clamped to: (2^(bits − 1) − 1 − 7.1σ)/sites, rounded down.

        Clamping moves no two numbers further apart, so that it costs no privacy. All sites together then stay
        within the numbers modulo 2^bits by 7.1 standard deviations of the noise that is left in the sum.
        """
        most = self.noise.most_variance(self.parties) if self.noise else Fraction(0)
        return math.floor(((1 << (self.bits - 1)) - 1 - ROOM * enclosures.sqrt(most).high) / self.parties.sites)

    @property
    def wrap_probability(self) -> float:
        """An upper bound of the probability that noise wraps one number of the sum; 0 without noise.

        Chernoff's bound for Skellam noise of variance v beyond a = 7.1·√v, on both sides: 2·exp(v·(√(1 + u²) − 1 −
        u·asinh u)), u = a/v. What is summed is the same modulo 2^bits whether it wraps or not.
        """
        if self.noise is None:
            return 0.0
        variance = float(self.noise.most_variance(self.parties))
        far = float(ROOM) / math.sqrt(variance)
        rate = far * math.asinh(far) - far * far / (1 + math.hypot(1, far))
        return min(1.0, 2 * math.exp(-variance * rate * (1 - 1e-9)))

    def residues(self, values: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> Residues:
        """Whole numbers as numbers modulo 2^bits, in the type that masks have."""
        return values.view(np.uint64).astype(lane(self.bits))

    def whole(self, residues: Residues) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        """Numbers modulo 2^bits as the whole numbers from −2^(bits − 1) to 2^(bits − 1) − 1."""
        low = residues.astype(np.int64) & ((1 << self.bits) - 1)
        return np.where(low >> (self.bits - 1) > 0, low - (1 << self.bits), low)

    def place(self, key: str) -> int:
        """The number of a site in the roster, from 1 on."""
        if key not in self.roster:
            raise InvalidInput("this key is not in the roster of the round; nothing was sent.")
        return self.roster.index(key) + 1

    def to_json(self) -> str:
        """The canonical text."""
        return canonical(encode(self))

    @classmethod
    def from_json(cls, text: str) -> "RoundTerms":
        """Read terms; what is not exactly a text of :meth:`to_json` is refused."""
        found = _REGISTRY.decode(parse(text), "terms")
        if not isinstance(found, cls):
            raise Unsupported("this is not the terms of a round; it was not read.")
        return found


_REGISTRY = Registry((RoundTerms, Parties, SharedNoise))
