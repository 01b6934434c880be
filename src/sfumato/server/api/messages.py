"""What programs say and are told, as JSON; amounts are texts, so that no digit is lost."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

__all__ = [
    "AccountAnswer",
    "AskBody",
    "ColumnAnswer",
    "CostAnswer",
    "DatasetAnswer",
    "FittingBody",
    "FittingQuestion",
    "OfferAnswer",
    "OfferBody",
    "ProblemAnswer",
    "QuestionAnswer",
    "SessionAnswer",
    "WorkAskBody",
    "WorkBody",
    "WorkOfferAnswer",
    "WorkResultAnswer",
]

Amount = Annotated[str, StringConstraints(max_length=120)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Key = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Sql = Annotated[str, StringConstraints(max_length=20_000)]
Text = Annotated[str, StringConstraints(max_length=65_536)]
MOST_ROWS = 10**9


class Said(BaseModel):
    """A body of a request: no field is passed over."""

    model_config = ConfigDict(extra="forbid", strict=True)


class LimitBody(Said):
    """How much of each person counts, where that is another limit than the declared one."""

    groups: int = Field(ge=1, le=10**6)
    rows_per_group: int = Field(ge=1, le=10**6)


class OfferBody(Said):
    """A question and how exact it is to be: ``sql``, or the document of a ``query``; ``margin``, or ``epsilon``."""

    dataset: Name
    account: Name | None = None
    sql: Sql | None = None
    query: Text | None = None
    margin: Amount | None = None
    epsilon: Amount | None = None
    delta: Amount = "0"
    rows: int | None = Field(default=None, ge=1, le=MOST_ROWS)
    column: Name | None = None
    joint: bool = False
    fresh: bool = False
    even_if_useless: bool = False
    limit: LimitBody | None = None


class AskBody(OfferBody):
    """The same, to be asked: it is charged what its offer says. Said again under one key it is asked once."""

    title: Annotated[str, StringConstraints(max_length=300)] | None = None
    project: Name | None = None
    idempotency: Key | None = None


class ConditionBody(Said):
    """A comparison of a column with a constant; a column that is true or false needs no value to be true."""

    column: Name
    operator: Literal["=", "<>", "<", "<=", ">", ">="] = "="
    value: Annotated[str, StringConstraints(max_length=500)] = ""


class WorkBody(Said):
    """A study or synthetic rows, and what it may cost: ``epsilon``, or for a study the ``rows`` that are expected.

    ``survival`` has ``time``, ``event``, ``until``, ``steps`` and ``group``; ``linear`` and ``logistic`` have
    ``outcome``, ``use`` (what may explain it) and ``event_value``; ``synthetic`` has ``use``, ``bins``, ``rows_made``
    and, as ``rows``, how many the data have.
    """

    dataset: Name
    account: Name | None = None
    kind: Literal["survival", "linear", "logistic", "synthetic"]
    time: Name | None = None
    event: ConditionBody | None = None
    until: Amount | None = None
    steps: int | None = Field(default=None, ge=2, le=1000)
    group: Name | None = None
    outcome: Name | None = None
    event_value: Name | None = None
    use: list[Name] = Field(default=[], max_length=60)
    ranges: dict[Name, Annotated[list[Amount], Field(min_length=2, max_length=2)]] = Field(default={}, max_length=60)
    bins: dict[Name, Annotated[int, Field(ge=2, le=1000)]] = Field(default={}, max_length=60)
    rows_made: int | None = Field(default=None, ge=1, le=200_000)
    where: list[ConditionBody] = Field(default=[], max_length=3)
    epsilon: Amount | None = None
    delta: Amount = "0"
    rows: int | None = Field(default=None, ge=1, le=10**8)


class WorkAskBody(WorkBody):
    """The same, to be asked: it is charged what its offer says. Said again under one key it is asked once."""

    title: Annotated[str, StringConstraints(max_length=300)] | None = None
    project: Name | None = None
    idempotency: Key | None = None


class FittingQuestion(Said):
    """One of several questions that belong together."""

    query: Text
    epsilon: Amount
    delta: Amount = "0"
    fresh: bool = False
    known: bool = True


class FittingBody(Said):
    """Several questions to one dataset, to see what they cost together."""

    dataset: Name
    account: Name | None = None
    questions: list[FittingQuestion] = Field(min_length=1, max_length=100)
    limit: LimitBody | None = None


class BudgetAnswer(BaseModel):
    """An amount of privacy loss, exact."""

    epsilon: str
    delta: str


class AccountAnswer(BaseModel):
    """An account that may be charged: its budget, and what may still be asked for."""

    path: str
    unit: str
    budget: BudgetAnswer
    left: BudgetAnswer


class SessionAnswer(BaseModel):
    """Who asks, what they may charge, and the public key that certificates are signed with."""

    name: str
    accounts: list[str]
    key: str


class DatasetAnswer(BaseModel):
    """A dataset: its schema as TOML, which holds public facts alone."""

    name: str
    version: str
    schema_toml: str


class ColumnAnswer(BaseModel):
    """The error to expect of a column at 95%; null where it is not known before the answer."""

    name: str
    margin: str | None
    joint_margin: str | None
    unknown: str


class OfferAnswer(BaseModel):
    """What a question would cost and how exact its answer would be; ``decision`` says whether it can be asked."""

    decision: str
    refusal: str
    question: str
    numbers: int
    columns: list[ColumnAnswer]
    spend: BudgetAnswer
    price: BudgetAnswer
    left: BudgetAnswer
    sql: str | None


class PlannedAnswer(BaseModel):
    """A noisy table that synthetic rows would be made of; ``noise`` is a standard deviation in rows."""

    columns: list[str]
    cells: int
    noise: float
    error: float | None


class WorkOfferAnswer(OfferAnswer):
    """The same of a study or of synthetic rows, with what the method needs at this price."""

    notes: list[str]
    planned: list[PlannedAnswer]


class TableAnswer(BaseModel):
    """A table of a result, as people read it: rounded by its error; the files have all digits."""

    name: str
    columns: list[str]
    rows: list[list[str]]


class PartAnswer(BaseModel):
    """One of the results of a study, such as the curves or the log-rank test."""

    title: str
    facts: list[tuple[str, str]]
    tables: list[TableAnswer]
    notes: list[str]


class WorkResultAnswer(BaseModel):
    """What an answer became. Synthetic rows are ``made`` a short while after the answer; files follow then."""

    kind: str
    title: str
    made: bool
    parts: list[PartAnswer]
    explained: list[str]
    code: str
    files: list[str]


class CostAnswer(BaseModel):
    """What several questions would cost together."""

    cost: BudgetAnswer


class QuestionAnswer(BaseModel):
    """A question that was handed in. Until ``ready`` (seconds since 1970) its outcome is pending, whatever happened."""

    name: str
    title: str
    account: str
    dataset: str
    outcome: str
    ready: float
    seconds: float
    spend: BudgetAnswer
    charged: BudgetAnswer | None
    release: str | None
    words: str


class ProblemAnswer(BaseModel):
    """Why something was not done; ``error_class`` is the class in ``sfumato.errors``."""

    error: str
    kind: str
    error_class: str | None = None
