"""The attack on supports: if neighbours put their outputs on different lattices, one output can tell them apart.

Floating-point samplers fall to it: near 0, some doubles are outputs of one input alone (Mironov 2012). Noise on whole
numbers stands, since whole answers and whole noise make whole sums and every coset of a small lattice is reached.
"""

from collections.abc import Callable

from sfumato.audit.verdict import Attack
from sfumato.core.foreign import Array

__all__ = ["cosets", "float_laplace", "support"]

Draw = Callable[[int], Array]
MOST = 100_000  # samples: a coset of one neighbour alone, where there is one, is far more frequent than that


def support(name: str, kind: str, *, epsilon: float, delta: float = 0.0, here: Draw, there: Draw) -> Attack:
    """Outputs of two neighbours, told apart by their cosets alone."""
    return Attack(
        name=f"{name}: support",
        kind=kind,
        epsilon=epsilon,
        delta=delta,
        here=lambda size: cosets(here(size)),
        there=lambda size: cosets(there(size)),
        share=0.0,
        most=MOST,
    )


def cosets(outputs: Array) -> Array:
    """Name the coset of each output: what noise does not hide where the lattice of the outputs depends on the input.

    Of whole numbers, and vectors of them: the first modulo 3 with the sum modulo 4. Of doubles near 0: whether they are
    multiples of 2^−53, the spacing of doubles below 1.

    >>> cosets([[1, 2], [4, 3], [0, 1]]).tolist(), cosets([2.0**-60, 2.0**-53, 0.7]).tolist()
    ([7, 7, 1], [0, 1, 2])
    """
    import numpy as np

    array = np.asarray(outputs)
    if array.dtype.kind == "f":
        whole = np.ldexp(array, 53) == np.rint(np.ldexp(array, 53))
        return np.where(np.abs(array) < 1 / 8, np.where(whole, 1, 0), 2)
    vectors = array.reshape(len(array), -1)
    return ((vectors[:, 0] % 3) * 4 + vectors.sum(axis=1) % 4).astype(np.int64)


def float_laplace(size: int, shift: int) -> Array:
    """A mistake: the textbook sampler in doubles, shift plus or minus the logarithm of a uniform double."""
    import os

    import numpy as np

    words = np.frombuffer(os.urandom(16 * size), dtype=np.uint64)
    sign = np.where(words[:size] & np.uint64(1), 1.0, -1.0)
    unit = ((words[size:] >> np.uint64(11)).astype(np.float64) + 1) * 2.0**-53
    return shift - sign * np.log(unit)
