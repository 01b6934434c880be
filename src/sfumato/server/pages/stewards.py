"""Stewards' pages: which data are declared, onboarding a file or a table, what is public of it, versions, closing.

No page of these shows a value of the data, and none reads a row: a draft is made from the head of a file alone.
"""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Form, HTTPException, Request, UploadFile
from fastapi.responses import RedirectResponse, Response

from sfumato.core.budget import Budget
from sfumato.core.exact import decimal_up
from sfumato.core.units import user
from sfumato.errors import InvalidInput, Refused, SfumatoError
from sfumato.governance.consent import Ground, HipaaBasis, SpecialCategory, Terms
from sfumato.governance.overview import Held, overview
from sfumato.server.datasets.databases import is_table
from sfumato.server.datasets.onboarding import (
    DraftColumn,
    check_table,
    columns_of,
    drafted,
    new_place,
    place_of,
    schema_of,
)
from sfumato.server.datasets.registry import HeldDataset
from sfumato.server.pages.account import written
from sfumato.server.rendering import MenuLink, render
from sfumato.server.roles import ServiceRole
from sfumato.server.service import Service
from sfumato.server.visitors import AskedBy, AskedService
from sfumato.tables.schema import Schema
from sfumato.tables.schema_file import WORDS

__all__ = ["MENU", "ROUTES", "UPLOADS", "router"]

router = APIRouter()
STEWARD = frozenset({ServiceRole.STEWARD})
ROUTES = {
    "data": STEWARD,
    "data.new": STEWARD,
    "data.upload": STEWARD,
    "data.table": STEWARD,
    "data.declare": STEWARD,
    "data.show": STEWARD | {ServiceRole.AUDITOR},
    "data.close": STEWARD,
    "data.reopen": STEWARD,
}
UPLOADS = ("data.upload",)
NOT_IN_NAMES = frozenset("\"'`\\")
MENU = (MenuLink(route="data", words="data.menu", about="data.about", place=70),)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRow:
    """A version as it is listed; ``state`` is open, closed, brought back by a backup, or waiting for the board."""

    name: str
    edition: str
    population: str
    declared: str
    by: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPage:
    """All versions of all datasets."""

    versions: tuple[VersionRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadPage:
    """The forms that take a file or a table; ``like`` is the dataset whose new version it is.

    ``databases`` are those of the settings, each with its tables, or None where it cannot be asked now.
    """

    like: str | None
    most: str
    databases: tuple[tuple[str, tuple[str, ...] | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnboardPage:
    """The form that a steward fills in; ``wrong`` is what stood against it the last time."""

    file: str
    columns: tuple[DraftColumn, ...]
    kinds: tuple[str, ...]
    said: Mapping[str, str]
    populations: tuple[str, ...]
    grounds: tuple[str, ...]
    board: bool
    known: bool
    wrong: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRow:
    """What is public of a column."""

    name: str
    kind: str
    keys: str
    bounds: str
    person: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPage:
    """What is public of a dataset, and how it stands."""

    name: str
    edition: str
    population: str
    relation: str
    limit: str
    versions: tuple[VersionRow, ...]
    columns: tuple[ColumnRow, ...]
    spent: str
    cap: str
    share: float
    answers: str
    purposes: str | None
    until: str | None
    vetoed_by: str | None
    approved: bool
    schema: str
    restated: tuple[tuple[str, str, str, str], ...]
    """What was taken over from releases: what it says, by whom, when, and the release."""
    standing: bool
    may_change: bool


@router.get("/data", name="data")
def data(*, request: Request, service: AskedService) -> Response:
    """All datasets."""
    return render(request, "data/list.html", DataPage(versions=_rows(service, service.datasets.versions())))


@router.get("/data/new", name="data.new")
def new(*, request: Request, service: AskedService, like: str | None = None) -> Response:
    """The forms that take a file or a table."""
    known = like if like is not None and like in service.datasets else None
    most = f"{service.settings.upload_bytes / 2**20:,.0f} MiB"
    held = service.datasets.databases
    listed = tuple((name, held.tables(name)) for name in held.names)
    return render(request, "data/upload.html", UploadPage(like=known, most=most, databases=listed))


@router.post("/data/new", name="data.upload")
def upload(
    *, request: Request, service: AskedService, file: UploadFile, like: Annotated[str, Form(max_length=500)] = ""
) -> Response:
    """Keep a file and show the form about it; a file whose head cannot be read is thrown away again."""
    place = new_place(service.data, file.filename or "")
    earlier = service.datasets[like].schema if like and like in service.datasets else None
    try:
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as kept:
            shutil.copyfileobj(file.file, kept)
        columns = drafted(place, earlier)
    except SfumatoError:
        place.unlink(missing_ok=True)
        raise
    return render(request, "data/onboard.html", _form(service, place.name, columns, _said(service, like), wrong=None))


@router.post("/data/table", name="data.table")
def table(
    *,
    request: Request,
    service: AskedService,
    database: Annotated[str, Form(max_length=40)],
    table: Annotated[str, Form(max_length=300)],
    like: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Show the form about a table of a database that the settings name; its catalogue is asked, and no row is read."""
    place = service.datasets.databases.place(database, table)
    earlier = service.datasets[like].schema if like and like in service.datasets else None
    service.datasets.databases.check_foreign(place)
    columns = drafted(service.datasets.databases.opened(place), earlier)
    return render(request, "data/onboard.html", _form(service, place, columns, _said(service, like), wrong=None))


@router.post("/data/declare", name="data.declare")
async def declare(*, request: Request, service: AskedService, visitor: AskedBy) -> Response:
    """Declare what the form says; where something stands against it the form comes back as it was, with the reason."""
    from starlette.concurrency import run_in_threadpool

    form = await request.form()
    said = {name: value for name, value in form.items() if isinstance(value, str)}
    return await run_in_threadpool(_declared, request, service, str(visitor.name), said)


@router.get("/data/{name}", name="data.show")
def show(*, request: Request, service: AskedService, visitor: AskedBy, name: str) -> Response:
    """One dataset."""
    versions = service.datasets.versions(name)
    if not versions:
        raise HTTPException(404)
    return render(
        request, "data/show.html", _dataset(service, versions, may_change=visitor.is_any(ServiceRole.STEWARD))
    )


@router.post("/data/{name}/close", name="data.close")
def close(*, service: AskedService, name: str, edition: Annotated[str, Form(max_length=500)]) -> Response:
    """Close a version: nothing reads it any more."""
    service.datasets.close(name, edition)
    return RedirectResponse(f"/data/{name}", 303)


@router.post("/data/{name}/reopen", name="data.reopen")
def reopen(*, service: AskedService, name: str, edition: Annotated[str, Form(max_length=500)]) -> Response:
    """Open a version again that is closed since a backup brought it back."""
    service.datasets.reopen(name, edition)
    return RedirectResponse(f"/data/{name}", 303)


# ----------------------------------------------------------------------------------------------------- what is shown


def _rows(service: Service, versions: tuple[HeldDataset, ...]) -> tuple[VersionRow, ...]:
    held = {each.level.name: each for each in overview(service.ledger).datasets}
    return tuple(
        VersionRow(
            name=each.name,
            edition=each.edition,
            population=each.population,
            declared=written(each.declared),
            by=each.declared_by,
            state=_state(service, each, held.get(each.name)),
        )
        for each in reversed(versions)
    )


def _state(service: Service, version: HeldDataset, held: Held | None) -> str:
    if held is not None and version.edition in held.closed:
        return "closed"
    if version.closed is not None:
        return "brought_back" if version.brought_back else "closed"
    if held is not None and held.vetoed_by:
        return "vetoed"
    return "open" if _approved(service, version.name) else "waiting"


def _approved(service: Service, name: str) -> bool:
    """Whether the board approved a dataset, or there is no board that could."""
    decided = service.ledger.decision_state()
    if decided.minutes is None:
        return True
    known = decided.terms.get(name)
    return known is not None and bool(decided.minutes.opened(name, known[1]))


def _dataset(service: Service, versions: tuple[HeldDataset, ...], *, may_change: bool) -> DatasetPage:
    newest = versions[-1]
    held = next(each for each in overview(service.ledger).datasets if each.level.name == newest.name)
    balance, terms, limit = held.level.balance, service.ledger.terms(newest.name), newest.schema.limit
    return DatasetPage(
        name=newest.name,
        edition=newest.edition,
        population=newest.population,
        relation=newest.relation,
        limit="" if limit is None else f"{limit.groups} × {limit.rows_per_group}",
        versions=_rows(service, versions),
        columns=tuple(_column(newest.schema, place) for place in range(len(newest.schema.columns))),
        spent=decimal_up(balance.epsilon_spent),
        cap=decimal_up(balance.cap.epsilon),
        share=float(balance.epsilon_spent / balance.cap.epsilon),
        answers=f"{balance.charges:,}",
        purposes=None if terms is None else ", ".join(terms.purposes),
        until=None if terms is None else terms.until,
        vetoed_by=", ".join(held.vetoed_by) or None,
        approved=_approved(service, newest.name),
        schema=newest.schema.to_toml(),
        restated=tuple(
            (each.said, each.by, written(each.at), each.release)
            for each in service.datasets.restated(newest.name, newest.edition)
        ),
        standing=newest.name in service.datasets,
        may_change=may_change,
    )


def _column(schema: Schema, place: int) -> ColumnRow:
    column = schema.columns[place]
    kind = next(word for word, known in WORDS.items() if known is column.type)
    shown = ", ".join(map(str, column.keys[:12])) + (f", … ({len(column.keys):,})" if len(column.keys) > 12 else "")
    bounds = "" if column.bounds is None else f"{column.bounds[0]} – {column.bounds[1]}"
    return ColumnRow(name=column.name, kind=kind, keys=shown, bounds=bounds, person=column.name == schema.unit)


def _said(service: Service, like: str) -> dict[str, str]:
    """What the form about new data says at first; of a new version of some data what was said of the last one."""
    earlier = service.datasets[like].schema if like and like in service.datasets else None
    said = {"relation": "add/remove", "until": _next_year(service), "ground": Ground.PUBLIC_TASK.value}
    if earlier is not None and earlier.limit is not None:
        held = service.datasets[like]
        said |= {
            "name": like,
            "groups": str(earlier.limit.groups),
            "rows": str(earlier.limit.rows_per_group),
            "people": str(earlier.population or ""),
            "population": held.population,
            "relation": held.relation,
        }
    return said


def _form(
    service: Service, file: str, columns: tuple[DraftColumn, ...], said: Mapping[str, str], *, wrong: str | None
) -> OnboardPage:
    stands = overview(service.ledger)
    return OnboardPage(
        file=file,
        columns=columns,
        kinds=tuple(WORDS),
        said=said,
        populations=tuple(level.name for level in stands.populations),
        grounds=tuple(ground.value for ground in Ground),
        board=stands.board,
        known=any(held.level.name == said.get("name", "").strip() for held in stands.datasets),
        wrong=wrong,
    )


# ----------------------------------------------------------------------------------------------------- what is done


def _declared(request: Request, service: Service, by: str, said: dict[str, str]) -> Response:
    """Declare what a form says, or show it again with what stands against it."""
    file = said.get("file", "")
    place: str | Path = _table_of(service, file) if is_table(file) else place_of(service.data, file)
    columns = columns_of(said, int(said["count"]) if said.get("count", "").isdecimal() else 0)
    try:
        _check_plain(said.get("name", ""), said.get("edition", ""))
        schema = schema_of(
            columns,
            name=said.get("name", ""),
            edition=said.get("edition", ""),
            groups=said.get("groups", ""),
            rows_per_group=said.get("rows", ""),
            population=said.get("people", ""),
        )
        if is_table(file):
            check_table(service.datasets.databases.opened(file), schema)
        purpose, recipient = _agreed(service, schema, said)
        service.datasets.declare(
            schema,
            place,
            population=_population(service, schema, said),
            relation=said.get("relation", ""),
            cap=_cap(service, schema, said),
            by=by,
            purpose=purpose,
            recipient=recipient,
        )
    except SfumatoError as wrong:
        return render(request, "data/onboard.html", _form(service, file, columns, said, wrong=str(wrong)), status=422)
    return RedirectResponse(str(request.app.url_path_for("data.show", name=str(schema.name))), 303)


def _check_plain(*names: str) -> None:
    """Refuse a name that ends a text in somebody's code, or that a page cannot show."""
    if any(sign in NOT_IN_NAMES or not sign.isprintable() for name in names for sign in name.strip()):
        raise InvalidInput(
            "the name and the version of a dataset are without quotes, backslashes and control characters; nothing "
            "was declared. Leave them out."
        )


def _table_of(service: Service, place: str) -> str:
    """A table of a database that the settings name, as the form kept it."""
    name, _, table = place.partition(":")[2].partition("/")
    return service.datasets.databases.place(name, table)


def _cap(service: Service, schema: Schema, said: Mapping[str, str]) -> Budget:
    """The cap of a new dataset; that of an earlier version stands."""
    known = [held for held in overview(service.ledger).datasets if held.level.name == schema.name]
    if known:
        return known[0].level.balance.cap
    return Budget(epsilon=said.get("epsilon", "").strip() or "0", delta=said.get("delta", "").strip() or "0")


def _population(service: Service, schema: Schema, said: Mapping[str, str]) -> str:
    """The people that a dataset is about; new ones are declared where no board decides on them."""
    name, new_name = said.get("population", "").strip(), said.get("new_population", "").strip()
    if not new_name:
        return name
    unit = user(str(schema.unit), relation=said.get("relation", ""))
    cap = Budget(epsilon=said.get("population_epsilon", "").strip() or "0", delta=said.get("delta", "").strip() or "0")
    service.ledger.declare_population(new_name, unit=unit, cap=cap, reason=said.get("reason", ""))
    return new_name


def _agreed(service: Service, schema: Schema, said: Mapping[str, str]) -> tuple[str | None, str | None]:
    """The terms of a dataset, declared where there are none; what its releases are for, and who gets them."""
    name = str(schema.name)
    known = service.ledger.terms(name)
    if known is None and service.ledger.board() is None:
        return None, None
    if known is None:
        purposes = tuple(part.strip() for part in said.get("purposes", "").split(",") if part.strip())
        recipients = tuple(part.strip() for part in said.get("recipients", "").split(",") if part.strip())
        ground = next((each for each in Ground if each.value == said.get("ground")), None)
        if ground is None or ground is Ground.CONSENT:
            raise Refused(
                "terms that rest on consent need the text that people agreed to; nothing was declared. Declare them "
                "with sfumato ledger terms, or choose another ground."
            )
        if not recipients:
            raise InvalidInput("say who receives what is released, such as public; nothing was declared.")
        known = Terms(
            dataset=name,
            purposes=purposes,
            ground=ground,
            condition=SpecialCategory.NONE,
            hipaa=HipaaBasis.NOT_SUBJECT,
            consent=(),
            consent_text="",
            forbidden=(),
            recipients=recipients,
            until=said.get("until", ""),
            sites=(),
        )
        service.ledger.declare_terms(known)
    return known.purposes[0], known.recipients[0] if known.recipients else "public"


def _next_year(service: Service) -> str:
    return (service.clock().date() + timedelta(days=366)).isoformat()
