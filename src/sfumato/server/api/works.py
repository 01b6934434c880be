"""The routes of studies and synthetic rows: their offers, the works themselves, what they became, and their files."""

from urllib.parse import quote

from fastapi import APIRouter
from fastapi.responses import Response

from sfumato.errors import InvalidInput, NotDeclared
from sfumato.server.api import messages as said
from sfumato.server.api.questions import ANALYSTS, KNOWN, RefusingRoute, offer_answer, question_answer, refusal_of
from sfumato.server.asking.desk import QuestionDesk, desk_of
from sfumato.server.pages.work_results import work_file
from sfumato.server.pages.works import work_words
from sfumato.server.visitors import AskedBy, AskedService, Visitor
from sfumato.server.works.answers import WorkAnswer, read_again, study_pages, study_result, work_of
from sfumato.server.works.downloads import ROW_FILES, STUDY_FILES, code_lines
from sfumato.server.works.kinds import kept, read
from sfumato.server.works.offers import BY_ROWS, WorkOffer, offered
from sfumato.server.works.synthetic_form import SyntheticForm

__all__ = ["BY_TOKEN", "ROUTES", "router"]

router = APIRouter(prefix="/api/v1", route_class=RefusingRoute, responses=KNOWN)  # type: ignore[arg-type]  # numbers
ROUTES = dict.fromkeys(("api.work_offer", "api.work", "api.result", "api.file"), ANALYSTS)
BY_TOKEN = frozenset(ROUTES)


@router.post("/works/offers", name="api.work_offer")
def work_offer(*, body: said.WorkBody, service: AskedService, visitor: AskedBy) -> said.WorkOfferAnswer:
    """What a study or synthetic rows would cost, and what to expect of them; charges nothing and reads nothing."""
    made = _offer(desk_of(service), visitor, body)
    planned = [] if made.planned is None else made.planned.marginals
    return said.WorkOfferAnswer(
        **offer_answer(made.offer),
        notes=list(made.notes),
        planned=[
            said.PlannedAnswer(
                columns=list(each.columns), cells=each.cells, noise=each.noise, error=each.predicted_error
            )
            for each in planned
        ],
    )


@router.post("/works", name="api.work", status_code=202)
def work(*, body: said.WorkAskBody, service: AskedService, visitor: AskedBy) -> said.QuestionAnswer:
    """Ask for a study or for synthetic rows. Its outcome is there at its deadline, as that of a question."""
    desk = desk_of(service)
    made = _offer(desk, visitor, body)
    if not made.offer.open:
        raise refusal_of(made.offer)
    job = desk.ask(
        visitor,
        made.offer,
        title=body.title or work_words(service.words(visitor.lang).say, made.form),
        project=body.project,
        limit=made.limit,
        idempotency=body.idempotency,
        work=kept(made.form),
    )
    return question_answer(job, desk)


@router.get("/questions/{name}/result", name="api.result")
def result(*, name: str, service: AskedService, visitor: AskedBy) -> said.WorkResultAnswer:
    """What the answer of a study or of synthetic rows became."""
    desk = desk_of(service)
    answer = _answer(desk, visitor, name)
    language = "en" if visitor.lang == "en" else "zh"
    parts, explained, made = [], [], True
    if answer.is_study:
        found = study_result(answer)
        explained = found.explain(language).split("\n\n")
        parts = [
            said.PartAnswer(
                title=page.title,
                facts=list(page.facts),
                tables=[
                    said.TableAnswer(
                        name=table.name,
                        columns=[column.name for column in table.columns],
                        rows=[list(row) for row in zip(*(column.texts for column in table.columns), strict=True)],
                    )
                    for table in page.tables
                ],
                notes=list(page.notes),
            )
            for page in study_pages(found, language)
        ]
    else:
        made = desk.files.made(answer) is not None
    return said.WorkResultAnswer(
        kind=answer.form.kind,
        title=answer.job.title,
        made=made,
        parts=parts,
        explained=explained,
        code="\n".join(code_lines(answer)),
        files=list(STUDY_FILES if answer.is_study else ROW_FILES),
    )


@router.get("/questions/{name}/files/{kind}", name="api.file")
def file(*, name: str, kind: str, service: AskedService, visitor: AskedBy) -> Response:
    """A file of a study or of synthetic rows, such as ``csv`` or ``certificate``."""
    desk = desk_of(service)
    answer, address = _answer(desk, visitor, name), service.settings.address.rstrip("/")
    language = "en" if visitor.lang == "en" else "zh"
    made = work_file(desk, answer, kind, language=language, address=address)
    kept_as = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(made.name, safe='')}"}
    return Response(made.body, media_type=made.kind, headers=kept_as)


def _answer(desk: QuestionDesk, visitor: Visitor, name: str) -> WorkAnswer:
    job = desk.job(visitor, name)
    form = work_of(desk, job)
    if form is None:
        raise InvalidInput("this question became a table of numbers, which its certificate holds; nothing was done.")
    return read_again(desk, job, form)


def _offer(desk: QuestionDesk, visitor: Visitor, body: said.WorkBody) -> WorkOffer:
    if body.epsilon is None and (body.rows is None or body.kind == SyntheticForm.kind):
        raise NotDeclared(
            "say epsilon or, for a study, the rows that you expect, so that the least price is found; nothing was done."
        )
    account, fields = desk.account(visitor, body.account), _fields(body)
    desk.asker.held(body.dataset)
    return offered(desk.asker, account, read(body.kind, body.dataset, fields), fields)


def _fields(body: said.WorkBody) -> dict[str, str]:
    """The same as the fields of a form."""
    found: dict[str, object] = {
        "time": body.time,
        "until": body.until,
        "steps": body.steps,
        "group": body.group,
        "outcome": body.outcome,
        "event": body.event_value,
        "use": "\n".join(body.use),
        "rows_made": body.rows_made,
        "rows": body.rows,
        "epsilon": body.epsilon,
        "delta": body.delta,
        "by": BY_ROWS if body.epsilon is None else "epsilon",
    }
    conditions = {f"where{place}_": each for place, each in enumerate(body.where, 1)}
    if body.event is not None:
        conditions["event_"] = body.event
    for prefix, each in conditions.items():
        found |= {f"{prefix}column": each.column, f"{prefix}operator": each.operator, f"{prefix}value": each.value}
    for name, (low, high) in body.ranges.items():
        found |= {f"low:{name}": low, f"high:{name}": high}
    found |= {f"bins:{name}": number for name, number in body.bins.items()}
    return {name: str(text) for name, text in found.items() if text is not None}
