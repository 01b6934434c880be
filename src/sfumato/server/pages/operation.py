"""What pages and monitors ask for: files of the design, the health of the service, and counts as OpenMetrics."""

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from sfumato.errors import SfumatoError
from sfumato.governance import health as ledger_health
from sfumato.server.rendering import static_files
from sfumato.server.roles import EVERYONE, ServiceRole
from sfumato.server.visitors import AskedService

__all__ = ["BY_TOKEN", "ROUTES", "router"]

router = APIRouter()
ROUTES = {
    "static": EVERYONE,
    "operation.alive": EVERYONE,
    "operation.health": frozenset({ServiceRole.ADMIN, ServiceRole.AUDITOR}),
    "operation.metrics": frozenset({ServiceRole.ADMIN, ServiceRole.AUDITOR}),
}
BY_TOKEN = frozenset({"operation.health", "operation.metrics", "operation.alive"})
OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


@router.get("/static/{name}", name="static")
def static(*, name: str, v: str = "") -> Response:
    """A file of the design, by its name alone."""
    if name not in static_files():
        raise HTTPException(404)
    body, kind, digest = static_files()[name]
    lasting = "public, max-age=31536000, immutable" if v == digest else "no-cache"
    return Response(body, media_type=kind, headers={"Cache-Control": lasting, "ETag": f'"{digest}"'})


@router.get("/alive", name="operation.alive")
def alive() -> PlainTextResponse:
    """Whether the process answers; says nothing else."""
    return PlainTextResponse("ok\n")


@router.get("/health", name="operation.health")
def health(*, service: AskedService) -> JSONResponse:
    """How the ledger is; 503 where somebody should look."""
    try:
        found = ledger_health.health(service.ledger)
    except SfumatoError:
        return JSONResponse({"ledger": "down"}, 503)
    wanted = found.attention()
    body = {"ledger": "up", "entries": found.entries, "open_charges": found.open_charges, "attention": list(wanted)}
    return JSONResponse(body, 503 if wanted else 200)


@router.get("/metrics", name="operation.metrics")
def metrics(*, request: Request, service: AskedService) -> Response:
    """Counts of requests, and how the ledger is, as OpenMetrics text."""
    try:
        ledger = ledger_health.metrics(ledger_health.health(service.ledger))
    except SfumatoError:
        ledger = ledger_health.metrics(None)
    return Response(request.app.state.watch.metrics() + ledger, media_type=OPEN_METRICS)
