"""The first page: what this service is, and where whoever asks can go from here."""

from dataclasses import dataclass

from fastapi import APIRouter, Request
from fastapi.responses import Response

from sfumato.core.exact import decimal_up
from sfumato.governance.overview import overview
from sfumato.server.rendering import MenuLink, render
from sfumato.server.roles import EVERYONE
from sfumato.server.visitors import AskedBy, AskedService, Visitor

__all__ = ["MENU", "ROUTES", "router"]

router = APIRouter()
ROUTES = {"home": EVERYONE}
MENU = (MenuLink(route="home", words="home.menu", place=0),)


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeCard:
    """A place to go to, and what one finds there."""

    address: str
    title: str
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountStanding:
    """How an account of somebody stands: amounts as they are written, and shares of the cap between 0 and 1."""

    name: str
    spent: str
    cap: str
    left: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HomePage:
    """What the first page shows."""

    shown: str | None
    cards: tuple[HomeCard, ...]
    accounts: tuple[AccountStanding, ...]
    releases: str
    datasets: str


@router.get("/", name="home")
def home(*, request: Request, service: AskedService, visitor: AskedBy) -> Response:
    """The first page."""
    stands = overview(service.ledger)
    mine = [level for level in stands.accounts if visitor.name is not None and visitor.may_charge(level.name)]
    page = HomePage(
        shown=visitor.shown,
        cards=tuple(_cards(request, visitor)),
        accounts=tuple(
            AccountStanding(
                name=level.name,
                spent=decimal_up(level.balance.epsilon_spent),
                cap=decimal_up(level.balance.cap.epsilon),
                left=decimal_up(level.balance.left.epsilon),
                share=float(level.balance.epsilon_spent / level.balance.cap.epsilon),
            )
            for level in mine[:8]
        ),
        releases=f"{sum(level.balance.charges for level in stands.accounts if '/' not in level.name):,}",
        datasets=f"{len(service.datasets):,}",
    )
    return render(request, "home.html", page)


def _cards(request: Request, visitor: Visitor) -> list[HomeCard]:
    say = request.app.state.service.words(visitor.lang).say
    matrix = request.app.state.matrix
    return [
        HomeCard(address=str(request.app.url_path_for(link.route)), title=say(link.words), about=say(link.about))
        for link in request.app.state.links
        if link.about is not None and visitor.roles & matrix[link.route] & link.roles
    ]
