"""Laws of error: what previews, intervals and plots use."""

from sfumato.laws.discrete_laplace import DiscreteLaplace
from sfumato.laws.rounded_gaussian import RoundedGaussian
from sfumato.laws.sums import Sum

__all__ = ["LAWS", "DiscreteLaplace", "RoundedGaussian", "Sum"]

LAWS = (DiscreteLaplace, RoundedGaussian, Sum)
