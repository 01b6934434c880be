"""The matrix mechanism: many linear questions answered from one well-chosen set of noisy ones.

Factorisations live here alone; those over the steps of streams and training runs are in ``steps``. Two mechanisms can
be declared: a strategy with its noise (``MatrixNoise``) and a stream with correlated noise (``BufferedNoise``). The
optimum, p-Identity, the square root and the tree are strategies: ways to find or to write the A of a ``Matrix``, and no
mechanisms of their own. Names are imported when they are first used: the declarations are read without NumPy, the rest
needs NumPy and SciPy.
"""

import importlib
from typing import TYPE_CHECKING, Any  # whatever a module has under a name

from sfumato.core.deprecation import warn_renamed

if TYPE_CHECKING:
    from sfumato.mechanisms.matrix.binary_tree import tree
    from sfumato.mechanisms.matrix.buffered import Buffered, BufferedNoise, BufferedStream
    from sfumato.mechanisms.matrix.declaration import MatrixNoise
    from sfumato.mechanisms.matrix.lattice import Draw, Matrix, Measurement
    from sfumato.mechanisms.matrix.optimal import OptimalityGap
    from sfumato.mechanisms.matrix.workloads import Workload, all_range, degrees, given, identity, prefix

_HOME = {
    "Buffered": "buffered",
    "BufferedNoise": "buffered",
    "OptimalityGap": "optimal",
    "Draw": "lattice",
    "Matrix": "lattice",
    "MatrixNoise": "declaration",
    "Measurement": "lattice",
    "BufferedStream": "buffered",
    "Workload": "workloads",
    "all_range": "workloads",
    "degrees": "workloads",
    "given": "workloads",
    "identity": "workloads",
    "prefix": "workloads",
    "tree": "binary_tree",
}

__all__ = [
    "Buffered",
    "BufferedNoise",
    "BufferedStream",
    "Draw",
    "Matrix",
    "MatrixNoise",
    "Measurement",
    "OptimalityGap",
    "Workload",
    "all_range",
    "degrees",
    "given",
    "identity",
    "prefix",
    "tree",
]


_RENAMED = {"Certificate": "OptimalityGap", "Stream": "BufferedStream"}


def __getattr__(name: str) -> Any:
    if name in _RENAMED:
        new = _RENAMED[name]
        warn_renamed(f"sfumato.mechanisms.matrix.{name}", f"sfumato.mechanisms.matrix.{new}")
        name = new
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato.mechanisms.matrix' has no attribute {name!r}")
    return getattr(importlib.import_module(f"sfumato.mechanisms.matrix.{_HOME[name]}"), name)
