"""The folder of a site, or of a consortium: its ledger, its schema, the agreement, and the rounds it is in."""

import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput, NotDeclared, Refused

if TYPE_CHECKING:
    from sfumato.core.signature import SigningKey
    from sfumato.core.units import Unit
    from sfumato.federated.papers import ConsortiumPaper
    from sfumato.governance.ledger import Ledger
    from sfumato.governance.settings import Settings
    from sfumato.tables.schema import Schema

__all__ = ["AGREEMENT", "ROUNDS", "RUNS", "FederatedHome"]

AGREEMENT, SCHEMA, ROUNDS, RUNS = "agreement.toml", "schema.toml", "rounds", "runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class FederatedHome:
    """A folder that ``sfumato site new`` or ``sfumato consortium new`` made; ``kind`` says which of the two."""

    folder: Path
    kind: str
    name: str
    ledger: Path
    account: str

    @classmethod
    def made(
        cls, folder: Path, *, kind: str, name: str, schema: Path, epsilon: str, delta: str, reason: str
    ) -> "FederatedHome":
        """Make the folder: a ledger with its key, one account, one dataset as the schema names it; nothing is read."""
        from sfumato.core.budget import Budget
        from sfumato.core.query import Dataset, check_name
        from sfumato.governance import settings
        from sfumato.tables.schema import Schema

        check_name(name, f"the name of a {kind}")
        facts = Schema.load(schema)
        if facts.name is None or facts.edition is None:
            raise InvalidInput(
                "the schema names no dataset and version, which all sites share; nothing was made. "
                "Write [dataset] with name and version."
            )
        unit, cap = _unit(facts), Budget.asked(epsilon=epsilon, delta=delta)
        facts.declaration(unit)
        home = cls(folder=folder, kind=kind, name=name, ledger=folder / settings.NAME, account=name)
        if home._file.exists():
            raise Refused(f"{home._file} is there already, and nothing was changed. Choose another folder.")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings.made(folder)
        book = settings.opened(folder)
        try:
            book.open_account(name, unit=unit, cap=cap, reason=reason)
            book.declare_population(name, unit=unit, cap=cap, reason=reason)
            dataset = Dataset(name=facts.name, edition=facts.edition)
            book.declare_dataset(dataset, population=name, cap=cap)
        finally:
            book.close()
        (folder / SCHEMA).write_text(schema.read_text("utf-8"), "utf-8")
        lines = {"kind": kind, "version": 1, "name": name, "ledger": settings.NAME, "account": name}
        text = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in lines.items())
        home._file.write_text(text, "utf-8")
        return home

    @classmethod
    def load(cls, folder: Path, kind: str) -> "FederatedHome":
        """The folder that is there."""
        file = folder / f"{kind}.toml"
        try:
            said = tomllib.loads(file.read_text("utf-8"))
        except OSError:
            raise InvalidInput(
                f"{folder} is not the folder of a {kind}: there is no {file.name} in it. Nothing was done. Make one: "
                f"sfumato {kind} new {folder}"
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError):
            said = {}
        texts = {name: said.get(name) for name in ("name", "ledger", "account")}
        if (said.get("kind"), said.get("version")) != (kind, 1) or not all(isinstance(t, str) for t in texts.values()):
            raise InvalidInput(f"{file} is not in the form that it must have; nothing was done.")
        ledger = folder / str(texts["ledger"])
        return cls(folder=folder, kind=kind, name=str(texts["name"]), ledger=ledger, account=str(texts["account"]))

    @property
    def _file(self) -> Path:
        return self.folder / f"{self.kind}.toml"

    @property
    def settings(self) -> "Settings":
        """Where its ledger is."""
        from sfumato.governance.settings import Settings

        return Settings.load(self.ledger)

    @property
    def key(self) -> "SigningKey":
        """The key that signs its releases and its connections."""
        from sfumato.core.signature import SigningKey

        found = self.settings
        return SigningKey.load(found.release or found.key)

    @property
    def schema(self) -> "Schema":
        """The public facts about its table."""
        from sfumato.tables.schema import Schema

        return Schema.load(self.folder / SCHEMA)

    @property
    def unit(self) -> "Unit":
        """Who is protected."""
        return _unit(self.schema)

    @property
    def rows_of_a_person(self) -> int:
        """How many rows of one person count."""
        limit = self.schema.limit
        return 1 if limit is None else limit.rows

    @property
    def paper(self) -> "ConsortiumPaper":
        """The agreement that it has taken."""
        from sfumato.federated.papers import ConsortiumPaper

        file = self.folder / AGREEMENT
        if not file.exists():
            more = "sfumato consortium agree" if self.kind == "consortium" else "sfumato site join"
            raise NotDeclared(f"there is no agreement in {self.folder} yet; nothing was done. Take one: {more}")
        return ConsortiumPaper.load(file)

    def take(self, paper: "ConsortiumPaper") -> None:
        """Keep an agreement; another one is not put in its place."""
        file = self.folder / AGREEMENT
        if file.exists() and self.paper.digest != paper.digest:
            raise Refused(
                f"{file} holds another agreement, and was not changed. A new agreement is a new consortium: move the "
                "file away first, once nobody asks under it any more."
            )
        file.write_text(paper.to_toml(), "utf-8")

    @contextmanager
    def opened(self) -> "Iterator[Ledger]":
        """Its ledger, for the length of a block."""
        from sfumato.governance import settings

        book = settings.opened(self.ledger)
        try:
            yield book
        finally:
            book.close()


def _unit(facts: "Schema") -> "Unit":
    from sfumato.core.units import user

    if facts.unit is None or facts.limit is None:
        raise NotDeclared(
            "the schema does not say who is protected, or how much of each person counts; nothing was made. Declare "
            "[unit] and [limit] in it."
        )
    return user(facts.unit, relation="add/remove")
