"""The last look before a release: its terms, its approvals, its vetoes and its reasons, all at once."""

from sfumato.core.budget import Budget
from sfumato.errors import Refused
from sfumato.governance import consent
from sfumato.governance.board import moment
from sfumato.governance.consent import Terms, Use
from sfumato.governance.minutes import Minutes

__all__ = ["permit"]


def permit(use: Use, terms: Terms, minutes: Minutes | None, *, at: str, cost: Budget, since: int = 0) -> int | None:
    """Refuse a release that the declarations or the board do not allow; else the number of the approval it rests on.

    Guarantee: nobody's data are released outside their terms; and where there is a board, not under a standing veto,
    not without an approval of the dataset that is in force, which states the reasons for ε, and not without the
    committee of every site it comes from. ``since`` is how many entries of the board are older than the terms.
    Assumes: ``minutes`` are replayed from the record, and whoever calls charges the cost in the same transaction.
    Public: everything; no data is opened.
    """
    consent.check(use, terms, moment(at).date())
    if minutes is None:
        return None
    now = minutes.at(at)
    vetoes = now.vetoes(terms.dataset)
    if vetoes:
        who = "; ".join(f"{veto.community} since {veto.at} ({veto.reason})" for veto in vetoes)
        raise Refused(
            f"{terms.dataset!r} is under a community's veto: {who}. Nothing was read and nothing was spent. "
            "Only that community can lift it."
        )
    approvals = now.opened(terms.dataset, since)
    if not approvals:
        raise Refused(
            f"no approval of {terms.dataset!r} by the board is in force, so no reason is recorded for {cost}. Nothing "
            "was read and nothing was spent. Propose the dataset to the board, with its terms as they are now."
        )
    for approval in reversed(approvals):
        if set(terms.sites) <= set(approval.sites):
            return approval.number
    missing = sorted(set(terms.sites) - set(approvals[-1].sites))
    raise Refused(
        f"the committee of {', '.join(missing)} has not approved {terms.dataset!r}. Nothing was read and nothing was "
        "spent. Propose the dataset again, naming all its sites."
    )
