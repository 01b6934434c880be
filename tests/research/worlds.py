"""A small research environment for tests: a board, two projects, three researchers, and rows with a canary in them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import ClassVar

import pyarrow as pa

import sfumato as sf
from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.engines.expressions import Type
from sfumato.governance.board import Action, Board, Choice, Community, Reasons
from sfumato.governance.consent import Ground, HipaaBasis, SpecialCategory, Terms
from sfumato.governance.ledger import Ledger
from sfumato.governance.research_entries import Project
from sfumato.research import connection
from sfumato.research.environment import ResearchEnvironment, ResearchJob
from sfumato.research.served import ServedProject
from sfumato.tables.column_facts import ColumnFacts
from sfumato.tables.schema import Schema
from tests.governance.homes import Home
from tests.governance.signers import key_of, keyed

PERSON = sf.user("patient_id", relation="add/remove")
WHY = Reasons(benefit="wards are staffed by it", risk="a rare case could be guessed", choice="±20 is enough for that")
CANARY = "Zanzibar-4711"
SCHEMA = Schema(
    name="visits",
    edition="2026-10",
    unit="patient_id",
    limit=sf.Limit(groups=1, rows_per_group=2),
    columns=(
        ColumnFacts(name="patient_id", type=Type.TEXT),
        ColumnFacts(name="ward", type=Type.TEXT, keys=("east", "west")),
        ColumnFacts(name="age", type=Type.WHOLE, bounds=(Fraction(0), Fraction(100))),
        ColumnFacts(name="diagnosis", type=Type.TEXT, keys=("flu", "other")),
    ),
)
ROWS = pa.table(
    {
        "patient_id": [f"{CANARY}-{place}" for place in range(400)],
        "ward": ["east", "west"] * 200,
        "age": [40, 60] * 200,
        "diagnosis": ["flu", "other", "other", "other"] * 100,
    }
)
COUNTS = """
import sfumato as sf
environment = sf.connect()
found = environment.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=0.1)
assert max(found.columns["n"].values) > 0
"""


class PlayedJob:
    """A script that runs in this very process: what it can reach is what the environment answers, and fast."""

    level: ClassVar[str] = "played"

    def run(self, code: str, project: ServedProject) -> bool:
        connection.speak_through(project.answered)
        try:
            exec(compile(code, "script.py", "exec", dont_inherit=True), {"__name__": "__main__"})  # noqa: S102 - ours
        except Exception:  # noqa: BLE001 - as a box does
            return False
        finally:
            connection._own.clear()
        return True


PLAYED: Mapping[str, ResearchJob] = {"script": PlayedJob()}


@dataclass
class World:
    """A ledger with a board, data with terms, and an environment over them."""

    ledger: Ledger
    environment: ResearchEnvironment

    def approved(self, subject: str, *, account: str, by: str = "rosa", datasets: tuple[str, ...] = ("visits",)) -> int:
        """Have the board approve something; the number of the request."""
        number = self.ledger.propose(
            by=by,
            action=Action.EXCEPTION,
            subject=subject,
            reasons=WHY,
            account=account,
            datasets=datasets,
            key=key_of(by),
        )
        for voter in ("ben", "cho"):
            self.ledger.vote(number, by=voter, key=key_of(voter), choice=Choice.YES)
        return number

    def opened(self, project: Project) -> int:
        """Have a project approved, and open it."""
        return self.ledger.open_project(project, proposal=self.approved(project.subject, account=project.account))

    def submitted(self, project: Project, code: str = COUNTS, by: str = "rosa", *, approve: bool = True) -> int:
        """Hand a program in, and have it approved."""
        number = self.ledger.submit_program(project.name, by=by, code=code, key=key_of(by))
        if approve and project.reviewed:
            self.approved(project.program_subject("script", code), account=project.account)
        return number


def project(name: str = "wards", people: tuple[str, ...] = ("rosa", "sven"), **given: object) -> Project:
    fields: dict[str, object] = {
        "name": name,
        "purpose": "research/wards",
        "recipient": "public",
        "account": f"hospital/{name}",
        "people": tuple((person, key_of(person).public_text) for person in people),
        "columns": (("visits", ("ward", "age")),),
        **given,
    }
    return Project(**fields)  # type: ignore[arg-type]


def world(folder: Path, jobs: Mapping[str, ResearchJob] = PLAYED, cap: Budget = Budget(epsilon=4)) -> World:  # noqa: B008 - it is frozen
    """An institution with a board, visits that it approved, and an account for each of two projects."""
    ledger = Home(url=str(folder / "ledger.db"), folder=str(folder)).create()
    for path in ("hospital", "hospital/wards", "hospital/ages"):
        ledger.open_account(
            path, unit=PERSON, cap=replace(cap, epsilon=Fraction(1)) if "/" in path else cap, reason="for 2026"
        )
    ledger.declare_population("patients", unit=PERSON, cap=cap, reason="everybody")
    ledger.declare_dataset(Dataset(name="visits", edition="2026-10"), population="patients", cap=cap)
    board = Board(
        members=("ada", "ben", "cho"),
        quorum=2,
        communities=(Community(name="valley", representatives=("mele",), datasets=("visits",)),),
        proposers=("rosa", "sven", "tara"),
    )
    ledger.seat(keyed(board), by="director", reason="the statute of 2026")
    ledger.declare_terms(
        Terms(
            dataset="visits",
            purposes=("research",),
            ground=Ground.PUBLIC_TASK,
            condition=SpecialCategory.RESEARCH,
            hipaa=HipaaBasis.NOT_SUBJECT,
            consent=(),
            consent_text="",
            forbidden=(),
            recipients=(),
            until="2099-12-31",
            sites=(),
        )
    )
    environment = ResearchEnvironment(ledger=ledger, data={"visits": (ROWS, SCHEMA)}, slot=Fraction(1, 1000), jobs=jobs)
    made = World(ledger, environment)
    number = ledger.propose(
        by="ada", action=Action.DATASET, subject="visits", reasons=WHY, datasets=("visits",), key=key_of("ada")
    )
    for voter in ("ben", "cho"):
        ledger.vote(number, by=voter, key=key_of(voter), choice=Choice.YES)
    return made
