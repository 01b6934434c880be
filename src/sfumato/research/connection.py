"""A connection to a research environment: stubs of its tables, which build questions and hold no rows.

What a stub can do follows from public facts: the schema of the project. Previews are worked out here; a release is
asked for over the connection, and comes back as a signed certificate that is verified before it is believed.
"""

import socket
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Self, TypeVar

from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.documents import Document, canonical, encode
from sfumato.core.exact import Exact
from sfumato.core.limits import Limit
from sfumato.core.query import Query
from sfumato.core.question import Gate, Intended, Preview
from sfumato.core.release import Release
from sfumato.core.remote import client_for
from sfumato.core.units import record
from sfumato.errors import EngineFailed, InvalidInput, NotDeclared, Refused
from sfumato.federated.training.declared_network import DeclaredNetwork
from sfumato.governance.owner.client import check_owner, is_socket, socket_of
from sfumato.governance.owner.frames import Broken, Frames, Gone, Stalled, peer_of
from sfumato.reports.declarations import DECLARATIONS
from sfumato.reports.presenter import Reports
from sfumato.reports.verify import parsed, verify
from sfumato.research import messages as said
from sfumato.research.declared_training import TrainedNetwork, bytes_of
from sfumato.tables.schema import Schema
from sfumato.tables.table import Table
from sfumato.vault import Vault

__all__ = ["Channel", "Connection", "connect", "speak_through"]

PATIENCE = 600.0
Channel = Callable[[Document], Document]
"""Sends a request and gives the reply."""
Reply = TypeVar("Reply", bound=Document)
_own: list[Channel] = []


def speak_through(channel: Channel) -> None:
    """Say which channel ``connect()`` uses without an address: in a box, the one way out of it."""
    _own[:] = [channel]


def connect(
    address: str | Path | None = None,
    *,
    project: str | None = None,
    token: str | None = None,
    account: str | None = None,
) -> "Connection":
    """Connect to a research environment: ``unix:/path/to/socket`` with a project; in a box, without either.

    An address of the web, ``https://…``, is that of a service: it is asked with a ``token`` that was made there, and
    charges the ``account``, or the first one that the token may charge.

    Guarantee: what comes back are releases, each verified against the key that the environment named. Assumes: whoever
    listens at the socket is the environment, whose folder only its owner can write to.
    """
    if address is None:
        if not _own:
            raise NotDeclared("connect() without an address is for programs in a box; say connect('unix:/…').")
        return Connection(_own[0], project)
    client = client_for(address)
    if client is not None:
        if project is not None:
            raise InvalidInput("a service has accounts and no such projects; nothing was done. Say account='…'.")
        found: Connection = client(address, token=token, account=account)
        return found
    if token is not None or account is not None:
        raise InvalidInput("a token and an account go with a service, https://…; nothing was done.")
    if not is_socket(address):
        raise InvalidInput(
            "a research environment is named by its socket, unix:/path/to/socket, and a service by its address, "
            "https://…; nothing was done."
        )
    if project is None:
        raise NotDeclared("say which project asks: connect(address, project='…'). Nothing was done.")
    return Connection(_SocketChannel(socket_of(address)), project)


class Connection:
    """The tables of a project, as stubs; whatever is released through them is charged to its account."""

    def __init__(self, channel: Channel, project: str | None = None) -> None:
        self._channel = channel
        welcome = self._said(said.JoinRequest(project=project), said.ProjectReply)
        self.project, self.purpose, self.account = welcome.name, welcome.purpose, welcome.account
        self.unit, self.key = welcome.unit, welcome.key
        self._schemas = {table.name: Schema.from_toml(table.schema) for table in welcome.tables}
        self._tables: dict[str, Table] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the line, where it is one that is held; that of a script ends with the script."""

    def __repr__(self) -> str:
        return f"<Connection to the project {self.project!r}: {', '.join(self._schemas)}>"

    @property
    def tables(self) -> Mapping[str, Table]:
        """A stub of each table of the project, by name."""
        if not self._tables:
            home = Vault(unit=self.unit, budget=Budget(epsilon=1), name=self.account)
            for name, schema in self._schemas.items():
                table = home.table(f"{name}.parquet", schema=schema)  # a name alone: no stub opens a file
                self._tables[name] = replace(table, gate=_RemoteGate(self, home, None))
        return self._tables

    def table(self, name: str) -> Table:
        """The stub of one table."""
        if name not in self._schemas:
            raise NotDeclared(
                f"the project {self.project!r} has no table {name!r}; nothing was done. Tables: "
                f"{', '.join(self._schemas)}."
            )
        return self.tables[name]

    def schema(self, name: str) -> Schema:
        """The public facts of a table: the columns that the project was approved for."""
        self.table(name)
        return self._schemas[name]

    def sql(self, text: str, *, epsilon: Exact, delta: Exact = 0, table: str | None = None) -> Release:
        """Ask one question in SQL and get its release; ``table`` names the table where the project has several."""
        names = list(self._schemas) if table is None else [table]
        if len(names) != 1:
            raise NotDeclared(f"say table=…, one of {', '.join(names)}; nothing was done.")
        return self.table(names[0]).sql(text).release(epsilon=epsilon, delta=delta)

    def train(
        self,
        table: str,
        *,
        inputs: Sequence[str],
        target: str,
        n_units: int,
        epsilon: Exact,
        delta: Exact,
        hidden: Sequence[int] = (),
        epochs: int = 10,
    ) -> TrainedNetwork:
        """Have a classifier trained on a table: logistic regression, or a network with ``hidden`` layers.

        ``inputs`` and ``target`` are columns of the schema; what is sent is the declaration of a network, without code.
        ``n_units`` is how many units there are as far as the public knows. The whole run is charged once, before a row
        is read; asking again trains again, for another charge.

        Guarantee: the weights are (ε, δ)-DP for the unit of the project, as those of ``vault.trainer``. The certificate
        states their digest: ``sfumato.learning.weights_digest`` of the model that is read from the file.
        """
        schema = self.schema(table)
        network = DeclaredNetwork.of_schema(schema, inputs=inputs, target=target, hidden=hidden)
        request = said.TrainingRequest(
            table=table,
            network=network.to_json(),
            n_units=n_units,
            epochs=epochs,
            spend=Budget.asked(epsilon=epsilon, delta=delta),
        )
        reply = self._said(request, said.ModelReply)
        return TrainedNetwork(
            release=self._believed(reply.certificate, reply.charged, repeated=False), weights=bytes_of(reply.weights)
        )

    @property
    def budget(self) -> Budget:
        """What the account of the project was allowed in all."""
        return self._said(said.AllowanceRequest(), said.AllowanceReply).budget

    @property
    def left(self) -> Budget:
        """What the project may still ask for."""
        return self._said(said.AllowanceRequest(), said.AllowanceReply).left

    def _said(self, request: Document, kind: type[Reply]) -> Reply:
        reply = self._channel(request)
        if isinstance(reply, said.RefusalReply):
            raise reply.raised
        if not isinstance(reply, kind):
            raise EngineFailed("what answers is not a research environment of this version; nothing was believed.")
        return reply

    def _released(self, asked: said.AskedQuestion) -> Release:
        reply = self._said(said.QuestionRequest(question=asked), said.CertificateReply)
        return self._believed(reply.certificate, reply.charged, repeated=reply.repeated)

    def _believed(self, text: str, charged: Budget, *, repeated: bool) -> Release:
        """The release of a certificate that came; refused where it does not verify against the key of the project."""
        document = parsed(text)
        if not verify(document, key=self.key).authenticated:
            raise Refused("the certificate that came does not verify, and was not believed. What was charged counts.")
        return Release(
            statement=DECLARATIONS.decode(document["statement"], "statement"),
            certificate=Certificate(text),
            charged=charged,
            repeated=repeated,
            presenter=Reports(),
        )


class _RemoteGate:
    """A gate whose data are elsewhere: previews from public facts, releases over the connection."""

    def __init__(self, connection: Connection, home: Vault, limit: Limit | None) -> None:
        self._connection, self._home, self._limit = connection, home, limit
        self._facts: Gate = home if limit is None else home.limited(limit)
        self.unit, self.public_key = connection.unit, connection.key

    def release(
        self,
        query: Query,
        spend: Budget,
        *,
        fresh: bool = False,
        idempotency: str | None = None,
        reads: tuple[str, str] | None = None,
        even_if_useless: bool = False,
    ) -> Release:
        """Have the environment charge, read and sign."""
        return self._connection._released(
            self._asked(query, spend, fresh, idempotency, reads, even_if_useless=even_if_useless)
        )

    def check_fits(self, questions: Sequence[Intended], *, reads: tuple[str, str] | None = None) -> Budget:
        """What several questions would cost there; refused where that does not fit together."""
        asked = tuple(
            self._asked(each.query, each.spend, each.fresh, each.idempotency, reads, even_if_useless=False)
            for each in questions
        )
        known = tuple(each.known for each in questions)
        request = said.FittingRequest(questions=asked, known=known, reads=reads)
        return self._connection._said(request, said.CostReply).cost

    def preview(
        self, query: Query, spend: Budget, *, confidence: Exact = Fraction(19, 20), rows: int | None = None
    ) -> Preview:
        """Say what error to expect, from public facts alone."""
        return self._facts.preview(query, spend, confidence=confidence, rows=rows)

    def epsilon_for(
        self,
        query: Query,
        *,
        margin: Exact | None = None,
        mse: Exact | None = None,
        confidence: Exact = Fraction(19, 20),
        joint: bool = False,
        delta: Exact = 0,
        rows: int | None = None,
        column: str | None = None,
    ) -> Fraction:
        """Find the least ε for a margin, from public facts alone."""
        return self._facts.epsilon_for(
            query, margin=margin, mse=mse, confidence=confidence, joint=joint, delta=delta, rows=rows, column=column
        )

    def limited(self, limit: Limit) -> "_RemoteGate":
        """The same way to the same data, of each person of whom this much counts."""
        return _RemoteGate(self._connection, self._home, limit)

    def _asked(
        self,
        query: Query,
        spend: Budget,
        fresh: bool,  # noqa: FBT001 - as a gate is asked
        idempotency: str | None,
        reads: tuple[str, str] | None,
        *,
        even_if_useless: bool,
    ) -> said.AskedQuestion:
        return said.AskedQuestion(
            query=canonical(encode(query)),
            spend=spend,
            limit=self._limit,
            fresh=fresh,
            idempotency=idempotency,
            reads=reads,
            even_if_useless=even_if_useless,
        )


class _SocketChannel:
    """A channel over a socket, which ends with the object."""

    def __init__(self, place: Path) -> None:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.close = weakref.finalize(self, line.close)
        try:
            line.settimeout(PATIENCE)
            line.connect(str(place))
            check_owner(place, peer_of(line))
        except OSError as wrong:
            raise EngineFailed(f"no research environment answers at {place}: {wrong.strerror}.") from None
        self._frames = Frames(line, said.RESEARCH_MESSAGES, said.AREA)

    def __call__(self, request: Document) -> Document:
        try:
            with suppress(Gone):  # a refusal may lie there to be read
                self._frames.write(self._frames.packed(request), within=PATIENCE)
            return self._frames.read(wait=PATIENCE, within=PATIENCE)
        except (Gone, Stalled, Broken):
            raise EngineFailed(
                "the connection to the research environment ended. Whether the last question was charged is not "
                "known: if it was, it counts. Connect again; a stored answer costs nothing."
            ) from None


def warm_up() -> None:
    """Import what a stub needs while files can still be read: in a box that ends before the program begins."""
    home = Vault(unit=record(relation="add/remove"), budget=Budget(epsilon=1), name="warm")
    table = home.table("none.parquet", name="none", version="1")
    table.sql("SELECT COUNT(*) FROM none").preview(epsilon=1)
