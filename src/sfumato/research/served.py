"""What one connection to a research environment may do: ask questions about the approved columns, from its account.

Helpful words come before the charge, from public facts and the ledger alone. After it there is one body for whatever
went wrong, and every answer, good or bad, leaves at the end of a slot of time.
"""

import hashlib
import math
import time
from collections.abc import Mapping, Sequence
from fractions import Fraction

from sfumato.boxes.block_answers import BlockMean, BlockQuantiles
from sfumato.core.documents import Document, canonical, parse
from sfumato.core.exact import positive
from sfumato.core.query import Query
from sfumato.core.question import Intended
from sfumato.core.release import Release
from sfumato.errors import (
    BudgetExceeded,
    EngineFailed,
    InvalidInput,
    MissingExtra,
    Refused,
    SfumatoError,
    Unsupported,
)
from sfumato.governance.research_entries import Project
from sfumato.learning.training import Training
from sfumato.reports.declarations import DECLARATIONS
from sfumato.research import messages as said
from sfumato.research.declared_training import checked_network, fitted, text_of
from sfumato.research.export import ReleaseExport
from sfumato.research.minimal import check_depth, check_person_column, narrowed
from sfumato.tables.question_parts import TABLE_QUERIES
from sfumato.tables.schema import Schema
from sfumato.tables.table import Table
from sfumato.vault import Vault

__all__ = ["FAILED", "SLOT", "OfferedData", "ServedProject"]

SLOT = Fraction(1, 2)
"""Seconds: an answer leaves at a whole number of them after its question."""
MOST_QUERY = 2**16
MOST_QUESTIONS = 100
FAILED = EngineFailed(
    "the research environment gave no answer. What was charged counts; nothing was released. Tell its steward."
)

OfferedData = Mapping[str, tuple[object, Schema]]
"""The data of each dataset by its name, and its whole schema. Sensitive: the data."""


class ServedProject:
    """A project as one connection may use it.

    Guarantee: only certificates of releases leave; a question that names a column, or a dataset, that the project was
    not approved for is refused before anything is looked up, also where the answer is stored. Assumes: ``vault`` has
    declared nothing yet. Public: every refusal before a charge. Sensitive: ``data``.
    """

    def __init__(self, project: Project, vault: Vault, data: OfferedData, *, slot: Fraction = SLOT) -> None:
        self.project, self.vault, self._slot = project, vault, positive(slot, "slot")
        self._handles: dict[str, Table] = {}
        self._approved = {name: frozenset(columns) for name, columns in project.columns}
        self._schemas: dict[str, Schema] = {}
        for name, columns in project.columns:
            if name not in data:
                raise InvalidInput(f"the environment holds no dataset {name!r} of the project; nothing was served.")
            source, whole = data[name]
            if whole.name != name:
                raise InvalidInput(f"the schema of {name!r} is that of {whole.name!r}; nothing was served.")
            self._schemas[name] = narrowed(whole, columns)
            self._handles[name] = vault.table(source, schema=self._schemas[name])
        self.export = ReleaseExport(vault.public_key, frozenset(self._schemas), self._check_columns)
        self.released: dict[str, str] = {}
        """The certificates that left on this connection, by their identifiers, in order."""
        self.models: dict[str, bytes] = {}
        """The weights that left, by the identifiers of their certificates."""

    def handle(self, name: str, columns: Sequence[str]) -> Table:
        """The table itself, for a job of the environment that gives a program these columns; the program has it not.

        Sensitive: the handle is the data.
        """
        if name not in self._handles or not set(columns) <= self._approved[name]:
            raise Refused(
                "the project is not approved for this table, or for one of these columns; nothing was read and nothing "
                "was spent."
            )
        return self._handles[name]

    def hand_out(self, release: Release) -> str:
        """Let a release out, through the gate, and remember that it left; its certificate."""
        text = self.export.certificate(release.certificate.text)
        self.released[release.statement.identifier] = text
        return text

    def answered(self, request: Document) -> Document:
        """The reply to a request; a refusal is one too."""
        try:
            match request:
                case said.JoinRequest():
                    return self._welcome(request)
                case said.AllowanceRequest():
                    return said.AllowanceReply(budget=self.vault.budget, left=self.vault.left)
                case said.FittingRequest():
                    return self._fits(request)
                case said.QuestionRequest():
                    return self._asked(request.question)
                case said.TrainingRequest():
                    return self._trained(request)
            raise Unsupported(f"a {request.KIND!r} is no request; nothing was done.")
        except SfumatoError as wrong:
            return said.RefusalReply.of(wrong)
        except Exception:  # noqa: BLE001 - words of our own, never a traceback
            return said.RefusalReply.of(FAILED)

    def _welcome(self, request: said.JoinRequest) -> said.ProjectReply:
        if request.project not in (None, self.project.name):
            raise InvalidInput("this connection belongs to another project; nothing was done.")
        return said.ProjectReply(
            name=self.project.name,
            purpose=self.project.purpose,
            account=self.project.account,
            unit=self.vault.unit,
            key=self.vault.public_key,
            tables=tuple(
                said.OfferedTable(name=name, schema=schema.to_toml()) for name, schema in self._schemas.items()
            ),
        )

    def _query(self, question: said.AskedQuestion) -> Query:
        """The query of a question, checked for its kind and its columns."""
        if len(question.query) > MOST_QUERY:
            raise InvalidInput(f"a question has at most {MOST_QUERY:,} characters; nothing was done.")
        try:
            query = DECLARATIONS.decode(parse(question.query), "question")
        except RecursionError:
            raise InvalidInput("the question is nested too deeply; nothing was done.") from None
        if type(query) not in TABLE_QUERIES:
            raise Unsupported("this is no question about a table; nothing was read and nothing was spent.")
        check_depth(query)
        self._check_columns(query)
        found: Query = query
        return found

    def _check_columns(self, query: Query) -> None:
        """Minimisation: refuse what the project was not approved for."""
        approved = self._approved.get(query.dataset.name, frozenset())
        if isinstance(query, BlockMean | BlockQuantiles):
            self.handle(query.dataset.name, query.given)
            return
        if isinstance(query, Training):
            self.handle(query.dataset.name, ())  # its columns were checked when it was asked for
            return
        self.vault.check_columns(query)
        check_person_column(query, self.vault.unit, approved)

    def _fits(self, request: said.FittingRequest) -> said.CostReply:
        if len(request.questions) != len(request.known) or len(request.questions) > MOST_QUESTIONS:
            raise InvalidInput(f"up to {MOST_QUESTIONS} questions are asked together; nothing was done.")
        _check_days(request.reads)
        intended = [
            Intended(
                query=self._query(asked),
                spend=asked.spend,
                fresh=asked.fresh,
                idempotency=self._key(asked.idempotency),
                known=known,
            )
            for asked, known in zip(request.questions, request.known, strict=True)
        ]
        return said.CostReply(cost=self.vault.check_fits(intended))

    def _asked(self, asked: said.AskedQuestion) -> Document:
        _check_days(asked.reads)
        query, key = self._query(asked), self._key(asked.idempotency)
        gate = self.vault if asked.limit is None else self.vault.limited(asked.limit)
        if not asked.even_if_useless:
            gate.check_fits([Intended(query=query, spend=asked.spend, fresh=asked.fresh, idempotency=key)], reads=None)
        began = time.monotonic()
        try:
            release = gate.release(
                query,
                asked.spend,
                fresh=asked.fresh,
                idempotency=key,
                reads=None,  # those of the environment
                even_if_useless=asked.even_if_useless,
            )
            reply: Document = said.CertificateReply(
                certificate=self.hand_out(release), charged=release.charged, repeated=release.repeated
            )
        except BudgetExceeded as wrong:
            reply = said.RefusalReply.of(wrong)
        except Exception:  # noqa: BLE001 - rows may have been read: one body, whatever happened
            reply = said.RefusalReply.of(FAILED)
        self._wait_since(began)
        return reply

    def _trained(self, request: said.TrainingRequest) -> Document:
        """Train a declared network: helpful words before the charge, and one body for whatever goes wrong after it."""
        table = self.handle(request.table, ())
        network = checked_network(request, self._schemas[request.table])
        table = self.handle(request.table, [column.name for column in (*network.inputs, network.target)])
        began = time.monotonic()
        try:
            release, weights = fitted(self.vault, table, network, request)
            reply: Document = said.ModelReply(
                certificate=self.hand_out(release), weights=text_of(weights), charged=release.charged
            )
            self.models[release.statement.identifier] = weights
        except (BudgetExceeded, MissingExtra) as wrong:
            reply = said.RefusalReply.of(wrong)
        except Exception:  # noqa: BLE001 - rows may have been read: one body, whatever happened
            reply = said.RefusalReply.of(FAILED)
        self._wait_since(began)
        return reply

    def _key(self, idempotency: str | None) -> str | None:
        """The name under which a key of this project stands in the record, where no other project can ask for it."""
        if idempotency is None:
            return None
        whole = canonical([self.project.name, idempotency]).encode()
        return f"research {hashlib.sha256(whole).hexdigest()}"

    def _wait_since(self, began: float) -> None:
        """Wait for the end of the slot, so that the time of an answer says little of what it took."""
        slot, spent = float(self._slot), time.monotonic() - began
        time.sleep(max(0.0, math.ceil(spent / slot) * slot - spent))


def _check_days(reads: tuple[str, str] | None) -> None:
    """Refuse days of whoever asks: nothing holds them against the rows, and windows are charged by them."""
    if reads is not None:
        raise Refused(
            "which days are read is said by the research environment; nothing was read and nothing was spent. Leave "
            "reads out."
        )
