"""What everybody may read without signing in: published releases, the registry, and the dashboards of plans."""

from collections.abc import Mapping
from datetime import datetime

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, Response

from sfumato.errors import InvalidInput
from sfumato.governance.digest import digest_of
from sfumato.reports.catalogue import LANGUAGES
from sfumato.reports.evidence import Declared
from sfumato.reports.page import file_name
from sfumato.reports.publication import Grounds
from sfumato.server.publishing.grounds import Publications
from sfumato.server.rendering import MenuLink, render
from sfumato.server.roles import EVERYONE
from sfumato.server.service import Service
from sfumato.server.views.dashboard import Dashboard, dashboard, dashboards_of
from sfumato.server.views.due import due_snapshot
from sfumato.server.views.gate import Gated, Published, gated
from sfumato.server.views.pictures import THEMES, WIDTHS, drawn
from sfumato.server.views.plan_page import PlanShown, plan_csv, plan_shown
from sfumato.server.views.public_pages import PublicHome, PublicPlan, PublicRelease, plan_card
from sfumato.server.views.release import area_file, registry_document, release_page, row_of
from sfumato.server.views.snapshot import Snapshot
from sfumato.server.visitors import AskedBy, AskedService

__all__ = ["MENU", "ROUTES", "router"]

router = APIRouter()
ROUTES = dict.fromkeys(
    (
        *("public.home", "public.release", "public.picture", "public.certificate", "public.registry"),
        *("public.plan", "public.plan_table"),
    ),
    EVERYONE,
)
MENU = (MenuLink(route="public.home", words="public.menu", place=10, about="public.about"),)
AREAS = "areas"
A_PAGE = 20


@router.get("/public", name="public.home")
def home(request: Request, service: AskedService, visitor: AskedBy, dataset: str = "", page: int = 1) -> Response:
    """The public registry."""
    snapshot = due_snapshot(service)
    found = _gated(service, snapshot)
    mine = [each for each in found.published if dataset in ("", each.release.statement.dataset.name)]
    pages = max(1, -(-len(mine) // A_PAGE))
    at = min(max(page, 1), pages)
    shown = PublicHome(
        plans=tuple(plan_card(each) for each in _dashboards(service, snapshot) if each.public),
        rows=tuple(row_of(each, visitor.lang) for each in mine[(at - 1) * A_PAGE : at * A_PAGE]),
        total=len(mine),
        at=at,
        pages=pages,
        dataset=dataset,
        datasets=tuple(dict.fromkeys(each.release.statement.dataset.name for each in found.published)),
        withheld=found.withheld,
    )
    return render(request, "public/home.html", shown)


@router.get("/public/registry.json", name="public.registry")
def registry(service: AskedService) -> Response:
    """The registry for programs."""
    found = _gated(service, due_snapshot(service))
    return JSONResponse(registry_document(list(found.published), Declared()))


@router.get("/public/releases/{identifier}", name="public.release")
def release(request: Request, service: AskedService, visitor: AskedBy, identifier: str) -> Response:
    """One release."""
    published = _published(service, identifier)
    shown = release_page(published, visitor.lang, areas=service.folder / AREAS)
    return render(request, "public/release.html", PublicRelease(shown=shown, key=service.ledger.public_key))


@router.get("/public/releases/{identifier}/certificate.json", name="public.certificate")
def certificate(service: AskedService, identifier: str) -> Response:
    """Its certificate, as a file."""
    found = _published(service, identifier).release
    name = file_name(found.statement.dataset, found.statement.identifier).encode("ascii", "replace").decode()
    return Response(
        found.certificate.to_json(),
        media_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="{name.replace("?", "-")}"'},
    )


@router.get("/public/releases/{identifier}/{kind}-{language}-{theme}-{width}.svg", name="public.picture")
def picture(service: AskedService, identifier: str, kind: str, language: str, theme: str, width: str) -> Response:
    """A picture of it: in a language, a theme, and for a wide or a narrow screen."""
    found = _published(service, identifier).release
    if language not in LANGUAGES or theme not in THEMES or width not in WIDTHS:
        raise HTTPException(404)
    svg = drawn(found, kind, language, theme, width, area_file(service.folder / AREAS, found))
    if svg is None:
        raise HTTPException(404)
    return Response(svg, media_type="image/svg+xml", headers={"Cache-Control": "private, max-age=3600"})


@router.get("/public/plans/{digest}", name="public.plan")
def plan(request: Request, service: AskedService, digest: str) -> Response:
    """The dashboard of a plan."""
    return render(request, "public/plan.html", PublicPlan(shown=_plan_page(_plan(service, digest))))


@router.get("/public/plans/{digest}/{line}.csv", name="public.plan_table")
def plan_table(service: AskedService, digest: str, line: str) -> Response:
    """All reports of a line as a table."""
    found = next((each for each in _plan(service, digest).lines if each.name == line), None)
    if found is None:
        raise HTTPException(404)
    return Response(
        plan_csv(found),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{digest[:8]}.csv"'},
    )


# ------------------------------------------------------------------------------------------------------- what is shown


def stated_of(service: Service) -> Mapping[str, Grounds]:
    """The grounds that stewards put on record, by release."""
    held = Publications(service.database, now=service.now)
    return {identifier: each.grounds for identifier, each in held.all().items()}


def _gated(service: Service, snapshot: Snapshot) -> Gated:
    return gated(snapshot, stated_of(service), at=service.clock().isoformat(timespec="seconds"))


def _published(service: Service, identifier: str) -> Published:
    try:
        return _gated(service, due_snapshot(service)).find(identifier)
    except InvalidInput:
        raise HTTPException(404) from None


def _dashboards(service: Service, snapshot: Snapshot) -> tuple[Dashboard, ...]:
    today = service.clock().date()
    return tuple(held_dashboard(snapshot, each.number, today.isoformat()) for each in dashboards_of(snapshot))


def _plan(service: Service, digest: str) -> Dashboard:
    snapshot = due_snapshot(service)
    for each in dashboards_of(snapshot):
        if digest_of(each.schedule.plan) == digest:
            found = held_dashboard(snapshot, each.number, service.clock().date().isoformat())
            if found.public:
                return found
    raise HTTPException(404)


_DASHBOARDS: dict[tuple[str, int, str], tuple[str, Dashboard, PlanShown]] = {}
MOST_HELD = 32


def held_dashboard(snapshot: Snapshot, number: int, today: str) -> Dashboard:
    """The dashboard of an adopted plan, worked out once for each head of the ledger and each day."""
    return _held(snapshot, number, today)[1]


def _plan_page(found: Dashboard) -> PlanShown:
    for _, held, shown in _DASHBOARDS.values():
        if held is found:
            return shown
    return plan_shown(found)


def _held(snapshot: Snapshot, number: int, today: str) -> tuple[str, Dashboard, PlanShown]:
    head = snapshot.trail.head.head
    key = (head.ledger, number, today)
    known = _DASHBOARDS.get(key)
    if known is None or known[0] != head.digest:
        adopted = next(each for each in dashboards_of(snapshot) if each.number == number)
        found = dashboard(snapshot, adopted, today=datetime.fromisoformat(today).date())
        while len(_DASHBOARDS) >= MOST_HELD:
            _DASHBOARDS.pop(next(iter(_DASHBOARDS)), None)
        known = _DASHBOARDS[key] = (head.digest, found, plan_shown(found))
    return known
