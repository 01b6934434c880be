"""Privacy bugs that were published about other libraries, each with what shows that it is not ours.

Each is asked as users ask; one that takes a training run is a test of another module, and named here. What is asked
through a vault here has its noise taken away (``exact``), so that what a unit moves can be read off.
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
from sfumato.engines.expressions import col
from sfumato.errors import Refused
from sfumato.mechanisms import Laplace
from sfumato.noise import SystemWords
from tests import parts

RECORD = record(relation="add/remove")
PERSON = user("id", relation="add/remove")

ELSEWHERE = {
    "Opacus: in-batch negatives move the clipped sum by two clips": (
        "tests.learning.paradigms.test_contrast_in_a_vault:"
        "test_a_pair_more_moves_the_sum_of_a_whole_step_by_no_more_than_stated"
    ),
}


@pytest.mark.parametrize("bug", ELSEWHERE)
def test_what_is_tested_elsewhere_is_there(bug: str) -> None:
    """It takes a training run, and is not done twice."""
    module, name = ELSEWHERE[bug].split(":")
    assert callable(getattr(importlib.import_module(module), name))


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Laplace noise is nil."""
    monkeypatch.setattr(Laplace, "add_noise", lambda _self, numbers, _words: tuple(int(one) for one in numbers))


def numbers(rows: pa.Table, ask: Any, *, unit: Any = RECORD, **declared: Any) -> tuple[list[int], Fraction]:
    """The numbers of a release, and how far it says that a unit moves them."""
    table = new_vault(unit).table(rows, name="invented", version="1", **declared)
    found = ask(table).release(epsilon=1, even_if_useless=True)
    said = getattr(found, "release", found).statement  # a study has the release that it is worked out from
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


# --------------------------------------------------- OpenDP 2938, 2939, 2944: what an engine makes of a value


def texts(values: list[str]) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.string())})


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize(
    ("missing", "without", "one"),
    [
        (col("x").cast("whole").isnull(), texts(["1", "22"]), texts(["4x"])),
        (col("x").cut([0, 1], below=True, above=True).isnull(), floats([0.5, 2.0]), floats([float("nan")])),
    ],
    ids=["2938: a cast that fails", "2939: a cut of NaN"],
)
def test_a_row_that_an_engine_cannot_read_counts_as_missing_and_is_charged_for(
    missing: Any, without: pa.Table, one: pa.Table
) -> None:
    """There "how many are missing" was a constant that was told for nothing, and the row moved it."""

    def ask(table: Any) -> Any:
        return table.where(missing).count()

    (before, moved), (after, _) = (numbers(rows, ask) for rows in (without, pa.concat_tables([without, one])))
    assert after[0] - before[0] == 1 == moved


@pytest.mark.usefixtures("exact")
def test_the_bin_of_a_row_is_told_by_the_row_alone() -> None:
    """2944: there the number of a bin was that of its first row, and one row more moved a hundred others."""
    inside = col("x").cut([0, 10, 20], above=True) == "[0, 10)"
    for values in ([5.0] * 100, [25.0, *[5.0] * 100], [*[5.0] * 100, 25.0]):
        found, moved = numbers(floats(values), lambda t: t.where(inside).count())
        assert (found, moved) == ([100], 1)


# ----------------------------------------------------------------- OpenDP 2922: the δ of a threshold is that of one key


def test_the_delta_of_a_threshold_is_that_of_all_keys_of_a_person() -> None:
    def rule(groups: int) -> Any:
        rows = pa.table({"id": pa.array([1], pa.int64()), "g": pa.array([1], pa.int64())})
        limit = Limit(groups=groups, rows_per_group=1)
        table = new_vault(PERSON).table(rows, name="invented", version="1", limit=limit)
        found = table.find_keys("g").release(epsilon=1, delta=Fraction(1, 10**5))
        assert found.charged.delta <= Fraction(1, 10**5)
        return found.statement.mechanism

    def delta(rule: Any, keys: int) -> float:
        return float(rule.loss(keys).events[1].guarantee.delta)

    one, three = rule(1), rule(3)
    assert three.threshold > one.threshold
    assert delta(three, 3) <= 1e-5 < delta(one, 3)  # the latter is the mistake


# ------------------------------------------------------------- Mironov, diffprivlib: noise in floating point


@pytest.mark.parametrize("ask", [lambda t: t.count(), lambda t: t.sum("x"), lambda t: t.mean("x")])
def test_answers_and_noise_are_whole_numbers_of_a_grid_that_is_fixed_before(ask: Any) -> None:
    """Noise in floats shows by its last digits which answer it was added to; whole numbers have none."""
    for rows in (floats([0.1, 2.0]), floats([0.1, 2.0, 1 / 3])):
        table = new_vault(RECORD).table(rows, name="invented", version="1", bounds={"x": (0, 10)})
        told = ask(table).release(epsilon=1, even_if_useless=True).statement.values
        assert all(type(value) is int for value in told)


# ---------------------------------------------------------------- diffprivlib: a bound used twice in a regression


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize(("x", "y"), [(10, 10), (0, 10), (10, 0), (0, 0), (5, 7)])
def test_no_row_moves_the_sums_of_a_regression_further_than_is_stated(x: int, y: int) -> None:
    def asked(held: list[tuple[int, int]]) -> tuple[list[int], Fraction]:
        rows = pa.table(
            {"x": pa.array([a for a, _ in held], pa.int64()), "y": pa.array([b for _, b in held], pa.int64())}
        )
        return numbers(rows, lambda t: t.linear_regression("y ~ x"), bounds={"x": (0, 10), "y": (0, 10)})

    (without, moved), (with_it, _) = asked([(3, 4)]), asked([(3, 4), (x, y)])
    assert 0 < sum(abs(a - b) for a, b in zip(with_it, without, strict=True)) <= moved


# --------------------------------------------------------------------------- Opacus: what couples units, and seeds


def _data() -> Any:
    import torch

    from sfumato.learning import Units

    return Units(torch.eye(8, 3), torch.zeros(8, dtype=torch.int64), n_units=8, name="invented", version="1")


def _contrast(outputs: Any, _targets: Any) -> Any:
    import torch

    return torch.nn.functional.cross_entropy(outputs @ outputs.T, torch.arange(len(outputs)))


@pytest.mark.parametrize("wrong", ["a loss over the batch", "a layer over the batch"])
def test_what_couples_units_is_refused_and_nothing_is_charged(wrong: str) -> None:
    """Opacus takes losses that couple units silently; layers that mix them are refused there, and here."""
    parts.package("torch")
    import torch

    nn, vault = torch.nn, new_vault(RECORD)
    coupled = wrong.startswith("a loss")
    model = nn.Linear(3, 2) if coupled else nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    loss = _contrast if coupled else nn.functional.cross_entropy
    with pytest.raises(Refused, match=r"mixes units|GroupNorm"):
        vault.trainer(model, loss, data=_data()).fit(steps=1, batch=4, epsilon=1, delta=1e-6, progress=False)
    assert vault.spent.epsilon == 0


@pytest.mark.alpha(1e-30)
def test_the_noise_of_training_does_not_come_from_the_seed_of_torch() -> None:
    """Two runs after the same seed have different weights; equal ones by chance are rarer than 1 in 10^30."""
    parts.package("torch")
    import torch

    def weights() -> list[float]:
        torch.manual_seed(1)
        model = torch.nn.Linear(3, 2)
        run = new_vault(RECORD).trainer(model, torch.nn.functional.cross_entropy, data=_data())
        done = run.fit(steps=1, batch=8, epsilon=1, delta=1e-6, progress=False)
        found: list[float] = done.model.weight.detach().ravel().tolist()
        return found

    assert weights() != weights()


@pytest.mark.alpha(1e-12)
def test_samples_of_units_have_the_sizes_that_chance_gives_them() -> None:
    """Opacus: batches of one size, charged as Poisson samples. Sizes of Poisson samples are around 100 with a standard
    deviation of 10, each with a chance below 0.0402: ten are alike with one below 3e-13."""
    parts.package("torch")
    from sfumato.learning.sampling import shuffled_sample

    assert len({len(shuffled_sample(10_000, Fraction(1, 100), SystemWords())) for _ in range(10)}) > 1
