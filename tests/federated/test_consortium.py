"""Statistics across sites through the product's path: what is asked, who is charged, who may say no."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.limits import Limit
from sfumato.errors import Refused, Unsupported
from sfumato.federated import AcrossSites, SharedSkellam, SiteProposal
from sfumato.federated.summed import sent
from sfumato.reports.verify import parsed, verify
from tests.federated.hospitals import ONCE, ROWS, SPEND, UNIT, Network, network, without_noise


@pytest.fixture(scope="module")
def asked() -> tuple[Network, sf.core.release.Release]:
    net = network()
    return net, net.stays.group_by("sex").count().release(**SPEND)


def test_each_site_charges_its_own_patients_and_the_same_question_costs_nothing(
    asked: tuple[Network, Any],
) -> None:
    net, release = asked
    assert {vault.spent.epsilon for vault in net.vaults.values()} == {1}
    assert net.consortium.votes == dict.fromkeys(ROWS, "joins")
    again = net.stays.group_by("sex").count().release(**SPEND)
    assert (again.values, again.repeated, again.charged.epsilon) == (release.values, True, 0)
    assert {vault.spent.epsilon for vault in net.vaults.values()} == {1}


def test_the_answer_names_roster_survivors_and_round_and_verifies(asked: tuple[Network, Any]) -> None:
    net, release = asked
    query = release.statement.query
    assert isinstance(query, AcrossSites)
    assert query.sites == tuple(site.public_key for site in net.sites.values())
    assert query.survivors == net.consortium.verify(release).survivors == (1, 2, 3)
    assert verify(parsed(release.certificate.text)).consistent
    assert "sum over 3 sites of 3" in release.explain(audience="board")
    assert "3 个机构的总和" in release.explain("zh", "board")
    forged = parsed(release.certificate.text.replace('"survivors":[1,2,3]', '"survivors":[1,2,4]'))
    assert not verify(forged).consistent


def test_the_error_is_that_of_the_noise_that_survivors_left(asked: tuple[Network, Any]) -> None:
    net, release = asked
    made = release.statement.mechanism
    assert isinstance(made, SharedSkellam)
    assert made.law.variance == made.variance  # removable pieces: exactly what was charged for
    assert net.stays.group_by("sex").count().preview(**SPEND).margin == made.law.margin(Fraction(19, 20))


def test_without_noise_the_sum_is_the_pooled_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    assert network().stays.group_by("sex").count().release(**SPEND).values == (5, 4)


@pytest.mark.long
def test_without_noise_a_sum_of_values_is_off_by_rounding_to_the_unit_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    net = network()
    ages = net.stays.sum("age").release(**SPEND)
    step = Fraction(100, 2**30) * ages.statement.query.step
    assert abs(ages.columns["sum"].values[0] - sum(sum(own["age"]) for own in ROWS.values())) <= 3 * step / 2


@pytest.mark.long
def test_survival_is_one_histogram_of_exits_and_moves_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    net = network()
    result = net.stays.survival("weeks", event="died").release(**SPEND)
    said = result.release.statement
    assert (said.sensitivity.l1.value, said.sensitivity.l2.squared) == (1, 1)
    exits = result.cells[0].sum(axis=0)
    weeks = [week for own in ROWS.values() for week in own["weeks"]]
    assert exits.tolist() == [weeks.count(week) for week in range(1, 9)]


def test_a_site_that_falls_silent_before_its_numbers_arrive_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    net = network()
    net.silent(west=3)  # it votes, and shows its keys and shares
    release = net.stays.group_by("sex").count().release(**SPEND)
    assert release.values == (3, 4)
    assert release.statement.query.survivors == (1, 2)
    assert net.vaults["west"].spent.epsilon == 0
    assert net.consortium.verify(release).missing == 1


@pytest.mark.claim("S1-14")
def test_a_veto_takes_a_site_out_before_keys_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    seen: list[SiteProposal] = []

    def no(proposal: SiteProposal) -> bool:
        seen.append(proposal)
        return False

    net = network(committees={"west": no}, missing=0)
    release = net.stays.group_by("sex").count().release(**SPEND)
    assert net.consortium.votes == {"north": "joins", "south": "joins", "west": "declined"}
    assert list(net.sites["west"].declined.values()) == ["committee"]
    assert release.values == (3, 4)
    assert net.sites["west"].public_key not in release.statement.query.sites
    assert net.vaults["west"].spent.epsilon == 0
    assert seen[0].spend.epsilon == 1
    terms = seen[0].terms(seen[0].sites)
    from sfumato.federated.messages import SumPhase, packed

    request = [SumPhase.ADVERTISE.value.encode(), seen[0].to_json().encode(), *map(str.encode, terms.roster)]
    with pytest.raises(Refused, match="no key was made"):
        net.sites["west"].answer(packed(request))


def test_where_too_few_join_nobody_is_charged() -> None:
    net = network(committees=dict.fromkeys(("west", "south"), lambda proposal: False))
    with pytest.raises(Refused, match="south: declined, west: declined"):
        net.stays.count().release(**SPEND)
    assert all(vault.spent.epsilon == 0 for vault in net.vaults.values())


def test_a_site_whose_budget_is_used_up_declines() -> None:
    net = network(budget=0.5)
    with pytest.raises(Refused, match="north: declined"):
        net.stays.count().release(**SPEND)
    assert list(net.sites["north"].declined.values()) == ["budget"]


@pytest.mark.parametrize("limit", [Limit(groups=1, rows_per_group=2), None])
def test_a_site_with_another_limit_takes_no_part(limit: Limit | None) -> None:
    net = network()
    other = net.consortium.table(name="other", limit=limit or Limit(groups=2, rows_per_group=1))
    with pytest.raises(Refused, match="north: declined"):
        other.count().release(**SPEND)
    assert list(net.sites["north"].declined.values()) == ["declaration"]


def test_what_does_not_add_up_is_not_asked() -> None:
    net = network()
    with pytest.raises(Unsupported, match="sites add up counts"):
        net.stays.quantiles("age", [0.5]).release(**SPEND)


def totals(rows: dict[str, dict[str, list[Any]]], step: int) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """What sites send without noise for a count by sex and the sum of ages, in units of ``step``."""
    found = []
    for own in rows.values():
        ages = [round(age * 2**30 / 100) for age in own["age"]]
        exact = [own["sex"].count("F"), own["sex"].count("M"), sum(ages)]
        found.append([exact[0], exact[1], (exact[2] + step // 2) // step])
    return np.sum(found, axis=0)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_one_person_in_k_sites_moves_the_sum_by_no_more_than_is_charged(k: int) -> None:
    net = network(sites_per_person=k)
    counts = net.stays.group_by("sex").count()
    ages = net.stays.sum("age")
    step = 1 << 19
    bound = sent(counts.query, UNIT, ONCE, step=1, sites_per_person=k)  # type: ignore[arg-type]
    wide = sent(ages.query, UNIT, ONCE, step=step, sites_per_person=k)  # type: ignore[arg-type]
    assert bound.l1 is not None
    assert bound.l2 is not None
    assert wide.l1 is not None
    before = totals(ROWS, step)
    most = [0, 0]
    for age in (0, 1, 37, 99, 100):
        moved = {
            name: {**own, "sex": [*own["sex"], "F"], "age": [*own["age"], age]} if place < k else own
            for place, (name, own) in enumerate(ROWS.items())
        }
        change = np.abs(totals(moved, step) - before)
        most = [max(most[0], int(change[:2].sum())), max(most[1], int(change[2]))]
        assert change[:2].sum() <= bound.l1.value
        assert (change[:2] ** 2).sum() <= bound.l2.squared
        assert change[2] <= wide.l1.value
    assert most[0] == bound.l1.value == k
    assert most[1] > wide.l1.value - 2 * k
    assert bound.l2.squared == k**2


@pytest.mark.long
@pytest.mark.parametrize("k", [1, 2])
def test_the_same_through_the_whole_path(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    without_noise(monkeypatch)
    more = {
        name: {**own, "patient": [*own["patient"], 99], "sex": [*own["sex"], "M"], "age": [*own["age"], 100]}
        | {"weeks": [*own["weeks"], 1]}
        if place < k
        else own
        for place, (name, own) in enumerate(ROWS.items())
    }
    before, after = (
        network(rows, sites_per_person=2).stays.group_by("sex").count().release(**SPEND) for rows in (ROWS, more)
    )
    change = np.abs(np.subtract(after.values, before.values))
    assert change.sum() == k <= before.statement.sensitivity.l1.value == 2


def test_more_sites_of_a_person_cost_more_noise() -> None:
    law = [network(sites_per_person=k).stays.count().preview(**SPEND).mechanism.law for k in (1, 2, 3)]
    assert all(2 * float(one.variance) < float(two.variance) for one, two in pairwise(law))
