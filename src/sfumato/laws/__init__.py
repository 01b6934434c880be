"""Laws of error: what previews, intervals and plots use."""

from sfumato.laws.cube import Cube
from sfumato.laws.degrees import Degrees
from sfumato.laws.discrete_gaussian import DiscreteGaussian
from sfumato.laws.discrete_laplace import DiscreteLaplace
from sfumato.laws.gaussian import Gaussian
from sfumato.laws.ladder import LadderBound
from sfumato.laws.laplace import Laplace
from sfumato.laws.rounded_gaussian import RoundedGaussian
from sfumato.laws.sums import Sum, Term
from sfumato.laws.unstated import Unstated

__all__ = [
    "LAWS",
    "Cube",
    "Degrees",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "LadderBound",
    "Laplace",
    "RoundedGaussian",
    "Sum",
    "Term",
    "Unstated",
]

LAWS = (
    Cube,
    Degrees,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    LadderBound,
    Laplace,
    RoundedGaussian,
    Sum,
    Term,
    Unstated,
)
