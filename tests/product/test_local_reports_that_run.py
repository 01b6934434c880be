"""Reports of the local model as clients send them, one by one, and what a server makes of them."""

import math

import pytest

from sfumato.local import Client, Collection, KaryResponse, UnfitReports, estimate_shares

PEOPLE = 1500


@pytest.mark.claim("S4-13")
@pytest.mark.alpha(1e-9)
def test_what_clients_send_is_random_as_charged_and_estimated_without_bias() -> None:
    """1,500 clients, 90% of them with "yes": within 6.5 standard errors of the variance claimed, α below 1e-9. Clients
    that send the truth, the broken copy, would be estimated at 137%, 15 of them away."""
    collection = Collection(name="asked", ask=KaryResponse(epsilon=1, values=2), labels=("no", "yes"))
    truths = [int(place % 10 != 0) for place in range(PEOPLE)]
    sent = [Client(collection).report(truth) for truth in truths]
    error = math.sqrt(math.e / (math.e - 1) ** 2 / PEOPLE)
    assert abs(estimate_shares(collection.ask, sent).estimates[1] - 0.9) < 6.5 * error
    with pytest.warns(UnfitReports):
        honest = estimate_shares(collection.ask, truths)
    assert abs(honest.estimates[1] - 0.9) > 6.5 * error
    kept = sum(report == truth for report, truth in zip(sent, truths, strict=True)) / PEOPLE
    chance = math.e / (1 + math.e)
    assert abs(kept - chance) < 6.5 * math.sqrt(chance * (1 - chance) / PEOPLE)
