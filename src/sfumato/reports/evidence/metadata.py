"""FAIR metadata of releases: schema.org and DCAT terms, as JSON-LD.

Only releases whose stored certificate verifies are described. What nobody declared is left out and not invented: such
a document does not meet the schema, and :func:`missing` says why.
"""

import hashlib
from collections.abc import Sequence

from sfumato.core.documents import Json
from sfumato.core.release import Release
from sfumato.core.units import describe
from sfumato.governance.provenance import Provenance
from sfumato.reports.evidence.declared import Declared
from sfumato.reports.evidence.lineage import about, certificate_file
from sfumato.reports.evidence.quoting import plain
from sfumato.reports.evidence.shape import problems, schema

__all__ = ["CONTEXT", "fair", "missing"]

CONTEXT: dict[str, Json] = {
    "@vocab": "https://schema.org/",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dct": "http://purl.org/dc/terms/",
    "prov": "http://www.w3.org/ns/prov#",
}


def fair(releases: Sequence[tuple[Provenance, Release]], declared: Declared) -> dict[str, Json]:
    """The metadata of all releases; refused while the reason or the legal basis of the publication is missing."""
    declared.grounds.check("the metadata of releases")
    return {"@context": CONTEXT, "@graph": [_dataset(charge, release, declared) for charge, release in releases]}


def missing(document: dict[str, Json]) -> tuple[str, ...]:
    """In what a document falls short of the FAIR schema: identifier, licence, access route, format and the rest."""
    return tuple(problems(document, schema("fair")))


def _dataset(charge: Provenance, release: Release, declared: Declared) -> Json:
    said = release.statement
    name = f"{said.dataset.name} {said.dataset.edition}: {about(said)}"
    words = f"{about(said)}, with noise for {describe(said.unit)} at {said.spend}"
    shown: dict[str, Json] = {
        "@type": ["Dataset", "dcat:Dataset"],
        "@id": f"urn:sfumato:release:{said.identifier}",
        "identifier": said.identifier,
        "name": plain(name),
        "description": plain(words),
        "version": plain(said.dataset.edition),
        "datePublished": said.issued,
        "keywords": ["differential privacy", *([plain(charge.purpose)] if charge.purpose else [])],
        "distribution": _distribution(charge, release, declared),
        "variableMeasured": [
            {"@type": "PropertyValue", "name": plain(column), "measurementTechnique": said.mechanism.KIND}
            for column in ([said.query.measure] if said.query.measure is not None else said.query.names)
        ],
        "isBasedOn": [
            {
                "@type": "Dataset",
                "name": plain(reading.dataset.name),
                "version": plain(reading.dataset.edition),
                "conditionsOfAccess": "not public: only noisy answers leave it",
            }
            for reading in charge.readings
        ],
        "prov:wasGeneratedBy": {
            "@type": "prov:Activity",
            "name": f"charge {charge.number}",
            "softwareVersion": plain(said.code),
            "prov:endedAtTime": said.issued,
            "description": f"{said.mechanism.KIND}, {said.spend}",
        },
        "dct:provenance": f"entries {charge.number} and {charge.settled.number if charge.settled else 0} of the ledger "
        f"{said.account.ledger}, held by its signed head at entry {charge.head.head.number}",
    }
    if declared.licence is not None:
        shown["license"] = declared.licence
    if declared.publisher is not None:
        shown["publisher"] = {"@type": "Organization", "name": plain(declared.publisher)}
    if declared.region is not None:
        shown["spatialCoverage"] = plain(declared.region)
    if charge.reads is not None:
        shown["temporalCoverage"] = "/".join(charge.reads)
    if charge.recipient is not None:
        shown["conditionsOfAccess"] = plain(f"recipient: {charge.recipient}")
    return shown


def _distribution(charge: Provenance, release: Release, declared: Declared) -> Json:
    found: dict[str, Json] = {
        "@type": ["DataDownload", "dcat:Distribution"],
        "contentUrl": certificate_file(charge.number),
        "encodingFormat": "application/json",
        "sha256": hashlib.sha256(release.certificate.to_json().encode()).hexdigest(),
    }
    return found if declared.access is None else found | {"dcat:accessURL": declared.access}
