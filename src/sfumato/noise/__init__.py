"""Noise: bits of the operating system and exact samplers; nothing else."""

from sfumato.noise.bits import Bits, SystemBits
from sfumato.noise.discrete_laplace import discrete_laplace, draw_discrete_laplace

__all__ = ["Bits", "SystemBits", "discrete_laplace", "draw_discrete_laplace"]
