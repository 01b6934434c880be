"""Live streams: feeds that stewards declare, and running totals that analysts open on them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated
from weakref import WeakKeyDictionary

from fastapi import APIRouter, Form, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from sfumato.core.budget import Budget
from sfumato.core.exact import decimal_down, decimal_up
from sfumato.core.units import User
from sfumato.errors import BudgetExceeded, InvalidInput, Refused, SfumatoError
from sfumato.governance.overview import overview
from sfumato.server.live.drawing import StreamDrawing, drawn, when
from sfumato.server.live.feeders import Feeders
from sfumato.server.live.feeds import LENGTHS, OVER, Feed, Feeds, LiveStream
from sfumato.server.rendering import MenuLink, render
from sfumato.server.roles import SIGNED_IN, ServiceRole
from sfumato.server.service import Service
from sfumato.server.views.gate import EVERYBODY
from sfumato.server.visitors import AskedBy, AskedService, Visitor
from sfumato.vault import Vault

__all__ = ["MENU", "ROUTES", "attach", "live_of", "router"]

router = APIRouter()
ROUTES = {
    "live": SIGNED_IN,
    "live.show": SIGNED_IN,
    "live.chart": SIGNED_IN,
    "live.new": frozenset({ServiceRole.ANALYST}),
    "live.preview": frozenset({ServiceRole.ANALYST}),
    "live.open": frozenset({ServiceRole.ANALYST}),
    "live.feeds": frozenset({ServiceRole.STEWARD}),
    "live.declare": frozenset({ServiceRole.STEWARD}),
}
MENU = (MenuLink(route="live", words="live.menu", place=45, about="live.about"),)
FOLDER = "streams"
ROWS = 12
WATCHING = (ServiceRole.STEWARD, ServiceRole.AUDITOR, ServiceRole.BOARD)
Text = Annotated[str, Form(max_length=500)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """The live streams of one service."""

    feeds: Feeds
    feeders: Feeders


_ATTACHED: WeakKeyDictionary[Service, Live] = WeakKeyDictionary()


def attach(service: Service) -> None:
    """Feed the streams of a service while it runs."""
    if service in _ATTACHED:
        return
    service.database.create()  # the tables of this area, which was imported since
    feeds = Feeds(service.database, service.ledger, service.now)
    feeders = Feeders(
        feeds,
        service.ledger,
        owner=lambda: service.owner,
        key=service.release_key,
        folder=service.folder / FOLDER,
    )
    _ATTACHED[service] = Live(feeds=feeds, feeders=feeders)
    service.on_start(feeders.start)
    service.on_stop(feeders.stop)


def live_of(service: Service) -> Live:
    """The live streams of a service that the pages were attached to."""
    return _ATTACHED[service]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCard:
    """A stream in the list."""

    address: str
    title: str
    account: str
    phase: str
    steps: str
    horizon: str
    total: str
    margin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePage:
    """All streams."""

    streams: tuple[StreamCard, ...]
    may_open: bool
    may_declare: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRow:
    """One of the last totals."""

    when: str
    total: str
    low: str
    high: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamNow:
    """How a stream stands now."""

    title: str
    phase: str
    words: str
    release: str | None
    chart: StreamDrawing | None
    latest: LastRow | None
    margin: str
    rows: tuple[LastRow, ...]
    steps: str
    horizon: str
    share: float
    account: str
    epsilon: str
    delta: str
    protects: str
    every: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPage:
    """One stream; ``pause`` is after how many seconds a browser looks again, nothing once it has ended."""

    name: str
    title: str
    pause: int | None
    now: StreamNow


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartPage:
    """The part of the page of a stream that changes."""

    now: StreamNow


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPage:
    """The form of a stream, and what it would cost once it was asked for."""

    feeds: tuple[tuple[str, str], ...]
    accounts: tuple[tuple[str, str], ...]
    lengths: tuple[tuple[str, str], ...]
    said: Mapping[str, str]
    problem: str | None
    offer: "OfferRow | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferRow:
    """What a stream would cost, and how exact it would be."""

    epsilon: str
    delta: str
    left: str
    fits: bool
    first: str
    middle: str
    last: str
    begins: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedsPage:
    """The feeds, and the form of a new one."""

    feeds: tuple[Feed, ...]
    populations: tuple[tuple[str, str], ...]
    said: Mapping[str, str]
    problem: str | None


@router.get("/live", name="live")
def streams(*, request: Request, service: AskedService, visitor: AskedBy) -> Response:
    """All streams that somebody sees."""
    held = live_of(service).feeds
    cards = []
    for stream in held.streams():
        if not _sees(service, visitor, stream):
            continue
        points = held.points(stream.name)
        cards.append(
            StreamCard(
                address=str(request.app.url_path_for("live.show", name=stream.name)),
                title=stream.title,
                account=stream.account,
                phase=stream.phase,
                steps=f"{len(points):,}",
                horizon=f"{stream.horizon:,}",
                total=f"{points[-1].total:,.0f}" if points else "",
                margin=_up(points[-1].margin) if points else "",
            )
        )
    page = LivePage(
        streams=tuple(cards),
        may_open=visitor.is_any(ServiceRole.ANALYST),
        may_declare=visitor.is_any(ServiceRole.STEWARD),
    )
    return render(request, "live/list.html", page)


@router.get("/live/new", name="live.new")
def new(*, request: Request, service: AskedService, visitor: AskedBy) -> Response:
    """The form of a stream."""
    return render(request, "live/new.html", _form(request, service, visitor, {}))


@router.post("/live/new/preview", name="live.preview")
async def preview(*, request: Request, service: AskedService, visitor: AskedBy) -> Response:
    """What a stream would cost and how exact it would be; charges nothing and reads no event."""
    said = _texts(await request.form())
    try:
        stream = _drafted(service, visitor, said)
        page = _form(request, service, visitor, said, offer=_offer(service, stream))
    except SfumatoError as wrong:
        page = _form(request, service, visitor, said, problem=str(wrong))
    return render(request, "live/new.html", page)


@router.post("/live/new", name="live.open")
async def open_(*, request: Request, service: AskedService, visitor: AskedBy) -> Response:
    """Open a stream: its feeder charges it, and goes on from there."""
    said = _texts(await request.form())
    try:
        stream = _drafted(service, visitor, said)
        if not _offer(service, stream).fits:
            raise BudgetExceeded(
                f"{stream.account!r} has ε = {decimal_down(service.ledger.balance(stream.account).left.epsilon)} left, "
                "less than this stream needs. Nothing was read and nothing was spent. Ask for less, or request a raise."
            )
    except SfumatoError as wrong:
        return render(request, "live/new.html", _form(request, service, visitor, said, problem=str(wrong)))
    live = live_of(service)
    live.feeds.keep(stream)
    live.feeders.feed(stream)
    return RedirectResponse(str(request.app.url_path_for("live.show", name=stream.name)), 303)


@router.get("/live/feeds", name="live.feeds")
def feeds(*, request: Request, service: AskedService) -> Response:
    """The feeds, and the form of a new one."""
    return render(request, "live/feeds.html", _feeds(service, {}))


@router.post("/live/feeds", name="live.declare")
async def declare(*, request: Request, service: AskedService, visitor: AskedBy) -> Response:
    """Declare a feed."""
    said = _texts(await request.form())
    try:
        live_of(service).feeds.declare(
            name=said.get("name", "").strip(),
            edition=said.get("edition", "").strip() or "1",
            url=said.get("url", "").strip(),
            key=said.get("key", "").strip(),
            time=said.get("time", "").strip(),
            person=said.get("person", "").strip() or None,
            relation=said.get("relation", "add/remove"),
            population=said.get("population", ""),
            cap=Budget.asked(epsilon=said.get("epsilon", ""), delta=said.get("delta", "") or 0),
            trim=said.get("trim") == "yes",
            by=visitor.name or "",
        )
    except SfumatoError as wrong:
        return render(request, "live/feeds.html", _feeds(service, said, problem=str(wrong)), status=422)
    return RedirectResponse(str(request.app.url_path_for("live.feeds")), 303)


@router.get("/live/{name}", name="live.show")
def show(*, request: Request, service: AskedService, visitor: AskedBy, name: str) -> Response:
    """One stream."""
    stream = _stream(service, visitor, name)
    over = stream.phase in OVER
    page = StreamPage(
        name=stream.name,
        title=stream.title,
        pause=None if over else max(1, min(30, stream.every // 2)),
        now=_now(service, visitor, stream),
    )
    return render(request, "live/show.html", page)


@router.get("/live/{name}/chart", name="live.chart")
def chart(*, request: Request, service: AskedService, visitor: AskedBy, name: str) -> Response:
    """The part of the page of a stream that changes, for a script that fetches it."""
    return render(request, "live/chart.html", ChartPage(now=_now(service, visitor, _stream(service, visitor, name))))


def _stream(service: Service, visitor: Visitor, name: str) -> LiveStream:
    stream = live_of(service).feeds.stream(name)
    if stream is None or not _sees(service, visitor, stream):
        raise HTTPException(404)
    return stream


def _sees(service: Service, visitor: Visitor, stream: LiveStream) -> bool:
    """Whether somebody sees a stream: they may charge its account, look after all of it, or it is for everybody."""
    if visitor.may_charge(stream.account) or visitor.is_any(*WATCHING):
        return True
    return live_of(service).feeders.recipient(stream) == EVERYBODY


def _now(service: Service, visitor: Visitor, stream: LiveStream) -> StreamNow:
    say = service.words(visitor.lang).say
    points = live_of(service).feeds.points(stream.name)
    rows = tuple(
        LastRow(
            when=when(stream, each.step),
            total=f"{each.total:,.0f}",
            low=f"{each.total - each.margin:,.0f}",
            high=f"{each.total + each.margin:,.0f}",
        )
        for each in reversed(points[-ROWS:])
    )
    return StreamNow(
        title=stream.title,
        phase=stream.phase,
        words=stream.words,
        release=stream.release,
        chart=drawn(stream, points),
        latest=rows[0] if rows else None,
        margin=_up(points[-1].margin) if points else "",
        rows=rows,
        steps=f"{len(points):,}",
        horizon=f"{stream.horizon:,}",
        share=len(points) / stream.horizon,
        account=stream.account,
        epsilon=decimal_up(stream.spend.epsilon),
        delta=decimal_up(stream.spend.delta),
        protects=_protected(say, stream),
        every=say(f"live.every_{stream.every}"),
    )


def _protected(say: Callable[..., str], stream: LiveStream) -> str:
    """Who is protected, in words."""
    if stream.days is None:
        return say("live.protects_event")
    return say("live.protects_person_one") if stream.days == 1 else say("live.protects_person", n=stream.days)


def _form(
    request: Request,
    service: Service,
    visitor: Visitor,
    said: Mapping[str, str],
    *,
    problem: str | None = None,
    offer: OfferRow | None = None,
) -> NewPage:
    say = service.words(visitor.lang).say
    accounts = [level.name for level in overview(service.ledger).accounts if visitor.may_charge(level.name)]
    return NewPage(
        feeds=tuple((feed.name, feed.name) for feed in live_of(service).feeds.feeds()),
        accounts=tuple((name, name) for name in accounts),
        lengths=tuple((str(length), say(f"live.every_{length}")) for length in LENGTHS),
        said=said,
        problem=problem,
        offer=offer,
    )


def _feeds(service: Service, said: Mapping[str, str], *, problem: str | None = None) -> FeedsPage:
    populations = [level.name for level in overview(service.ledger).populations]
    return FeedsPage(
        feeds=live_of(service).feeds.feeds(),
        populations=tuple((name, name) for name in populations),
        said=said,
        problem=problem,
    )


def _drafted(service: Service, visitor: Visitor, said: Mapping[str, str]) -> LiveStream:
    """The stream that a form asks for; refused where whoever asks may not charge its account."""
    account = said.get("account", "")
    if not visitor.may_charge(account):
        raise Refused("this account is not yours to charge; nothing was done. Choose one of yours.")
    days = said.get("days", "").strip()
    return live_of(service).feeds.drafted(
        feed=said.get("feed", ""),
        title=said.get("title", ""),
        account=account,
        by=visitor.name or "",
        every=_whole(said.get("every", ""), "the length of a step"),
        horizon=_whole(said.get("horizon", ""), "the number of steps"),
        days=_whole(days, "in how many steps a person counts") if days else None,
        spend=Budget.asked(epsilon=said.get("epsilon", ""), delta=said.get("delta", "") or 0),
    )


def _offer(service: Service, stream: LiveStream) -> OfferRow:
    """What a stream would cost and how exact it would be, from public facts; refused where it could not be opened."""
    balance = service.ledger.balance(stream.account)
    feed = live_of(service).feeds.feed(stream.feed)
    unit = balance.unit
    if unit.KIND != feed.unit.KIND or unit.relation is not feed.unit.relation:
        raise Refused("the account protects another unit than this feed states; nothing was done. Choose another one.")
    if isinstance(unit, User) and feed.person is not None and unit.column not in (None, feed.person):
        raise Refused("the account identifies persons by another field than this feed; nothing was done.")
    home = Vault(unit=unit, budget=balance.cap, name="preview")  # an account that no vault opens is refused here
    margins = stream.question(home).margins(epsilon=stream.spend.epsilon, delta=stream.spend.delta)
    left = balance.left
    return OfferRow(
        epsilon=decimal_up(stream.spend.epsilon),
        delta=decimal_up(stream.spend.delta),
        left=decimal_down(left.epsilon),
        fits=stream.spend.epsilon <= left.epsilon and stream.spend.delta <= left.delta,
        first=_up(margins[0]),
        middle=_up(margins[len(margins) // 2]),
        last=_up(margins[-1]),
        begins=stream.clock.start.strftime("%Y-%m-%d %H:%M:%S UTC"),
    )


def _texts(form: Mapping[str, object]) -> dict[str, str]:
    """The texts of a form, each of a length that a person would write."""
    found = {name: value for name, value in form.items() if isinstance(value, str)}
    if any(len(value) > 2000 for value in found.values()):
        raise HTTPException(413)
    return found


def _whole(text: str, what: str) -> int:
    if not (text.strip().isascii() and text.strip().isdigit() and len(text) < 10):
        raise InvalidInput(f"{what} is a whole number; nothing was done.")
    return int(text)


def _up(margin: float) -> str:
    """A margin, rounded up to a whole number."""
    return f"{-int(-margin // 1):,}"
