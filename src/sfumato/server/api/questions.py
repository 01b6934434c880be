"""The routes of the API: who asks, what can be asked, offers, questions and their certificates."""

from collections.abc import Callable, Coroutine
from typing import Any  # what a route hands on

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from fastapi.routing import APIRoute

from sfumato import errors
from sfumato.core.budget import Budget
from sfumato.core.documents import canonical, encode, parse
from sfumato.core.exact import fraction_text, non_negative, positive
from sfumato.core.limits import Limit
from sfumato.core.question import Intended, Question
from sfumato.errors import InvalidInput, NotDeclared, SfumatoError
from sfumato.server.api import messages as said
from sfumato.server.asking.desk import QuestionDesk, desk_of
from sfumato.server.asking.offers import Offer, Precision
from sfumato.server.jobs.queue import Job
from sfumato.server.problems import status_of
from sfumato.server.roles import ServiceRole
from sfumato.server.visitors import AskedBy, AskedService, Visitor

__all__ = [
    "ANALYSTS",
    "BY_TOKEN",
    "KNOWN",
    "ROUTES",
    "RefusingRoute",
    "amount_answer",
    "offer_answer",
    "question_answer",
    "refusal_of",
    "router",
]

ANALYSTS = frozenset({ServiceRole.ANALYST})
REFUSED = {409: {"model": said.ProblemAnswer}, 422: {"model": said.ProblemAnswer}}
KNOWN = {401: {"model": said.ProblemAnswer}, 403: {"model": said.ProblemAnswer}, **REFUSED}
KNOWN |= {400: {"model": said.ProblemAnswer}, 404: {"model": said.ProblemAnswer}}


class RefusingRoute(APIRoute):
    """A route whose refusals say their class, so that a program can raise the same error."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, with refusals as JSON."""
        handler = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handler(request)
            except SfumatoError as wrong:
                name = next(each.__name__ for each in type(wrong).__mro__ if each.__name__ in errors.__all__)
                body = {"error": str(wrong), "kind": "refused", "error_class": name}
                return JSONResponse(body, status_of(wrong))

        return handled


router = APIRouter(prefix="/api/v1", route_class=RefusingRoute, responses=KNOWN)  # type: ignore[arg-type]  # numbers
NAMES = ("session", "account", "datasets", "offer", "fits", "ask", "questions", "question", "certificate")
ROUTES = dict.fromkeys((f"api.{name}" for name in NAMES), ANALYSTS)
BY_TOKEN = frozenset(ROUTES)


@router.get("/session", name="api.session")
def session(*, service: AskedService, visitor: AskedBy) -> said.SessionAnswer:
    """Who asks, and which accounts they may charge."""
    accounts = list(desk_of(service).accounts(visitor))
    return said.SessionAnswer(name=str(visitor.name), accounts=accounts, key=service.release_public_key)


@router.get("/account", name="api.account")
def account(*, path: str | None = None, service: AskedService, visitor: AskedBy) -> said.AccountAnswer:
    """How an account stands; the first of yours where none is named."""
    found = desk_of(service).account(visitor, path)
    unit = service.ledger.balance(found).unit
    stands = service.ledger.account(found, unit=unit)
    return said.AccountAnswer(
        path=found, unit=canonical(encode(unit)), budget=amount_answer(stands.budget), left=amount_answer(stands.left)
    )


@router.get("/datasets", name="api.datasets")
def datasets(*, service: AskedService) -> list[said.DatasetAnswer]:
    """What can be asked: the schema of each dataset."""
    return [
        said.DatasetAnswer(name=name, version=str(held.schema.edition), schema_toml=held.schema.to_toml())
        for name, held in desk_of(service).datasets.items()
    ]


@router.post("/offers", name="api.offer")
def offer(*, body: said.OfferBody, service: AskedService, visitor: AskedBy) -> said.OfferAnswer:
    """What a question would cost and how exact its answer would be; charges nothing and reads nothing."""
    made = _offer(desk_of(service), visitor, body)
    return said.OfferAnswer(**offer_answer(made))


@router.post("/fits", name="api.fits")
def fits(*, body: said.FittingBody, service: AskedService, visitor: AskedBy) -> said.CostAnswer:
    """What several questions to one dataset would cost together; refused where that does not fit."""
    desk = desk_of(service)
    paying, limit = desk.account(visitor, body.account), _limit(body.limit)
    intended = [
        Intended(
            query=desk.asker.decoded(paying, body.dataset, parse(each.query), limit=limit).query,
            spend=Budget.asked(epsilon=positive(each.epsilon, "ε"), delta=non_negative(each.delta, "δ")),
            fresh=each.fresh,
            known=each.known,
        )
        for each in body.questions
    ]
    return said.CostAnswer(cost=amount_answer(desk.asker.cost(paying, body.dataset, intended, limit=limit)))


@router.post("/questions", name="api.ask", status_code=202)
def ask(*, body: said.AskBody, service: AskedService, visitor: AskedBy) -> said.QuestionAnswer:
    """Hand a question in. Its outcome is there at its deadline, which is fixed now and says nothing about the data."""
    desk = desk_of(service)
    made = _offer(desk, visitor, body)
    if not made.open:
        raise refusal_of(made)
    job = desk.ask(
        visitor,
        made,
        title=body.title,
        project=body.project,
        fresh=body.fresh,
        even_if_useless=body.even_if_useless,
        limit=_limit(body.limit),
        idempotency=body.idempotency,
    )
    return question_answer(job, desk)


@router.get("/questions", name="api.questions")
def questions(*, service: AskedService, visitor: AskedBy) -> list[said.QuestionAnswer]:
    """What you asked, the latest first."""
    desk = desk_of(service)
    return [question_answer(job, desk) for job in desk.asked_by(visitor)]


@router.get("/questions/{name}", name="api.question")
def question(*, name: str, service: AskedService, visitor: AskedBy) -> said.QuestionAnswer:
    """A question, as it stands now."""
    desk = desk_of(service)
    return question_answer(desk.job(visitor, name), desk)


@router.get("/questions/{name}/certificate", name="api.certificate")
def certificate(*, name: str, service: AskedService, visitor: AskedBy) -> Response:
    """The certificate of an answer: all of the answer, signed, as it is stored in the ledger."""
    desk = desk_of(service)
    return Response(desk.certificate(desk.job(visitor, name)), media_type="application/json")


def _offer(desk: QuestionDesk, visitor: Visitor, body: said.OfferBody) -> Offer:
    paying, limit = desk.account(visitor, body.account), _limit(body.limit)
    return desk.asker.offer(
        paying,
        body.dataset,
        _asked(desk, paying, body, limit),
        _precision(body),
        sql=body.sql,
        fresh=body.fresh,
        even_if_useless=body.even_if_useless,
        limit=limit,
    )


def _asked(desk: QuestionDesk, paying: str, body: said.OfferBody, limit: Limit | None) -> Question:
    if (body.sql is None) is (body.query is None):
        raise NotDeclared(
            "a question is stated as sql or as the document of a query, one of the two; nothing was done."
        )
    if body.query is not None:
        return desk.asker.decoded(paying, body.dataset, parse(body.query), limit=limit)
    if limit is not None:
        raise InvalidInput("another limit goes with the document of a query; nothing was done.")
    return desk.asker.question(paying, body.dataset, str(body.sql))


def _precision(body: said.OfferBody) -> Precision:
    if (body.margin is None) is (body.epsilon is None):
        raise NotDeclared("say margin or epsilon, one of the two; nothing was done.")
    return Precision(
        margin=None if body.margin is None else positive(body.margin, "the margin"),
        epsilon=None if body.epsilon is None else positive(body.epsilon, "ε"),
        column=body.column,
        joint=body.joint,
        rows=body.rows,
        delta=non_negative(body.delta, "δ"),
    )


def _limit(body: said.LimitBody | None) -> Limit | None:
    return None if body is None else Limit(groups=body.groups, rows_per_group=body.rows_per_group)


def refusal_of(made: Offer) -> SfumatoError:
    """The refusal of an offer that is not open, as the error it was."""
    kind = errors.BudgetExceeded if made.decision.value == "over" else errors.Refused
    return kind(made.refusal)


def question_answer(job: Job, desk: QuestionDesk) -> said.QuestionAnswer:
    """A question as programs are told of it."""
    return said.QuestionAnswer(
        name=job.name,
        title=job.title,
        account=job.account,
        dataset=job.dataset,
        outcome=job.outcome.value,
        ready=job.ends,
        seconds=max(0.0, job.ends - desk.queue.now()),
        spend=amount_answer(job.spend),
        charged=None if job.charged is None else amount_answer(job.charged),
        release=job.release,
        words=job.words,
    )


def amount_answer(budget: Budget) -> said.BudgetAnswer:
    """An amount, exact."""
    return said.BudgetAnswer(epsilon=fraction_text(budget.epsilon), delta=fraction_text(budget.delta))


def offer_answer(made: Offer) -> dict[str, Any]:
    """The fields of an offer as programs are told them."""
    return {
        "decision": made.decision.value,
        "refusal": made.refusal,
        "question": made.question,
        "numbers": made.numbers,
        "columns": [
            said.ColumnAnswer(name=column.name, margin=column.margin, joint_margin=column.joint, unknown=column.unknown)
            for column in made.columns
        ],
        "spend": amount_answer(made.spend),
        "price": amount_answer(made.price),
        "left": amount_answer(made.left),
        "sql": made.sql,
    }
