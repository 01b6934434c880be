"""S0-24 with samples of roots: of the subgraphs that one node is in a random number is drawn, and all of it is paid."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.budget import Budget
from sfumato.core.events import Repeated, SampledOccurrences
from sfumato.core.query import Dataset
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.units import user
from sfumato.learning import NoisyRootSums, NoisySums, SubgraphTraining
from sfumato.learning.graph_networks.recipients import sent_by
from sfumato.learning.graph_networks.subgraphs import reached
from sfumato.learning.paradigms.persons import Id
from sfumato.learning.rounding_error import WIDTH
from sfumato.reports.verify import parsed, verify
from sfumato.reports.words import AUDIENCES
from tests import parts
from tests.learning.graph_networks.graphs import random_graph, tree

parts.package("torch")

PERSON = user("name", relation="add/remove")


def query(**more: Any) -> SubgraphTraining:
    given: dict[str, Any] = {
        "dataset": Dataset(name="papers", edition="1"),
        "units": "record",
        "clip": Fraction(1, 2),
        "times": 1,
        "records": 1,
        "number": 40,
        "rate": Fraction(1, 4),
        "steps": 20,
        "parameters": 7,
        "recipients": 2,
        "hops": 1,
        **more,
    }
    return SubgraphTraining(**given)


@pytest.mark.claim("S0-24")
def test_a_run_on_sampled_roots_is_charged_for_all_subgraphs_that_a_node_is_in() -> None:
    held = sf.Vault(unit=PERSON, budget=sf.Budget(epsilon=9, delta=1e-6), name="trial")
    made = held.graph_network(data=random_graph(40, 0.1, 1).nodes(), recipients=2, method="subgraphs")
    plan = made.plan(epsilon=2, delta=1e-7, steps=20, batch=10)
    assert isinstance(plan.mechanism, NoisyRootSums)
    event = plan.mechanism.loss(plan.query.sensitivity(PERSON, plan.query.limit(PERSON)))
    assert isinstance(event, Repeated)
    assert isinstance(event.event, SampledOccurrences)
    assert (event.event.rate, event.event.gone, event.event.changed, event.times) == (Fraction(1, 4), 1, 2, 20)
    assert Fraction(199, 100) < sf.accounting.epsilon(event, delta=1e-7) <= 2
    told = made.fit(epsilon=2, delta=1e-7, steps=20, batch=10, progress=False)
    assert held.spent == sf.Budget(epsilon=2, delta=1e-7)
    assert verify(parsed(told.release.certificate.text), key=held.public_key).authenticated
    assert any("drawn together" in told.release.explain("en", audience) for audience in AUDIENCES)


@pytest.mark.claim("S0-24")
def test_the_noise_of_a_sample_is_no_less_than_that_of_all_roots_divided_by_the_rate() -> None:
    """And far more than that of a sample of units of which each is in one subgraph: believed so, 5 times too little."""
    spend = Budget(epsilon=2, delta=Fraction(1, 10**7))
    run = query()
    noise = NoisyRootSums.for_roots(run, spend, run.roots)
    believed = NoisySums.calibrated(run, spend)
    assert 2 * believed.multiplier < noise.clips
    whole = NoisySums.calibrated(replace(run, rate=Fraction(1)), spend).multiplier * run.reach
    assert whole / 4 < noise.clips < whole


def test_the_noise_that_is_drawn_is_that_which_was_accounted_for_of_each_clip() -> None:
    noise = NoisyRootSums(multiplier=Fraction(3), steps=20, rate=Fraction(1, 4), parameters=7, roots=3)
    moved = query().sensitivity(PERSON, query().limit(PERSON))
    assert moved == Sensitivity.of(l2_squared=Fraction(5, 2) ** 2)
    width = noise.pitch(moved) * WIDTH
    assert 15 * Fraction(1, 2) < width < 15 * Fraction(1, 2) * Fraction(102, 100)
    alone = NoisySums(multiplier=Fraction(15), steps=20, rate=Fraction(1, 4), parameters=7)
    assert noise.pitch(moved) >= alone.pitch(Sensitivity.of(l2_squared=Fraction(1, 4)))


@pytest.mark.parametrize(
    "noise",
    [
        NoisySums(multiplier=Fraction(3), steps=20, rate=Fraction(1, 4), parameters=7),
        NoisyRootSums(multiplier=Fraction(3), steps=20, rate=Fraction(1, 4), parameters=7, roots=2),
    ],
)
def test_noise_for_fewer_roots_is_refused(noise: NoisySums) -> None:
    assert query().mismatch(noise, PERSON) is not None
    assert query().mismatch(NoisyRootSums(**{**_fields(noise), "roots": 3}), PERSON) is None
    whole = NoisyRootSums(**{**_fields(noise), "roots": 3, "rate": Fraction(1)})
    assert query(rate=Fraction(1)).mismatch(whole, PERSON) is not None


def _fields(noise: NoisySums) -> dict[str, Any]:
    return {name: getattr(noise, name) for name in ("multiplier", "steps", "rate", "parameters")}


def _moves() -> Iterator[tuple[int, int]]:
    """How many roots of a sample change with the first node of a tree: the number drawn of those that it reaches."""
    of = tree(2, 1)
    places: dict[Id, int] = {name: place for place, name in enumerate(of.roster)}
    found = []
    for each in (of, of.without(0)):
        sent = sent_by(each.names, each.lists, places, most=2, key=b"1")
        at = np.array([places[name] for name in each.names])
        rows = reached(each.features, at, sent, len(places), 1)
        found.append(dict(zip(each.names, rows, strict=True)))
    here, there = found
    for drawn in range(2 ** len(of.names)):
        names = [name for place, name in enumerate(of.names) if drawn >> place & 1]
        changed = sum(name in there and not np.array_equal(here[name], there[name]) for name in names)
        yield changed, sum(name not in there for name in names)


@pytest.mark.claim("S0-24")
def test_of_the_roots_that_a_node_reaches_as_many_change_as_are_drawn() -> None:
    found = list(_moves())
    changed = [one for one, _ in found]
    assert {gone for _, gone in found} == {0, 1}
    assert [changed.count(k) for k in range(4)] == [2, 4, 2, 0]  # of two others: Bin(2, 1/2), whoever else is drawn
