"""Pages of the board: budgets, requests and signed ballots, vetoes, the calendar of plans, what-if sliders.

The service holds no member's key: it writes papers, which are signed elsewhere, and enters what comes back.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

from fastapi import APIRouter, File, HTTPException, Query, Request, UploadFile
from fastapi.responses import RedirectResponse, Response

from sfumato.core.budget import Budget
from sfumato.errors import InvalidInput, SfumatoError
from sfumato.governance.ballots import Ballot
from sfumato.governance.board import BoardEntry, Proposal, Veto, VetoLifted, Vote
from sfumato.governance.decision_state import Adopted
from sfumato.governance.digest import digest_of
from sfumato.governance.overview import minutes_now
from sfumato.governance.plans import Cadence
from sfumato.server.pages.public import held_dashboard
from sfumato.server.rendering import MenuLink, render
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.views.budgets import BudgetBranch, budget_tree, burn_down
from sfumato.server.views.calendar import CalendarLine, calendar_of
from sfumato.server.views.chart import StepChart, step_chart
from sfumato.server.views.dashboard import dashboards_of
from sfumato.server.views.due import due_snapshot
from sfumato.server.views.requests import Request as Asked
from sfumato.server.views.requests import StandingVeto, requests_of, vetoes_of
from sfumato.server.views.what_if import Imagined, Knob, imagined, knobs_of
from sfumato.server.views.written import left, spent
from sfumato.server.visitors import AskedBy, AskedService, ConfirmedBy, Visitor

__all__ = [
    "ACTORS",
    "MENU",
    "READERS",
    "ROUTES",
    "UPLOADS",
    "BoardSection",
    "ballot_file",
    "ballot_of",
    "router",
    "sections_of",
]

router = APIRouter()
READERS = frozenset({ServiceRole.BOARD, ServiceRole.STEWARD, ServiceRole.AUDITOR})
ACTORS = frozenset({ServiceRole.BOARD, ServiceRole.STEWARD})
"""Whoever carries a ballot: it is its signature that counts."""
ROUTES = {
    "board.home": READERS,
    "board.burn_down": READERS,
    "board.requests": READERS,
    "board.request": READERS,
    "board.paper": ACTORS,
    "board.veto_paper": ACTORS,
    "board.submit": ACTORS,
    "board.calendar": READERS,
    "board.what_if": READERS,
}
UPLOADS = frozenset({"board.submit"})
MENU = (MenuLink(route="board.home", words="board.menu", place=60, about="board.about"),)
MOST_PAPER = 1_000_000
SECTIONS = ("board.home", "board.requests", "board.calendar", "board.what_if")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardSection:
    """A page of the board in the row of them."""

    route: str
    words: str
    here: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareShown:
    """A loss of a balance as text, and the lengths of its bar."""

    letter: str
    spent: str
    open: str
    left: str
    cap: str
    part: float
    held: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchShown:
    """A balance as it stands in the tree."""

    kind: str
    name: str
    line: str
    depth: int
    shares: tuple[ShareShown, ...]
    charges: int
    reserve: str
    vetoed_by: tuple[str, ...]
    versions: int
    closed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardHome:
    """The budgets, what waits, and which vetoes stand."""

    sections: tuple[BoardSection, ...]
    accounts: tuple[BranchShown, ...]
    people: tuple[BranchShown, ...]
    windows: tuple[BranchShown, ...]
    waiting: tuple[Asked, ...]
    vetoes: tuple[StandingVeto, ...]
    board: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnDownPage:
    """How one balance was spent."""

    sections: tuple[BoardSection, ...]
    line: str
    chart: StepChart | None
    spent: str
    cap: str
    charges: int
    rows: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestsPage:
    """All requests and vetoes, and the ways to act."""

    sections: tuple[BoardSection, ...]
    requests: tuple[Asked, ...]
    vetoes: tuple[StandingVeto, ...]
    communities: tuple[tuple[str, str], ...]
    acts: bool
    board: bool
    said: str
    wrong: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPage:
    """One request."""

    sections: tuple[BoardSection, ...]
    asked: Asked
    amount: str
    acts: bool
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarPage:
    """The calendar of a year."""

    sections: tuple[BoardSection, ...]
    year: int
    years: tuple[int, ...]
    months: tuple[str, ...]
    lines: tuple[CalendarLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImaginedRow:
    """A release as it would be, as text."""

    name: str
    every: str
    periods: int
    each: str
    total: str
    margin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfPage:
    """The sliders of a plan and what they come to."""

    sections: tuple[BoardSection, ...]
    plans: tuple[tuple[str, str, int], ...]
    plan: str
    year: int
    digest: str
    knobs: tuple[Knob, ...]
    cadences: tuple[str, ...]
    margins: dict[str, str]
    every: dict[str, str]
    cap: str
    adopted: str
    found: Imagined | None
    total: str
    over: str
    rows: tuple[ImaginedRow, ...]


@router.get("/board", name="board.home")
def home(request: Request, service: AskedService) -> Response:
    """The budgets as a tree."""
    snapshot = due_snapshot(service)
    tree = [_branch(each) for each in budget_tree(snapshot.overview)]
    minutes = minutes_now(service.ledger) if snapshot.overview.board else None
    page = BoardHome(
        sections=sections_of(request, "board.home"),
        accounts=tuple(each for each in tree if each.kind == "account"),
        people=tuple(each for each in tree if each.kind in ("population", "dataset")),
        windows=tuple(each for each in tree if each.kind == "window"),
        waiting=() if minutes is None else tuple(each for each in requests_of(minutes) if each.open),
        vetoes=() if minutes is None else tuple(each for each in vetoes_of(minutes) if each.lifted is None),
        board=minutes is not None,
    )
    return render(request, "board/home.html", page)


@router.get("/board/budgets/spent", name="board.burn_down")
def spending(request: Request, service: AskedService, line: str = "") -> Response:
    """How one balance was spent."""
    snapshot = due_snapshot(service)
    if line not in snapshot.balances:
        raise HTTPException(404)
    found, sums, total = burn_down(snapshot, line), [], Fraction(0)
    for when, cost in found.steps:
        total += cost.epsilon
        sums.append((when.strftime("%Y-%m-%d %H:%M"), spent(cost.epsilon), spent(total)))
    page = BurnDownPage(
        sections=sections_of(request, "board.home"),
        line=line,
        chart=step_chart(found, service.clock()) if found.steps else None,
        spent=spent(total),
        cap=left(found.cap.epsilon),
        charges=len(sums),
        rows=tuple(reversed(sums[-200:])),
    )
    return render(request, "board/burn_down.html", page)


# ------------------------------------------------------------------------------------------------- requests and ballots


@router.get("/board/requests", name="board.requests")
def requests(request: Request, service: AskedService, visitor: AskedBy, done: str = "") -> Response:
    """All requests."""
    return _requests(request, service, visitor, said=_said(service, visitor, done))


@router.get("/board/requests/{number}", name="board.request")
def one_request(request: Request, service: AskedService, visitor: AskedBy, number: int) -> Response:
    """One request, with its votes and what it still needs."""
    asked = next((each for each in _all_requests(service) if each.number == number), None)
    if asked is None:
        raise HTTPException(404)
    page = RequestPage(
        sections=sections_of(request, "board.requests"),
        asked=asked,
        amount="" if asked.amount is None else str(asked.amount),
        acts=visitor.is_any(*ACTORS),
        file=f"request-{number}.ballot",
    )
    return render(request, "board/request.html", page)


@router.get("/board/requests/{number}/paper", name="board.paper")
def paper(service: AskedService, number: int, withdraw: bool = False) -> Response:  # noqa: FBT001, FBT002 - a query
    """A paper to vote, or to take the request back."""
    if withdraw:
        return ballot_file(service.ledger.ballot(withdraw=number), f"withdraw-{number}.ballot")
    return ballot_file(service.ledger.ballot(vote=number), f"request-{number}.ballot")


@router.get("/board/vetoes/paper", name="board.veto_paper")
def veto_paper(service: AskedService, about: str, lift: bool = False) -> Response:  # noqa: FBT001, FBT002 - a query
    """A paper to veto a dataset for a community, or to lift that veto; ``about`` names both."""
    community, _, dataset = about.partition("/")
    if lift:
        return ballot_file(service.ledger.ballot(lift=dataset, community=community), "lift.ballot")
    return ballot_file(service.ledger.ballot(veto=dataset, community=community), "veto.ballot")


@router.post("/board/ballots", name="board.submit")
def submit(
    request: Request,
    service: AskedService,
    visitor: ConfirmedBy,
    ballot: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """Enter a signed ballot, whoever carries it."""
    try:
        entered = service.ledger.submit(ballot_of(service, visitor, ballot))
    except SfumatoError as wrong:
        status = 409 if ballot is not None and ballot.size else 422
        return _requests(request, service, visitor, wrong=str(wrong), status=status)
    return RedirectResponse(f"/board/requests?done={_done(service, entered)}", 303)


# ------------------------------------------------------------------------------------------------- looking ahead


@router.get("/board/calendar", name="board.calendar")
def calendar(request: Request, service: AskedService, visitor: AskedBy, year: int | None = None) -> Response:
    """What was released each month, and what is to come."""
    snapshot = due_snapshot(service)
    today = service.clock().date()
    adopted = dashboards_of(snapshot)
    years = sorted({each.schedule.plan.year for each in adopted} | {today.year})
    wanted = year if year in years else today.year
    dashboards = tuple(held_dashboard(snapshot, each.number, today.isoformat()) for each in adopted)
    page = CalendarPage(
        sections=sections_of(request, "board.calendar"),
        year=wanted,
        years=tuple(years),
        months=tuple(service.words(visitor.lang).say(f"board.month_{month}") for month in range(1, 13)),
        lines=calendar_of(dashboards, wanted),
    )
    return render(request, "board/calendar.html", page)


@router.get("/board/what-if", name="board.what_if")
def what_if(request: Request, service: AskedService, plan: Annotated[str, Query()] = "") -> Response:
    """What a plan would come to with other margins, another rhythm or another cap."""
    snapshot = due_snapshot(service)
    offered = [each for each in dashboards_of(snapshot) if knobs_of(each.schedule.plan)]
    adopted = next(
        (each for each in offered if digest_of(each.schedule.plan) == plan), offered[-1] if offered else None
    )
    said = dict(request.query_params)
    return render(request, "board/what_if.html", _what_if(request, offered, adopted, said))


# ------------------------------------------------------------------------------------------------- how it is written


def _what_if(request: Request, offered: list[Adopted], adopted: Adopted | None, said: dict[str, str]) -> WhatIfPage:
    plans = tuple((digest_of(each.schedule.plan), each.schedule.plan.name, each.schedule.plan.year) for each in offered)
    sections, cadences = sections_of(request, "board.what_if"), tuple(each.value for each in Cadence)
    if adopted is None:
        return WhatIfPage(
            sections=sections,
            plans=plans,
            plan="",
            year=0,
            digest="",
            knobs=(),
            margins={},
            cadences=cadences,
            every={},
            cap="",
            adopted="",
            found=None,
            total="",
            over="",
            rows=(),
        )
    planned = adopted.schedule.plan
    knobs = knobs_of(planned)
    margins = {each.name: said.get(f"margin.{each.name}", str(each.margin)) for each in knobs}
    every = {each.name: said.get(f"every.{each.name}", each.every.value) for each in knobs}
    cap = said.get("cap") or str(planned.cap.epsilon)
    try:
        found = imagined(adopted, margins=margins, cadences=every, cap=cap)
    except SfumatoError as wrong:
        found = Imagined(cap=planned.cap, total=None, lines=(), beliefs=None, refused=str(wrong))
    over = Fraction(0) if found.total is None else max(Fraction(0), found.total - found.cap.epsilon)
    return WhatIfPage(
        sections=sections,
        plans=plans,
        plan=planned.name,
        year=planned.year,
        digest=digest_of(planned),
        knobs=knobs,
        cadences=cadences,
        margins=margins,
        every=every,
        cap=left(found.cap.epsilon),
        adopted=spent(adopted.schedule.total),
        found=found,
        total="" if found.total is None else spent(found.total),
        over=spent(over),
        rows=tuple(
            ImaginedRow(
                name=each.name,
                every=each.every.value,
                periods=each.periods,
                each=spent(each.each),
                total=spent(each.total),
                margin=f"±{each.margin}",
            )
            for each in found.lines
        ),
    )


def _requests(
    request: Request, service: Service, visitor: Visitor, *, said: str = "", wrong: str = "", status: int = 200
) -> Response:
    board = service.ledger.board()
    groups = () if board is None else board.communities
    page = RequestsPage(
        sections=sections_of(request, "board.requests"),
        requests=_all_requests(service),
        vetoes=() if board is None else vetoes_of(minutes_now(service.ledger)),
        communities=tuple((group.name, dataset) for group in groups for dataset in group.datasets),
        acts=visitor.is_any(*ACTORS),
        board=board is not None,
        said=said,
        wrong=wrong,
    )
    return render(request, "board/requests.html", page, status=status)


def _all_requests(service: Service) -> tuple[Asked, ...]:
    return () if service.ledger.board() is None else requests_of(minutes_now(service.ledger))


def ballot_of(service: Service, visitor: Visitor, file: UploadFile | None) -> Ballot:
    """The ballot in a file that somebody sent; read as far as a paper is long."""
    content = b"" if file is None else file.file.read(MOST_PAPER + 1)
    if not content:
        raise InvalidInput(service.words(visitor.lang).say("board.no_file"))
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidInput("the file is not a ballot; nothing was entered.") from None
    return Ballot.read(text, "the file")


def ballot_file(made: Ballot, name: str) -> Response:
    """A paper as a file to download."""
    return Response(
        made.text(),
        media_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _done(service: Service, entered: BoardEntry) -> str:
    """What was entered, as a word of an address: its place among the entries of the board."""
    entries = service.ledger.minutes().entries
    return str(next((place for place, each in enumerate(entries) if each == entered), len(entries) - 1))


def _said(service: Service, visitor: Visitor, done: str) -> str:
    """In words what was entered last; nothing for an address that somebody made up."""
    if not re.fullmatch(r"\d{1,9}", done) or service.ledger.board() is None:
        return ""
    entries = service.ledger.minutes().entries
    if int(done) >= len(entries):
        return ""
    say = service.words(visitor.lang).say
    match entries[int(done)]:
        case Vote() as vote:
            return say("board.entered_vote", name=vote.voter, number=vote.proposal)
        case Proposal() as asked:
            return say("board.entered_request", number=asked.number)
        case Veto() as veto:
            return say("board.entered_veto", name=veto.community, dataset=veto.dataset)
        case VetoLifted() as lifted:
            return say("board.entered_lift", name=lifted.community, dataset=lifted.dataset)
        case withdrawn:
            return say("board.entered_withdrawal", number=withdrawn.proposal)


def _branch(each: BudgetBranch) -> BranchShown:
    return BranchShown(
        kind=each.kind,
        name=each.name,
        line=each.line,
        depth=min(each.depth, 3),
        shares=tuple(
            ShareShown(
                letter=share.letter,
                spent=spent(share.spent),
                open=spent(share.open),
                left=left(share.left),
                cap=left(share.cap),
                part=share.parts[0],
                held=share.parts[1],
            )
            for share in each.shares
        ),
        charges=each.charges,
        reserve="" if each.reserve is None or each.reserve == Budget.none() else str(each.reserve),
        vetoed_by=each.vetoed_by,
        versions=each.versions,
        closed=each.closed,
    )


def sections_of(request: Request, here: str) -> tuple[BoardSection, ...]:
    """The pages of the board, and which of them is shown."""
    words = {"board.home": "budgets", "board.requests": "requests", "board.calendar": "calendar"}
    return tuple(
        BoardSection(
            route=str(request.app.url_path_for(route)), words=f"board.{words.get(route, 'what_if')}", here=route == here
        )
        for route in SECTIONS
    )
