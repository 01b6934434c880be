"""Publishing by stewards: which answers are not on record for publication, and putting them there."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from sfumato.errors import SfumatoError
from sfumato.reports.publication import Grounds
from sfumato.server.publishing.grounds import Publications
from sfumato.server.rendering import MenuLink, render
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.views.due import due_snapshot
from sfumato.server.views.gate import EVERYBODY, gated
from sfumato.server.views.release import ReleaseRow, row_of_release
from sfumato.server.views.written import moment_words
from sfumato.server.visitors import AskedBy, AskedService, Visitor

__all__ = ["MENU", "ROUTES", "router"]

router = APIRouter()
STEWARDS = frozenset({ServiceRole.STEWARD})
ROUTES = {"publish.home": STEWARDS, "publish.put": STEWARDS, "publish.withdraw": STEWARDS}
MENU = (MenuLink(route="publish.home", words="publish.menu", place=45, about="publish.about"),)
MOST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class OnRecord:
    """A release that somebody put on record."""

    row: ReleaseRow
    by: str
    at: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishHome:
    """The releases that wait, and those that somebody put on record."""

    waiting: tuple[ReleaseRow, ...]
    published: tuple[OnRecord, ...]
    said: str
    wrong: str


@router.get("/publish", name="publish.home")
def home(request: Request, service: AskedService, visitor: AskedBy, done: str = "") -> Response:
    """What is on record, and what is not."""
    say = service.words(visitor.lang).say
    said = say(f"publish.{done}") if done in ("done", "withdrawn") else ""
    return _home(request, service, visitor, said=said)


@router.post("/publish", name="publish.put")
def put(
    request: Request,
    service: AskedService,
    visitor: AskedBy,
    identifier: Annotated[str, Form()] = "",
    reason: Annotated[str, Form()] = "",
    legal_basis: Annotated[str, Form()] = "",
) -> Response:
    """Put a release on record."""
    if identifier not in {row.identifier for row in _waiting(service, visitor.lang)}:
        raise HTTPException(404)
    try:
        grounds = Grounds(reason=reason, legal_basis=legal_basis)
        Publications(service.database, now=service.now).put(identifier, grounds, by=visitor.name or "")
    except SfumatoError as wrong:
        return _home(request, service, visitor, wrong=str(wrong), status=422)
    return RedirectResponse("/publish?done=done", 303)


@router.post("/publish/withdraw", name="publish.withdraw")
def withdraw(service: AskedService, identifier: Annotated[str, Form()] = "") -> Response:
    """Show a release no longer."""
    Publications(service.database, now=service.now).withdraw(identifier)
    return RedirectResponse("/publish?done=withdrawn", 303)


def _home(
    request: Request, service: Service, visitor: Visitor, *, said: str = "", wrong: str = "", status: int = 200
) -> Response:
    snapshot = due_snapshot(service)
    stated = Publications(service.database, now=service.now).all()
    rows = {
        release.statement.identifier: row_of_release(release, visitor.lang)
        for charge in snapshot.trail.charges
        if (release := snapshot.release(charge)) is not None and release.statement.identifier in stated
    }
    page = PublishHome(
        waiting=_waiting(service, visitor.lang)[:MOST],
        published=tuple(
            OnRecord(row=rows[each.identifier], by=each.by, at=moment_words(each.at), reason=each.grounds.reason)
            for each in sorted(stated.values(), key=lambda each: each.at, reverse=True)
            if each.identifier in rows
        ),
        said=said,
        wrong=wrong,
    )
    return render(request, "publish.html", page, status=status)


def _waiting(service: Service, language: str) -> tuple[ReleaseRow, ...]:
    """The answers that are for everybody, or for nobody in particular, and not on record; the newest first."""
    snapshot = due_snapshot(service)
    stated = {name: each.grounds for name, each in Publications(service.database, now=service.now).all().items()}
    found = gated(snapshot, stated, at=service.clock().isoformat(timespec="seconds"))
    known = {each.identifier for each in found.published} | {each.identifier for each in found.withheld}
    return tuple(
        row_of_release(release, language)
        for charge in reversed(snapshot.trail.charges)
        if charge.recipient in (None, EVERYBODY)
        and (release := snapshot.release(charge)) is not None
        and release.statement.identifier not in known
    )
