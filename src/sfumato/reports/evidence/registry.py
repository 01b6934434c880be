"""The public registry of releases; under ``entry``, the fields of the OpenDP Deployments Registry, tiers 1 to 3."""

import math
from collections.abc import Sequence
from fractions import Fraction

from sfumato.core.documents import Json
from sfumato.core.exact import fraction_text
from sfumato.core.release import Release
from sfumato.core.units import Relation, describe
from sfumato.errors import SfumatoError
from sfumato.governance.provenance import Provenance
from sfumato.reports.evidence.declared import Declared
from sfumato.reports.evidence.quoting import plain
from sfumato.reports.evidence.sections import NOT_DECLARED
from sfumato.reports.particulars import asked, margins

__all__ = ["registry"]


def registry(releases: Sequence[tuple[Provenance, Release]], declared: Declared) -> dict[str, Json]:
    """An entry for each release whose certificate verifies, with its noisy numbers before any post-processing."""
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
        "found": [list(key) for key in said.found],
        "approved": [
            plain(f"proposal {each.proposal.number}: {', '.join(each.decision.yes) if each.decision else 'undecided'}")
            for each in charge.approvals
        ],
        "later": [plain(f"{later.place.at} {later.what}: {later.reason}") for later in charge.later],
    }


def _entry(charge: Provenance, release: Release, declared: Declared) -> Json:
    said = release.statement
    reasons = [each.proposal.reasons for each in charge.approvals]
    basic: dict[str, Json] = {
        "name": plain(f"{said.dataset.name} {said.dataset.edition}: {asked(said, 'en')}"),
        "data_curators": [plain(declared.publisher or NOT_DECLARED)],
        "intended_use": plain(charge.purpose or NOT_DECLARED),
        "data_product_type": "Summary statistics",
        "data_product_region": plain(declared.region or NOT_DECLARED),
        "description": plain(f"{asked(said, 'en')}; {_error(release)}"),
        "publication_date": said.issued[:10],
    }
    known = declared.publisher is not None and declared.region is not None and charge.purpose is not None
    parameters: dict[str, Json] = {"epsilon": _above(said.spend.epsilon), "delta": _above(said.spend.delta)}  # type: ignore[dict-item]
    balances = ", ".join(line.name for line in charge.lines)
    return {
        "url_slug": f"sfumato-{said.identifier}",
        "status": "Draft",
        "tier": 3 if known and reasons else 2 if known else 1,
        "deployment": {
            "basic": basic,
            "dp_variant": {
                "variant_name": "Approximate DP" if said.spend.delta else "Pure DP",
                "data_domain": plain(f"every table that fits the declaration of {said.dataset.name}"),
                "unprotected_quantities": "the number of units, which is public under replace"
                if said.unit.relation is Relation.REPLACE
                else "labels, keys, bounds and limits, which were declared as public",
            },
            "privacy_loss": {
                "privacy_unit": plain(describe(said.unit)),
                "privacy_unit_details": _neighbours(said.unit.relation)
                + (
                    ""
                    if said.limit is None
                    else plain(f"; held to {said.limit.groups} groups and {said.limit.rows_per_group} rows in each")
                ),
                "privacy_parameters": parameters,
                "privacy_parameters_details": f"exactly {said.spend}; numbers here are rounded up",
            },
            "deployment_model": {
                "model_name": "Central",
                "actors": plain(
                    f"recipient: {charge.recipient or NOT_DECLARED}; the vault and whoever holds its key "
                    "are trusted with the rows, nobody else is"
                ),
                "release_type": "Many releases",
                "release_type_details": plain(
                    f"{said.account.releases} charges so far on {said.account.name}, {said.account.spent} of "
                    f"{said.account.budget}; at the cap new releases are refused"
                ),
                "access_type": "Interactive",
                "access_type_details": "analysts ask through a vault and share the balances that are charged; whether "
                "they work together makes no difference",
            },
            "accounting": {
                "post_processing": "none: the numbers are listed as they were drawn",
                "composition": plain(f"sequential; charged to {balances}"),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "rows are held to the declared limits and bounds; "
                "what was asked through this ledger has a charge of its own, other looks at the data are unknown",
                "mechanisms": plain(
                    f"{said.mechanism.KIND} on whole numbers, drawn exactly from the operating system's "
                    f"randomness; {said.code}"
                ),
                "justification": plain(" ".join(f"{each.benefit} {each.risk} {each.choice}" for each in reasons))
                or NOT_DECLARED,
            },
            "administrative": {
                "sources": plain(declared.access or NOT_DECLARED),
                "notes": f"written from entry {charge.number} of the ledger {said.account.ledger}; "
                f"licence: {declared.licence or NOT_DECLARED}",
                "registry_authors": [plain(declared.publisher or NOT_DECLARED)],
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
        return "the law of the noise is in the certificate"


def _above(value: Fraction) -> float:
    """The least floating-point number that is not below a rational."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)
