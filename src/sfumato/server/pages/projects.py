"""Projects: questions and drafts that belong together."""

from dataclasses import dataclass
from datetime import UTC, datetime

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from sfumato.server.asking.desk import desk_of
from sfumato.server.asking.projects import ProjectDraft
from sfumato.server.pages.results import JobRow, job_row
from sfumato.server.rendering import MenuLink, render
from sfumato.server.roles import ServiceRole
from sfumato.server.visitors import AskedBy, AskedService
from sfumato.server.works.kinds import KINDS

__all__ = ["MENU", "ROUTES", "router"]

router = APIRouter()
ANALYSTS = frozenset({ServiceRole.ANALYST})
ROUTES = {"projects": ANALYSTS, "projects.make": ANALYSTS, "project": ANALYSTS, "project.drop": ANALYSTS}
MENU = (
    MenuLink(route="projects", words="asking.projects_menu", place=32, roles=ANALYSTS, about="asking.projects_about"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRow:
    """A project in a list."""

    address: str
    title: str
    account: str
    made: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectsPage:
    """The projects that somebody sees."""

    projects: tuple[ProjectRow, ...]
    accounts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftRow:
    """A question that was not asked yet."""

    name: str
    address: str
    title: str
    dataset: str
    made: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPage:
    """A project with its drafts and its questions."""

    name: str
    title: str
    about: str
    account: str
    drafts: tuple[DraftRow, ...]
    jobs: tuple[JobRow, ...]


@router.get("/projects", name="projects")
def projects(*, request: Request, service: AskedService, visitor: AskedBy) -> Response:
    """The projects that somebody sees, and a form for another one."""
    desk = desk_of(service)
    page = ProjectsPage(
        projects=tuple(
            ProjectRow(
                address=request.app.url_path_for("project", name=each.name),
                title=each.title,
                account=each.account,
                made=_day(each.made),
            )
            for each in desk.projects.of(visitor)
        ),
        accounts=desk.accounts(visitor),
    )
    return render(request, "projects/list.html", page)


@router.post("/projects", name="projects.make")
def make(
    *,
    request: Request,
    title: str = Form(""),
    about: str = Form(""),
    account: str = Form(""),
    service: AskedService,
    visitor: AskedBy,
) -> Response:
    """Make a project."""
    desk = desk_of(service)
    made = desk.projects.make(visitor, title=title, about=about, account=desk.account(visitor, account))
    return RedirectResponse(request.app.url_path_for("project", name=made.name), 303)


@router.get("/projects/{name}", name="project")
def project(*, request: Request, name: str, service: AskedService, visitor: AskedBy) -> Response:
    """A project."""
    desk = desk_of(service)
    found = desk.projects.project(name, visitor)
    page = ProjectPage(
        name=found.name,
        title=found.title,
        about=found.about,
        account=found.account,
        drafts=tuple(
            DraftRow(
                name=draft.name,
                address=_address(request, draft),
                title=draft.title,
                dataset=draft.dataset,
                made=_day(draft.made),
            )
            for draft in desk.projects.drafts(found)
        ),
        jobs=tuple(job_row(request, job) for job in desk.asked_in(visitor, found)),
    )
    return render(request, "projects/project.html", page)


@router.post("/projects/{name}/drop", name="project.drop")
def drop(
    *,
    request: Request,
    name: str,
    draft: str = Form(""),
    service: AskedService,
    visitor: AskedBy,
) -> Response:
    """Throw a draft away."""
    desk = desk_of(service)
    desk.projects.drop(desk.projects.project(name, visitor), draft)
    return RedirectResponse(request.app.url_path_for("project", name=name), 303)


def _address(request: Request, draft: ProjectDraft) -> str:
    """Where a draft is gone on with: in the form that it was kept from."""
    kind = dict(draft.fields).get("work")
    if kind in KINDS:
        return f"{request.app.url_path_for('work.form', dataset=draft.dataset, kind=kind)}?{draft.query_string}"
    return f"{request.app.url_path_for('ask.form', dataset=draft.dataset)}?{draft.query_string}"


def _day(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d")
