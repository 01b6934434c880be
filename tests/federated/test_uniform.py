"""What the server sees before the sum is opened is uniform, and broken copies are seen: no masks, twice, unreduced."""

from itertools import combinations

import numpy as np
import pytest

from sfumato.federated import SumSite, masks
from sfumato.federated.site_secrets import SiteSecrets
from tests.alpha import surprise
from tests.federated.rounds import agreed, until_masked

ALPHA = 1e-10
LENGTH, BITS = 4096, 12


def oddities(number: int = 1) -> list[str]:
    """What a server notices in the messages of two rounds with the same numbers: nothing, if they are uniform.

    Looked at are each proper set of messages of a round, added up, and the differences of the two rounds; all of it
    modulo 2^12, in 16 classes. α is for all of them together.
    """
    rounds = []
    for turn in range(2):
        terms = agreed(sites=3, missing=1, length=LENGTH, bits=BITS, number=2 * number + turn)
        _, server = until_masked(terms, [np.full(LENGTH, 5 * place) for place in range(3)])
        rounds.append([np.frombuffer(one.payload, dtype=np.uint16).astype(np.int64) for one in server.open])
    found = ["unreduced"] if max(int(one.max()) for one in rounds[0]) >> BITS else []
    some = [list(chosen) for count in (1, 2) for chosen in combinations(range(3), count)]
    looked_at = {f"sum of {chosen}": sum(rounds[0][n] for n in chosen) for chosen in some}
    looked_at |= {f"again {n}": rounds[1][n] - rounds[0][n] for n in range(3)}
    looked_at["last bits"] = rounds[0][0] << (BITS - 4)
    for name, numbers in looked_at.items():
        counts = np.bincount((np.asarray(numbers) % (1 << BITS)) >> (BITS - 4), minlength=16)
        if surprise(counts.tolist(), [1 / 16] * 16) < ALPHA / len(looked_at):
            found.append(name)
    return found


@pytest.mark.claim("S0-25")
@pytest.mark.alpha(ALPHA)
def test_any_proper_set_of_messages_is_uniform() -> None:
    assert oddities() == []


@pytest.mark.alpha(1e-15)
def test_messages_without_masks_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masks, "keystream", lambda key, size, kind: np.zeros(size, dtype=kind))
    assert "sum of [0]" in oddities()


def test_masks_of_pairs_that_do_not_cancel_one_own_mask_show_in_a_sum_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """All messages together are no proper set: without own masks they add up to the sum, before anybody agrees."""
    derived, stream = masks.derived, masks.keystream

    def all_together() -> set[int]:
        terms = agreed(sites=3, missing=1, length=64, bits=BITS)
        _, server = until_masked(terms, [np.full(64, 5 * place) for place in range(3)])
        together = np.sum([np.frombuffer(one.payload, dtype=np.uint16) for one in server.open], axis=0)
        return set((together % (1 << BITS)).tolist())

    assert len(all_together()) > 30
    monkeypatch.setattr(
        masks, "derived", lambda secret, use, *at: bytes(32) if use == "own mask" else derived(secret, use, *at)
    )
    monkeypatch.setattr(masks, "keystream", lambda key, *given: stream(key, *given) * (0 if key == bytes(32) else 1))
    assert all_together() == {15}


@pytest.mark.alpha(1e-15)
def test_a_mask_that_is_used_twice_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    derived = masks.derived
    kept = [SiteSecrets.new(0) for _ in range(3)]
    turns = iter(kept * 2)
    monkeypatch.setattr(SiteSecrets, "new", classmethod(lambda cls, pieces: next(turns)))
    monkeypatch.setattr(masks, "derived", lambda secret, use, digest, *at: derived(secret, use, bytes(32), *at))
    assert {"again 0", "again 1", "again 2"} <= set(oddities())


@pytest.mark.alpha(1e-15)
def test_numbers_that_are_not_reduced_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    lane = masks.lane(16)
    monkeypatch.setattr(np, "bitwise_and", lambda numbers, mask, out: numbers)
    assert lane == np.dtype("<u2")
    assert "unreduced" in oddities()


def test_a_site_that_sends_its_numbers_again_sends_the_same_bytes() -> None:
    terms = agreed(sites=3, missing=1)
    sites, _ = until_masked(terms, [np.arange(5)] * 3)
    site = sites[1]
    again, message = site.mask(site.heard[1], np.arange(5) + 1)
    assert again is site
    assert message == site.sent[2]
    stored = SumSite.from_bytes(site.to_bytes(), site.key)
    assert stored.mask(site.heard[1], np.arange(5))[1] == site.sent[2]
