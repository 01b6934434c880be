"""A connection to a service: stubs of its tables, which build questions here and have them answered there.

It says the same things as a script says to a research environment, in the API of the service: previews are worked out
from public facts, and every answer is a certificate that is verified before it is believed.
"""

import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any  # what JSON holds
from urllib.parse import urlsplit

from sfumato import errors
from sfumato.core.budget import Budget
from sfumato.core.documents import Document, parse
from sfumato.core.extras import need
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.errors import BudgetExceeded, EngineFailed, InvalidInput, NotDeclared, Refused, SfumatoError, Unsupported
from sfumato.reports.declarations import DECLARATIONS
from sfumato.research import messages as said
from sfumato.research.connection import Connection

__all__ = ["ServiceConnection", "connect"]

PATIENCE = 60.0
LOCAL = ("127.0.0.1", "localhost", "::1")
FAILED = (
    "the service gave no answer. What was charged counts, and nothing was released; it is not tried again, since rows "
    "may have been read. Tell a data steward."
)


class ServiceConnection(Connection):
    """The tables of a service, as stubs; whatever is released through them is charged to one account.

    It has what a vault has: ``table(name)``, ``sql(…)``, ``budget``, ``left``. Guarantee: no row comes here; what is
    believed is a certificate that verifies. Assumes: whoever answers at the address is the service. It holds a line to
    the service until :meth:`close`, or the end of its ``with`` block.
    """

    def __init__(self, channel: "_HttpChannel") -> None:
        self._held = channel
        try:
            super().__init__(channel)
        except BaseException:
            channel.close()
            raise

    def close(self) -> None:
        """Let go of the line to the service; what was released stays."""
        self._held.close()

    def __repr__(self) -> str:
        return f"<Connection to a service, charged to {self.account!r}: {', '.join(self._schemas)}>"


def connect(
    address: str, *, token: str | None = None, account: str | None = None, transport: object | None = None
) -> ServiceConnection:
    """Connect to a service by its address, such as ``https://privacy.hospital.org``, with a token of yours.

    ``account`` is who pays, one that the token may charge; the first of them where none is named. ``transport`` is
    one of httpx, for tests.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput("a service is named by its address, https://…; nothing was done.")
    if parts.scheme == "http" and parts.hostname not in LOCAL:
        raise Refused(
            f"{parts.hostname} is another machine, and a token would cross the network in the open; nothing was sent. "
            "Say https://…"
        )
    if not token:
        raise NotDeclared(
            "say token=…, one that you made on the page of your account in the service; nothing was sent."
        )
    return ServiceConnection(_HttpChannel(address, token, account, transport))


class _HttpChannel:
    """Says what a connection says to a research environment, in the API of a service."""

    def __init__(self, address: str, token: str, account: str | None, transport: Any) -> None:
        httpx = need("httpx", "pip install 'sfumato[server]'")
        self._wrong = httpx.HTTPError
        self._line = httpx.Client(
            base_url=f"{address.rstrip('/')}/api/v1",
            headers={"Authorization": f"Bearer {token}"},
            timeout=PATIENCE,
            transport=transport,
        )
        self._account = account

    def close(self) -> None:
        """Close the line."""
        self._line.close()

    def __call__(self, request: Document) -> Document:
        try:
            match request:
                case said.JoinRequest():
                    return self._joined()
                case said.AllowanceRequest():
                    found = self._get("/account", path=self._account)
                    return said.AllowanceReply(budget=_budget(found["budget"]), left=_budget(found["left"]))
                case said.FittingRequest():
                    return self._fits(request)
                case said.QuestionRequest():
                    return self._asked(request.question)
        except SfumatoError as wrong:
            return said.RefusalReply.of(wrong)
        return said.RefusalReply.of(Unsupported("a service is not asked for this; nothing was done."))

    def _joined(self) -> said.ProjectReply:
        session = self._get("/session")
        account = self._get("/account", path=self._account)
        self._account = account["path"]
        tables = tuple(
            said.OfferedTable(name=each["name"], schema=each["schema_toml"]) for each in self._get("/datasets")
        )
        return said.ProjectReply(
            name=account["path"],
            purpose="",
            account=account["path"],
            unit=DECLARATIONS.decode(parse(account["unit"]), "unit"),
            key=session["key"],
            tables=tables,
        )

    def _fits(self, request: said.FittingRequest) -> said.CostReply:
        total = Budget.none()
        together: dict[tuple[str, Limit | None], list[dict[str, Any]]] = {}
        for asked, known in zip(request.questions, request.known, strict=True):
            _check_days(asked.reads or request.reads)
            question = {**_amounts(asked.spend), "query": asked.query, "fresh": asked.fresh, "known": known}
            together.setdefault((_dataset(asked.query), asked.limit), []).append(question)
        for (dataset, limit), questions in together.items():
            body = {"dataset": dataset, "account": self._account, "questions": questions, "limit": _limit(limit)}
            total += _budget(self._post("/fits", body)["cost"])
        return said.CostReply(cost=total)

    def _asked(self, asked: said.AskedQuestion) -> said.CertificateReply:
        _check_days(asked.reads)
        body = {
            **_amounts(asked.spend),
            "dataset": _dataset(asked.query),
            "account": self._account,
            "query": asked.query,
            "fresh": asked.fresh,
            "even_if_useless": asked.even_if_useless,
            "limit": _limit(asked.limit),
            "idempotency": asked.idempotency,
        }
        job = self._post("/questions", body)
        while job["outcome"] == "pending":
            time.sleep(max(0.02, min(float(job["seconds"]), PATIENCE)))
            job = self._get(f"/questions/{job['name']}")
        if job["outcome"] == "refused":
            exceeded = " left; this release asks for " in job["words"]
            raise (BudgetExceeded if exceeded else Refused)(job["words"])
        if job["outcome"] != "released":
            raise EngineFailed(FAILED)
        charged = _budget(job["charged"])
        text = self._sent("GET", f"/questions/{job['name']}/certificate").text
        return said.CertificateReply(certificate=text, charged=charged, repeated=charged == Budget.none())

    def _get(self, place: str, **parameters: str | None) -> Any:
        named = {name: value for name, value in parameters.items() if value is not None}
        return self._sent("GET", place, params=named).json()

    def _post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._sent("POST", path, json=body).json()

    def _sent(self, method: str, path: str, **given: Any) -> Any:
        try:
            answer = self._line.request(method, path, **given)
        except self._wrong as wrong:
            raise EngineFailed(
                f"the service did not answer ({type(wrong).__name__}). Whether the last question was charged is not "
                "known: if it was, it counts, and its answer is stored. Ask again."
            ) from None
        if answer.status_code >= 400:
            raise _refused(answer)
        return answer


def _refused(answer: Any) -> SfumatoError:
    """The refusal of the service as the error it was there."""
    try:
        body = answer.json()
        words, name = str(body["error"]), str(body.get("error_class"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return EngineFailed(f"what answers is not a service of this version (status {answer.status_code}).")
    known: dict[str, type[SfumatoError]] = {each: getattr(errors, each) for each in errors.__all__}
    return known.get(name, Refused)(words)


def _dataset(query: str) -> str:
    found = parse(query)
    named = found.get("dataset") if isinstance(found, dict) else None
    decoded = DECLARATIONS.decode(named, "dataset")
    if not isinstance(decoded, Dataset):
        raise InvalidInput("the question names no dataset; nothing was sent.")
    return decoded.name


def _amounts(spend: Budget) -> dict[str, str]:
    return {"epsilon": str(spend.epsilon), "delta": str(spend.delta)}


def _budget(amount: Mapping[str, str]) -> Budget:
    return Budget(epsilon=Fraction(amount["epsilon"]), delta=Fraction(amount["delta"]))


def _limit(limit: Limit | None) -> dict[str, int] | None:
    return None if limit is None else {"groups": limit.groups, "rows_per_group": limit.rows_per_group}


def _check_days(reads: tuple[str, str] | None) -> None:
    if reads is not None:
        raise Refused("which days are read is said by the service; nothing was sent. Leave reads out.")
