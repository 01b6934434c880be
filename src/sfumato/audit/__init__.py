"""Audit: attacks on what is shipped, and on deliberately broken mechanisms that must not survive them.

An attack proves a *lower* bound on ε, or that draws do not follow their stated law; either refutes a claim. Attacks
never prove privacy: where nothing was found, nothing was found.
"""

from sfumato.audit.bounds import epsilon_lower_bound
from sfumato.audit.gradient_attack import gradient_attack, gradient_attack_accuracy
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
from sfumato.audit.one_run import OneRunAudit, canary_evidence, judged_evidence, trained
from sfumato.audit.one_run_plot import audit_chart
from sfumato.audit.plans import PlansAudit, PlanTried, plans
from sfumato.audit.reference_models import (
    ModelMembership,
    PrivacyCurve,
    lira_scores,
    model_membership,
    rmia_scores,
)
from sfumato.audit.registry import ATTACKS, TWINS, audit
from sfumato.audit.verdict import Attack, Drawn, Verdict
from sfumato.audit.ways import WayAudited, WayOut
from sfumato.audit.ways_shipped import ways_out

__all__ = [
    "ATTACKS",
    "TWINS",
    "Attack",
    "Drawn",
    "MembershipAuc",
    "ModelMembership",
    "OneRunAudit",
    "PlanTried",
    "PlansAudit",
    "PrivacyCurve",
    "Verdict",
    "WayAudited",
    "WayOut",
    "auc_bound",
    "audit",
    "audit_chart",
    "canary_evidence",
    "closest_record",
    "epsilon_lower_bound",
    "gaussian_auc_bound",
    "gradient_attack",
    "gradient_attack_accuracy",
    "judged_evidence",
    "likelihood_ratio",
    "lira_scores",
    "membership_auc",
    "membership_game",
    "membership_split",
    "model_membership",
    "plans",
    "rmia_scores",
    "row_density",
    "trained",
    "ways_out",
]
