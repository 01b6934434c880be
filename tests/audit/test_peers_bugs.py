"""Privacy bugs that were published about other libraries, each with what shows that it is not ours.

Where another module has the test already, its name is here and nothing is written twice. What is asked through a vault
here has its noise taken away (``exact``), so that what a unit moves can be read off.
"""

import importlib
from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from sfumato.audit.ways_played import new_vault
from sfumato.core.limits import Limit
from sfumato.core.units import record, user
from sfumato.mechanisms import Laplace
from sfumato.noise import SystemWords

RECORD = record(relation="add/remove")
PERSON = user("id", relation="add/remove")

ELSEWHERE = {
    "OpenDP 2938: a cast that fails is taken for one that cannot": (
        "tests.engines.test_known_leaks:test_2938_a_cast_that_fails_is_missing_and_known_to_be"
    ),
    "OpenDP 2939: a cut maps NaN to null": (
        "tests.engines.test_known_leaks:test_2939_a_cut_of_nan_is_missing_and_known_to_be"
    ),
    "OpenDP 2944: the number of a bin is not told by its row": (
        "tests.engines.test_known_leaks:test_2944_a_bin_is_told_by_its_own_row_alone"
    ),
    "OpenDP 2922: the delta of a threshold is that of one key": (
        "tests.mechanisms.test_threshold:test_opendp_2922_the_delta_of_a_threshold_is_not_that_of_one_key_alone"
    ),
    "Mironov, diffprivlib: noise in floating point shows the answer": (
        "tests.audit.test_audit:test_cosets_of_neighbours_are_the_same_and_those_of_floats_are_not"
    ),
    "Opacus: losses that couple units are taken silently": (
        "tests.learning.engine.test_refusals:test_losses_that_couple_units_are_refused"
    ),
    "Opacus: layers that mix units": "tests.learning.engine.test_refusals:test_layers_that_mix_units_are_refused",
    "Opacus: in-batch negatives move the clipped sum by two clips": (
        "tests.learning.paradigms.test_contrast_in_a_vault:"
        "test_a_pair_more_moves_the_sum_of_a_whole_step_by_no_more_than_stated"
    ),
    "Opacus: the sampler is not the one that is charged for": (
        "tests.learning.test_sampling:test_samples_have_the_size_that_chance_gives_them"
    ),
    "Opacus: random numbers of a known seed": (
        "tests.learning.test_trainer_failures:test_masks_come_from_more_than_a_seed"
    ),
    "diffprivlib: a bound that is used twice in a linear regression": (
        "tests.laws.test_gram_neighbours:test_no_unit_moves_the_sums_further_than_claimed"
    ),
}


@pytest.mark.parametrize("bug", ELSEWHERE)
def test_what_is_tested_elsewhere_is_there(bug: str) -> None:
    module, name = ELSEWHERE[bug].split(":")
    assert callable(getattr(importlib.import_module(module), name))


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laplace noise is nil."""
    monkeypatch.setattr(Laplace, "add_noise", lambda _self, numbers, _words: tuple(int(one) for one in numbers))


def numbers(rows: pa.Table, ask: Any, *, unit: Any = RECORD, **declared: Any) -> tuple[list[int], Fraction]:
    """The numbers of a release, and how far it says that a unit moves them."""
    table = new_vault(unit).table(rows, name="invented", version="1", **declared)
    said = ask(table).release(epsilon=1, even_if_useless=True).statement
    return list(said.values), said.sensitivity.l1.value


# -------------------------------------------------------------------- Casacuberta and others: sums that are no sums


def floats(values: list[float]) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.float64())})


@pytest.mark.usefixtures("exact")
def test_the_order_of_rows_does_not_move_a_sum_of_floats() -> None:
    """Added up in floats, small values vanish beside large ones, or do not, as the rows are ordered."""
    values = [2.0**53, *[1.0] * 200, 0.1, 1e-3]
    ordered = [numbers(floats(some), lambda t: t.sum("x"), bounds={"x": (0, 2**53)}) for some in (values, values[::-1])]
    assert ordered[0] == ordered[1]
    naive = [np.add.accumulate(np.array(some))[-1] for some in (values, values[::-1])]
    assert naive[0] != naive[1]  # the mistake


@pytest.mark.usefixtures("exact")
def test_one_row_more_moves_a_large_sum_by_no_more_than_is_stated_and_nothing_wraps() -> None:
    """A sum of 64 bits would turn around: five rows of 2^62 are more than it holds."""
    ask, bounds = (lambda t: t.sum("x")), {"x": (0, 2**62)}
    rows = [pa.table({"x": pa.array([2**62] * many, pa.int64())}) for many in (4, 5)]
    (without, moved), (with_it, _) = (numbers(some, ask, bounds=bounds) for some in rows)
    assert 0 < with_it[0] - without[0] <= moved
    wrapped = np.array([2**62] * 5).sum()  # the mistake
    assert wrapped < 5 * 2**62


# ------------------------------------------------------------------------------- OpenDP: limits that keep too few


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_as_many_groups_of_a_person_are_kept_as_the_limit_says(groups: int) -> None:
    """truncate_num_groups kept two of three; 2945 was off by two."""
    rows = pa.table({"id": pa.array([1] * 5, pa.int64()), "g": pa.array(range(5), pa.int64())})
    limit = Limit(groups=groups, rows_per_group=1)
    found, moved = numbers(rows, lambda t: t.group_by("g").count(), unit=PERSON, keys={"g": range(5)}, limit=limit)
    assert sum(found) == groups == moved


# ---------------------------------------------------------------------------------- SmartNoise: a mean costs three ε


def test_a_mean_and_a_variance_are_charged_what_was_asked() -> None:
    for ask in (lambda t: t.mean("x"), lambda t: t.variance("x")):
        table = new_vault(RECORD).table(floats([1.0, 2.0]), name="invented", version="1", bounds={"x": (0, 10)})
        assert ask(table).release(epsilon=Fraction(1, 2), even_if_useless=True).charged.epsilon == Fraction(1, 2)


# -------------------------------------------------------------------------------- PyDP: noise of another scale


@pytest.mark.alpha(1e-10)
def test_noise_at_half_a_unit_is_as_often_nil_as_its_distribution_says() -> None:
    """At scale 1/2 noise is nil with probability tanh 1 = 0.762. Rounded continuous noise, the mistake, is with 0.632:
    nineteen standard deviations away with 5,000 draws."""
    draws, chance = 5_000, (1 - exp(-2)) / (1 + exp(-2))
    nil = int(
        np.sum(np.array(Laplace(l1=Fraction(1), scale=Fraction(1, 2)).add_noise([0] * draws, SystemWords())) == 0)
    )
    low, high = binom.ppf(5e-11, draws, chance), binom.isf(5e-11, draws, chance)
    assert low <= nil <= high
    assert not low <= draws * (1 - exp(-1)) <= high
