"""What the ledger's record says of a plan: which versions were adopted, what was charged, and the stored answers."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sfumato.core.ledger import State
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.core.statement import Statement
from sfumato.errors import LedgerError, Refused
from sfumato.governance.decision_state import Adopted
from sfumato.governance.digest import digest_of
from sfumato.governance.durable import certificate_at
from sfumato.governance.ledger import Ledger
from sfumato.governance.ledger_state import Charge
from sfumato.governance.periods import Period
from sfumato.governance.plans import Plan
from sfumato.reports.stored import stored_release
from sfumato.runner.asked import is_asked
from sfumato.runner.plan_file import PlanFile
from sfumato.runner.steps import Ingredient

__all__ = ["PlanRecord", "adopted_of", "check_adopted", "check_planned", "corrected", "key_of"]


def corrected(label: str, times: int) -> str:
    """The version of a period's data after a number of corrections; the first version is the label itself.

    >>> corrected("2026-03-04", 0), corrected("2026-03-04", 1)
    ('2026-03-04', '2026-03-04.2')
    """
    return f"{label}.{times + 1}" if times else label


def key_of(digest: str, release: str, label: str) -> str:
    """The idempotency key of one release: the digest of its plan, its name, and the version of its period's data.

    >>> key_of("73422deae5e6c268e5fa3a2caaec6b5e", "visits", "2026-01")
    'plan/73422deae5e6c268e5fa3a2caaec6b5e/visits/2026-01'
    """
    return f"plan/{digest}/{release}/{label}"


def adopted_of(ledger: Ledger, file: PlanFile) -> tuple[Adopted, ...]:
    """All adopted plans of this name and account, of any year, in order."""
    return tuple(
        adopted
        for adopted in ledger.plans()
        if adopted.account == file.account and adopted.schedule.plan.name == file.plan.name
    )


def check_adopted(ledger: Ledger, file: PlanFile) -> Adopted:
    """The plan as it was adopted last for its year; refused where the file says anything else."""
    current = [adopted for adopted in adopted_of(ledger, file) if adopted.schedule.plan.year == file.plan.year]
    if not current:
        raise Refused(
            f"the plan {file.plan.name!r} of {file.plan.year} is not adopted for {file.account!r}; nothing was "
            "read and nothing was spent. Adopt it: sfumato plan adopt"
        )
    newest = current[-1]
    if newest.schedule.plan != file.plan:
        raise Refused(
            f"the file says the plan {file.digest}, and entry {newest.number} of the ledger adopted "
            f"{digest_of(newest.schedule.plan)}: a question, a schema, a path or a target differs. Nothing was read "
            "and nothing was spent. Bring the adopted file back, or have this one adopted."
        )
    return newest


def check_planned(plan: Plan, of: Ingredient, said: Statement, version: str) -> None:
    """Refuse an answer to anything but what a plan asks of a period: question, unit and version of the data."""
    planned = plan.release(of.release)
    differs = [
        what
        for what, same in (
            ("its question", is_asked(said.query, planned.question)),
            ("its unit", said.unit == plan.unit),
            ("the version of its data", said.dataset == said.query.dataset and said.dataset.edition == version),
            ("its sensitivity", said.sensitivity.l1 is not None and said.sensitivity.l1.value == planned.l1),
        )
        if not same
    ]
    if differs:
        raise Refused(
            f"release {said.identifier} is stored under the key of {of.release!r} for {of.period.label}, and is not "
            f"what was planned: {' and '.join(differs)} differs. Somebody else used the key. Nothing was published and "
            "nothing was computed from it. Look at it: sfumato releases. Then give the release another name and adopt "
            "that plan."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """A plan in a ledger.

    A plan may be adopted again in another version, or for another year. What was released for a period under an earlier
    version is the release of that period: ``digests`` are the versions of a year, the newest first, and ``plans`` what
    each of them says.
    """

    ledger: Ledger
    digests: dict[int, tuple[str, ...]]
    plans: dict[str, Plan] = field(default_factory=dict)
    versions: frozenset[Dataset] = frozenset()

    @classmethod
    def of(cls, ledger: Ledger, file: PlanFile) -> tuple["PlanRecord", Adopted]:
        """The record of a plan, and the plan as it was adopted; refused where the file is not what was adopted."""
        newest = check_adopted(ledger, file)
        digests: dict[int, tuple[str, ...]] = {}
        plans: dict[str, Plan] = {}
        for adopted in adopted_of(ledger, file):
            plan = adopted.schedule.plan
            digest = digest_of(plan)
            digests[plan.year] = (digest, *digests.get(plan.year, ()))
            plans[digest] = plan
        with ledger.record.reading() as transaction:
            versions = frozenset(edition.dataset for edition in transaction.editions())
        return cls(ledger=ledger, digests=digests, plans=plans, versions=versions), newest

    def version(self, dataset: str, period: Period) -> Dataset:
        """The newest version of a period's data that was declared: the period's label, or the last correction of it."""
        times = 0
        while Dataset(name=dataset, edition=corrected(period.label, times + 1)) in self.versions:
            times += 1
        return Dataset(name=dataset, edition=corrected(period.label, times))

    def editions(self, dataset: str, period: Period) -> list[str]:
        """All versions of a period's data that were declared, the first one first."""
        last = _times(self.version(dataset, period).edition, period)
        return [corrected(period.label, times) for times in range(last + 1)]

    def correct(self, dataset: str, period: Period) -> Dataset:
        """Declare that the data of a period was corrected; what is planned of it is charged and released anew."""
        known = self.version(dataset, period)
        if known not in self.versions:
            raise Refused(
                f"no data of {dataset!r} for {period.label} was declared yet, so there is nothing to correct; nothing "
                "was changed. Bring the right file and run the plan."
            )
        again = Dataset(name=dataset, edition=corrected(period.label, _times(known.edition, period) + 1))
        self.ledger.declare_version(again)
        return again

    def keys(self, release: str, version: str, year: int) -> tuple[str, ...]:
        """The keys under which a period may have been released, the newest plan's first."""
        return tuple(key_of(digest, release, version) for digest in self.digests.get(year, ()))

    def charges(self, keys: Iterable[str]) -> dict[str, Charge]:
        """The charges that were made under these keys."""
        with self.ledger.record.reading() as transaction:
            found = {key: transaction.charge_named(key) for key in keys}
        return {key: charge for key, charge in found.items() if charge is not None}

    @staticmethod
    def population(ledger: Ledger, dataset: str) -> str | None:
        """The people that a dataset is about; None where it is not declared."""
        with ledger.record.reading() as transaction:
            return transaction.population(dataset)

    def answer(self, charge: Charge, of: Ingredient, version: str) -> Release:
        """The stored answer to a charge, verified, and held to the version of the plan whose key it was made under.

        A key can be worked out by anybody: that an answer was stored under it does not say that the runner asked.
        """
        if charge.state is not State.COMMITTED or charge.answer is None:
            raise LedgerError(f"charge {charge.number} has no answer; nothing was delivered.")
        with self.ledger.record.reading() as transaction:
            text = certificate_at(transaction, charge.answer, charge.answered, None)
        release = stored_release(text)
        for digest in self.digests.get(of.period.last.year, ()):
            if charge.idempotency == key_of(digest, of.release, version):
                check_planned(self.plans[digest], of, release.statement, version)
                return release
        raise LedgerError(
            f"charge {charge.number} was not made for {of.release!r} of {of.period.label}; nothing was done."
        )

    def closed(self, datasets: Iterable[Dataset]) -> set[Dataset]:
        """Those of some versions that were closed after their engine failed."""
        with self.ledger.record.reading() as transaction:
            found = {dataset: transaction.edition(dataset) for dataset in datasets}
        return {dataset for dataset, edition in found.items() if edition is not None and edition.closed}


def _times(version: str, period: Period) -> int:
    """How often the data of a period was corrected."""
    return int(version.removeprefix(period.label).removeprefix(".") or 1) - 1
