"""Audit: attacks on what is shipped, and on deliberately broken mechanisms that must not survive them.

An attack proves a *lower* bound on ε, or that draws do not follow their stated law; either refutes a claim. Attacks
never prove privacy: where nothing was found, nothing was found.
"""

from sfumato.audit.bounds import epsilon_lower_bound
from sfumato.audit.membership import (
    MembershipAuc,
    auc_bound,
    closest_record,
    gaussian_auc_bound,
    likelihood_ratio,
    membership_auc,
    membership_game,
    membership_split,
    row_density,
)
from sfumato.audit.registry import ATTACKS, TWINS, audit
from sfumato.audit.verdict import Attack, Drawn, Verdict
from sfumato.audit.ways import WayAudited, WayOut, ways_out

__all__ = [
    "ATTACKS",
    "TWINS",
    "Attack",
    "Drawn",
    "MembershipAuc",
    "Verdict",
    "WayAudited",
    "WayOut",
    "auc_bound",
    "audit",
    "closest_record",
    "epsilon_lower_bound",
    "gaussian_auc_bound",
    "likelihood_ratio",
    "membership_auc",
    "membership_game",
    "membership_split",
    "row_density",
    "ways_out",
]
