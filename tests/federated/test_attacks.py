"""A lying server: each attack fails on the product, and succeeds on a copy without the rule that stops it."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.core.documents import Json, canonical
from sfumato.core.signature import SigningKey
from sfumato.errors import Refused
from sfumato.federated import RoundTerms, SumPhase, SumSite, masks, messages, shamir
from sfumato.federated.messages import fingerprint, mark_of, packed, sealed, unpacked
from sfumato.federated.site_secrets import SiteSecrets
from sfumato.federated.views import pair_mask_key, public_keys, sealed_shares
from sfumato.noise.sampler import IntArray
from tests.federated.rounds import agreed, keys_of, numbers, until_masked

VICTIM = 1


def listed(sites: dict[int, SumSite], without: int | None = None) -> bytes:
    """A list of survivors as a server sends it."""
    said: list[Json] = [[n, mark_of(sites[n].sent[2])] for n in sorted(sites) if n != without]
    return canonical(said).encode()


def unmasked(
    terms: RoundTerms, sites: dict[int, SumSite], key: bytes | None, seed: bytes | None, victim: int = VICTIM
) -> IntArray:
    """What a server makes of the victim's message with the secrets that it got."""
    data = messages.opened(terms, SumPhase.MASK, sites[victim].sent[2])
    total = np.frombuffer(data.payload, dtype=masks.lane(terms.bits)).copy()
    if seed is not None:
        masks.subtract_mask(total, masks.derived(seed, "own mask", terms.digest, victim))
    if key is not None:
        seen = [messages.opened(terms, SumPhase.ADVERTISE, part) for part in unpacked(sites[victim].heard[0])]
        keys = public_keys({one.sender: one for one in seen}, "mask")
        for other in sorted(keys.keys() - {victim}):
            mask = pair_mask_key(terms, masks.private_key(key), keys[other], victim, other)
            (masks.subtract_mask if victim < other else masks.add_mask)(total, mask)
    return terms.whole(total)


def two_lists(terms: RoundTerms, groups: tuple[tuple[int, ...], tuple[int, ...]], colluding: tuple[int, ...]) -> bool:
    """One group is told that the victim sent its numbers, the other that it left; colluding sites sign both.

    Whether the server learns the victim's numbers by that.
    """
    values = numbers(terms)
    sites, _ = until_masked(terms, values)
    secrets: list[bytes] = []
    for group, without in zip(groups, (None, VICTIM), strict=True):
        told = listed(sites, without)
        try:
            signed = [sites[n].agree(told) for n in group]
            body = messages.opened(terms, SumPhase.AGREE, signed[0][1]).body
            bought = [sealed(terms, sites[n].key, SumPhase.AGREE, body) for n in colluding]
            every = packed([message for _, message in signed] + bought)
            shown = {site.place: site.reveal(every)[1] for site, _ in signed}
        except Refused:
            return False
        number = 1 if without is None else 0
        held = {n: dict(sites[n].kept)[VICTIM] for n in colluding}
        shares = {n: share[number * shamir.SHARE : (number + 1) * shamir.SHARE] for n, share in held.items()}
        for n, message in shown.items():  # the victim has the least number, so that its share is shown first
            shares[n] = messages.opened(terms, SumPhase.REVEAL, message).payload[: shamir.SHARE]
        secrets.append(shamir.joined(shares, terms.parties.threshold))
    return unmasked(terms, sites, secrets[1], secrets[0]).tolist() == values[0].tolist()


def test_two_lists_for_two_groups_get_nothing_and_a_lower_threshold_gives_the_numbers_away() -> None:
    terms = agreed(sites=7, missing=2, colluding=2, lying=True)
    for groups in (((2, 3), (4, 5)), ((1, 2, 3), (4, 5)), ((2, 3), (3, 4, 5)), ((1, 2), (3, 4, 5))):
        assert not two_lists(terms, groups, (6, 7))
    loose = agreed(sites=7, missing=2, colluding=2, lying=True, number=2)
    object.__setattr__(loose.parties, "threshold", 4)
    assert two_lists(loose, ((2, 3), (4, 5)), (6, 7))


def test_asking_the_same_sites_twice_gets_nothing_and_a_site_that_forgets_gives_the_numbers_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terms = agreed(sites=4, missing=1)
    values = numbers(terms)
    sites, _ = until_masked(terms, values)

    def both() -> bool:
        try:
            secrets = []
            for without in (None, VICTIM):
                stepped = {n: sites[n].agree(listed(sites, without)) for n in (2, 3, 4)}
                every = packed([message for _, message in stepped.values()])
                after = {n: site.reveal(every) for n, (site, _) in stepped.items()}
                sites.update({n: site for n, (site, _) in after.items()})
                shares = {
                    n: messages.opened(terms, SumPhase.REVEAL, message).payload[: shamir.SHARE]
                    for n, (_, message) in after.items()
                }
                secrets.append(shamir.joined(shares, terms.parties.threshold))
        except Refused:
            return False
        return unmasked(terms, sites, secrets[1], secrets[0]).tolist() == values[0].tolist()

    assert not both()
    sites, _ = until_masked(terms, values)

    def forgetful(self: SumSite, number: int, heard: bytes, make: object) -> object:
        made = make(heard)  # type: ignore[operator]
        return replace(self, sent=(*self.sent[:number], made), heard=(*self.heard[: number - 1], heard)), made

    monkeypatch.setattr(SumSite, "_step", forgetful)
    assert both()


def test_who_is_said_to_have_left_is_hidden_by_its_own_mask_and_without_one_it_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terms = agreed(sites=4, missing=1, length=16)
    values = numbers(terms)

    def said_to_have_left() -> IntArray:
        sites, _ = until_masked(terms, values)
        stepped = {n: sites[n].agree(listed(sites, VICTIM)) for n in (2, 3, 4)}
        with pytest.raises(Refused, match="not on the list"):
            sites[VICTIM].agree(listed(sites, VICTIM))
        every = packed([message for _, message in stepped.values()])
        shares = {
            n: messages.opened(terms, SumPhase.REVEAL, site.reveal(every)[1]).payload[: shamir.SHARE]
            for n, (site, _) in stepped.items()
        }
        return unmasked(terms, sites, shamir.joined(shares, 3), None)

    assert not set(said_to_have_left().tolist()) & set(values[0].tolist())  # by chance with less than 2^-24
    derived, keystream = masks.derived, masks.keystream
    monkeypatch.setattr(
        masks, "derived", lambda secret, use, *bound: bytes(32) if use == "own mask" else derived(secret, use, *bound)
    )
    monkeypatch.setattr(
        masks, "keystream", lambda key, size, kind: keystream(key, size, kind) * (0 if key == bytes(32) else 1)
    )
    assert said_to_have_left().tolist() == values[0].tolist()


def in_the_middle(terms: RoundTerms, values: list[IntArray]) -> bool:
    """The victim is shown keys of the server's own in the place of the others'; whether it then gives itself away."""
    victim = SumSite.begin(terms, keys_of(terms.parties.sites)[0])
    fakes = {}
    for n in range(2, terms.parties.sites + 1):
        other = SigningKey.new()
        false = replace(terms, roster=(*terms.roster[: n - 1], other.public_text, *terms.roster[n:]))
        fakes[n] = replace(SumSite.begin(false, other), terms=terms)
    forged = {n: fake.sent[0].replace(fake_digest(fake), terms.digest.hex().encode()) for n, fake in fakes.items()}
    told = packed([victim.sent[0], *forged.values()])
    try:
        victim, shared = victim.share(told)
    except Refused:
        return False
    boxes = sealed_shares(terms, messages.opened(terms, SumPhase.SHARE, shared), fingerprint(told), 4)
    own = victim_key(victim)
    shares = {}
    for n, fake in fakes.items():
        secret = masks.shared_secret(masks.private_key(fake.hidden.channel), own)
        box, beside = masks.channel(secret, terms.digest, 1, n)
        shares[n] = box.decrypt(boxes[n - 1][: masks.NONCE], boxes[n - 1][masks.NONCE :], beside)
    key, seed = (
        shamir.joined({n: s[i * shamir.SHARE : (i + 1) * shamir.SHARE] for n, s in shares.items()}, 3) for i in (0, 1)
    )
    return key == victim.hidden.mask and seed == victim.hidden.seeds[0]


def fake_digest(site: SumSite) -> bytes:
    text = site.sent[0]
    at = text.index(b'"terms":"') + 9
    return text[at : at + 64]


def victim_key(site: SumSite) -> bytes:
    return masks.public_half(site.hidden.channel)


def test_keys_in_the_place_of_others_get_nothing_and_without_signatures_they_get_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terms = agreed(sites=4, missing=1)
    assert not in_the_middle(terms, numbers(terms))
    monkeypatch.setattr(messages, "signature_holds", lambda *_: True)
    assert in_the_middle(terms, numbers(terms))


def test_messages_of_another_round_are_refused_by_sites_and_by_the_server() -> None:
    first, second = agreed(sites=3, missing=1), agreed(sites=3, missing=1, number=2)
    _, old = until_masked(first, numbers(first))
    sites, server = until_masked(second, numbers(second))
    with pytest.raises(Refused, match="another round, roster or run"):
        server.receive(old.open[0].raw)
    site = SumSite.begin(second, keys_of(3)[0])
    with pytest.raises(Refused, match="another round, roster or run"):
        site.share(packed([site.sent[0], *(one.raw for one in old.over[0][1:])]))
    with pytest.raises(Refused, match="answers once"):
        sites[1].mask(packed([one.raw for one in old.over[1]]), numbers(second)[0])


def test_the_same_secrets_in_two_rounds_make_other_masks_unless_keys_are_not_bound_to_the_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = [SiteSecrets.new(0) for _ in range(3)]

    def difference() -> list[int]:
        sent = []
        for number in (1, 2):
            left = iter(kept)
            monkeypatch.setattr(SiteSecrets, "new", classmethod(lambda cls, pieces, left=left: next(left)))
            terms = agreed(sites=3, missing=1, number=number)
            values = [one + number * 1000 for one in numbers(terms)]
            _, server = until_masked(terms, values)
            sent.append(np.frombuffer(server.open[0].payload, dtype=np.uint32))
        found: list[int] = (sent[1] - sent[0]).tolist()
        return found

    assert 1000 not in difference()
    derived = masks.derived
    monkeypatch.setattr(masks, "derived", lambda secret, use, digest, *at: derived(secret, use, bytes(32), *at))
    assert set(difference()) == {1000}


def test_a_site_refuses_lists_that_are_too_short_foreign_or_of_other_numbers() -> None:
    terms = agreed(sites=4, missing=1)
    sites, _ = until_masked(terms, numbers(terms))
    full: list[Json] = [[n, mark_of(sites[n].sent[2])] for n in sites]
    wrong: list[list[Json]] = [
        [*full[:2]],
        [*full, [5, "00"]],
        [[1, "00"], *full[1:]],
        [*reversed(full)],
        [*full, full[-1]],
        ["1"],
    ]
    for one in wrong:
        with pytest.raises(Refused, match="othing was s"):
            sites[1].agree(canonical(one).encode())


def test_wrong_shares_give_no_sum_instead_of_a_wrong_one() -> None:
    terms = agreed(sites=3, missing=1)
    sites, server = until_masked(terms, numbers(terms))
    server, told = server.close()
    for n, site in sites.items():
        sites[n], message = site.agree(told)
        server = server.receive(message)
    server, told = server.close()
    for n, site in sites.items():
        message = site.reveal(told)[1]
        if n == 1:
            body = messages.opened(terms, SumPhase.REVEAL, message).body
            message = sealed(terms, site.key, SumPhase.REVEAL, body, bytes(3 * shamir.SHARE))
        server = server.receive(message)
    server, _ = server.close()
    with pytest.raises(Refused, match="the round gives no sum"):
        server.result()


def test_a_share_that_was_altered_on_its_way_is_noticed_by_whom_it_is_for_or_by_the_list() -> None:
    """Sites leave the signatures of shares to the seals: whoever keeps an altered share refuses it by that."""
    terms = agreed(sites=3, missing=1)
    values = numbers(terms)
    sites, _ = until_masked(terms, values)
    parts = list(unpacked(sites[1].heard[1]))
    size = len(messages.opened(terms, SumPhase.SHARE, parts[1]).payload) // 3
    for keeper in (1, 3):
        altered = bytearray(parts[1])
        altered[len(altered) - 64 - size * (4 - keeper)] ^= 1
        other = packed([parts[0], bytes(altered), parts[2]])
        before = replace(sites[1], sent=sites[1].sent[:2], heard=sites[1].heard[:1], kept=())
        if keeper == 1:
            with pytest.raises(Refused, match="the share of site 2 was altered"):
                before.mask(other, values[0])
            continue
        misled, _ = before.mask(other, values[0])
        told = listed({**sites, 1: misled})
        _, signed = misled.agree(told)
        site, own = sites[3].agree(told)
        with pytest.raises(Refused, match="did not sign one list"):
            site.reveal(packed([signed, own]))
