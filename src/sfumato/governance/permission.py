"""The last look before a release: its terms, its approvals, its vetoes and its reasons, all at once."""

from sfumato.core.budget import Budget
from sfumato.errors import NotDeclared, Refused
from sfumato.governance import consent
from sfumato.governance.board import Reasons, moment
from sfumato.governance.consent import Terms, Use
from sfumato.governance.minutes import Minutes

__all__ = ["permit"]


def permit(use: Use, terms: Terms, minutes: Minutes, *, at: str, cost: Budget, reasons: Reasons | None) -> int:
    """Refuse a release that the declarations or the board do not allow; else the number of the approval it rests on.

    Guarantee: nobody's data are released outside their terms, without recorded reasons for ε, under a standing veto,
    without an approval of the dataset that is in force, or without the committee of every site it comes from.
    Assumes: ``minutes`` are replayed from the record, and whoever calls charges the cost in the same transaction.
    Public: everything; no data is opened.
    """
    if reasons is None:
        raise NotDeclared(
            f"no reason is recorded for {cost}. Nothing was read and nothing was spent. "
            "ε weighs a benefit against a risk: record both, and why this ε."
        )
    consent.check(use, terms, moment(at).date())
    now = minutes.at(at)
    vetoes = now.vetoes(terms.dataset)
    if vetoes:
        who = "; ".join(f"{veto.community} since {veto.at} ({veto.reason})" for veto in vetoes)
        raise Refused(
            f"{terms.dataset!r} is under a community's veto: {who}. Nothing was read and nothing was spent. "
            "Only that community can lift it."
        )
    approvals = now.opened(terms.dataset)
    if not approvals:
        raise Refused(
            f"no approval of {terms.dataset!r} by the board is in force. Nothing was read and nothing was spent. "
            "Propose the dataset to the board."
        )
    for approval in reversed(approvals):
        if set(terms.sites) <= set(approval.sites):
            return approval.number
    missing = sorted(set(terms.sites) - set(approvals[-1].sites))
    raise Refused(
        f"the committee of {', '.join(missing)} has not approved {terms.dataset!r}. Nothing was read and nothing was "
        "spent. Propose the dataset again, naming all its sites."
    )
