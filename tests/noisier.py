"""Finds tests whose verdict hangs on a draw: ``SFUMATO_NOISIER=2`` draws all noise at twice its scale.

A test that compares with what noise seldom moves fails once in hundreds of runs, and then stops whoever happens to run
it. At twice the scale a chance of p becomes about √p: one in a thousand becomes one in thirty. Tests of the laws of
noise fail then as they must; what fails besides is to be made certain. Only tests read this: no release does.
"""

import os
from fractions import Fraction

import sfumato.noise.lattice as lattice
import sfumato.noise.rounding as rounding
from sfumato.noise.sampler import Sampler

__all__ = ["noisier"]


def noisier(times: Fraction) -> None:
    """Let all samplers of this process draw at some multiple of the scale that they are asked for."""
    laplace, gaussian, geometric, rounded = lattice._laplace, lattice._gaussian, lattice._geometric, rounding._rounded

    def of(sampler: object, factor: Fraction) -> object:
        def wider(scale: Fraction) -> Sampler:
            return sampler(scale * factor)  # type: ignore[operator,no-any-return]  # one of the four

        return wider

    lattice._laplace = of(laplace, times)  # type: ignore[assignment]
    lattice._gaussian = of(gaussian, times**2)  # type: ignore[assignment]  # of σ²
    lattice._geometric = of(geometric, times)  # type: ignore[assignment]
    rounding._rounded = of(rounded, times)  # type: ignore[assignment]


if os.environ.get("SFUMATO_NOISIER"):
    noisier(Fraction(os.environ["SFUMATO_NOISIER"]))
