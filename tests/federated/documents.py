"""Declarations of training across sites at random: their fields depend on each other."""

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.core.units import record
from sfumato.federated import FederatedTraining, SharedRounds, TrainingProposal

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


RARE: dict[str, st.SearchStrategy[Any]] = {
    "query.federated_training": _runs(),
    "federated.training_proposal": st.builds(
        _proposed,
        training=_runs(run=st.just(""), weights=st.just("")),
        number=st.integers(0, 2**62),
        missing=st.integers(0, 1),
        local_rate=st.fractions(min_value=Fraction(1, 1000), max_value=10, max_denominator=1000),
    ),
}
