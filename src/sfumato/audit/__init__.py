"""Audit: attacks on what is shipped, and on deliberately broken mechanisms that must not survive them.

An attack proves a *lower* bound on ε, or that draws do not follow their stated law; either refutes a claim. Attacks
never prove privacy: where nothing was found, nothing was found.
"""

from sfumato.audit.bounds import epsilon_lower_bound
from sfumato.audit.registry import ATTACKS, TWINS, audit
from sfumato.audit.verdict import Attack, Drawn, Verdict

__all__ = ["ATTACKS", "TWINS", "Attack", "Drawn", "Verdict", "audit", "epsilon_lower_bound"]
