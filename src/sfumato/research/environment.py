"""A research environment: it keeps the data, runs approved programs, and lets out what they released.

Projects, programs and runs are entries of the ledger; here they are carried out. A run is entered before it starts, so
that a run that was killed is in the log too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Protocol

from sfumato.boxes.levels import BoxLevel
from sfumato.boxes.trial import tested_level
from sfumato.core.budget import Budget
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.core.signature import SigningKey
from sfumato.errors import LedgerError, NotDeclared, SfumatoError, Unsupported
from sfumato.governance.ledger import Ledger
from sfumato.governance.research_entries import Project, RunPhase
from sfumato.research.blocks_job import BlocksJob
from sfumato.research.invented import invented_for
from sfumato.research.minimal import narrowed
from sfumato.research.script_box import ScriptBox
from sfumato.research.served import SLOT, OfferedData, ServedProject
from sfumato.tables.schema import Schema
from sfumato.vault import Vault

__all__ = ["JOBS", "DryRun", "ResearchEnvironment", "ResearchJob", "RunResult", "ScriptJob", "dry_run"]


class ResearchJob(Protocol):
    """How one kind of program is run."""

    @property
    def level(self) -> str:
        """How it is shut off, as the log states it."""
        ...

    def run(self, code: str, project: ServedProject) -> bool:
        """Run a program; whether it came to its end. Whatever it releases goes through the project."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptJob:
    """A script with no data in its box, which asks the project by ``sf.connect()``."""

    box: ScriptBox | None = None

    @property
    def level(self) -> str:
        """How it is shut off: as the box says, or at the strongest level that keeps a hostile program in here."""
        return (BoxLevel(self.box.level) if self.box else tested_level()).value

    def run(self, code: str, project: ServedProject) -> bool:
        """Run a script to its end."""
        return (self.box or ScriptBox(level=tested_level())).run(code, project.answered)


JOBS: Mapping[str, ResearchJob] = {"script": ScriptJob(), "blocks": BlocksJob()}
"""How programs are run, by the name of their kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What became of a run: its entry, and the certificates that left, by their identifiers.

    ``models`` are the weights that left beside some of them, in safetensors: once, with the run that trained them.
    """

    run: int
    phase: RunPhase
    certificates: Mapping[str, str]
    models: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What a program did on invented rows: whether it came to its end, what it would have cost, and its answers."""

    finished: bool
    cost: Budget
    releases: tuple[Release, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchEnvironment:
    """Runs programs of projects beside the data.

    Guarantee: no program sees rows; three things must hold before anything leaves, and each blocks by itself. Access:
    the program was signed by somebody of a project that the board approved, and approved itself. Minimisation: it
    names approved columns alone. Guarantee: what leaves is a certificate of a release that was charged to the account
    of the project. ``reads`` are the first and the last day of all data, by which accounts with windows of time are
    charged; nobody who asks can say others. Assumes: this process is the steward's. Sensitive: ``data``.
    """

    ledger: Ledger
    data: OfferedData
    key: SigningKey | Path | None = None
    slot: Fraction = SLOT
    reads: tuple[str, str] | None = None
    jobs: Mapping[str, ResearchJob] = field(default_factory=lambda: JOBS)

    def served(self, project: Project) -> ServedProject:
        """A project that is in force, ready to be asked."""
        vault = Vault(
            unit=self.ledger.balance(project.account).unit,
            ledger=self.ledger,
            account=project.account,
            purpose=project.purpose,
            recipient=project.recipient,
            key=self.key,
            reads=self.reads,
        )
        return ServedProject(project, vault, self.data, slot=self.slot)

    def run(self, number: int) -> RunResult:
        """Run a program by its entry; one that ran before on the same data is answered from what it let out."""
        program, project = self.ledger.runnable(number)
        job = self.jobs.get(program.job)
        if job is None:
            raise Unsupported(
                f"this environment runs no {program.job!r}; nothing was run. Kinds: {', '.join(self.jobs)}."
            )
        served = self.served(project)
        editions = tuple(self._edition(name) for name in project.datasets)
        before = self.ledger.research().answered(number, editions)
        if before is not None:
            _, first = before
            unit = self.ledger.balance(project.account).unit
            use = self.ledger.account(project.account, unit=unit, purpose=project.purpose, recipient=project.recipient)
            use.check_use(editions)  # what is stored still goes to somebody, for some purpose
            again = self.ledger.repeat_run(number, first)
            return RunResult(run=again, phase=RunPhase.STORED, certificates=self._stored(served, first.releases))
        run = self.ledger.start_run(number, editions, level=job.level)
        try:
            finished = job.run(program.code, served)
        except SfumatoError:
            finished = False
        if not finished:
            self.ledger.end_run(run, RunPhase.FAILED)
            return RunResult(run=run, phase=RunPhase.FAILED, certificates={})
        certificates = {name: served.export.certificate(text) for name, text in served.released.items()}
        self.ledger.end_run(run, RunPhase.RELEASED, tuple(certificates))
        return RunResult(run=run, phase=RunPhase.RELEASED, certificates=certificates, models=served.models)

    def _edition(self, name: str) -> Dataset:
        schema = self.data[name][1]
        if schema.edition is None:
            raise NotDeclared(f"the schema of {name!r} names no version; nothing was run. Say version under [dataset].")
        return Dataset(name=name, edition=schema.edition)

    def _stored(self, served: ServedProject, releases: tuple[str, ...]) -> dict[str, str]:
        found = {name: served.export.release(self.ledger.certificate(name)) for name in releases}
        if any(release.statement.identifier != name for name, release in found.items()):
            raise LedgerError("a stored answer is another than the log says; nothing was handed out. Verify it.")
        return {name: release.certificate.text for name, release in found.items()}


def dry_run(
    project: Project,
    code: str,
    schemas: Mapping[str, Schema],
    *,
    vault: Vault,
    synthetic: Mapping[str, object] | None = None,
    job: ResearchJob | None = None,
) -> DryRun:
    """Run a program on invented rows of the same schemas, or on ``synthetic`` rows; nothing of anybody is read.

    Guarantee: a function of the schemas and of public rows; no account is charged. Assumes: ``synthetic`` rows are
    public, such as those that ``sfumato synthesize`` released; ``vault`` is one for this run alone.
    """
    given = synthetic or {}
    rows: dict[str, tuple[object, Schema]] = {}
    for name, columns in project.columns:
        if name not in schemas:
            raise NotDeclared(f"a dry run needs the schema of {name!r}; nothing was run.")
        rows[name] = (given.get(name) or invented_for(narrowed(schemas[name], columns)), schemas[name])
    served = ServedProject(project, vault, rows, slot=Fraction(1, 1000))
    finished = (job or ScriptJob()).run(code, served)
    releases = tuple(served.export.release(text) for text in served.released.values())
    return DryRun(finished=finished, cost=vault.spent, releases=releases)
