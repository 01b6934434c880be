"""The runner: it makes the releases of an adopted plan that are due, each period once, and computes what follows.

Every release goes through a vault under an idempotency key of its plan, its name and its period. Wherever a run is cut
off, the next one finishes the open charge, or hands out the answer that was stored.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path

from sfumato.core.budget import Budget
from sfumato.core.ledger import State
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.errors import EngineFailed, InvalidInput, Refused, Unsupported
from sfumato.governance.ledger import Ledger
from sfumato.governance.ledger_state import Charge
from sfumato.governance.periods import Period, periods
from sfumato.governance.plans import FigureSource, Schedule
from sfumato.governance.terms import levels_of, written
from sfumato.runner.adoption import check_carried_out
from sfumato.runner.asked import is_asked, tests_of
from sfumato.runner.delivery import Folder
from sfumato.runner.figures import Recipe, Weighted, computed
from sfumato.runner.overview import TESTS_FILE, overview
from sfumato.runner.plan_file import PlanFile
from sfumato.runner.planned_tests import PlannedTest
from sfumato.runner.record import PlanRecord, check_adopted, check_planned, key_of
from sfumato.runner.steps import Ingredient, Standing, Step, due_at
from sfumato.runner.tested import TestedPlan, tested_plan
from sfumato.vault import Vault

__all__ = ["Fate", "Runner", "StepOutcome"]


class Fate(Enum):
    """What became of a step in a run."""

    RELEASED = "released"
    KEPT = "written again"
    COMPUTED = "computed"
    MISSING = "missing"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutcome:
    """A step of a run: what became of it, what it cost, and the files that it left."""

    step: Step
    fate: Fate
    cost: Budget = field(default_factory=Budget.none)
    files: tuple[Path, ...] = ()
    words: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """An adopted plan, ready to be carried out.

    Guarantee: whatever is killed, restarted or run twice at once, a period of a release is charged once and has one
    answer, and what is published is an answer to the planned question, for the planned unit, about that period: one
    that somebody else stored under the key of a release stops the run. Assumes: the file of a period is whole when it
    appears (written elsewhere, then renamed), and a dataset's name with a period's label means this data and no other:
    which folder a plan is run in, and so which files its paths mean, is the steward's word.
    """

    file: PlanFile
    record: PlanRecord
    schedule: Schedule

    @classmethod
    def of(cls, file: PlanFile, ledger: Ledger) -> "Runner":
        """The runner of a plan file; refused unless exactly this plan is the newest one adopted."""
        check_carried_out(file)
        record, adopted = PlanRecord.of(ledger, file)
        return cls(file=file, record=record, schedule=adopted.schedule)

    def steps(self, *, until: date | None = None, today: date | None = None) -> tuple[Step, ...]:
        """All steps of the plan's year, in the order in which they are made."""
        return self._looked(until, today).steps

    def next_due(self, *, now: datetime | None = None) -> datetime | None:
        """When the next period is over; None where all are."""
        moment = datetime.now(UTC) if now is None else now
        year = self.file.plan.year
        ends = {due_at(period) for entry in self.file.entries for period in periods(entry.every, year)}
        return min((end for end in ends if end > moment), default=None)

    def run(self, out: Path, *, until: date | None = None, today: date | None = None) -> Iterator[StepOutcome]:
        """Make what is due, in order; each outcome is reported when it is durable.

        A missing file, one that cannot be read and one that is not as its schema says are reported and passed over. A
        budget that is used up, a veto and whatever else the ledger refuses stop the run with the numbers; what was made
        before stands. At the end, however it comes, the tables and the page of the folder are written anew.
        """
        folder = Folder(out, plan=self.file.plan.name, digest=self.file.digest, grounds=self.file.grounds)
        looked = self._looked(until, today)
        answers: _Answers = dict(looked.answers)
        written_anew = False
        try:
            for step in looked.steps:
                if step.source is not FigureSource.OWN:
                    made = self._computed(step, folder, answers)
                elif step.standing is Standing.DONE:
                    made = self._kept(step, folder, answers)
                elif step.standing in (Standing.DUE, Standing.OPEN):
                    made = self._released(step, folder, answers)
                else:
                    made = _passed(step)
                if made is not None:
                    written_anew = written_anew or bool(made.files)
                    yield made
        finally:
            if written_anew or (self.file.tests is not None and not (out / TESTS_FILE).is_file()):
                names = [entry.name for entry in self.file.entries]
                overview(out, names, plan=self.file.plan.name, tested=self._tested(answers))

    def correct(self, dataset: str, label: str) -> tuple[Dataset, tuple[str, ...]]:
        """Declare that the file of a period was corrected, and name the new version and the releases made anew of it.

        They are charged again: the people in it are still those in it, and more would be known of them. What was
        released of the earlier version stands, and figures are computed from the newest.
        """
        own = {line.name for line in self.schedule.lines if line.source is not FigureSource.DERIVED}
        asked = [
            (entry.name, period)
            for entry in self.file.entries
            if entry.asked.dataset == dataset and entry.name in own
            for period in periods(entry.every, self.file.plan.year)
            if period.label == label
        ]
        if not asked:
            raise InvalidInput(
                f"the plan {self.file.plan.name!r} releases nothing of {dataset!r} for {label!r}; nothing was changed. "
                "Give a dataset and a period of the plan: sfumato plan status"
            )
        return self.record.correct(dataset, asked[0][1]), tuple(name for name, _ in asked)

    # ---------------------------------------------------------------------------------------------- how it stands

    def _looked(self, until: date | None, today: date | None) -> "_Looked":
        """How every step stands."""
        now = datetime.now(UTC).date() if today is None else today
        plan, recipe = self.file.plan, Recipe(schedule=self.schedule)
        own: list[tuple[str, Period]] = []
        figures: list[tuple[str, Period, tuple[Weighted, ...]]] = []
        for line in self.schedule.lines:
            for period in periods(plan.release(line.name).every, plan.year):
                if line.source is not FigureSource.DERIVED:
                    own.append((line.name, period))
                if line.source is not FigureSource.OWN:
                    figures.append((line.name, period, recipe.of(line.name, period)))
        wanted = {Ingredient(name, period) for name, period in own}
        wanted |= {part.of for _, _, parts in figures for part in parts}
        answers = self._answers(wanted)
        standing = self._standings(own, answers, now)
        steps = [
            Step(
                name=name,
                period=period,
                source=FigureSource.OWN,
                standing=standing[Ingredient(name, period)],
                version=self._dataset(name, period).edition,
            )
            for name, period in own
        ]
        for name, period, parts in figures:
            of = [standing.get(part.of, Standing.MISSING) for part in parts if part.of not in answers]
            state = Standing.DONE if not of else _worst(of) if period.last < now else Standing.WAITING
            elsewhere = any(part.of not in standing and part.of not in answers for part in parts)
            why = "it needs periods of another year that were not released" if elsewhere else ""
            source = self.schedule.line(name).source
            steps.append(Step(name=name, period=period, source=source, standing=state, why=why))
        order = {entry.name: place for place, entry in enumerate(self.file.entries)}
        steps.sort(key=lambda step: (step.period.last, step.source is not FigureSource.OWN, order[step.name]))
        kept = tuple(step for step in steps if until is None or step.period.last <= until)
        return _Looked(steps=kept, answers=answers)

    def _answers(self, wanted: set[Ingredient]) -> dict[Ingredient, Charge]:
        """The committed charge of each release that has one, under whichever version of the plan."""
        keys = {of: self.record.keys(of.release, self._version(of), of.period.last.year) for of in wanted}
        charges = self.record.charges(key for several in keys.values() for key in several)
        found: dict[Ingredient, Charge] = {}
        for of, several in keys.items():
            done = [charges[key] for key in several if key in charges and charges[key].state is State.COMMITTED]
            if done:
                found[of] = done[0]
        return found

    def _standings(
        self, own: list[tuple[str, Period]], answers: Mapping[Ingredient, Charge], now: date
    ) -> dict[Ingredient, Standing]:
        left = [Ingredient(name, period) for name, period in own if Ingredient(name, period) not in answers]
        charges = self.record.charges(self._key(of.release, of.period) for of in left if of.period.last < now)
        closed = self.record.closed(self._dataset(of.release, of.period) for of in left if of.period.last < now)
        found = {Ingredient(name, period): Standing.DONE for name, period in own}
        for of in left:
            if of.period.last >= now:
                found[of] = Standing.WAITING
            elif self._dataset(of.release, of.period) in closed:
                found[of] = Standing.CLOSED
            elif not self._path(of.release, of.period).is_file():
                found[of] = Standing.MISSING
            else:
                found[of] = Standing.OPEN if self._key(of.release, of.period) in charges else Standing.DUE
        return found

    def _key(self, name: str, period: Period) -> str:
        return key_of(self.file.digest, name, self._dataset(name, period).edition)

    def _path(self, name: str, period: Period) -> Path:
        return self.file.entry(name).data.inside(self.file.folder, period)

    def _dataset(self, name: str, period: Period) -> Dataset:
        """The newest version of a period's data."""
        return self.record.version(self.file.entry(name).asked.dataset, period)

    def _version(self, of: Ingredient) -> str:
        return self._dataset(of.release, of.period).edition

    # ------------------------------------------------------------------------------------------------ what is made

    def _released(self, step: Step, folder: Folder, answers: "_Answers") -> StepOutcome | None:
        """Charge, read, draw and store under the step's key; then write its files."""
        name, period = step.name, step.period
        check_adopted(self.record.ledger, self.file)  # refuses once another version of the plan was adopted meanwhile
        entry, key = self.file.entry(name), self._key(name, period)
        dataset = self._dataset(name, period)
        self.record.ledger.declare_version(dataset)
        vault = Vault(
            unit=self.file.unit,
            ledger=self.record.ledger,
            account=self.file.account,
            purpose=self.file.purpose,
            recipient=self.file.recipient,
            reads=self._reads(period),
            population=entry.asked.schema.population,
        )
        try:
            table = vault.table(self._path(name, period), schema=entry.asked.schema, version=dataset.edition)
            # The plan was adopted with its margins: whether they are worth their ε was decided then.
            amount = self.schedule.line(name).amount
            release = table.sql(entry.asked.sql).release(epsilon=amount, idempotency=key, even_if_useless=True)
        except (EngineFailed, InvalidInput, Unsupported) as wrong:  # of this file: the next may be as it should
            charge = self.record.charges([key]).get(key)
            cost = Budget.none() if charge is None else charge.cost
            return StepOutcome(step=step, fate=Fate.FAILED, cost=cost, words=str(wrong))
        of = Ingredient(name, period)
        # What comes back may have been stored by anybody.
        check_planned(self.file.plan, of, release.statement, dataset.edition)
        answers[of] = release
        if release.repeated and folder.has_release(name, dataset.edition):
            return None  # somebody asked the very same before, outside the plan: that answer is the one, and is free
        files = folder.keep_release(name, period, release)
        fate = Fate.KEPT if release.repeated else Fate.RELEASED
        return StepOutcome(step=step, fate=fate, cost=release.charged, files=files)

    def _reads(self, period: Period) -> tuple[str, str] | None:
        """The days of a period, where the account is charged by windows; elsewhere charges stay as they ever were.

        A charge that was cut off is finished under the same words, so that they must not change on the way.
        """
        windows = self.record.ledger.decision_state().windows
        if not any(level in windows for level in levels_of(self.file.account)):
            return None
        return period.first.isoformat(), period.last.isoformat()

    def _kept(self, step: Step, folder: Folder, answers: "_Answers") -> StepOutcome | None:
        """Write the files of a release that was made before, where they are lost."""
        if folder.has_release(step.name, step.label):
            return None
        self._check_use([step.name])
        release = self._answer(Ingredient(step.name, step.period), answers)
        files = folder.keep_release(step.name, step.period, release)
        return StepOutcome(step=step, fate=Fate.KEPT, files=files)

    def _computed(self, step: Step, folder: Folder, answers: "_Answers") -> StepOutcome | None:
        """Compute a figure from stored releases, once all of them are there."""
        parts = Recipe(schedule=self.schedule).of(step.name, step.period)
        versions = {part.of: self._version(part.of) for part in parts}
        if folder.has_figure(step.name, step.period, step.source, versions):
            return None
        if any(part.of not in answers for part in parts):
            return _passed(step)
        self._check_use(dict.fromkeys(part.of.release for part in parts))
        releases = {part.of: self._answer(part.of, answers) for part in parts}
        other = [of.period.label for of, release in releases.items() if not self._asks(of, release)]
        if other:
            words = f"{', '.join(other)} answered what an earlier version of the plan asked; they do not add up with it"
            return StepOutcome(step=step, fate=Fate.FAILED, words=words)
        columns = computed(parts, releases.__getitem__)
        identifiers = {of: release.statement.identifier for of, release in releases.items()}
        file = folder.keep_figure(step.name, step.period, step.source, columns, parts, identifiers, versions)
        return StepOutcome(step=step, fate=Fate.COMPUTED, files=(file,))

    def _tested(self, answers: "_Answers") -> TestedPlan | None:
        """The tests of the plan, of all periods that were released; none where it has none, or a veto forbids it."""
        if self.file.tests is None:
            return None
        tests, plan = self.file.tests, self.file.plan
        planned = [
            (test, period) for test in tests.tests for period in periods(plan.release(test.release).every, plan.year)
        ]
        wanted = {Ingredient(test.release, period) for test, period in planned}
        charges = self._answers(wanted)
        try:
            self._check_use(dict.fromkeys(test.release for test in tests.tests))
        except Refused:
            return None

        def answered(test: PlannedTest, period: Period) -> tuple[Release, str, bool] | None:
            of = Ingredient(test.release, period)
            found = answers.get(of, charges.get(of))
            if found is None or not self._asks(of, release := self._answer(of, {of: found})):
                return None
            return release, self._version(of), self._declared(of, charges.get(of))

        return tested_plan(tests, planned, answered)

    def _declared(self, of: Ingredient, charge: Charge | None) -> bool:
        """Whether every plan under which a period was charged, in any version of its data, has the tests of this one.

        A correction is charged under the newest plan, and whoever wrote that may have seen the answer before it.
        """
        if charge is None or self.file.tests is None:
            return False
        year, dataset = of.period.last.year, self.file.entry(of.release).asked.dataset
        under = {
            key_of(digest, of.release, edition): digest
            for edition in self.record.editions(dataset, of.period)
            for digest in self.record.digests.get(year, ())
        }
        return all(
            tests_of(self.record.plans[under[key]].release(of.release).question) == self.file.tests.text
            for key in self.record.charges(under)
        )

    def _answer(self, of: Ingredient, answers: "_Answers") -> Release:
        found = answers[of]
        return found if isinstance(found, Release) else self.record.answer(found, of, self._version(of))

    def _asks(self, of: Ingredient, release: Release) -> bool:
        """Whether a release answers what this version of the plan asks."""
        said = release.statement
        return said.unit == self.file.unit and is_asked(said.query, self.file.plan.release(of.release).question)

    def _check_use(self, names: Iterable[str]) -> None:
        """What was stored costs nothing, and terms and vetoes hold for handing it out too."""
        decisions, now = self.record.ledger.decision_state(), written(datetime.now(UTC))
        for dataset in dict.fromkeys(self.file.entry(name).asked.dataset for name in names):
            decisions.permit(dataset, self.file.purpose, self.file.recipient, at=now, cost=Budget.none())


_Answers = dict[Ingredient, Charge | Release]
"""What was released before, by its charge, and what this run has released."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """How all steps stand, and the charges of those that have an answer."""

    steps: tuple[Step, ...]
    answers: Mapping[Ingredient, Charge]


WORST = (Standing.CLOSED, Standing.MISSING, Standing.WAITING, Standing.OPEN, Standing.DUE)


def _worst(several: list[Standing]) -> Standing:
    return next((each for each in WORST if each in several), Standing.DUE)


def _passed(step: Step) -> StepOutcome | None:
    """What is reported of a step that cannot be made now."""
    match step.standing:
        case Standing.MISSING:
            words = step.why or (
                "its data is not there" if step.source is FigureSource.OWN else "parts of it are not there"
            )
            return StepOutcome(step=step, fate=Fate.MISSING, words=words)
        case Standing.CLOSED:
            words = (
                "its data was closed after an engine failed while reading it; nothing more is read of it. Once its "
                "file is mended, declare that: sfumato plan correct"
            )
            return StepOutcome(step=step, fate=Fate.FAILED, words=words)
    return None
