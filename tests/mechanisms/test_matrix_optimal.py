"""The strategies: how good they are, how good any can be, and the numbers of the peers."""

import numpy as np
import pytest

from sfumato.errors import InvalidInput, Refused
from sfumato.mechanisms.matrix import Matrix, Workload, all_range, degrees, given, identity, prefix, tree
from sfumato.mechanisms.matrix.binary_tree import plain_rmse
from sfumato.mechanisms.matrix.gls import total_variance
from sfumato.mechanisms.matrix.optimal import lower_bound, optimum
from sfumato.mechanisms.matrix.p_identity import _objective, p_identity
from sfumato.mechanisms.matrix.toeplitz import coefficients, lower, rmse

WORKLOADS = [prefix(16), all_range(9), identity(5), degrees(5), given([[1, 1, 0], [1, 1, 0]]), given([[3, -1, 2]])]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.name)
def test_a_workload_is_its_matrix(workload: Workload) -> None:
    matrix = workload.matrix
    assert (workload.rows, workload.columns) == matrix.shape
    assert np.array_equal(workload.gram, matrix.T @ matrix)
    x = np.arange(workload.columns) ** 2.0
    assert np.allclose(workload.apply(x), matrix @ x)


@pytest.mark.claim("S0-04")
@pytest.mark.parametrize(
    ("workload", "known"),
    [(prefix(64), 2.0999), (prefix(256), 2.5244), (all_range(64), 2.3022), (all_range(256), 2.9014)],
    ids=lambda one: getattr(one, "name", ""),
)
def test_the_optimum_is_reached_and_certified(workload: Workload, known: float) -> None:
    found = Matrix.optimal(workload, tolerance=5e-5)
    assert abs(found.rmse / known - 1) < 1e-3
    assert 0 <= found.certificate.gap < 1e-4
    assert found.certificate.dual <= found.rmse == found.certificate.primal


@pytest.mark.long
@pytest.mark.claim("S0-04")
def test_the_optimum_of_1024_prefix_sums() -> None:
    found = Matrix.optimal(prefix(1024))
    assert found.rmse <= 2.98
    assert found.certificate.gap < 1e-4


@pytest.mark.claim("S0-04")
@pytest.mark.parametrize("bits", [2, 6, 20])
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda one: one.name)
def test_an_optimised_strategy_is_never_worse_than_the_counts_or_the_questions(workload: Workload, bits: int) -> None:
    for found in (Matrix.optimal(workload, bits=bits), Matrix.pure(workload, bits=bits)):
        for plain in (np.eye(workload.columns), workload.matrix):
            assert found.rmse <= Matrix.of(workload, plain, norm=found.norm, bits=0).rmse * (1 + 1e-12)


def test_no_strategy_goes_below_the_bound() -> None:
    chance = np.random.default_rng()
    for workload in WORKLOADS:
        bound = optimum(workload.gram).bound
        assert lower_bound(workload.gram) <= bound * (1 + 1e-12)
        for _ in range(50):
            strategy = chance.normal(size=(workload.columns + 2, workload.columns))
            strategy /= np.sqrt((strategy**2).sum(axis=0).max())
            assert total_variance(workload.gram, strategy) >= bound


def test_the_strategy_has_the_error_that_the_fixed_point_states_and_unit_columns() -> None:
    for workload in WORKLOADS:
        found = optimum(workload.gram)
        assert np.isclose((found.strategy**2).sum(axis=0).max(), 1)
        assert np.isclose(total_variance(workload.gram, found.strategy), found.total)
        assert found.total <= found.bound * (1 + 1e-6)


def test_a_strategy_of_full_rank_can_be_streamed() -> None:
    strategy = Matrix.optimal(prefix(16)).strategy
    assert np.array_equal(strategy, np.tril(strategy))


def test_counts_that_nobody_asks_for_are_not_measured() -> None:
    found = optimum(given([[1, 0, 1], [0, 0, 1]]).gram)
    assert not found.strategy[:, 1].any()


def test_what_is_no_gram_matrix_is_refused() -> None:
    for wrong in (np.zeros((2, 2), dtype=int), np.array([[1, 2], [0, 1]]), np.array([1, 2])):
        with pytest.raises(InvalidInput, match="symmetric and not zero"):
            optimum(wrong)


@pytest.mark.parametrize(("n", "known"), [(64, 2.2297), (256, 2.6688), (1024, 3.1098)])
def test_the_square_root_of_the_prefix_sums(n: int, known: float) -> None:
    root = np.array([float(one) for one in coefficients(n)])
    assert round(rmse(root, root), 4) == known
    if n == 64:
        assert np.allclose(lower(root) @ lower(root), prefix(n).matrix)
        assert round(Matrix.square_root(n).rmse, 4) == known


@pytest.mark.parametrize(("n", "plain", "honaker"), [(64, 4.594, 2.518), (256, 6.003, 3.102)])
def test_the_tree_is_what_the_peers_say(n: int, plain: float, honaker: float) -> None:
    assert round(plain_rmse(n), 3) == plain
    assert round(Matrix.of(prefix(n), tree(n).astype(float), norm="l2", bits=0).rmse, 3) == honaker


@pytest.mark.parametrize(("workload", "known"), [(prefix(64), 3.764), (all_range(64), 3.929)], ids=["prefix", "range"])
def test_p_identity_under_pure_privacy(workload: Workload, known: float) -> None:
    assert Matrix.pure(workload).rmse <= known * 1.01


@pytest.mark.long
@pytest.mark.parametrize(
    ("workload", "known"), [(prefix(256), 5.225), (all_range(256), 5.730)], ids=["prefix", "range"]
)
def test_p_identity_under_pure_privacy_at_256(workload: Workload, known: float) -> None:
    assert Matrix.pure(workload).rmse <= known * 1.01


def test_p_identity_has_the_gradient_and_the_columns_that_it_states() -> None:
    gram, point, step = prefix(6).gram.astype(float), np.linspace(0.1, 0.9, 12), 1e-6
    value, slope = _objective(point, gram, 2)
    theta = point.reshape(2, 6)
    strategy = np.vstack([np.eye(6), theta]) / (1 + theta.sum(axis=0))
    assert np.isclose(value, total_variance(gram, strategy))
    for place in range(12):
        aside = step * np.eye(12)[place]
        steep = (_objective(point + aside, gram, 2)[0] - _objective(point - aside, gram, 2)[0]) / (2 * step)
        assert np.isclose(steep, slope[place], rtol=1e-5, atol=1e-6)
    assert np.allclose(np.abs(p_identity(prefix(6).gram)).sum(axis=0), 1)


@pytest.mark.claim("S0-05")
@pytest.mark.parametrize("n", range(3, 13))
def test_degrees_directly_or_from_noisy_edges(n: int) -> None:
    asked = degrees(n)
    edges, direct = np.eye(asked.columns), asked.matrix.astype(float)

    def total(strategy: np.ndarray, norm: str) -> float:
        return Matrix.of(asked, strategy, norm=norm, bits=0).total

    laplace = 2  # the variance of Lap(1/ε), times ε²
    assert np.isclose(laplace * total(direct, "l1"), 8 * n)
    assert np.isclose(laplace * total(edges, "l1"), 2 * n * (n - 1))
    assert np.isclose(total(edges, "l1") / total(direct, "l1"), (n - 1) / 4)
    assert (n > 5) == (total(edges, "l1") > total(direct, "l1") * (1 + 1e-9))
    assert np.isclose(total(direct, "l2"), 2 * n)
    assert np.isclose(total(edges, "l2") / total(direct, "l2"), (n - 1) / 2)
    assert (n > 3) == (total(edges, "l2") > total(direct, "l2") * (1 + 1e-9))


@pytest.mark.claim("S0-05", "S0-03")
@pytest.mark.parametrize("n", range(3, 13))
def test_the_best_gaussian_covariance_for_degrees(n: int) -> None:
    closed = (np.sqrt((n - 1) * (2 - 4 / n)) + np.sqrt(4 / n)) ** 2
    found = optimum(degrees(n).gram)
    assert np.isclose(found.total, closed, rtol=1e-6)
    assert found.bound <= closed * (1 + 1e-9)
    if n in (5, 10):
        assert round(closed / (2 * n), 3) == {5: 0.952, 10: 0.980}[n]
    # The same as noise on the degrees: Σ = aI + bJ, and every edge is at distance exactly 1 from none.
    level, common = np.sqrt(closed * (2 - 4 / n) / (n - 1)), np.sqrt(closed * 4 / n)
    spread = level * np.eye(n) + (common - level) / n
    incidence = degrees(n).matrix
    assert np.isclose(np.trace(spread), closed)
    assert np.allclose((incidence * np.linalg.solve(spread, incidence.astype(float))).sum(axis=0), 1)


def test_rounding_does_not_tilt_a_strategy_off_the_questions() -> None:
    asked = degrees(5)
    for bits in (4, 8, 20):
        found = Matrix.optimal(asked, bits=bits)
        assert np.linalg.matrix_rank(np.vstack([found.strategy, asked.matrix])) == 5
        assert found.certificate.gap < 2.0**-bits
    tilted = Matrix.of(asked, optimum(asked.gram).strategy, norm="l2", bits=4)
    with pytest.raises(Refused, match="row space"):
        tilted.rmse  # noqa: B018
