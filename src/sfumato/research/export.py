"""The one way out of a research environment: certificates of releases that were charged, noised and signed here."""

from collections.abc import Callable

from sfumato.boxes.block_answers import BlockMean, BlockQuantiles, BlockTrimmedMean
from sfumato.core.query import Query
from sfumato.core.release import Release
from sfumato.errors import Refused, SfumatoError
from sfumato.learning.training import Training
from sfumato.reports.declarations import DECLARATIONS
from sfumato.reports.stored import stored_release
from sfumato.reports.verify import parsed, verify
from sfumato.tables.persons import private_datasets
from sfumato.tables.question_parts import TABLE_QUERIES

__all__ = ["ReleaseExport"]


class ReleaseExport:
    """Lets certificates out that verify, are signed with the key of the environment and are about approved data.

    Guarantee: whatever leaves states a loss that was charged, and its numbers are those that were drawn for it. Rows,
    tables, figures, texts and certificates of other makers are refused, without a word about what is in them. Assumes:
    ``key`` signs nothing but what a vault released.
    """

    def __init__(self, key: str, datasets: frozenset[str], check: Callable[[Query], None]) -> None:
        self._key, self._datasets, self._check = key, datasets, check

    def certificate(self, data: object) -> str:
        """Let the text of a certificate out."""
        if type(data) is not str:
            raise _blocked(data)
        try:
            document = parsed(data)
            if not verify(document, key=self._key).authenticated:
                raise _blocked(data)
            query = DECLARATIONS.decode(document["statement"], "statement").query
        except (SfumatoError, RecursionError, KeyError):
            raise _blocked(data) from None
        if type(query) not in (*TABLE_QUERIES, BlockMean, BlockTrimmedMean, BlockQuantiles, Training):
            raise _blocked(data)
        about = {query.dataset.name, *(dataset.name for dataset in private_datasets(getattr(query, "joins", ())))}
        if not about <= self._datasets:
            raise _blocked(data)
        self._check(query)
        return data

    def release(self, data: object) -> Release:
        """The same, as a release that can be read."""
        return stored_release(self.certificate(data))


def _blocked(what: object) -> Refused:
    """The refusal to let something out; it does not say what is in it."""
    return Refused(
        f"{type(what).__name__} does not leave the research environment: only certificates of releases that were "
        "charged, noised and signed here do. Nothing was handed out."
    )
