"""Attacks on published genomes: exact allele frequencies and beacons tell who is inside; private ones do not.

Frequencies: the likelihood ratio of the pool against the population (after Homer and others, 2008). Beacons: does a
person have a rare allele that the beacon denies (Shringarpure and Bustamante, 2015)? Genomes are invented from a seed.
"""

import math

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import sfumato as sf

VARIANTS, INSIDE, OUTSIDE = 1_000, 50, 200
EPSILON = 1
ALPHA = 1e-9
PERSON = sf.user("patient", relation="add/remove")


def genomes(frequencies: NDArray[np.float64], people: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).binomial(2, frequencies, (people, VARIANTS))


def area(inside: NDArray[np.float64], outside: NDArray[np.float64]) -> float:
    """How often somebody inside scores higher than somebody outside; a tie counts half."""
    return float((np.sign(inside[:, None] - outside[None, :]) / 2 + 0.5).mean())


def released(pool: NDArray[np.int64], *, epsilon: object, rows: int) -> NDArray[np.float64]:
    """Copies or carriers of every variant, through the vault."""
    patient, variant = np.nonzero(pool)
    if rows == 2:
        patient, variant = np.repeat(patient, pool[patient, variant]), np.repeat(variant, pool[patient, variant])
    vault = sf.Vault(unit=PERSON, budget=sf.Budget(epsilon=epsilon), name="genomes")  # type: ignore[arg-type]
    table = vault.table(
        pa.table({"patient": patient, "variant": variant}),
        name="variants",
        version="1",
        limit=sf.Limit(groups=VARIANTS, rows_per_group=rows),
        keys={"variant": range(VARIANTS)},
    )
    question = table.group_by("variant").count()
    return np.array(question.release(epsilon=epsilon, even_if_useless=True).values, dtype=float)  # type: ignore[arg-type]


def likelihoods(
    people: NDArray[np.int64], pool: NDArray[np.float64], known: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How much better each genome fits the pool than the population."""
    pool = np.clip(pool, 0.01, 0.99)
    score = people * np.log(pool / known) + (2 - people) * np.log((1 - pool) / (1 - known))
    return np.asarray(score.sum(axis=1))


# Where a release says next to nothing about anybody, scores inside and outside have one law: their area has mean 1/2
# and the standard deviation of the rank test. 6.5 of these have a chance below 1e-10.
MOST = 0.5 + 6.5 * math.sqrt((INSIDE + OUTSIDE + 1) / (12 * INSIDE * OUTSIDE))


@pytest.mark.alpha(ALPHA)
def test_exact_allele_frequencies_name_the_pool_and_private_ones_do_not() -> None:
    known = np.random.default_rng(1).uniform(0.1, 0.9, VARIANTS)
    pool, others = genomes(known, INSIDE, 2), genomes(known, OUTSIDE, 3)
    exact = pool.sum(axis=0) / (2 * INSIDE)
    assert area(likelihoods(pool, exact, known), likelihoods(others, exact, known)) > 0.99
    private = released(pool, epsilon=EPSILON, rows=2) / (2 * INSIDE)
    assert area(likelihoods(pool, private, known), likelihoods(others, private, known)) <= MOST
    loose = released(pool, epsilon=20_000, rows=2) / (2 * INSIDE)
    assert area(likelihoods(pool, loose, known), likelihoods(others, loose, known)) > 0.99


@pytest.mark.alpha(ALPHA)
def test_an_exact_beacon_betrays_its_people_and_a_private_one_does_not() -> None:
    rare = np.full(VARIANTS, 0.005)
    pool, others = genomes(rare, INSIDE, 4), genomes(rare, OUTSIDE, 5)

    def denied(people: NDArray[np.int64], says_yes: NDArray[np.bool_]) -> NDArray[np.float64]:
        return np.asarray(-((people > 0) & ~says_yes).sum(axis=1).astype(float))

    exact = pool.sum(axis=0) > 0
    assert area(denied(pool, exact), denied(others, exact)) > 0.95
    private = released(pool, epsilon=EPSILON, rows=1) > 0.5
    assert area(denied(pool, private), denied(others, private)) <= MOST
