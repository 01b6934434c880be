"""Attacks on noise for whole vectors, along the direction in which a unit moves them: that shows the loss."""

from collections.abc import Callable, Sequence
from fractions import Fraction

from sfumato import noise
from sfumato.audit import laws
from sfumato.audit.verdict import Attack
from sfumato.core.foreign import Array
from sfumato.mechanisms import BufferedNoise, DegreeNoise, LInfKNorm, MatrixNoise
from sfumato.mechanisms.k_norm import excess
from sfumato.noise.lattice import sample_geometric

__all__ = [
    "cube",
    "degree_vector",
    "gaussian_matrix",
    "laplace_matrix",
    "linear",
    "measured",
    "moved",
    "totals",
    "without_volume",
]

Draw = Callable[[int], Array]
Norm = Callable[[Array], Array]


def along(drawn: Draw, move: Sequence[int], norm: Norm, *, shifted: bool) -> Draw:
    """By how much the norm of an output grows when the move is taken off: that times ε is the logarithmic loss."""
    import numpy as np

    step = np.array(move)

    def outputs(size: int) -> Array:
        vectors = drawn(size) + (step if shifted else 0)
        return norm(vectors - step) - norm(vectors)

    return outputs


def degree_vector(name: str, mechanism: DegreeNoise, move: Sequence[int], *, epsilon: float) -> Attack:
    """Degrees that differ by ``move``; their K-norm is half the l1 norm and the excess."""
    import numpy as np

    def norm(vectors: Array) -> Array:
        return np.abs(vectors).sum(axis=1) // 2 + excess(vectors)

    return _sampled(name, DegreeNoise.KIND, epsilon, moved(mechanism, [0] * mechanism.nodes), move, norm)


def cube(name: str, mechanism: LInfKNorm, drawn: Draw | None = None) -> Attack:
    """An answer of which a unit moves every number by 1."""
    import numpy as np

    def norm(vectors: Array) -> Array:
        return np.abs(vectors).max(axis=1)

    return _sampled(
        name,
        LInfKNorm.KIND,
        float(mechanism.event.guarantee.epsilon),  # type: ignore[union-attr]  # its guarantee is pure
        drawn or moved(mechanism, [0] * mechanism.dimensions),
        [1] * mechanism.dimensions,
        norm,
    )


def without_volume(mechanism: LInfKNorm) -> Draw:
    """A mistake: a geometric radius and a uniform point of its cube, as if all cubes held equally many points."""
    import numpy as np

    def drawn(size: int) -> Array:
        words = noise.SystemWords()
        radius = sample_geometric(mechanism.scale, size, words)[:, None]
        place = np.empty(size * mechanism.dimensions, dtype=np.uint64)
        words.fill(place)
        return (place.reshape(size, -1) % (2 * radius + 1).astype(np.uint64)).astype(np.int64) - radius

    return drawn


def laplace_matrix(name: str, mechanism: MatrixNoise, *, epsilon: float) -> Attack:
    """A count that differs by 1, in the column of the strategy that is largest in l1."""
    import numpy as np

    def norm(vectors: Array) -> Array:
        return np.abs(vectors).sum(axis=1)

    return _sampled(
        name,
        MatrixNoise.KIND,
        epsilon,
        measured(mechanism, [0] * mechanism.columns),
        max(zip(*mechanism.strategy, strict=True), key=lambda column: sum(map(abs, column))),
        norm,
    )


def gaussian_matrix(name: str, mechanism: MatrixNoise, *, epsilon: float, delta: float) -> Attack:
    """A count that differs by 1, as drawn, along the largest column of the strategy: the likelihood ratio's own way."""
    import numpy as np

    move = np.array(max(zip(*mechanism.strategy, strict=True), key=lambda column: sum(one * one for one in column)))
    still, counted = ([0] * mechanism.columns for _ in range(2))
    counted[0] = 1

    def outputs(counts: Sequence[int]) -> Draw:
        drawn = measured(mechanism, counts)
        return lambda size: drawn(size) @ move

    return Attack(
        name=name,
        kind=MatrixNoise.KIND,
        epsilon=epsilon,
        delta=delta,
        here=outputs(still),
        there=outputs(counted),
        share=0.6,
        curve=True,
        most=100_000,
    )


def linear(
    name: str, kind: str, move: Sequence[int], sigma_squared: Fraction, *, epsilon: float, delta: float
) -> Attack:
    """Whole numbers with independent discrete Gaussian noise, moved by ``move``: the exact loss along it."""
    return Attack(
        name=name,
        kind=kind,
        epsilon=epsilon,
        delta=delta,
        here=lambda _: laws.projected(move, sigma_squared, moved=False),
        there=lambda _: laws.projected(move, sigma_squared, moved=True),
        exact=True,
        share=0.8,
    )


def _sampled(name: str, kind: str, epsilon: float, drawn: Draw, move: Sequence[int], norm: Norm) -> Attack:
    return Attack(
        name=name,
        kind=kind,
        epsilon=epsilon,
        delta=0.0,
        here=along(drawn, move, norm, shifted=False),
        there=along(drawn, move, norm, shifted=True),
        share=0.8,
    )


def moved(mechanism: LInfKNorm | DegreeNoise, exact: Sequence[int]) -> Draw:
    """An answer with noise from a shipped mechanism, as often as asked."""
    import numpy as np

    return lambda size: np.array(exact) + mechanism.sample(size, noise.SystemWords())


def measured(mechanism: MatrixNoise, counts: Sequence[int]) -> Draw:
    """The release of a matrix mechanism: A·x and noise, as often as asked."""
    import numpy as np

    from sfumato.mechanisms.matrix.lattice import system_draw

    exact = [sum(entry * count for entry, count in zip(row, counts, strict=True)) for row in mechanism.strategy]
    draw = system_draw(mechanism.norm)
    return lambda size: np.array(exact) + draw(mechanism.noise, size * len(exact)).reshape(size, len(exact))


def totals(mechanism: BufferedNoise, first: int) -> Draw:
    """The totals of streams whose first input is this one and all others 0: an eightieth of as many as asked."""
    import numpy as np

    def drawn(size: int) -> Array:
        streams = (mechanism.open() for _ in range(max(100, size // 80)))
        unit = 2**mechanism.bits
        return np.array([[int(stream.add(x) * unit) for x in (first, 0, 0)] for stream in streams])

    return drawn
