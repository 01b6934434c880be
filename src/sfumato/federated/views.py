"""What sites and the server read from each other's messages, alike on both sides."""

from collections.abc import Mapping

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from sfumato.core.documents import Json
from sfumato.errors import Refused
from sfumato.federated import masks, shamir
from sfumato.federated.messages import SumMessage, fingerprint
from sfumato.federated.terms import RoundTerms

__all__ = [
    "agreement",
    "numbered",
    "pair_mask_key",
    "public_keys",
    "sealed_shares",
    "seeds_promised",
    "share_count",
    "shown_shares",
    "shown_size",
    "survivors_of",
]


def public_keys(advertised: Mapping[int, SumMessage], use: str) -> dict[int, bytes]:
    """The public keys of sites for one use, ``"mask"`` or ``"channel"``; all different from each other."""
    found = {place: _bytes(one, use) for place, one in advertised.items()}
    if len(set(found.values())) != len(found):
        raise Refused("two sites have advertised one key; nothing was sent.")
    return found


def seeds_promised(terms: RoundTerms, advertised: SumMessage) -> tuple[str, ...]:
    """The commitments to a site's seeds."""
    match advertised.body:
        case {"seeds": list(seeds)} if len(seeds) == share_count(terms) - 1:
            return tuple(str(seed) for seed in seeds)
    raise _malformed(advertised)


def share_count(terms: RoundTerms) -> int:
    """How many secrets a site shares: the key of its masks, the seed of its own, and those of removable noise."""
    return 2 + (len(terms.noise.pieces(terms.parties)) - 1 if terms.noise else 0)


def pair_mask_key(terms: RoundTerms, private: X25519PrivateKey, public: bytes, one: int, other: int) -> bytes:
    """The key of the mask that two sites share; the site with the lower number adds it, the other takes it off."""
    secret = masks.shared_secret(private, public)
    return masks.derived(secret, "pair mask", terms.digest, min(one, other), max(one, other))


def sealed_shares(terms: RoundTerms, message: SumMessage, keys: str, sites: int) -> tuple[bytes, ...]:
    """The sealed shares in a message, in the order of who keeps them; made for the keys of this fingerprint."""
    size = shamir.SHARE * share_count(terms) + masks.TAG
    match message.body:
        case {"keys": str(seen), **rest} if not rest and len(message.payload) == sites * size:
            if seen != keys:
                raise Refused(f"site {message.sender} was shown other keys than this one; nothing was sent.")
            return tuple(message.payload[at : at + size] for at in range(0, len(message.payload), size))
    raise _malformed(message)


def numbered(value: Json) -> tuple[tuple[int, str], ...]:
    """Read a list of numbers of sites, each with hexadecimal digits, in rising order."""
    found: list[tuple[int, str]] = []
    for entry in value if isinstance(value, list) else [None]:
        match entry:
            case [int(place), str(text)] if place > (found[-1][0] if found else 0) and _hexadecimal(text):
                found.append((place, text))
            case _:
                raise Refused("a list of sites is not in the form that it must have; nothing was sent.")
    return tuple(found)


def agreement(advertised: bytes, shared: bytes, survivors: tuple[tuple[int, str], ...]) -> Json:
    """What survivors sign: the keys and the shares that they all saw, and whose numbers arrived, by fingerprint."""
    listed: list[Json] = [[place, seen] for place, seen in survivors]
    return {"keys": fingerprint(advertised), "shares": fingerprint(shared), "survivors": listed}


def survivors_of(body: Json) -> dict[int, str]:
    """The survivors of a signed list, with the fingerprints of what they sent."""
    match body:
        case {"survivors": list(listed)}:
            return dict(numbered(listed))
    raise Refused("a signed list names no survivors; it was not used.")


def shown_shares(terms: RoundTerms, *, survived: bool, missing: int) -> tuple[int, ...]:
    """Which shares of a site are shown, by their number: of its seeds if its numbers arrived, else of its key alone."""
    if not survived:
        return (0,)
    return (1, *(1 + piece for piece in (terms.noise.taken_out(terms.parties, missing) if terms.noise else ())))


def shown_size(terms: RoundTerms, *, survived: bool, missing: int) -> int:
    """How many bytes :func:`shown_shares` are."""
    return shamir.SHARE * len(shown_shares(terms, survived=survived, missing=missing))


def _hexadecimal(text: str) -> bool:
    return len(text) % 2 == 0 and frozenset("0123456789abcdef").issuperset(text)


def _bytes(message: SumMessage, use: str) -> bytes:
    match message.body:
        case dict() as body if isinstance(text := body.get(use), str) and len(text) == 2 * masks.KEY:
            try:
                return bytes.fromhex(text)
            except ValueError:
                pass
    raise _malformed(message)


def _malformed(message: SumMessage) -> Refused:
    return Refused(f"the message of site {message.sender} is not in the form that it must have; it was not used.")
