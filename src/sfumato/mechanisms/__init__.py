"""Mechanisms: one file each; a declaration with its loss, its error distribution and its sampling.

``MECHANISMS`` are the declarations, read from a certificate without NumPy: a new mechanism is a new file. ``Matrix``,
which finds strategies, needs NumPy and SciPy and is imported when it is first used; what it runs is declared as
``MatrixNoise``.
"""

import warnings
from typing import TYPE_CHECKING, Any  # whatever a module has under a name

from sfumato.core.documents import Document, declared_in
from sfumato.mechanisms.added_noise import AddedNoise, adds_noise
from sfumato.mechanisms.chosen_cap import ChosenCap
from sfumato.mechanisms.exponential import Exponential, PermuteAndFlip
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.k_norm import DegreeNoise, LInfKNorm
from sfumato.mechanisms.ladder import Ladder, Ladders
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.limit_search import LimitSearch
from sfumato.mechanisms.matrix.buffered import BufferedNoise
from sfumato.mechanisms.matrix.declaration import MatrixNoise
from sfumato.mechanisms.noisy_cells import NoisyCells
from sfumato.mechanisms.noisy_local_sensitivity import NoisyLocalSensitivity
from sfumato.mechanisms.noisy_max import NoisyMax
from sfumato.mechanisms.optimal_selection import OptimalSelection
from sfumato.mechanisms.quantile import QuantileChoice
from sfumato.mechanisms.randomized_response import RandomizedResponse
from sfumato.mechanisms.sparse_vector import SparseVector
from sfumato.mechanisms.threshold import NoisyThreshold
from sfumato.mechanisms.top import TopChoice
from sfumato.mechanisms.top_set import TopSet

if TYPE_CHECKING:
    from sfumato.mechanisms.matrix import Matrix

__all__ = [
    "ADDED_NOISE",
    "ANY_NOISE",
    "MECHANISMS",
    "BufferedNoise",
    "ChosenCap",
    "DegreeNoise",
    "Exponential",
    "Gaussian",
    "LInfKNorm",
    "Ladder",
    "Ladders",
    "Laplace",
    "LimitSearch",
    "Matrix",
    "MatrixNoise",
    "NoisyCells",
    "NoisyLocalSensitivity",
    "NoisyMax",
    "NoisyThreshold",
    "OptimalSelection",
    "PermuteAndFlip",
    "QuantileChoice",
    "RandomizedResponse",
    "SparseVector",
    "TopChoice",
    "TopSet",
]

# Each file here is found by itself; what lies in the folder matrix is added by hand, since most of it needs NumPy.
MECHANISMS: tuple[type[Document], ...] = (*declared_in(__name__, __path__, "mechanism."), BufferedNoise, MatrixNoise)
# Those that add noise to any whole numbers, and their kinds: what may answer a query that is read by the law alone.
ADDED_NOISE: tuple[type[AddedNoise], ...] = tuple(
    sorted((one for one in MECHANISMS if adds_noise(one)), key=lambda one: (not one.PURE, one.KIND))
)
ANY_NOISE = tuple(one.KIND for one in ADDED_NOISE)

_RENAMED = {"CubeNoise": LInfKNorm, "NoisyScale": NoisyLocalSensitivity}


def __getattr__(name: str) -> Any:
    """``Matrix``, names of earlier versions, and mechanisms that are not listed above."""
    if name in _RENAMED:
        new = _RENAMED[name]
        said = f"sfumato.mechanisms.{name} is now sfumato.mechanisms.{new.__name__}"
        warnings.warn(said, DeprecationWarning, stacklevel=2)
        return new
    for found in MECHANISMS:
        if found.__name__ == name:
            return found
    if name != "Matrix":
        raise AttributeError(f"module 'sfumato.mechanisms' has no attribute {name!r}")
    from sfumato.mechanisms.matrix import Matrix

    return Matrix
