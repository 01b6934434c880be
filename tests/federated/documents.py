"""Declarations of training across sites at random: their fields depend on each other."""

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.core.units import record
from sfumato.federated import DeclaredNetwork, FederatedTraining, SharedRounds, TrainingProposal
from sfumato.tables.feature_columns import FeatureColumn

KEYS = tuple(SigningKey.new().public_text for _ in range(3))
DIGESTS = st.binary(min_size=32, max_size=32).map(bytes.hex)


def _run(steps: int, clip: Fraction, rounds: int, **rest: Any) -> FederatedTraining:
    return FederatedTraining(
        dataset=Dataset(name="visits", edition="1"),
        units="record",
        records=1,
        clip=clip,
        step=clip / steps,
        rounds=rounds,
        done=rounds // 2,
        **rest,
    )


def _runs(**more: st.SearchStrategy[Any]) -> st.SearchStrategy[FederatedTraining]:
    fields: dict[str, st.SearchStrategy[Any]] = {
        "steps": st.integers(2, 4096),
        "clip": st.fractions(min_value=Fraction(1, 100), max_value=100, max_denominator=1000),
        "rounds": st.integers(1, 1000),
        "clients": st.sampled_from(["persons", "sites"]),
        "slack": st.sampled_from([Fraction(1), Fraction(21, 20)]),
        "number": st.integers(1, 10**6),
        "rate": st.fractions(min_value=Fraction(1, 1000), max_value=1, max_denominator=1000),
        "parameters": st.integers(1, 10**6),
        "sites_per_person": st.integers(1, 3),
        "model": DIGESTS,
        "run": st.just("") | DIGESTS,
        "local_steps": st.integers(0, 5),
        "weights": st.just("") | DIGESTS,
    }
    return st.builds(_run, **{**fields, **more})


def _proposed(training: FederatedTraining, **rest: Any) -> TrainingProposal:
    mechanism = SharedRounds(
        variance=Fraction(10**6),
        rounds=training.rounds,
        rate=training.rate,
        sites_per_person=training.sites_per_person,
    )
    return TrainingProposal(
        consortium="network",
        training=training,
        mechanism=mechanism,
        unit=record(relation="add/remove"),
        spend=Budget(epsilon=1, delta=1e-6),
        sites=KEYS,
        colluding=0,
        lying=True,
        **rest,
    )


_NUMBERS = st.tuples(st.integers(-100, 0), st.integers(1, 100)).map(lambda pair: (Fraction(pair[0]), Fraction(pair[1])))
_LISTS = st.lists(st.text("abcdefgh", min_size=1, max_size=4), min_size=2, max_size=4, unique=True).map(tuple)


def _network(bounds: list[Any], lists: list[Any], classes: Any, hidden: list[int]) -> DeclaredNetwork:
    numbers = [FeatureColumn(name=f"n{place}", bounds=pair) for place, pair in enumerate(bounds)]
    listed = [FeatureColumn(name=f"k{place}", keys=keys) for place, keys in enumerate(lists)]
    target = FeatureColumn(name="target", keys=classes)
    return DeclaredNetwork(inputs=(*numbers, *listed), target=target, hidden=tuple(hidden))


RARE: dict[str, st.SearchStrategy[Any]] = {
    "federated.declared_network": st.builds(
        _network,
        bounds=st.lists(_NUMBERS, min_size=1, max_size=2),
        lists=st.lists(_LISTS, max_size=2),
        classes=_LISTS | st.just((False, True)),
        hidden=st.lists(st.integers(1, 9), max_size=2),
    ),
    "query.federated_training": _runs(),
    "federated.training_proposal": st.builds(
        _proposed,
        training=_runs(run=st.just(""), weights=st.just("")),
        number=st.integers(0, 2**62),
        missing=st.integers(0, 1),
        local_rate=st.fractions(min_value=Fraction(1, 1000), max_value=10, max_denominator=1000),
    ),
}
