"""Noise: bits of the operating system and exact samplers; nothing else.

The functions named after a law take its parameters and draw from the operating system. The ``sample_…`` functions take
a source of words besides, and the ``draw_…`` functions are the slow references in whole numbers.
Names are imported when they are first used, so that a mechanism can be read from a certificate without NumPy.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any  # whatever a module has under a name

if TYPE_CHECKING:
    from sfumato.noise.bernoulli import bernoulli_exp, sample_bernoulli_exp
    from sfumato.noise.bits import Bits, SystemBits
    from sfumato.noise.fine import fine_gaussian
    from sfumato.noise.lattice import (
        discrete_gaussian,
        discrete_laplace,
        geometric,
        sample_discrete_gaussian,
        sample_discrete_laplace,
        sample_geometric,
    )
    from sfumato.noise.poisson_noise import poisson, sample_poisson, sample_skellam, skellam
    from sfumato.noise.reference import draw_discrete_gaussian, draw_discrete_laplace, draw_geometric
    from sfumato.noise.rounding import rounded_gaussian, sample_rounded_gaussian
    from sfumato.noise.selection import permutation, sample_permutation, sample_selection, select
    from sfumato.noise.sums import saturating_sum
    from sfumato.noise.words import SystemWords, Words

_HOME = {
    "Bits": "bits",
    "SystemBits": "bits",
    "SystemWords": "words",
    "Words": "words",
    "bernoulli_exp": "bernoulli",
    "discrete_gaussian": "lattice",
    "discrete_laplace": "lattice",
    "draw_discrete_gaussian": "reference",
    "draw_discrete_laplace": "reference",
    "draw_geometric": "reference",
    "fine_gaussian": "fine",
    "geometric": "lattice",
    "permutation": "selection",
    "poisson": "poisson_noise",
    "rounded_gaussian": "rounding",
    "sample_bernoulli_exp": "bernoulli",
    "sample_discrete_gaussian": "lattice",
    "sample_discrete_laplace": "lattice",
    "sample_geometric": "lattice",
    "sample_permutation": "selection",
    "sample_poisson": "poisson_noise",
    "sample_rounded_gaussian": "rounding",
    "sample_selection": "selection",
    "sample_skellam": "poisson_noise",
    "saturating_sum": "sums",
    "select": "selection",
    "skellam": "poisson_noise",
}

__all__ = [
    "Bits",
    "SystemBits",
    "SystemWords",
    "Words",
    "bernoulli_exp",
    "discrete_gaussian",
    "discrete_laplace",
    "draw_discrete_gaussian",
    "draw_discrete_laplace",
    "draw_geometric",
    "fine_gaussian",
    "geometric",
    "permutation",
    "poisson",
    "rounded_gaussian",
    "sample_bernoulli_exp",
    "sample_discrete_gaussian",
    "sample_discrete_laplace",
    "sample_geometric",
    "sample_permutation",
    "sample_poisson",
    "sample_rounded_gaussian",
    "sample_selection",
    "sample_skellam",
    "saturating_sum",
    "select",
    "skellam",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sfumato.noise' has no attribute {name!r}")
    path = f"sfumato.noise.{_HOME[name]}"
    return getattr(sys.modules.get(path) or importlib.import_module(path), name)
