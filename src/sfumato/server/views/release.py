"""A published release as everybody reads it: numbers, margins, raw draws, what it risks, and how it was made.

It says nothing of the account that paid for it and of the purpose that was stated: those are the institution's own.
"""

import json
import shlex
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from sfumato.core.documents import Json
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.reports.amounts import amount
from sfumato.reports.catalogue import message
from sfumato.reports.columns import columns_of, magnitude, shared_margins
from sfumato.reports.evidence import Declared, registry, shape
from sfumato.reports.frequencies import Frequencies, frequencies
from sfumato.reports.limited import covers
from sfumato.reports.page import file_name
from sfumato.reports.particulars import asked, particulars
from sfumato.reports.plots.areas import areas_of
from sfumato.reports.publication import Grounds, Publication, standing
from sfumato.reports.sheet import Sheet, sheet
from sfumato.server.views.gate import PlannedFor, Published
from sfumato.server.views.written import spent

__all__ = [
    "Raw",
    "ReleasePage",
    "ReleaseRow",
    "area_file",
    "pictures_of",
    "registry_document",
    "release_page",
    "row_of",
    "row_of_release",
]

MOST_ROWS, MOST_RAW, MOST_PAGES = 2_000, 2_000, 128
OWN_FACTS = ("account", "ledger")
"""What a certificate states and a page for everybody does not repeat."""
AREAS = ".areas.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Raw:
    """The numbers as they were drawn, before anything was computed of them: the key of each, and the number."""

    heads: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], int], ...]
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRow:
    """A release in a list."""

    identifier: str
    dataset: str
    version: str
    asked: str
    at: str
    epsilon: str
    margin: str
    plan: str
    first: str
    last: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasePage:
    """Everything that the page of a release shows, in one language, as plain text."""

    row: ReleaseRow
    lead: str
    meaning: tuple[str, ...]
    recorded: str
    table: Sheet | None
    covers: str
    raw: Raw
    risk: Frequencies | None
    readers: tuple[tuple[str, tuple[str, ...]], ...]
    facts: tuple[tuple[str, str], ...]
    approved: tuple[tuple[int, tuple[str, ...]], ...]
    later: tuple[str, ...]
    pictures: tuple[str, ...]
    command: str

    def without_pictures(self) -> "ReleasePage":
        """The same page for where its pictures are not."""
        return replace(self, pictures=())


def row_of(published: Published, language: str) -> ReleaseRow:
    """A published release as a list shows it."""
    return row_of_release(published.release, language, published.planned)


def row_of_release(release: Release, language: str, planned: PlannedFor | None = None) -> ReleaseRow:
    """A release as a list shows it; worked out once for each language."""
    said = release.statement
    key = (said.identifier, language, planned is None)
    if key not in _ROWS:
        while len(_ROWS) >= MOST_HELD:
            _ROWS.pop(next(iter(_ROWS)), None)
        _ROWS[key] = _row(release, language, planned)
    return _ROWS[key]


_ROWS: dict[tuple[str, str, bool], ReleaseRow] = {}
MOST_HELD = 4_096


def _row(release: Release, language: str, planned: PlannedFor | None) -> ReleaseRow:
    said = release.statement
    shared = shared_margins(release) if columns_of(release) else None
    return ReleaseRow(
        identifier=said.identifier,
        dataset=said.dataset.name,
        version=said.dataset.edition,
        asked=asked(said, language),
        at=said.issued[:10],
        epsilon=f"ε = {spent(said.spend.epsilon)}" if not said.spend.delta else amount(said.spend, language),
        margin="" if shared is None else f"±{magnitude(shared[0], 4)}",
        plan="" if planned is None else planned.plan,
        first="" if planned is None else planned.period.first.isoformat(),
        last="" if planned is None else planned.period.last.isoformat(),
    )


def release_page(published: Published, language: str, *, areas: Path | None = None) -> ReleasePage:
    """The page of a release; ``areas`` is a folder with maps, one for each dataset whose keys are areas.

    Guarantee: what is not on record for publication never comes this far; refused otherwise.
    """
    return replace(
        _unchanging(_SameRelease(published.release), published.grounds, language),
        row=row_of(published, language),
        approved=tuple(
            (each.proposal.number, () if each.decision is None else each.decision.yes)
            for each in published.charge.approvals
        ),
        later=tuple(f"{each.place.at[:10]} {each.what}" for each in published.charge.later),
        pictures=pictures_of(published.release, area_file(areas, published.release)),
    )


class _SameRelease:
    """One release, and no other that is like it."""

    def __init__(self, release: Release) -> None:
        self.release = release

    def __hash__(self) -> int:
        return id(self.release)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameRelease) and other.release is self.release


@lru_cache(maxsize=MOST_PAGES)
def _unchanging(same: _SameRelease, grounds: Grounds, language: str) -> ReleasePage:
    """What follows from a release and its grounds alone, which is most of its page and of the work for it."""
    release = same.release
    shown = standing(release, grounds, languages=(language,))
    if not isinstance(shown, Publication):
        raise InvalidInput("this release is a draft; nothing was shown.")
    lead, *meaning = shown.text(language, "public").split("\n\n")
    columns, each = columns_of(release), release.statement.identifier
    return ReleasePage(
        row=row_of_release(release, language),
        lead=lead,
        meaning=tuple(meaning),
        recorded=shown.recorded(language),
        table=sheet(release, language, most=MOST_ROWS) if columns else None,
        covers=covers(release, language, measured=any(not one.chosen for one in columns), columns=columns),
        raw=_raw(release),
        risk=_risk(release),
        readers=tuple((who, tuple(shown.text(language, who).split("\n\n"))) for who in ("patient", "clinician")),
        facts=tuple(
            (message(language, f"fact.{name}"), fact)
            for name, fact in particulars(release, language)
            if name not in OWN_FACTS
        ),
        approved=(),
        later=(),
        pictures=(),
        command=f"sfumato verify {shlex.quote(file_name(release.statement.dataset, each))} --key ledger.key.pub",
    )


def pictures_of(release: Release, areas: Path | None) -> tuple[str, ...]:
    """The pictures that a release has, by name."""
    found = ["intervals"] if columns_of(release) else []
    if areas is not None and _fits(release, areas):
        found.append("map")
    return (*found, "people", "noise")


def area_file(folder: Path | None, release: Release) -> Path | None:
    """The map of a release's dataset, where the publisher has laid one beside it: ``NAME.areas.json``."""
    name = release.statement.dataset.name
    if folder is None or not name.replace("-", "").replace("_", "").isalnum():
        return None
    place = folder / f"{name}{AREAS}"
    return place if place.is_file() else None


def registry_document(published: list[Published], declared: Declared) -> dict[str, Json]:
    """The public registry for programs: the fields of its schema, without account paths and purposes.

    Refused where it departs from the schema.
    """
    listed: list[Json] = []
    for each in published:
        grounds = each.grounds
        mine = Declared(
            publisher=declared.publisher,
            licence=declared.licence,
            access=declared.access,
            region=declared.region,
            reason=grounds.reason,
            legal_basis=grounds.legal_basis,
        )
        (entry,) = _entries(registry.registry([(each.charge, each.release)], mine))
        listed.append(_without_own(entry))
    document: dict[str, Json] = {"kind": "sfumato.registry", "version": 1, "releases": listed}
    shape.check(document, "registry")
    return document


def _entries(document: dict[str, Json]) -> list[dict[str, Json]]:
    found = document["releases"]
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _without_own(entry: dict[str, Json]) -> Json:
    """An entry without what is the institution's own: accounts, balances and the purpose of a charge."""
    told = json.loads(json.dumps(entry))
    deployment = told["entry"]["deployment"]
    deployment["basic"]["intended_use"] = "for everybody, as published"
    deployment["deployment_model"]["release_type_details"] = "at the cap of its privacy budget new releases are refused"
    deployment["deployment_model"]["actors"] = (
        "recipient: everybody; whoever runs the vault is trusted with the rows, and no reader is"
    )
    deployment["accounting"]["composition"] = "sequential; every release counts against all budgets of the same people"
    return told  # type: ignore[no-any-return]  # JSON as it was


def _raw(release: Release) -> Raw:
    """The noisy numbers as they were drawn, with their keys where each number has one."""
    said = release.statement
    labels = release.labels if release.measure is not None else {}
    keys = list(zip(*labels.values(), strict=True)) if labels else []
    known = len(keys) == len(said.values)
    rows = tuple(
        (tuple(str(part) for part in keys[place]) if known else (str(place + 1),), value)
        for place, value in enumerate(said.values[:MOST_RAW])
    )
    heads = tuple(labels) if known else ()
    return Raw(heads=heads, rows=rows, left_out=max(0, len(said.values) - MOST_RAW))


def _risk(release: Release) -> Frequencies | None:
    try:
        return frequencies(release)
    except SfumatoError:
        return None


def _fits(release: Release, areas: Path) -> bool:
    """Whether a map can show the release: one key, whose values name areas."""
    labels = release.labels
    if len(labels) != 1:
        return False
    ((name, column),) = labels.items()
    try:
        known = {area.name for area in areas_of(areas, like=name)}
    except SfumatoError:
        return False
    return any(str(label) in known for label in column)
