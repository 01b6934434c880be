"""Attacks on invented people: what names left out, k-anonymity, federation and regularisation do not protect.

:func:`~sfumato.demo.attacks.running.demonstrate` runs all five; each has a module with its own functions.
"""

from sfumato.demo.attacks.gradients import demonstrate_gradient_inversion
from sfumato.demo.attacks.hospital import register
from sfumato.demo.attacks.k_anonymity import demonstrate_k_anonymity
from sfumato.demo.attacks.reconstruction import demonstrate_reconstruction
from sfumato.demo.attacks.ridge import demonstrate_ridge, ridge_information
from sfumato.demo.attacks.running import demonstrate, show, written
from sfumato.demo.attacks.singling_out import demonstrate_singling_out
from sfumato.demo.attacks.words import attack_story

__all__ = [
    "attack_story",
    "demonstrate",
    "demonstrate_gradient_inversion",
    "demonstrate_k_anonymity",
    "demonstrate_reconstruction",
    "demonstrate_ridge",
    "demonstrate_singling_out",
    "register",
    "ridge_information",
    "show",
    "written",
]
