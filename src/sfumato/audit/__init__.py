"""Audit: attacks on what is shipped, and on broken twins that must not survive them.

An attack proves a *lower* bound on ε; a claim is refuted where that bound lies above it. Attacks never prove privacy.
"""

from sfumato.audit.bounds import epsilon_lower_bound
from sfumato.audit.registry import ATTACKS, TWINS, audit
from sfumato.audit.verdict import Attack, Verdict

__all__ = ["ATTACKS", "TWINS", "Attack", "Verdict", "audit", "epsilon_lower_bound"]
