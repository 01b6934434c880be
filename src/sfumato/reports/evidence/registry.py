"""The public registry of releases; under ``entry``, the fields of the OpenDP Deployments Registry, tiers 1 to 3.

That registry shows its strings as Markdown, so they are quoted as such; the fields beside ``entry`` are plain text.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any  # JSON with floating-point numbers, as the registry wants them

from sfumato.core.documents import Json
from sfumato.core.exact import fraction_text
from sfumato.core.release import Release
from sfumato.core.units import Relation, describe
from sfumato.errors import SfumatoError
from sfumato.governance.provenance import Provenance
from sfumato.reports.evidence.declared import Declared
from sfumato.reports.evidence.lineage import about
from sfumato.reports.evidence.quoting import plain, quoted
from sfumato.reports.evidence.sections import NOT_DECLARED
from sfumato.reports.particulars import margins

__all__ = ["registry"]


def registry(releases: Sequence[tuple[Provenance, Release]], declared: Declared) -> dict[str, Json]:
    """An entry for each release whose certificate verifies, with its noisy numbers before any post-processing.

    Refused while the reason or the legal basis of the publication is missing.
    """
    declared.grounds.check("the public registry")
    return {
        "kind": "sfumato.registry",
        "version": 1,
        "releases": [_listed(charge, release, declared) for charge, release in releases],
    }


def _listed(charge: Provenance, release: Release, declared: Declared) -> Json:
    said = release.statement
    return {
        "identifier": said.identifier,
        "charge": charge.number,
        "at": said.issued,
        "entry": _entry(charge, release, declared),
        "epsilon": fraction_text(said.spend.epsilon),
        "delta": fraction_text(said.spend.delta),
        "error": _error(release),
        "values": list(said.values),
        "reason": plain(declared.reason),
        "legal_basis": plain(declared.legal_basis),
        "found": [list(key) for key in said.found],
        "approved": [
            plain(f"proposal {each.proposal.number}: {', '.join(each.decision.yes) if each.decision else 'undecided'}")
            for each in charge.approvals
        ],
        "later": [plain(f"{later.place.at} {later.what}: {later.reason}") for later in charge.later],
    }


def _entry(charge: Provenance, release: Release, declared: Declared) -> Json:
    said = release.statement
    weighed = [each.proposal.reasons for each in charge.approvals]
    reasons = [f"benefit: {each.benefit}; risk: {each.risk}; why this ε: {each.choice}" for each in weighed]
    limit = said.limit
    held = "" if limit is None else f"; at most {limit.rows_per_group} rows of a unit in each of {limit.groups} groups"
    basic: dict[str, Json] = {
        "name": quoted(f"{said.dataset.name} {said.dataset.edition}: {about(said)}"),
        "data_curators": [quoted(declared.publisher or NOT_DECLARED)],
        "intended_use": quoted(charge.purpose or NOT_DECLARED),
        "data_product_type": "Summary statistics",
        "data_product_region": quoted(declared.region or NOT_DECLARED),
        "description": quoted(f"{about(said)}; {_error(release)}"),
        "publication_date": said.issued[:10],
    }
    known = declared.publisher is not None and declared.region is not None and charge.purpose is not None
    parameters: Any = {"epsilon": _above(said.spend.epsilon), "delta": _above(said.spend.delta)}
    balances = ", ".join(line.name for line in charge.lines)
    return {
        "url_slug": f"sfumato-{said.identifier}",
        "status": "Draft",
        "tier": 3 if known and reasons else 2 if known else 1,
        "deployment": {
            "basic": basic,
            "dp_variant": {
                "variant_name": "Approximate DP" if said.spend.delta else "Pure DP",
                "data_domain": quoted(f"every table that fits the declaration of {said.dataset.name}"),
                "unprotected_quantities": "the number of units, which is public under replace"
                if said.unit.relation is Relation.REPLACE
                else "labels, keys, bounds and limits, which were declared as public",
            },
            "privacy_loss": {
                "privacy_unit": quoted(describe(said.unit)),
                "privacy_unit_details": f"{_neighbours(said.unit.relation)}{held}",
                "privacy_parameters": parameters,
                "privacy_parameters_details": f"exactly {said.spend}; numbers here are rounded up",
            },
            "deployment_model": {
                "model_name": "Central",
                "actors": quoted(
                    f"recipient: {charge.recipient or NOT_DECLARED}; whoever runs the vault is trusted with the rows, "
                    "and no reader is"
                ),
                "release_type": "Many releases",
                "release_type_details": quoted(
                    f"{said.account.releases} charges so far on {said.account.name}, {said.account.spent} of "
                    f"{said.account.budget}; at the cap new releases are refused"
                ),
                "access_type": "Interactive",
                "access_type_details": "analysts ask through a vault and share the balances that are charged; whether "
                "they work together makes no difference",
            },
            "accounting": {
                "post_processing": "none: the numbers are listed as they were drawn",
                "composition": quoted(f"sequential; charged to {balances}"),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "rows are held to the declared limits and bounds; "
                "what was asked through this ledger has a charge of its own, other looks at the data are unknown",
                "mechanisms": quoted(
                    f"{said.mechanism.KIND}, in whole-number arithmetic, with the randomness of the operating system; "
                    f"{said.code}"
                ),
                "justification": quoted("; ".join(reasons) or NOT_DECLARED),
            },
            "administrative": {
                "sources": declared.access or NOT_DECLARED,
                "notes": f"written from entry {charge.number} of the ledger {said.account.ledger}; "
                f"licence: {declared.licence or NOT_DECLARED}",
                "registry_authors": [quoted(declared.publisher or NOT_DECLARED)],
            },
        },
    }


def _neighbours(relation: Relation) -> str:
    if relation is Relation.ADD_REMOVE:
        return "neighbouring tables differ by all rows of one unit, present in one and absent in the other"
    return "neighbouring tables differ by all rows of one unit, exchanged for those of another"


def _error(release: Release) -> str:
    try:
        return plain(f"95% margins from the noise: {margins(release, 'en')}")
    except SfumatoError:
        return "the noise distribution is in the certificate"


def _above(value: Fraction) -> float:
    """The least floating-point number that is not below a rational."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)
