"""The matrix mechanism: many linear questions answered from one well-chosen set of noisy ones.

Factorisations live here alone. Imported when first used, since it needs NumPy and SciPy.
"""

from sfumato.mechanisms.matrix.buffered import Buffered, Stream
from sfumato.mechanisms.matrix.lattice import Matrix
from sfumato.mechanisms.matrix.measurement import Draw, Measurement
from sfumato.mechanisms.matrix.optimal import Certificate
from sfumato.mechanisms.matrix.tree import tree
from sfumato.mechanisms.matrix.workloads import Workload, all_range, degrees, given, identity, prefix

__all__ = [
    "Buffered",
    "Certificate",
    "Draw",
    "Matrix",
    "Measurement",
    "Stream",
    "Workload",
    "all_range",
    "degrees",
    "given",
    "identity",
    "prefix",
    "tree",
]
