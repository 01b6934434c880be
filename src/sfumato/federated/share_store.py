"""How a site's gate answers for a round: it reads as the tables' own store does, and gives what masks hide."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard, cast

import numpy as np

from sfumato.core.data_kind import DataStore, SomeStore
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, Law, Query, ReleasedQuery
from sfumato.core.stored import Stored
from sfumato.errors import Refused
from sfumato.federated.masks import lane
from sfumato.federated.messages import SumPhase, opened
from sfumato.federated.site_rounds import SiteRound, SiteRounds
from sfumato.federated.summed import SiteShare

__all__ = ["MaskedNumbers", "ShareStore"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class MaskedNumbers:
    """The exact numbers of a site, and the round that masks them. Sensitive: all but what :meth:`masked` gives."""

    exact: Sequence[int]
    state: SiteRound
    step: int

    def masked(self) -> tuple[int, ...]:
        """The numbers as they are sent: rounded to the unit, clamped, with noise, under masks."""
        terms, most = self.state.site.terms, self.state.site.terms.limit
        rounded = [max(-most, min(most, (value + self.step // 2) // self.step)) for value in self.exact]
        _, message = self.state.site.mask(self.state.answering, np.array(rounded, dtype=np.int64))
        payload = opened(terms, SumPhase.MASK, message, proven=True).payload
        return tuple(map(int, np.frombuffer(payload, dtype=lane(terms.bits))))


class ShareStore(DataStore[SiteShare]):
    """Shares of a site: declared, limited and read as questions about its tables are."""

    def __init__(self, tables: SomeStore, rounds: SiteRounds) -> None:
        self._tables, self._rounds = tables, rounds

    def answers(self, query: Query) -> TypeGuard[ReleasedQuery]:
        """Whether this is a share."""
        return type(query) is SiteShare

    def check(self, query: SiteShare) -> None:
        """Refuse a question with foreign parts, or about data that is not declared."""
        self._tables.check(query.of)

    def limit(self, query: SiteShare) -> Limit | None:
        """As for the question."""
        return self._tables.limit(query.of)

    def private(self, query: SiteShare) -> Sequence[Dataset]:
        """As for the question."""
        return self._tables.private(query.of)

    def derived(self, query: SiteShare) -> Sequence[Dataset]:
        """As for the question."""
        return self._tables.derived(query.of)

    def check_fit(self, query: SiteShare) -> None:
        """As for the question."""
        self._tables.check_fit(query.of)

    def stored(self, query: SiteShare) -> Mapping[Dataset, Stored]:
        """As for the question."""
        return self._tables.stored(query.of)

    def says_nothing(self, query: SiteShare, law: Law) -> str | None:
        """A share says nothing alone, by intention."""
        return None

    def read(self, query: SiteShare) -> MaskedNumbers:
        """Read the site's own rows, after the charge. Sensitive: the result."""
        state = self._rounds.open(query.round)
        if not state.answering:
            raise Refused("this site was asked for no numbers in this round; nothing was read.")
        return MaskedNumbers(exact=cast("Sequence[int]", self._tables.read(query.of)), state=state, step=query.step)
