"""Releases that may spend a δ: which noise they get, what they are charged, and what they promise."""

from fractions import Fraction

import pyarrow as pa
import pytest
from scipy.stats import chi2

import sfumato as sf
from sfumato import errors
from sfumato.core.guarantees import GDP, Approximate, Pure
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.reports.verify import verify
from sfumato.tables import Table
from sfumato.vault import Vault

WARDS = [f"ward {number}" for number in range(40)]
ROWS = pa.table({"id": list(range(400)), "ward": [WARDS[number % 40] for number in range(400)]})
DELTA = Fraction(1, 10**7)


@pytest.fixture
def vault() -> Vault:
    budget = sf.Budget(epsilon=4, delta=2 * DELTA)
    return sf.Vault(unit=sf.user("id", relation="add/remove"), budget=budget, name="trial")


@pytest.fixture
def wide(vault: Vault) -> Table:
    """A person counts in up to 30 wards: there Gaussian noise is the smaller one."""
    limit = sf.Limit(groups=30, rows_per_group=1)
    return vault.table(ROWS, name="stays", version="1", limit=limit, keys={"ward": WARDS})


def test_gaussian_noise_where_it_is_smaller(vault: Vault, wide: Table) -> None:
    release = wide.group_by("ward").count().release(epsilon=1, delta=DELTA)
    said = release.statement
    assert isinstance(said.mechanism, Gaussian)
    assert said.mechanism.l2_squared == 30
    assert said.guarantee == Approximate(epsilon=Fraction(1), delta=DELTA)
    assert release.charged == said.spend == vault.spent == sf.Budget(epsilon=1, delta=DELTA)
    mu = Fraction((30 / said.mechanism.sigma**2) ** 0.5)  # to about 1e-16
    assert float(GDP(mu=mu).delta_at(1)) == pytest.approx(float(DELTA), rel=1e-4)
    pure = Laplace.calibrated(l1=30, epsilon=1)
    assert said.law.variance < pure.law.variance / 2
    assert verify(release.certificate.document, key=vault.public_key).authenticated


def test_laplace_noise_where_it_is_smaller_and_then_no_delta_is_charged(vault: Vault, wide: Table) -> None:
    assert wide.group_by("ward").count().preview(epsilon=1, delta=DELTA).spend == sf.Budget(epsilon=1, delta=DELTA)
    narrow = vault.table(
        ROWS, name="stays", version="2", limit=sf.Limit(groups=1, rows_per_group=1), keys={"ward": WARDS}
    )
    question = narrow.group_by("ward").count()
    assert question.preview(epsilon=1, delta=DELTA).spend == sf.Budget(epsilon=1)
    before = vault.spent
    answered = question.release(epsilon=1, delta=DELTA)
    assert isinstance(answered.statement.mechanism, Laplace)
    assert answered.statement.guarantee == Pure(epsilon=Fraction(1))
    assert answered.charged == vault.spent - before == sf.Budget(epsilon=1)
    assert question.release(epsilon=1).repeated  # the same question at the same cost


def test_a_delta_beyond_the_budget_is_refused_and_nothing_is_spent(vault: Vault, wide: Table) -> None:
    question = wide.group_by("ward").count()
    question.release(epsilon=1, delta=DELTA)
    question.release(epsilon=1, delta=DELTA, fresh=True)
    with pytest.raises(errors.BudgetExceeded, match="δ"):
        question.release(epsilon=1, delta=DELTA, fresh=True)
    assert vault.spent == sf.Budget(epsilon=2, delta=2 * DELTA)
    with pytest.raises(errors.BudgetExceeded):
        question.release(epsilon=1, delta=3 * DELTA)


def test_accuracy_first_with_a_delta(wide: Table) -> None:
    question = wide.group_by("ward").count()
    with_delta, without = question.epsilon_for(margin=60, delta=DELTA), question.epsilon_for(margin=60)
    assert with_delta < without
    assert question.preview(epsilon=with_delta, delta=DELTA).margin <= 60


@pytest.mark.alpha(5e-9)
def test_noise_is_really_drawn_and_of_the_size_stated(wide: Table) -> None:
    """Forty rounded Gaussians of σ about 28: their sum of squares has the χ² law, and α = 1e-9.

    Noise of four times σ lies outside but for 4e-9, of a quarter of σ but for 6e-8. The twin is the first.
    """
    release = wide.group_by("ward").count().release(epsilon=1, delta=DELTA)
    assert isinstance(release.statement.mechanism, Gaussian)
    sigma = float(release.statement.mechanism.sigma)
    square = sum((value - 10) ** 2 for value in release.values) / len(release.values)
    low, high = (float(chi2.ppf(share, 40)) / 40 for share in (5e-10, 1 - 5e-10))
    assert low < square / sigma**2 < high
    assert not low < square / (sigma / 4) ** 2 < high
