"""Reads claims/catalogue.toml: what Sfumato claims, who answers for it, and how it is checked."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["CATALOGUE", "OWNERS", "VERDICTS", "Catalogue", "CatalogueError", "Claim", "load", "parse"]

CATALOGUE = Path(__file__).parents[2] / "claims" / "catalogue.toml"

VERDICTS = ("true", "assuming", "corrected", "policy")
OWNERS = (
    "calculus",
    "releases",
    "tables",
    "ledger",
    "graphs",
    "streams",
    "learning",
    "studies",
    "generative",
    "synthesis",
    "audit",
    "research",
    "tables (second)",
    "training (second)",
    "service",
    "documentation",
)


class CatalogueError(ValueError):
    """The catalogue contradicts itself or lacks something; the message names the entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One requirement: the statement a test has to show, and the figures that show it."""

    number: str
    area: str
    owner: str
    verdict: str
    statement: str
    check: str


FIELDS = tuple(Claim.__dataclass_fields__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All claims by number, in the order of the file, and the owners whose work is finished."""

    claims: Mapping[str, Claim]
    finished: frozenset[str]


def load(path: Path = CATALOGUE) -> Catalogue:
    """Read and check the catalogue."""
    return parse(path.read_text(encoding="utf-8"))


def parse(text: str) -> Catalogue:
    """Check a catalogue given as TOML text."""
    document = tomllib.loads(text)
    claims: dict[str, Claim] = {}
    for entry in document.get("claim", []):
        claim = _claim(entry)
        if claim.number in claims:
            raise CatalogueError(f"{claim.number} stands twice in the catalogue; give each number one entry.")
        claims[claim.number] = claim
    finished = frozenset(document.get("finished", []))
    for owner in sorted(finished - set(OWNERS)):
        raise CatalogueError(f"finished names the owner {owner!r}; owners are {', '.join(OWNERS)}.")
    return Catalogue(claims=claims, finished=finished)


def _claim(entry: Mapping[str, Any]) -> Claim:
    name = entry.get("number", "an entry without number")
    if wrong := sorted(set(FIELDS) ^ set(entry)):
        raise CatalogueError(f"{name} has missing or unknown fields: {', '.join(wrong)}.")
    # The file breaks long texts into lines; a line break there means a space.
    claim = Claim(**{field: " ".join(str(entry[field]).split()) for field in FIELDS})
    if empty := [field for field in FIELDS if not getattr(claim, field)]:
        raise CatalogueError(f"{name} leaves empty: {', '.join(empty)}.")
    if claim.owner not in OWNERS:
        raise CatalogueError(f"{name} has the owner {claim.owner!r}; owners are {', '.join(OWNERS)}.")
    if claim.verdict not in VERDICTS:
        raise CatalogueError(f"{name} has the verdict {claim.verdict!r}; verdicts are {', '.join(VERDICTS)}.")
    return claim
