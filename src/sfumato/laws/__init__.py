"""Error distributions: what previews, intervals and plots use.

Each file here is found by itself: a new distribution is a new file.
"""

from typing import Any  # whatever a module has under a name

from sfumato.core.deprecation import warn_renamed
from sfumato.core.documents import Document, declared_in
from sfumato.laws.cube import Cube
from sfumato.laws.degrees import DegreeNoiseLaw
from sfumato.laws.discrete_gaussian import DiscreteGaussian
from sfumato.laws.discrete_laplace import DiscreteLaplace
from sfumato.laws.gaussian import Gaussian
from sfumato.laws.ladder import LadderBound
from sfumato.laws.laplace import Laplace
from sfumato.laws.rounded_gaussian import RoundedGaussian
from sfumato.laws.skellam import SkellamNoise
from sfumato.laws.sums import Sum, SumTerm
from sfumato.laws.unstated import Unstated

__all__ = [
    "LAWS",
    "Cube",
    "DegreeNoiseLaw",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "LadderBound",
    "Laplace",
    "RoundedGaussian",
    "SkellamNoise",
    "Sum",
    "SumTerm",
    "Unstated",
]

LAWS: tuple[type[Document], ...] = declared_in(__name__, __path__, "law.")

_RENAMED = {"Degrees": DegreeNoiseLaw, "Term": SumTerm}


def __getattr__(name: str) -> Any:
    """Names of earlier versions."""
    if name not in _RENAMED:
        raise AttributeError(f"module 'sfumato.laws' has no attribute {name!r}")
    new = _RENAMED[name]
    warn_renamed(f"sfumato.laws.{name}", f"sfumato.laws.{new.__name__}")
    return new
