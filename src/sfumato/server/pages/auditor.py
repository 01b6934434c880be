"""Pages of auditors: the record and its verification, what each release rests on, inclusion proofs, evidence."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import Response, StreamingResponse

from sfumato.errors import InvalidInput, SfumatoError
from sfumato.governance.provenance import Provenance
from sfumato.reports.evidence import Declared, Scope
from sfumato.reports.evidence.lineage import about
from sfumato.server.rendering import MenuLink, render
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.views.due import due_snapshot
from sfumato.server.views.record import (
    ChargeLine,
    EntryLine,
    Proof,
    RecordVerified,
    charges_of,
    entries_of,
    evidence_zip,
    proof_of,
    verified_now,
)
from sfumato.server.views.snapshot import Snapshot
from sfumato.server.views.written import spent
from sfumato.server.visitors import AskedService

__all__ = ["MENU", "ROUTES", "router"]

router = APIRouter()
READERS = frozenset({ServiceRole.AUDITOR})
ROUTES = dict.fromkeys(
    (
        *("audit.home", "audit.verify", "audit.head", "audit.export", "audit.charge"),
        *("audit.receipt", "audit.certificate", "audit.evidence"),
    ),
    READERS,
)
MENU = (MenuLink(route="audit.home", words="audit.menu", place=70, about="audit.about"),)
A_PAGE = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditHome:
    """The record: its head, its newest entries, all charges, and what a verification found if one was asked for."""

    entry: int
    digest: str
    at: str
    key: str
    entries: tuple[EntryLine, ...]
    first: int
    older: int
    newer: int
    charges: tuple[tuple[ChargeLine, str], ...]
    """Each with its ε as it is written."""
    charges_at: int
    charges_pages: int
    verified: RecordVerified | None
    wrong: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCharge:
    """One charge with all that the record says of it."""

    line: ChargeLine
    epsilon: str
    delta: str
    asked: str
    balances: tuple[tuple[str, str], ...]
    data: tuple[tuple[str, str, str], ...]
    approvals: tuple[tuple[int, str], ...]
    later: tuple[tuple[str, str, str], ...]
    proof: Proof | None


@router.get("/audit", name="audit.home")
def home(request: Request, service: AskedService, before: int = 0, page: int = 1) -> Response:
    """The record."""
    return _home(request, service, before=before, page=page)


@router.post("/audit/verify", name="audit.verify")
def verify(request: Request, service: AskedService) -> Response:
    """Verify all of it."""
    return _home(request, service, verified=verified_now(service.ledger, now=service.clock()))


@router.get("/audit/head.json", name="audit.head")
def head(service: AskedService) -> Response:
    """The newest signed head."""
    return _file(service.ledger.head().text + "\n", "head.json", "application/json")


@router.get("/audit/record.jsonl", name="audit.export")
def export(service: AskedService) -> Response:
    """The whole record, a line for each entry."""
    lines = service.ledger.export()
    return StreamingResponse(
        (f"{line}\n" for line in lines),
        media_type="application/jsonl",
        headers={"Content-Disposition": 'attachment; filename="record.jsonl"'},
    )


@router.get("/audit/charges/{number}", name="audit.charge")
def charge(request: Request, service: AskedService, number: int) -> Response:
    """One charge."""
    snapshot = due_snapshot(service)
    found = _charge(snapshot, number)
    (line,) = (each for each in charges_of(snapshot) if each.number == found.number)
    release = snapshot.release(found)
    page = AuditCharge(
        line=line,
        epsilon=spent(found.cost.epsilon),
        delta=str(found.cost.delta) if found.cost.delta else "0",
        asked="" if release is None else about(release.statement),
        balances=tuple((each.name, each.reason or "") for each in found.lines),
        data=tuple(
            (
                f"{each.dataset.name} {each.dataset.edition}",
                each.population or "",
                "" if each.terms is None else ", ".join(each.terms.purposes),
            )
            for each in found.readings
        ),
        approvals=tuple(
            (each.proposal.number, ", ".join(each.decision.yes if each.decision else ())) for each in found.approvals
        ),
        later=tuple((each.place.at[:10], each.what, each.reason) for each in found.later),
        proof=None if found.settled is None or found.certificate is None else proof_of(service.ledger, found),
    )
    return render(request, "audit/charge.html", page)


@router.get("/audit/charges/{number}/receipt.json", name="audit.receipt")
def receipt(service: AskedService, number: int) -> Response:
    """The receipt of an answer."""
    found = _answered(service, number)
    return _file(
        proof_of(service.ledger, found).receipt.text + "\n", f"charge-{number}.receipt.json", "application/json"
    )


@router.get("/audit/charges/{number}/certificate.json", name="audit.certificate")
def certificate(service: AskedService, number: int) -> Response:
    """The certificate of an answer, as it is stored."""
    found = _answered(service, number)
    return _file(f"{found.certificate}\n", f"charge-{number}.json", "application/json")


@router.post("/audit/evidence", name="audit.evidence")
def evidence(
    request: Request,
    service: AskedService,
    scope: Annotated[str, Form()] = "all",
    of: Annotated[str, Form()] = "",
    publisher: Annotated[str, Form()] = "",
    licence: Annotated[str, Form()] = "",
    region: Annotated[str, Form()] = "",
    reason: Annotated[str, Form()] = "",
    legal_basis: Annotated[str, Form()] = "",
) -> Response:
    """The evidence pack, as one file."""
    try:
        declared = Declared(
            publisher=publisher or None,
            licence=licence or None,
            region=region or None,
            reason=reason,
            legal_basis=legal_basis,
        )
        asked = _scope(scope, of.strip())
        if asked.release is not None:
            due_snapshot(service).found(asked.release)  # one that is not due is as unknown as one that is not there
        made = evidence_zip(service.ledger, asked, declared)
    except SfumatoError as wrong:
        return _home(request, service, wrong=str(wrong), status=422)
    return Response(
        made.content,
        media_type="application/zip",
        headers={"Content-Disposition": 'attachment; filename="evidence.zip"'},
    )


def _home(
    request: Request,
    service: Service,
    *,
    before: int = 0,
    page: int = 1,
    verified: RecordVerified | None = None,
    wrong: str = "",
    status: int = 200,
) -> Response:
    snapshot = due_snapshot(service)
    end = snapshot.trail.head.head
    first = min(before, end.number) if before > 0 else end.number
    lines = charges_of(snapshot)
    pages = max(1, -(-len(lines) // A_PAGE))
    at = min(max(page, 1), pages)
    shown = AuditHome(
        entry=end.number,
        digest=end.digest,
        at=end.at[:16].replace("T", " "),
        key=service.ledger.public_key,
        entries=entries_of(service.ledger, first=first, number=A_PAGE),
        first=first,
        older=max(0, first - A_PAGE),
        newer=0 if first == end.number else min(end.number, first + A_PAGE),
        charges=tuple((line, spent(line.epsilon)) for line in lines[(at - 1) * A_PAGE : at * A_PAGE]),
        charges_at=at,
        charges_pages=pages,
        verified=verified,
        wrong=wrong,
    )
    return render(request, "audit/home.html", shown, status=status)


def _scope(scope: str, of: str) -> Scope:
    match scope:
        case "all":
            return Scope()
        case "account" if of:
            return Scope(account=of)
        case "release" if of:
            return Scope(release=of)
    raise InvalidInput("say which account or which release the pack is about; nothing was made.")


def _charge(snapshot: Snapshot, number: int) -> Provenance:
    found = next((each for each in snapshot.trail.charges if each.number == number), None)
    if found is None:
        raise HTTPException(404)
    return found


def _answered(service: Service, number: int) -> Provenance:
    found = _charge(due_snapshot(service), number)
    if found.certificate is None or found.settled is None:
        raise HTTPException(404)
    return found


def _file(text: str, name: str, kind: str) -> Response:
    return Response(text, media_type=kind, headers={"Content-Disposition": f'attachment; filename="{name}"'})
