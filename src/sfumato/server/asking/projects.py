"""Projects: what belongs together, with the account that pays for it; drafts are questions that were not asked yet."""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

import sqlalchemy as sa

from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.server.asking.tables import DRAFTS, PROJECTS
from sfumato.server.database import Database

if TYPE_CHECKING:
    from sfumato.server.visitors import Visitor

__all__ = ["AnalystProject", "ProjectDraft", "Projects"]

MOST_FIELDS, MOST_DRAFTS, MOST_PROJECTS = 20_000, 500, 500
LONGEST_TITLE, LONGEST_ABOUT = 200, 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalystProject:
    """What belongs together; whoever may charge its account sees it."""

    name: str
    login: str
    account: str
    title: str
    about: str
    made: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectDraft:
    """A question that was not asked yet: the fields of its form."""

    name: str
    project: str
    login: str
    dataset: str
    title: str
    fields: tuple[tuple[str, str], ...]
    made: float

    @property
    def query_string(self) -> str:
        """Its fields, as an address holds them."""
        return urlencode(self.fields)


class Projects:
    """Projects and their drafts, in the service's database; nothing of the data is in them."""

    def __init__(self, database: Database, *, now: Callable[[], float]) -> None:
        self._database, self._now = database, now

    def of(self, visitor: "Visitor") -> tuple[AnalystProject, ...]:
        """The projects that somebody sees, the latest first."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(PROJECTS).order_by(PROJECTS.c.made.desc())).all()
        found = (AnalystProject(**row._mapping) for row in rows)
        return tuple(each for each in found if visitor.may_charge(each.account))

    def project(self, name: str, visitor: "Visitor") -> AnalystProject:
        """A project that somebody sees."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(PROJECTS).where(PROJECTS.c.name == name)).one_or_none()
        found = None if row is None else AnalystProject(**row._mapping)
        if found is None or not visitor.may_charge(found.account):
            raise NotDeclared("there is no project of this name, or it is not yours; nothing was done.")
        return found

    def make(self, visitor: "Visitor", *, title: str, about: str, account: str) -> AnalystProject:
        """A new project."""
        title, about = title.strip(), about.strip()
        if not title or len(title) > LONGEST_TITLE or len(about) > LONGEST_ABOUT:
            raise InvalidInput(
                f"a project needs a title of up to {LONGEST_TITLE} characters, and is described in up to "
                f"{LONGEST_ABOUT:,}; nothing was made."
            )
        if len(self.of(visitor)) >= MOST_PROJECTS:
            raise Refused(f"you have {MOST_PROJECTS} projects, which is as many as may; nothing was made.")
        made = AnalystProject(
            name=secrets.token_hex(8),
            login=str(visitor.name),
            account=account,
            title=title,
            about=about,
            made=self._now(),
        )
        with self._database.writing() as connection:
            connection.execute(
                sa.insert(PROJECTS).values({column.name: getattr(made, column.name) for column in PROJECTS.columns})
            )
        return made

    def drafts(self, project: AnalystProject) -> tuple[ProjectDraft, ...]:
        """The drafts of a project, the latest first."""
        chosen = sa.select(DRAFTS).where(DRAFTS.c.project == project.name).order_by(DRAFTS.c.made.desc())
        with self._database.reading() as connection:
            return tuple(_draft(row._asdict()) for row in connection.execute(chosen))

    def save(
        self, visitor: "Visitor", project: AnalystProject, *, dataset: str, title: str, fields: Mapping[str, str]
    ) -> ProjectDraft:
        """Keep a question as a draft."""
        text = urlencode([(name, value) for name, value in fields.items() if value])
        if len(text) > MOST_FIELDS or len(self.drafts(project)) >= MOST_DRAFTS:
            raise Refused("the draft is too long, or the project has too many; nothing was kept.")
        made = {
            "name": secrets.token_hex(8),
            "project": project.name,
            "login": str(visitor.name),
            "dataset": dataset,
            "title": title[:300],
            "fields": text,
            "made": self._now(),
        }
        with self._database.writing() as connection:
            connection.execute(sa.insert(DRAFTS).values(made))
        return _draft(made)

    def drop(self, project: AnalystProject, name: str) -> None:
        """Throw a draft away."""
        with self._database.writing() as connection:
            connection.execute(sa.delete(DRAFTS).where(DRAFTS.c.name == name, DRAFTS.c.project == project.name))


def _draft(row: Mapping[str, object]) -> ProjectDraft:
    fields = tuple(parse_qsl(str(row["fields"]), keep_blank_values=True))
    return ProjectDraft(**{**row, "fields": fields})  # type: ignore[arg-type]  # the columns of the table
