"""What is done in the research environment: projects are drafted and opened, programs tried, handed in and run.

The service holds no researcher's key: it writes papers, which are signed elsewhere, and enters what comes back.
"""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from sfumato.errors import InvalidInput, NotDeclared, Refused, SfumatoError
from sfumato.governance.board import Action, Reasons
from sfumato.governance.program_paper import ProgramPaper
from sfumato.governance.research_entries import MOST_CODE, Project
from sfumato.server.pages.board import ballot_file
from sfumato.server.pages.research import new_page, show_program, show_project, show_trial
from sfumato.server.rendering import render
from sfumato.server.research.desk import research_of
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.visitors import AskedBy, AskedService, ConfirmedBy, Visitor

__all__ = ["ROUTES", "UPLOADS", "router"]

router = APIRouter()
RESEARCHERS = frozenset({ServiceRole.RESEARCHER})
ROUTES = {
    "research.draft": RESEARCHERS,
    "research.ask_project": RESEARCHERS,
    "research.open": RESEARCHERS | {ServiceRole.STEWARD},
    "research.try": RESEARCHERS,
    "research.submit": RESEARCHERS,
    "research.ask_program": RESEARCHERS,
    "research.run": frozenset({ServiceRole.STEWARD}),
}
UPLOADS = frozenset({"research.submit"})
MOST_PAPER = 1_000_000
MOST_SIGNS = 5_000


@router.post("/research/new", name="research.draft")
async def draft(*, request: Request, service: AskedService, visitor: AskedBy) -> Response:
    """Keep the text of a project."""
    form = await request.form()
    said = {name: value[:MOST_SIGNS] for name, value in form.items() if isinstance(value, str)}
    columns = frozenset(value for value in form.getlist("column") if isinstance(value, str))
    return await run_in_threadpool(_drafted, request, service, visitor, said, columns)


@router.post("/research/projects/{digest}/paper", name="research.ask_project")
def ask_project(
    *,
    request: Request,
    service: AskedService,
    visitor: AskedBy,
    digest: str,
    benefit: Annotated[str, Form()] = "",
    risk: Annotated[str, Form()] = "",
    choice: Annotated[str, Form()] = "",
) -> Response:
    """Write the paper that asks the board for a project; nothing is entered."""
    standing = research_of(service).project(digest)
    try:
        _check_member(visitor, standing.project)
        reasons = Reasons(benefit=benefit, risk=risk, choice=choice)
        return _asked(service, visitor, standing.project, standing.project.subject, reasons)
    except SfumatoError as wrong:
        return show_project(request, service, visitor, standing, wrong=str(wrong))


@router.post("/research/projects/{digest}/open", name="research.open")
def open_project(*, request: Request, service: AskedService, visitor: AskedBy, digest: str) -> Response:
    """Open a project that the board approved."""
    desk = research_of(service)
    standing = desk.project(digest)
    try:
        if not visitor.is_any(ServiceRole.STEWARD):
            _check_member(visitor, standing.project)
        desk.open(standing)
    except SfumatoError as wrong:
        return show_project(request, service, visitor, standing, wrong=str(wrong))
    return RedirectResponse(str(request.app.url_path_for("research.project", digest=digest)), 303)


@router.post("/research/projects/{digest}/try", name="research.try")
def try_out(
    *,
    request: Request,
    service: AskedService,
    visitor: AskedBy,
    digest: str,
    job: Annotated[str, Form(max_length=20)] = "",
    code: Annotated[str, Form(max_length=2 * MOST_CODE)] = "",
) -> Response:
    """Have a program tried on invented rows."""
    desk = research_of(service)
    standing = desk.project(digest)
    text = code.replace("\r\n", "\n")  # as forms send the ends of lines
    try:
        _check_member(visitor, standing.project)
        made = desk.try_out(standing, job=job, code=text, by=str(visitor.name))
    except SfumatoError as wrong:
        return show_project(request, service, visitor, standing, code=text, job=job, wrong=str(wrong))
    return RedirectResponse(str(request.app.url_path_for("research.trial", digest=made.digest)), 303)


@router.post("/research/trials/{digest}/paper", name="research.submit")
def submit(
    *,
    request: Request,
    service: AskedService,
    visitor: ConfirmedBy,
    digest: str,
    paper: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """Enter a program by its signed paper, whoever carries it."""
    desk = research_of(service)
    tried = desk.trial(digest)
    if tried is None or tried.login != visitor.name:
        raise NotDeclared("there is no such program, or it is not yours; nothing was done.")
    try:
        number = desk.hand_in(_paper_of(paper))
    except SfumatoError as wrong:
        return show_trial(request, service, tried, wrong=str(wrong))
    return RedirectResponse(str(request.app.url_path_for("research.program", number=number)), 303)


@router.post("/research/programs/{number}/paper", name="research.ask_program")
def ask_program(
    *,
    request: Request,
    service: AskedService,
    visitor: AskedBy,
    number: int,
    benefit: Annotated[str, Form()] = "",
    risk: Annotated[str, Form()] = "",
    choice: Annotated[str, Form()] = "",
) -> Response:
    """Write the paper that asks the board to approve a program; nothing is entered."""
    desk = research_of(service)
    standing = desk.program(number)
    project = desk.project(standing.project).project
    try:
        _check_member(visitor, project)
        reasons = Reasons(benefit=benefit, risk=risk, choice=choice)
        return _asked(service, visitor, project, project.program_subject(standing.job, standing.code), reasons)
    except SfumatoError as wrong:
        return show_program(request, service, visitor, standing, wrong=str(wrong))


@router.post("/research/programs/{number}/run", name="research.run")
def run(*, request: Request, service: AskedService, visitor: AskedBy, number: int) -> Response:
    """Put a program into the queue of runs; the record says who approved it, and that it ran."""
    desk = research_of(service)
    standing = desk.program(number)
    try:
        desk.run(number)
    except SfumatoError as wrong:
        return show_program(request, service, visitor, standing, wrong=str(wrong))
    return RedirectResponse(str(request.app.url_path_for("research.program", number=number)), 303)


# ---------------------------------------------------------------------------------------------------------------- parts


def _drafted(
    request: Request, service: Service, visitor: Visitor, said: dict[str, str], columns: frozenset[str]
) -> Response:
    try:
        project = _project(visitor.may_charge, said, columns)
        _check_member(visitor, project)
        standing = research_of(service).draft(project, by=str(visitor.name))
    except SfumatoError as wrong:
        shown = {**said, "reviewed": said.get("reviewed", "no")}
        page = new_page(service, visitor, shown, columns, wrong=str(wrong))
        return render(request, "research/new.html", page, status=422)
    return RedirectResponse(str(request.app.url_path_for("research.project", digest=standing.digest)), 303)


def _project(may_charge: Callable[[str], bool], said: dict[str, str], columns: frozenset[str]) -> Project:
    """The project that a form states."""
    if not may_charge(said.get("account", "")):
        raise Refused("this account is not yours to charge, whether or not there is one; nothing was kept.")
    chosen: dict[str, list[str]] = {}
    for value in sorted(columns):
        dataset, _, column = value.rpartition("/")
        chosen.setdefault(dataset, []).append(column)
    people = [tuple(line.split()) for line in said.get("people", "").splitlines() if line.strip()]
    if any(len(each) != 2 for each in people):
        raise InvalidInput("each line of the people is a name and a public key; nothing was kept.")
    return Project(
        name=said.get("name", "").strip(),
        purpose=said.get("purpose", "").strip(),
        recipient=said.get("recipient", "").strip(),
        account=said.get("account", ""),
        people=tuple((name, key) for name, key in people),
        columns=tuple((dataset, tuple(names)) for dataset, names in sorted(chosen.items())),
        reviewed=said.get("reviewed") == "yes",
    )


def _check_member(visitor: Visitor, project: Project) -> None:
    if visitor.name not in dict(project.people):
        raise Refused("you are not one of the people of this project; nothing was done.")


def _asked(service: Service, visitor: Visitor, project: Project, subject: str, reasons: Reasons) -> Response:
    """The paper of a request about a project or a program, for its datasets and its account."""
    decided = service.ledger.decision_state()
    made = service.ledger.request_ballot(
        by=str(visitor.name),
        action=Action.EXCEPTION,
        subject=subject,
        reasons=reasons,
        account=project.account,
        datasets=project.datasets,
        sites=sorted({site for name in project.datasets for site in decided.sites_of(name)}),
    )
    return ballot_file(made, "ask.ballot")


def _paper_of(file: UploadFile | None) -> ProgramPaper:
    content = b"" if file is None else file.file.read(MOST_PAPER + 1)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput("the file is not the paper of a program; nothing was entered.") from None
    if not text:
        raise InvalidInput("choose a file first: the signed paper; nothing was entered.")
    return ProgramPaper.read(text, "the file")
