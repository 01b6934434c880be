"""Mechanisms: one file each; a declaration with its loss, its law and its sampling."""

from sfumato.mechanisms.exponential import Exponential, PermuteAndFlip
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.mechanisms.laplace import Laplace
from sfumato.mechanisms.noisy_max import NoisyMax
from sfumato.mechanisms.randomized_response import RandomizedResponse
from sfumato.mechanisms.sparse_vector import SparseVector
from sfumato.mechanisms.threshold import NoisyThreshold

__all__ = [
    "MECHANISMS",
    "Exponential",
    "Gaussian",
    "Laplace",
    "NoisyMax",
    "NoisyThreshold",
    "PermuteAndFlip",
    "RandomizedResponse",
    "SparseVector",
]

MECHANISMS = (
    Exponential,
    Gaussian,
    Laplace,
    NoisyMax,
    NoisyThreshold,
    PermuteAndFlip,
    RandomizedResponse,
    SparseVector,
)
