"""What is said where a page is not shown: a calm page in the reader's language, or JSON for programs."""

from dataclasses import dataclass
from urllib.parse import quote

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException as StarletteHTTPException

from sfumato.errors import (
    BudgetExceeded,
    EngineFailed,
    InvalidInput,
    LedgerError,
    MissingExtra,
    NotDeclared,
    SfumatoError,
    Unsupported,
)
from sfumato.server.rendering import render
from sfumato.server.visitors import NotConfirmed

__all__ = ["API", "ProblemPage", "install", "problem"]

API = "/api/"
STATUSES: tuple[tuple[type[SfumatoError], int], ...] = (
    (BudgetExceeded, 409),
    (EngineFailed, 503),
    (LedgerError, 503),
    (MissingExtra, 503),
    (InvalidInput, 422),
    (NotDeclared, 422),
    (Unsupported, 422),
)
KNOWN = {400: "form_fields", 401: "sign_in", 403: "role", 404: "missing", 405: "missing", 409: "refused"}
KNOWN |= {413: "large", 422: "form_fields", 429: "often", 503: "later"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemPage:
    """Why something is not shown, and what to do next; ``detail`` are words of the product, in English."""

    title: str
    words: str
    detail: str | None


def problem(request: Request, status: int, kind: str, *, detail: str | None = None) -> Response:
    """Say why something is not shown."""
    say = request.app.state.service.words(request.state.visitor.lang).say
    title, words = say(f"problem.{kind}_title"), say(f"problem.{kind}")
    if request.url.path.startswith(API):
        english = request.app.state.service.words("en").say(f"problem.{kind}")
        return JSONResponse({"error": detail or english, "kind": kind}, status)
    return render(request, "problem.html", ProblemPage(title=title, words=words, detail=detail), status=status)


def status_of(wrong: SfumatoError) -> int:
    """The status of an answer that is a refusal."""
    return next((status for kind, status in STATUSES if isinstance(wrong, kind)), 409)


def install(app: FastAPI) -> None:
    """Let an application answer its errors with these pages."""

    def refused(request: Request, wrong: Exception) -> Response:
        assert isinstance(wrong, SfumatoError)  # noqa: S101 - what this is installed for
        status = status_of(wrong)
        return problem(request, status, "later" if status == 503 else "refused", detail=str(wrong))

    def said(request: Request, wrong: Exception) -> Response:
        status = getattr(wrong, "status_code", 422)
        kind = wrong.detail if isinstance(wrong, HTTPException) and wrong.detail in ("form", "often") else None
        return problem(request, status, kind or KNOWN.get(status, "failed"))

    def invalid(request: Request, _: Exception) -> Response:
        return problem(request, 422, "form_fields")  # never what was sent

    def failed(request: Request, _: Exception) -> Response:
        return problem(request, 500, "failed")

    def unconfirmed(request: Request, _: Exception) -> Response:
        if request.url.path.startswith(API):
            return problem(request, 403, "confirm")
        return RedirectResponse(f"/confirm?next={quote(request.url.path, safe='')}", 303)

    app.add_exception_handler(SfumatoError, refused)
    app.add_exception_handler(StarletteHTTPException, said)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(NotConfirmed, unconfirmed)
    app.add_exception_handler(Exception, failed)
