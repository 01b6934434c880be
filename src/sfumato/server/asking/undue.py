"""What the ledger holds already of jobs whose deadline has not come: the one place that says so.

A worker stores an answer, or fails, at a moment that may depend on data. Whatever shows answers, prices or charges asks
here first, and leaves out what is not due.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from sfumato.core.documents import canonical, encode
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset
from sfumato.core.question import Intended
from sfumato.server.jobs.queue import Job, JobQueue

if TYPE_CHECKING:
    from sfumato.governance.ledger import Ledger
    from sfumato.server.views.snapshot import Snapshot

__all__ = ["Undue"]


class Undue:
    """The charges of jobs of which nobody may see yet what became.

    Guarantee: what is left out follows from when slots end, and from charges, which come before anything is read.
    """

    def __init__(self, queue: JobQueue, ledger: "Ledger") -> None:
        self._queue, self._ledger = queue, ledger

    def charged(self) -> tuple[Job, ...]:
        """The jobs that were charged, and are not due."""
        jobs = self._queue.undue()
        if not jobs:
            return ()
        with self._ledger.record.reading() as transaction:
            return tuple(job for job in jobs if transaction.charge_named(job.filed) is not None)

    def masked(self, intended: Sequence[Intended], limit: Limit | None) -> tuple[Intended, ...]:
        """Questions as they were before the charges that are not due: an answer of those is not there yet."""
        jobs = self.charged()
        if not jobs:
            return tuple(intended)
        found = []
        for each in intended:
            asked = canonical(encode(each.query)), each.spend
            same = [job for job in jobs if (job.query, job.spend) == asked and _may_be_one(job.limit, limit)]
            hidden = bool(same) and not self._queue.answered(same[0])
            found.append(replace(each, fresh=True) if hidden else each)
        return tuple(found)

    def closed(self) -> bool:
        """Whether data were closed that a job reads which is not due: how it ended shows at its deadline."""
        jobs = self.charged()
        with self._ledger.record.reading() as transaction:
            editions = [transaction.edition(Dataset(name=job.dataset, edition=job.edition)) for job in jobs]
        return any(edition is not None and edition.closed for edition in editions)

    def without(self, snapshot: "Snapshot") -> "Snapshot":
        """The ledger as pages may show it now; a snapshot is taken first, so that nothing is younger than this."""
        keys = {job.filed for job in self._queue.undue()}
        hidden = {charge.number for key, charge in snapshot.keys.items() if key in keys}
        if not hidden:
            return snapshot
        charges = tuple(charge for charge in snapshot.trail.charges if charge.number not in hidden)
        return replace(
            snapshot,
            trail=replace(snapshot.trail, charges=charges),
            keys={key: charge for key, charge in snapshot.keys.items() if key not in keys},
            answers={number: answer for number, answer in snapshot.answers.items() if number not in hidden},
        )


def _may_be_one(first: Limit | None, second: Limit | None) -> bool:
    """Whether two limits can be the same one: none stands for the declared limit, which can also be written out."""
    return first == second or first is None or second is None
