"""Pages of the research environment: projects, what was tried, programs and their runs, and the log for everybody.

They show what is public: the texts that the board approves, the programs, and the certificates of what left.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from sfumato.core.exact import decimal_down, decimal_up
from sfumato.errors import NotDeclared
from sfumato.governance.ledger_state import account_line
from sfumato.governance.overview import overview
from sfumato.governance.research_entries import Project, RunLogged
from sfumato.server.rendering import MenuLink, render
from sfumato.server.research.desk import ProgramStanding, ProjectStanding, Trial, open_research, research_of
from sfumato.server.roles import EVERYONE, ServiceRole
from sfumato.server.service import Service
from sfumato.server.views.written import moment_words
from sfumato.server.visitors import AskedBy, AskedService, Visitor

__all__ = ["MENU", "READERS", "ROUTES", "attach", "new_page", "router", "show_project"]

router = APIRouter()
READERS = frozenset({ServiceRole.RESEARCHER, ServiceRole.STEWARD, ServiceRole.BOARD, ServiceRole.AUDITOR})
RESEARCHERS = frozenset({ServiceRole.RESEARCHER})
ROUTES = {
    "research": READERS,
    "research.new": RESEARCHERS,
    "research.project": READERS,
    "research.trial": RESEARCHERS,
    "research.trial_paper": RESEARCHERS,
    "research.program": READERS,
    "research.release": READERS,
    "public.research": EVERYONE,
}
MENU = (MenuLink(route="research", words="research.menu", place=50, about="research.about"),)
JOB_KINDS = ("script", "blocks")
PAUSE = 3
LAST = 200


def attach(service: Service) -> None:
    """Try and run what researchers hand in while a service runs."""
    open_research(service)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRow:
    """A project in the list."""

    address: str
    name: str
    account: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """A program that was tried, in the list."""

    address: str
    project: str
    made: str
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRow:
    """A program in the list."""

    address: str
    number: int
    project: str
    by: str
    at: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchHome:
    """Projects, what somebody tried, and the programs that were handed in."""

    projects: tuple[ProjectRow, ...]
    trials: tuple[TrialRow, ...]
    programs: tuple[ProgramRow, ...]
    researcher: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChoice:
    """A column that a project may be approved for."""

    value: str
    name: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProjectPage:
    """The form of a project."""

    said: Mapping[str, str]
    accounts: tuple[tuple[str, str], ...]
    datasets: tuple[tuple[str, tuple[ColumnChoice, ...]], ...]
    reviewed: bool
    wrong: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectPage:
    """A project: its text as the board decides on it, how it stands, and its programs."""

    digest: str
    project: Project
    subject: str
    state: str
    request_address: str
    spent: str
    left: str
    cap: str
    share: float
    programs: tuple[ProgramRow, ...]
    member: bool
    may_open: bool
    code: str
    kinds: tuple[tuple[str, str], ...]
    job: str
    wrong: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPage:
    """A program that was tried on invented rows; ``pause`` is after how many seconds a browser looks again."""

    digest: str
    project: str
    project_address: str
    job: str
    phase: str
    pause: int | None
    cost: str
    releases: int
    left: str
    fits: bool
    words: str
    code: str
    code_digest: str
    file: str
    wrong: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run, or its end, as the record has it."""

    entry: int
    at: str
    phase: str
    data: str
    level: str
    releases: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPage:
    """A program that was handed in."""

    number: int
    project: str
    project_address: str
    by: str
    at: str
    job: str
    state: str
    pause: int | None
    code: str
    code_digest: str
    runs: tuple[RunRow, ...]
    request_address: str
    member: bool
    may_run: bool
    wrong: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """A run in the log that everybody sees: no person and no account is named."""

    entry: int
    at: str
    project: str
    program: int
    data: str
    level: str
    phase: str
    releases: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchLogPage:
    """The newest runs."""

    runs: tuple[LogRow, ...]
    total: int


@router.get("/research", name="research")
def home(*, request: Request, service: AskedService, visitor: AskedBy) -> Response:
    """Projects, trials and programs."""
    desk = research_of(service)
    projects = desk.projects()
    names = {each.digest: each.project.name for each in projects}
    page = ResearchHome(
        projects=tuple(
            ProjectRow(
                address=_project_address(request, each.digest),
                name=each.project.name,
                account=each.project.account,
                state=each.state,
            )
            for each in projects
        ),
        trials=tuple(
            TrialRow(
                address=str(request.app.url_path_for("research.trial", digest=each.digest)),
                project=names.get(each.project, ""),
                made=moment_words(each.made),
                phase=each.phase,
            )
            for each in desk.trials(str(visitor.name))
        ),
        programs=tuple(_program_row(request, each, names) for each in desk.programs()[:LAST]),
        researcher=visitor.is_any(ServiceRole.RESEARCHER),
    )
    return render(request, "research/list.html", page)


@router.get("/research/new", name="research.new")
def new(*, request: Request, service: AskedService, visitor: AskedBy) -> Response:
    """The form of a project."""
    return render(request, "research/new.html", new_page(service, visitor, {"people": f"{visitor.name} "}, frozenset()))


@router.get("/research/projects/{digest}", name="research.project")
def project(*, request: Request, service: AskedService, visitor: AskedBy, digest: str) -> Response:
    """One project."""
    return show_project(request, service, visitor, research_of(service).project(digest))


@router.get("/research/trials/{digest}", name="research.trial")
def trial(*, request: Request, service: AskedService, visitor: AskedBy, digest: str) -> Response:
    """A program that is tried, or was."""
    return show_trial(request, service, _trial(service, visitor, digest))


@router.get("/research/trials/{digest}/paper", name="research.trial_paper")
def trial_paper(*, service: AskedService, visitor: AskedBy, digest: str) -> Response:
    """The paper of a program, to be signed elsewhere."""
    made = research_of(service).paper(_trial(service, visitor, digest))
    return _download(made.text(), f"program-{digest[:8]}.paper")


@router.get("/research/programs/{number}", name="research.program")
def program(*, request: Request, service: AskedService, visitor: AskedBy, number: int) -> Response:
    """One program with its runs."""
    return show_program(request, service, visitor, research_of(service).program(number))


@router.get("/research/releases/{identifier}", name="research.release")
def release(*, service: AskedService, identifier: str) -> Response:
    """The certificate of what left a run."""
    return _download(research_of(service).certificate(identifier), f"{identifier}.certificate.json")


@router.get("/public/research", name="public.research")
def log(*, request: Request, service: AskedService) -> Response:
    """Every run, for everybody: which program of which project, on which data, what became of it, how much left."""
    state = service.ledger.research()
    rows = [
        LogRow(
            entry=number,
            at=run.at[:16].replace("T", " "),
            project=state.programs[run.program].project,
            program=run.program,
            data=_data(run),
            level=run.level,
            phase=run.phase.value,
            releases=len(run.releases),
        )
        for number, run in sorted(state.runs.items(), reverse=True)
    ]
    return render(request, "public/research.html", ResearchLogPage(runs=tuple(rows[:LAST]), total=len(rows)))


# ---------------------------------------------------------------------------------------------------------------- parts


def new_page(
    service: Service, visitor: Visitor, said: Mapping[str, str], columns: frozenset[str], *, wrong: str = ""
) -> NewProjectPage:
    """The form of a project with what was said in it."""
    accounts = sorted(level.name for level in overview(service.ledger).accounts if visitor.may_charge(level.name))
    return NewProjectPage(
        said=said,
        accounts=tuple((path, path) for path in accounts),
        datasets=tuple(
            (
                name,
                tuple(
                    ColumnChoice(
                        value=f"{name}/{column.name}", name=column.name, chosen=f"{name}/{column.name}" in columns
                    )
                    for column in held.schema.columns
                    if column.name != held.schema.unit
                ),
            )
            for name, held in service.datasets.items()
        ),
        reviewed=said.get("reviewed", "yes") == "yes",
        wrong=wrong,
    )


def show_project(
    request: Request,
    service: Service,
    visitor: Visitor,
    standing: ProjectStanding,
    *,
    code: str = "",
    job: str = "script",
    wrong: str = "",
) -> Response:
    """The page of a project."""
    desk, say = research_of(service), service.words(visitor.lang).say
    member = visitor.is_any(ServiceRole.RESEARCHER) and visitor.name in dict(standing.project.people)
    lines = {balance.name: balance for balance in service.ledger.balances()}
    balance = lines.get(account_line(standing.project.account))  # a draft may name an account that is not open
    page = ProjectPage(
        digest=standing.digest,
        project=standing.project,
        subject=standing.project.subject,
        state=standing.state,
        request_address=_request_address(request, visitor, standing.request),
        spent="" if balance is None else decimal_up(balance.spent.epsilon),
        left="" if balance is None else decimal_down(balance.left.epsilon),
        cap="" if balance is None else decimal_down(balance.cap.epsilon),
        share=0.0 if balance is None else float(balance.spent.epsilon / balance.cap.epsilon),
        programs=tuple(
            _program_row(request, each, {standing.digest: standing.project.name})
            for each in desk.programs()
            if each.project == standing.digest
        ),
        member=member,
        may_open=member or visitor.is_any(ServiceRole.STEWARD),
        code=code or EXAMPLE.format(dataset=standing.project.datasets[0]),
        kinds=tuple((kind, say(f"research.job_{kind}")) for kind in JOB_KINDS),
        job=job,
        wrong=wrong,
    )
    return render(request, "research/project.html", page, status=409 if wrong else 200)


EXAMPLE = """import sfumato as sf

environment = sf.connect()
environment.sql("SELECT COUNT(*) AS n FROM {dataset}", epsilon=0.1)
"""


def show_trial(request: Request, service: Service, tried: Trial, *, wrong: str = "") -> Response:
    """The page of a program that is tried, or was."""
    desk = research_of(service)
    known = desk.project(tried.project).project
    left = service.ledger.balance(known.account).left
    page = TrialPage(
        digest=tried.digest,
        project=known.name,
        project_address=_project_address(request, tried.project),
        job=tried.job,
        phase=tried.phase,
        pause=PAUSE if tried.phase in ("waiting", "running") else None,
        cost=str(tried.cost),
        releases=tried.releases,
        left=decimal_down(left.epsilon),
        fits=left.covers(tried.cost),
        words=tried.words,
        code=tried.code,
        code_digest=hashlib.sha256(tried.code.encode()).hexdigest(),
        file=f"program-{tried.digest[:8]}",
        wrong=wrong,
    )
    return render(request, "research/trial.html", page, status=409 if wrong else 200)


def show_program(
    request: Request, service: Service, visitor: Visitor, standing: ProgramStanding, *, wrong: str = ""
) -> Response:
    """The page of a program that was handed in."""
    known = research_of(service).project(standing.project).project
    page = ProgramPage(
        number=standing.number,
        project=known.name,
        project_address=_project_address(request, standing.project),
        by=standing.by,
        at=standing.at[:16].replace("T", " "),
        job=standing.job,
        state=standing.state,
        pause=PAUSE if standing.state in ("queued", "running") else None,
        code=standing.code,
        code_digest=hashlib.sha256(standing.code.encode()).hexdigest(),
        runs=tuple(
            RunRow(
                entry=entry,
                at=run.at[:16].replace("T", " "),
                phase=run.phase.value,
                data=_data(run),
                level=run.level,
                releases=run.releases,
            )
            for entry, run in standing.runs
        ),
        request_address=_request_address(request, visitor, standing.request),
        member=visitor.is_any(ServiceRole.RESEARCHER) and visitor.name in dict(known.people),
        may_run=visitor.is_any(ServiceRole.STEWARD) and standing.state in ("ready", "cut", "failed", "released"),
        wrong=wrong,
    )
    return render(request, "research/program.html", page, status=409 if wrong else 200)


def _trial(service: Service, visitor: Visitor, digest: str) -> Trial:
    found = research_of(service).trial(digest)
    if found is None or found.login != visitor.name:
        raise NotDeclared("there is no such program, or it is not yours; nothing was done.")
    return found


def _program_row(request: Request, each: ProgramStanding, names: Mapping[str, str]) -> ProgramRow:
    return ProgramRow(
        address=str(request.app.url_path_for("research.program", number=each.number)),
        number=each.number,
        project=names.get(each.project, ""),
        by=each.by,
        at=each.at[:10],
        state=each.state,
    )


def _project_address(request: Request, digest: str) -> str:
    return str(request.app.url_path_for("research.project", digest=digest))


def _request_address(request: Request, visitor: Visitor, number: int | None) -> str:
    """The page of a request to the board, for those who may read it."""
    readers = request.app.state.matrix["board.request"]
    if number is None or not visitor.is_any(*readers):
        return ""
    return str(request.app.url_path_for("board.request", number=number))


def _data(run: RunLogged) -> str:
    return ", ".join(f"{each.name} {each.edition}" for each in run.editions)


def _download(text: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="application/octet-stream", headers=headers)
