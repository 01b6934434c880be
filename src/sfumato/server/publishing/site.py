"""The public part as a static site: pages in both languages, certificates, receipts, the registry; no script at all.

It is written from the ledger alone, of releases on record for publication that nothing forbids today. No page and no
name of a file states an account or a purpose. Certificates do name the account that was charged: it is signed with the
rest, and cannot be left out.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from sfumato.errors import InvalidInput, SfumatoError
from sfumato.governance.ledger import Ledger
from sfumato.reports.evidence import Declared
from sfumato.reports.evidence.shape import schema
from sfumato.reports.publication import Grounds
from sfumato.server.views.dashboard import Dashboard, dashboard, dashboards_of
from sfumato.server.views.gate import Gated, Published, gated
from sfumato.server.views.pictures import THEMES, WIDTHS, drawn
from sfumato.server.views.plan_page import plan_csv, plan_shown
from sfumato.server.views.public_pages import PublicHome, PublicPlan, PublicRelease, plan_card
from sfumato.server.views.release import area_file, pictures_of, registry_document, release_page, row_of
from sfumato.server.views.snapshot import Snapshots
from sfumato.server.words import OFFERED, PageWords

__all__ = ["StaticSite", "written_site"]

FIRST = "en"
"""The language at the top of the site; others have a folder."""
STATIC = ("style.css", "board.css", "mark.svg")


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticSite:
    """What was written: how many releases and plans, how many were withheld, and all files."""

    releases: int
    plans: int
    withheld: int
    files: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """One page of the site, before it is laid out."""

    place: str
    body: str
    title: str
    page: object


def written_site(
    ledger: Ledger,
    folder: str | Path,
    *,
    stated: Mapping[str, Grounds],
    declared: Declared,
    now: datetime,
    areas: Path | None = None,
) -> StaticSite:
    """Write the site into a new or empty folder.

    ``stated`` are the grounds of releases that belong to no plan with grounds of its own, by identifier; ``areas`` is a
    folder with maps (``NAME.areas.json``). Reads no data, charges nothing.
    """
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidInput(f"{target} already exists and is not an empty folder; nothing was written. Name a new one.")
    snapshot = Snapshots(ledger).now()
    found = gated(snapshot, stated, at=now.isoformat(timespec="seconds"))
    plans = [dashboard(snapshot, each, today=now.date()) for each in dashboards_of(snapshot)]
    plans = [each for each in plans if each.public]
    if not found.published:
        raise InvalidInput(
            "no release is on record for publication, or all of them are withheld; nothing was written. State a reason "
            "and a legal basis, in the plan or for a release."
        )
    files: dict[str, bytes] = {}
    for language in OFFERED:
        for page in _pages(found, plans, language, ledger.public_key, areas):
            files[_in(language, page.place)] = _laid_out(page, language, declared).encode()
    files |= dict(_beside(ledger, found, plans, declared, areas))
    for name, content in files.items():
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return StaticSite(
        releases=len(found.published),
        plans=len(plans),
        withheld=len(found.withheld),
        files=tuple(target / name for name in files),
    )


def _pages(found: Gated, plans: list[Dashboard], language: str, key: str, areas: Path | None) -> Iterator[_Page]:
    say = PageWords(language).say
    rows = tuple(row_of(each, language) for each in found.published)
    home = PublicHome(
        plans=tuple(plan_card(each) for each in plans),
        rows=rows,
        total=len(rows),
        at=1,
        pages=1,
        dataset="",
        datasets=(),
        withheld=found.withheld,
    )
    yield _Page(place="index.html", body="public/home_body.html", title=say("public.title"), page=home)
    for each in found.published:
        shown = release_page(each, language, areas=areas)
        if each.planned is not None:  # its dashboard has the pictures
            shown = shown.without_pictures()
        title = f"{shown.row.dataset} {shown.row.version}"
        body = PublicRelease(shown=shown, key=key)
        yield _Page(place=f"releases/{each.identifier}.html", body="public/release_body.html", title=title, page=body)
    for plan in plans:
        title = say("public.plan_title", plan=plan.plan, year=plan.year)
        body_of = PublicPlan(shown=plan_shown(plan))
        yield _Page(place=f"plans/{plan.digest}.html", body="public/plan_body.html", title=title, page=body_of)


def _beside(
    ledger: Ledger, found: Gated, plans: list[Dashboard], declared: Declared, areas: Path | None
) -> Iterator[tuple[str, bytes]]:
    """All files that are no pages."""
    head = ledger.head()
    yield "head.json", f"{head.text}\n".encode()
    yield "ledger.key.pub", f"{ledger.public_key}\n".encode()
    document = registry_document(list(found.published), declared)
    yield "registry.json", (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()
    yield "registry.schema.json", (json.dumps(schema("registry"), indent=1) + "\n").encode()
    for name in STATIC:
        yield name, resources.files("sfumato.server").joinpath("static", name).read_bytes()
    for each in found.published:
        yield f"certificates/{each.identifier}.json", f"{each.release.certificate.to_json()}\n".encode()
        receipt = _receipt(ledger, each)
        if receipt is not None:
            yield f"certificates/{each.identifier}.receipt.json", receipt
        if each.planned is None:
            yield from _pictures(each, area_file(areas, each.release))
    for plan in plans:
        for line in plan.lines:
            yield f"plans/{plan.digest}-{line.name}.csv", plan_csv(line).encode()


def _receipt(ledger: Ledger, each: Published) -> bytes | None:
    """The receipt of a release; None for an entry from before entries had a random part."""
    if each.charge.settled is None:
        return None
    try:
        return f"{ledger.receipt(each.charge.settled.number).text}\n".encode()
    except SfumatoError:
        return None


def _pictures(each: Published, areas: Path | None) -> Iterator[tuple[str, bytes]]:
    for kind in pictures_of(each.release, areas):
        for language in OFFERED:
            for theme in THEMES:
                for width in WIDTHS:
                    svg = drawn(each.release, kind, language[:2], theme, width, areas)
                    if svg is not None:
                        yield _picture(each.identifier, kind, language[:2], theme, width), svg.encode()


def _picture(identifier: str, kind: str, language: str, theme: str, width: str) -> str:
    return f"pictures/{identifier}-{kind}-{language}-{theme}-{width}.svg"


def _laid_out(page: _Page, language: str, declared: Declared) -> str:
    place = _in(language, page.place)
    root = "../" * place.count("/")
    return (
        _environment()
        .get_template("site.html")
        .render(
            page=page.page,
            body=page.body,
            title=page.title,
            publisher=declared.publisher or "Sfumato",
            language=language,
            others=[(code, name, root + _in(code, page.place)) for code, name in OFFERED.items()],
            say=PageWords(language).say,
            url=_url(language, root),
            root=root,
            sift=False,
        )
    )


def _url(language: str, root: str) -> Callable[..., str]:
    """Where a page of the service lies in the site, from a page that lies as deep as ``root`` says."""

    def url(name: str, **parts: str) -> str:
        match name:
            case "public.home":
                return root + _in(language, "index.html")
            case "public.release":
                return root + _in(language, f"releases/{parts['identifier']}.html")
            case "public.plan":
                return root + _in(language, f"plans/{parts['digest']}.html")
            case "public.plan_table":
                return f"{root}plans/{parts['digest']}-{parts['line']}.csv"
            case "public.certificate":
                return f"{root}certificates/{parts['identifier']}.json"
            case "public.picture":
                return root + _picture(**parts)
            case "public.registry":
                return f"{root}registry.json"
        raise InvalidInput(f"{name} is no page of the site; nothing was written.")

    return url


def _in(language: str, place: str) -> str:
    return place if language == FIRST else f"{language[:2]}/{place}"


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("sfumato.server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
