"""The datasets of a service: the schema of each version, and where its rows lie."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import sqlalchemy as sa

from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.units import Unit, user
from sfumato.errors import NotDeclared, Refused
from sfumato.governance.ledger import Ledger
from sfumato.server.database import Database
from sfumato.server.datasets.databases import SourceDatabases, is_table
from sfumato.server.datasets.tables import BROUGHT_BACK, DATASETS, RESTATED
from sfumato.tables.schema import Schema

__all__ = ["Datasets", "HeldDataset", "Restated"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldDataset:
    """One version of some data. Public: all but ``place``, which its repr leaves out."""

    name: str
    edition: str
    schema: Schema
    place: str = field(repr=False)
    population: str
    relation: str
    declared_by: str
    declared: float
    closed: float | None = None
    purpose: str | None = None
    recipient: str | None = None
    reads: tuple[str, str] | None = None

    @property
    def brought_back(self) -> bool:
        """Whether it is closed since a backup brought it back, and for no other reason."""
        return self.closed == BROUGHT_BACK

    @property
    def unit(self) -> Unit:
        """Who is protected in it."""
        if self.schema.unit is None:
            raise NotDeclared(f"{self.name!r} does not say which column identifies persons; nothing was done.")
        return user(self.schema.unit, relation=self.relation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Restated:
    """A part of a declaration that was taken over from a release; ``said`` is what it says now."""

    name: str
    edition: str
    release: str
    said: str
    by: str
    at: float


class Datasets(Mapping[str, HeldDataset]):
    """The newest open version of each dataset, by its name."""

    def __init__(
        self,
        database: Database,
        ledger: Ledger,
        folder: Path,
        now: Callable[[], float],
        databases: Mapping[str, str] | None = None,
    ) -> None:
        self._database, self._ledger, self._folder, self._now = database, ledger, folder, now
        self.databases = SourceDatabases(databases or {})
        """Databases whose tables may be declared."""

    def __getitem__(self, name: str) -> HeldDataset:
        for held in reversed(self.versions(name)):
            if held.closed is None:
                return held
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        chosen = sa.select(DATASETS.c.name).where(DATASETS.c.closed.is_(None)).distinct().order_by(DATASETS.c.name)
        with self._database.reading() as connection:
            names = connection.scalars(chosen).all()
        return iter(names)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def versions(self, name: str | None = None) -> tuple[HeldDataset, ...]:
        """All versions of one dataset, or of all, the oldest first; those that were closed too."""
        chosen = sa.select(DATASETS).order_by(DATASETS.c.name, DATASETS.c.declared)
        if name is not None:
            chosen = chosen.where(DATASETS.c.name == name)
        with self._database.reading() as connection:
            rows = connection.execute(chosen).all()
        return tuple(self._held(row) for row in rows)

    def declare(
        self,
        schema: Schema,
        place: str | Path,
        *,
        population: str,
        relation: str,
        cap: Budget,
        by: str,
        purpose: str | None = None,
        recipient: str | None = None,
    ) -> HeldDataset:
        """Declare a version of some data, in the ledger first; what was declared before is refused.

        Assumes: nothing in the schema was looked up in the rows. Reads no row.
        """
        if schema.name is None or schema.edition is None or schema.unit is None or schema.limit is None:
            raise NotDeclared(
                "a dataset needs its name, its version, the column that identifies persons and the limit of what each "
                "contributes; nothing was declared."
            )
        if any(held.edition == schema.edition for held in self.versions(schema.name)):
            raise Refused(f"this version of {schema.name!r} is declared already; nothing was changed.")
        held = HeldDataset(
            name=schema.name,
            edition=schema.edition,
            schema=schema,
            place=str(place),
            population=population,
            relation=relation,
            declared_by=by,
            declared=self._now(),
            purpose=purpose,
            recipient=recipient,
        )
        _ = held.unit
        if is_table(held.place):
            self.databases.check_foreign(held.place)
        self._ledger.declare_dataset(Dataset(name=held.name, edition=held.edition), population=population, cap=cap)
        row = {column.name: getattr(held, column.name) for column in DATASETS.columns}
        path = Path(place)
        inside = path.is_absolute() and path.is_relative_to(self._folder)
        row |= {"schema": schema.to_toml(), "place": str(path.relative_to(self._folder)) if inside else str(place)}
        with self._database.writing() as connection:
            connection.execute(sa.insert(DATASETS).values(row))
        return held

    def close(self, name: str, edition: str) -> HeldDataset:
        """Close a version: no question reads it any more. Stored answers stay."""
        found = [held for held in self.versions(name) if held.edition == edition]
        if not found:
            raise NotDeclared(f"there is no such version of {name!r}; nothing was changed.")
        now = self._now()
        chosen = sa.update(DATASETS).where(DATASETS.c.name == name, DATASETS.c.edition == edition)
        with self._database.writing() as connection:
            stands = DATASETS.c.closed.is_(None) | (DATASETS.c.closed == BROUGHT_BACK)
            connection.execute(chosen.where(stands).values(closed=now))
        return replace(found[0], closed=found[0].closed or now)

    def reopen(self, name: str, edition: str) -> HeldDataset:
        """Open a version again that a backup brought back; one that somebody closed stays closed."""
        chosen = sa.update(DATASETS).where(DATASETS.c.name == name, DATASETS.c.edition == edition)
        with self._database.writing() as connection:
            changed = connection.execute(chosen.where(DATASETS.c.closed == BROUGHT_BACK).values(closed=None)).rowcount
        if not changed:
            raise Refused(f"no version of {name!r} waits to be opened again after a backup; nothing was changed.")
        return next(held for held in self.versions(name) if held.edition == edition)

    def restate(self, name: str, schema: Schema, *, release: str, said: str, by: str) -> Restated:
        """Take what a private release suggested into the declaration of the newest open version.

        How much of a person counts, and what values are held to, are choices; who chose, and by which release, is kept.
        Questions that are asked later follow it, and answers that were given stand as they are.
        """
        held = self.get(name)
        if held is None or held.edition != schema.edition:
            raise Refused(f"this version of {name!r} is not open any more; nothing was changed.")
        made = Restated(name=name, edition=held.edition, release=release, said=said, by=by, at=self._now())
        try:
            with self._database.writing() as connection:
                connection.execute(
                    sa.insert(RESTATED).values({column.name: getattr(made, column.name) for column in RESTATED.columns})
                )
                chosen = sa.update(DATASETS).where(DATASETS.c.name == name, DATASETS.c.edition == held.edition)
                connection.execute(chosen.values(schema=schema.to_toml()))
        except sa.exc.IntegrityError:
            raise Refused("this suggestion was taken over before; nothing was changed.") from None
        return made

    def restated(self, name: str, edition: str) -> tuple[Restated, ...]:
        """What was taken over from releases into the declaration of a version, the oldest first."""
        chosen = sa.select(RESTATED).where(RESTATED.c.name == name, RESTATED.c.edition == edition)
        with self._database.reading() as connection:
            return tuple(Restated(**row._mapping) for row in connection.execute(chosen.order_by(RESTATED.c.at)))

    def _held(self, row: sa.Row[tuple[object, ...]]) -> HeldDataset:
        fields = dict(row._mapping)
        place = str(fields["place"])
        if is_table(place):
            place = self.databases.opened(place)
        elif "://" not in place:
            place = str(self._folder / place)
        return HeldDataset(**{**fields, "schema": _schema(str(fields["schema"])), "place": place})


@lru_cache(maxsize=256)
def _schema(text: str) -> Schema:
    """A schema as it is kept; reading TOML takes longer than all else of a page."""
    return Schema.from_toml(text)
