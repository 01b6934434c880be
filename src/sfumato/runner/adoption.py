"""Adopting a plan: solved within what every balance it draws on has left, then recorded."""

from sfumato.core.budget import Budget
from sfumato.errors import NotDeclared, Unsupported
from sfumato.governance.decision_state import Adopted
from sfumato.governance.digest import digest_of
from sfumato.governance.ledger import Ledger
from sfumato.governance.ledger_state import account_line, dataset_line, population_line
from sfumato.governance.periods import periods
from sfumato.governance.plans import Accounting
from sfumato.governance.terms import levels_of
from sfumato.runner.plan_file import PlanFile
from sfumato.runner.record import PlanRecord, adopted_of, key_of

__all__ = ["adopt", "check_carried_out", "levels"]


def adopt(ledger: Ledger, file: PlanFile) -> Adopted:
    """Solve a plan within what all its balances have left, and record it; a board must have approved this digest."""
    check_carried_out(file)
    ledger.adopt_plan(file.account, file.solved(levels(ledger, file)))
    return adopted_of(ledger, file)[-1]


def check_carried_out(file: PlanFile) -> None:
    """Refuse a plan that can be solved and not carried out."""
    if file.plan.accounting is not Accounting.BASIC:
        raise Unsupported(
            f"{file.plan.name!r} adds up ρ, and its releases are charged in ε and δ, which would cost more than was "
            'planned. Nothing was done. Plan with accounting = "basic"; "zcdp" can be solved and compared.'
        )


def levels(ledger: Ledger, file: PlanFile) -> dict[str, Budget]:
    """What the balances that a plan draws on have left for it, by name.

    What periods of the year cost under earlier versions of the plan is counted back in: they are not released again,
    and the new version plans for the whole year. A balance that is kept by a filter has no such sum and decides at each
    release.
    """
    balances = {balance.name: balance for balance in ledger.balances()}
    names = [account_line(level) for level in levels_of(file.account)]
    for dataset in dict.fromkeys(entry.asked.dataset for entry in file.entries):
        people = PlanRecord.population(ledger, dataset)
        if people is None:
            raise NotDeclared(
                f"the dataset {dataset!r} is not declared in the ledger, so nobody knows whose budget it draws on. "
                "Nothing was planned. Declare a first version of it with its population: sfumato ledger dataset"
            )
        names += [dataset_line(dataset), population_line(people)]
    for name in names:
        if name not in balances:
            raise NotDeclared(f"{name} is not in the ledger; nothing was planned. Have it opened or declared.")
    spent = _spent_before(ledger, file)
    return {name: balances[name].left + spent for name in dict.fromkeys(names) if balances[name].filter_cap is None}


def _spent_before(ledger: Ledger, file: PlanFile) -> Budget:
    """What periods of this year cost under earlier versions of the plan."""
    total = Budget.none()
    record = PlanRecord(ledger=ledger, digests={})
    for adopted in adopted_of(ledger, file):
        plan = adopted.schedule.plan
        if plan.year == file.plan.year:
            keys = (
                key_of(digest_of(plan), release.name, period.label)
                for release in plan.releases
                for period in periods(release.every, plan.year)
            )
            total = sum((charge.cost for charge in record.charges(keys).values()), start=total)
    return total
