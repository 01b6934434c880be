"""Signing in at an institution's provider: going there, and coming back."""

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from sfumato.server.identity.oidc import Provider, ProviderFailed
from sfumato.server.pages.identity import safe_next, signed_in
from sfumato.server.problems import problem
from sfumato.server.roles import EVERYONE
from sfumato.server.service import Service
from sfumato.server.visitors import AskedBy, AskedService

__all__ = ["ROUTES", "attach", "router"]

router = APIRouter()
ROUTES = {"identity.provider": EVERYONE, "identity.provider.back": EVERYONE}
BACK = "sign-in/back"
HELD = "provider of sign-ins"


def attach(service: Service) -> None:
    """Make the provider that the settings name, if they name one."""
    if service.settings.oidc is not None:
        back = f"{service.settings.address}{BACK}"
        service.held[HELD] = Provider(service.settings.oidc, back=back, now=service.now)


@router.get("/sign-in/provider", name="identity.provider")
def go(*, request: Request, service: AskedService, next: str = "/", again: bool = False) -> Response:
    """Send a browser to the provider."""
    try:
        address = _provider(service).begin(browser=request.state.form_cookie, to=safe_next(next), again=again)
    except ProviderFailed as wrong:
        return problem(request, 503, "provider", detail=str(wrong))
    return RedirectResponse(address, 303)


@router.get("/sign-in/back", name="identity.provider.back")
def back(*, request: Request, service: AskedService, visitor: AskedBy, state: str = "", code: str = "") -> Response:
    """Sign in whom the provider vouches for, if they are known here."""
    try:
        proven = _provider(service).finish(browser=request.state.form_cookie, state=state, code=code)
    except ProviderFailed as wrong:
        return problem(request, 403, "provider", detail=str(wrong))
    person = service.people.by_subject(proven.issuer, proven.subject)
    if person is None or (proven.begun.again and person.login != visitor.name):
        return problem(request, 403, "stranger")
    return signed_in(request, service, person, how="provider", to=proven.begun.to, confirmed=proven.proven_at)


def _provider(service: Service) -> Provider:
    found = service.held.get(HELD)
    if not isinstance(found, Provider):
        raise HTTPException(404)
    return found
