"""Keys, masks and shares: known answers, lengths, and what they are bound to. Uniformity alone passes a 32-bit seed."""

import hashlib
import hmac
from itertools import combinations

import numpy as np
import pytest

from sfumato.errors import InvalidInput, Refused
from sfumato.federated import SumSite, masks, shamir
from sfumato.federated.site_secrets import SiteSecrets
from sfumato.noise.words import WordArray
from tests.federated.rounds import agreed, numbers, until_masked

STREAM = (
    "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
)


def by_the_standard(secret: bytes, info: bytes) -> bytes:
    """HKDF with SHA-256 and no salt (RFC 5869), one block."""
    extracted = hmac.new(bytes(32), secret, hashlib.sha256).digest()
    return hmac.new(extracted, info + b"\x01", hashlib.sha256).digest()


def test_x25519_gives_the_answer_of_its_standard() -> None:
    """RFC 7748, section 6.1."""
    own = bytes.fromhex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb")
    other = bytes.fromhex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a")
    assert masks.public_half(own).hex() == "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f"
    found = masks.shared_secret(masks.private_key(own), other)
    assert found.hex() == "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742"


def test_a_public_key_of_small_order_is_refused() -> None:
    with pytest.raises(Refused, match="no key that X25519 can use"):
        masks.shared_secret(masks.private_key(bytes([1]) * 32), bytes(32))


@pytest.mark.parametrize("bits", [16, 32, 62])
def test_masks_are_the_keystream_of_chacha20(bits: int) -> None:
    """RFC 8439, appendix A.1, first vector; whatever the width of numbers is."""
    found = masks.keystream(bytes(32), 512 // (8 * masks.lane(bits).itemsize), masks.lane(bits))
    assert found.tobytes().hex() == STREAM


def test_words_of_a_key_are_the_same_keystream_however_they_are_asked_for() -> None:
    words = masks.KeyWords(bytes(32))
    first: WordArray = np.empty(3, dtype=np.uint64)
    then: WordArray = np.empty(5, dtype=np.uint64)
    words.fill(first)
    words.fill(then)
    assert (first.tobytes() + then.tobytes()).hex() == STREAM


def test_keys_are_derived_by_the_standard_and_bound_to_use_terms_and_sites() -> None:
    secret, digest = bytes(range(32)), bytes(range(32, 64))
    info = b"sfumato secure sum 1\0pair mask\0" + digest + bytes([0, 0, 0, 2, 0, 0, 0, 5])
    assert masks.derived(secret, "pair mask", digest, 2, 5) == by_the_standard(secret, info)
    others = [
        masks.derived(secret, "own mask", digest, 2, 5),
        masks.derived(secret, "pair mask", bytes(32), 2, 5),
        masks.derived(secret, "pair mask", digest, 5, 2),
        masks.derived(secret, "pair mask", digest, 2),
    ]
    assert len({*others, by_the_standard(secret, info)}) == 5


def test_terms_differ_in_their_digest_by_run_round_roster_and_every_number() -> None:
    terms = [agreed(), agreed(number=2), agreed(bits=33), agreed(length=6), agreed(missing=1), agreed(7)]
    assert len({one.digest for one in terms}) == len(terms)
    assert len({len(one.digest) for one in terms}) == 1


def own_keys(site: SumSite) -> dict[str, bytes]:
    """The keys of a site's masks by the standard, from its secrets alone: what its message must be made with."""
    digest, place = site.terms.digest, site.place.to_bytes(4, "big")
    return {"own": by_the_standard(site.hidden.seeds[0], b"sfumato secure sum 1\0own mask\0" + digest + place)}


@pytest.mark.claim("S0-25")
def test_what_a_site_sends_is_its_numbers_under_masks_of_256_bits_each() -> None:
    """Done again with the standards alone: a mask from a shorter seed would be another one."""
    terms = agreed(sites=3, missing=1, bits=20, length=40)
    values = numbers(terms)
    sites, server = until_masked(terms, values)
    info = b"sfumato secure sum 1\0"
    for place, site in sites.items():
        assert {len(one) for one in (site.hidden.mask, site.hidden.channel, *site.hidden.seeds)} == {32}
        total = values[place - 1].copy()
        total += stream(own_keys(site)["own"], 40)
        for other in sites.keys() - {place}:
            secret = masks.shared_secret(
                masks.private_key(site.hidden.mask), masks.public_half(sites[other].hidden.mask)
            )
            low, high = sorted((place, other))
            bound = terms.digest + low.to_bytes(4, "big") + high.to_bytes(4, "big")
            total += stream(by_the_standard(secret, info + b"pair mask\0" + bound), 40) * (1 if place < other else -1)
        sent = next(one for one in server.open if one.sender == place).payload
        assert np.frombuffer(sent, dtype=np.uint32).tolist() == (total % 2**20).tolist()


def stream(key: bytes, size: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

    text = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(4 * size))
    return np.frombuffer(text, dtype="<u4").astype(np.int64)


def test_a_mask_from_a_seed_of_32_bits_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = masks.keystream
    monkeypatch.setattr(masks, "keystream", lambda key, size, kind: whole(key[:4] + bytes(28), size, kind))
    with pytest.raises(AssertionError):
        test_what_a_site_sends_is_its_numbers_under_masks_of_256_bits_each()
    with pytest.raises(InvalidInput, match="32 bytes each"):
        SiteSecrets(mask=bytes(32), channel=bytes(32), seeds=(bytes(4),))


def test_the_prime_is_one() -> None:
    """Fermat's test to 64 bases; there is no other just above 2^256 whose shares fit 33 bytes in the same way."""
    assert shamir.PRIME.bit_length() == 257
    assert all(pow(base, shamir.PRIME - 1, shamir.PRIME) == 1 for base in range(2, 66))


@pytest.mark.parametrize("secret", [bytes(32), b"\xff" * 32, bytes(range(32))])
def test_any_shares_that_are_enough_open_a_secret_and_fewer_do_not(secret: bytes) -> None:
    shares = shamir.split(secret, range(1, 7), 4)
    for some in combinations(shares, 4):
        assert shamir.joined({place: shares[place] for place in some}, 4) == secret
    with pytest.raises(InvalidInput, match="3 shares are fewer than the 4"):
        shamir.joined({place: shares[place] for place in (1, 2, 3)}, 4)


def test_too_few_shares_fit_every_secret_equally_well() -> None:
    """For any two shares and any secret there is one parabola: two shares say nothing. Counted in a small field."""
    prime = 7
    seen: dict[tuple[int, int], set[int]] = {}
    for secret in range(prime):
        for a in range(prime):
            for b in range(prime):
                values = [(secret + a * x + b * x * x) % prime for x in (1, 2)]
                seen.setdefault((values[0], values[1]), set()).add(secret)
    assert all(len(secrets) == prime for secrets in seen.values())


def test_a_wrong_share_opens_something_else() -> None:
    secret = bytes([7]) * 32
    shares = shamir.split(secret, [1, 2, 3], 3)
    wrong = shares | {2: (int.from_bytes(shares[2], "big") ^ 1).to_bytes(shamir.SHARE, "big")}
    assert shamir.joined(wrong, 3) != secret
