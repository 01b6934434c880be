"""Laws of error: what previews, intervals and plots use."""

from sfumato.laws.discrete_laplace import DiscreteLaplace

__all__ = ["DiscreteLaplace"]
