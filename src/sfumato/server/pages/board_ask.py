"""Asking the board: the form that writes the paper of a request, filled in by links, and the way back of that paper.

Analysts and researchers may ask like members and stewards, for what they may charge; whose key signs is what counts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import RedirectResponse, Response

from sfumato.core.budget import Budget
from sfumato.errors import InvalidInput, Refused, SfumatoError
from sfumato.governance.ballots import Matter
from sfumato.governance.board import Action, Proposal, Reasons
from sfumato.governance.papers import LASTS
from sfumato.server.pages.board import ACTORS, READERS, BoardSection, ballot_file, ballot_of, sections_of
from sfumato.server.rendering import render
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.views.due import due_snapshot
from sfumato.server.visitors import AskedBy, AskedService, ConfirmedBy, Visitor

__all__ = ["ROUTES", "UPLOADS", "address_of_request", "router"]

router = APIRouter()
ASKERS = ACTORS | {ServiceRole.ANALYST, ServiceRole.RESEARCHER}
ROUTES = {"board.ask": ASKERS, "board.write": ASKERS, "board.hand_in": ASKERS}
UPLOADS = frozenset({"board.hand_in"})
FIELDS = ("name", "action", "account", "epsilon", "delta", "dataset", "subject", "benefit", "risk", "choice")
MOST_SIGNS = 2_000
FILE = "ask.ballot"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRequestPage:
    """The form of a request; ``reads`` says whether whoever asks may read requests, and hand papers in there."""

    sections: tuple[BoardSection, ...]
    board: bool
    reads: bool
    people: tuple[str, ...]
    actions: tuple[tuple[str, str], ...]
    accounts: tuple[str, ...]
    datasets: tuple[str, ...]
    held: dict[str, str]
    file: str
    said: str
    wrong: str


def address_of_request(request: Request, **said: str) -> str:
    """The address of the form with some of its fields filled in."""
    return f"{request.app.url_path_for('board.ask')}?{urlencode({name: text for name, text in said.items() if text})}"


@router.get("/board/ask", name="board.ask")
def ask(*, request: Request, service: AskedService, visitor: AskedBy, done: str = "") -> Response:
    """The form of a request, with whatever its address fills in."""
    held = {name: request.query_params.get(name, "")[:MOST_SIGNS] for name in FIELDS}
    return _ask(request, service, visitor, held, said=_entered(service, visitor, done))


@router.post("/board/ask", name="board.write")
def write(
    *,
    request: Request,
    service: AskedService,
    visitor: AskedBy,
    name: Annotated[str, Form()] = "",
    action: Annotated[str, Form()] = "",
    account: Annotated[str, Form()] = "",
    epsilon: Annotated[str, Form()] = "",
    delta: Annotated[str, Form()] = "",
    dataset: Annotated[str, Form()] = "",
    subject: Annotated[str, Form()] = "",
    benefit: Annotated[str, Form()] = "",
    risk: Annotated[str, Form()] = "",
    choice: Annotated[str, Form()] = "",
) -> Response:
    """Write the paper of a request; nothing is entered."""
    try:
        wanted = _action(action)
        _check_asker(visitor, wanted, account)
        amount = Budget(epsilon=epsilon or "0", delta=delta or "0") if epsilon or delta else None
        made = service.ledger.request_ballot(
            by=name,
            action=wanted,
            subject=subject or f"{action}: {account or dataset}",
            reasons=Reasons(benefit=benefit, risk=risk, choice=choice),
            account=account or None,
            datasets=(dataset,) if dataset else (),
            sites=(),
            amount=amount,
            lasts=LASTS,
        )
    except SfumatoError as wrong:
        held = {"name": name, "action": action, "account": account, "epsilon": epsilon, "delta": delta}
        held |= {"dataset": dataset, "subject": subject, "benefit": benefit, "risk": risk, "choice": choice}
        return _ask(request, service, visitor, held, wrong=str(wrong), status=409)
    return ballot_file(made, FILE)


@router.post("/board/ask/paper", name="board.hand_in")
def hand_in(
    *,
    request: Request,
    service: AskedService,
    visitor: ConfirmedBy,
    ballot: Annotated[UploadFile | None, File()] = None,
) -> Response:
    """Enter a signed request, whoever carries it; votes and vetoes are handed in where they are decided."""
    try:
        paper = ballot_of(service, visitor, ballot)
        if paper.matter is not Matter.REQUEST:
            raise Refused("this paper is no request to the board; nothing was entered. Members hand in their votes.")
        entered = service.ledger.submit(paper)
    except SfumatoError as wrong:
        return _ask(request, service, visitor, {}, wrong=str(wrong), status=409)
    number = entered.number if isinstance(entered, Proposal) else 0
    return RedirectResponse(f"{request.app.url_path_for('board.ask')}?done={number}", 303)


def _check_asker(visitor: Visitor, action: Action, account: str) -> None:
    """Refuse a request about somebody else's account in the same words whether or not there is one of its name."""
    if visitor.is_any(*ACTORS):
        return
    if action not in (Action.RAISE, Action.UNLOCK) or not visitor.may_charge(account):
        raise Refused(
            "this account is not yours, whether or not there is one of its name; nothing was written. Ask for one that "
            "you may charge, or have a data steward ask."
        )


def _action(name: str) -> Action:
    try:
        return Action[name.upper()]
    except KeyError:
        raise InvalidInput("choose what is asked for; nothing was written.") from None


def _ask(
    request: Request,
    service: Service,
    visitor: Visitor,
    held: Mapping[str, str],
    *,
    said: str = "",
    wrong: str = "",
    status: int = 200,
) -> Response:
    say = service.words(visitor.lang).say
    board, overview = service.ledger.board(), due_snapshot(service).overview
    acts, reads = visitor.is_any(*ACTORS), visitor.is_any(*READERS)
    offered = (Action.RAISE, Action.UNLOCK, *((Action.DATASET,) if acts else ()))
    people = () if board is None else tuple(sorted(board.people))
    mine = visitor.name if visitor.name in people else ""
    page = BoardRequestPage(
        sections=sections_of(request, "board.requests") if reads else (),
        board=board is not None,
        reads=reads,
        people=people,
        actions=tuple((each.name.lower(), say(f"board.action_{each.name.lower()}")) for each in offered),
        accounts=tuple(level.name for level in overview.accounts if acts or visitor.may_charge(level.name)),
        datasets=tuple(each.level.name for each in overview.datasets) if acts else (),
        held={name: held.get(name, "") or (str(mine) if name == "name" else "") for name in FIELDS},
        file=FILE,
        said=said,
        wrong=wrong,
    )
    return render(request, "board/ask.html", page, status=status)


def _entered(service: Service, visitor: Visitor, done: str) -> str:
    """In words which request was entered last; nothing for an address that somebody made up."""
    if not (done.isascii() and done.isdigit() and len(done) < 10) or service.ledger.board() is None:
        return ""
    if not 1 <= int(done) <= len(service.ledger.minutes().proposals):
        return ""
    return service.words(visitor.lang).say("board.entered_request", number=int(done))
