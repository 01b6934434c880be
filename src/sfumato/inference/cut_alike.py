"""Whether figures can be set against each other: a limit must not have cut one more than the other.

Six visits of a person in two regions are six rows by region and three in all, if at most three count in a group: a
region over everyone is then near 1 where the truth is near a half, and no interval of noise holds it.
"""

from collections.abc import Sequence
from itertools import combinations

from sfumato.core.cut import LimitCut, cut_of
from sfumato.core.release import Release
from sfumato.errors import Refused

__all__ = ["check_cut_alike"]


def check_cut_alike(releases: Sequence[Release], what: str) -> None:
    """Refuse releases that their limits can cut differently, since ``what`` is made of them would be off by that.

    Fine are: releases from which no limit can cut (single rows are protected, or persons are counted in no more groups
    than the limit allows); the same rows in the same groups under the same limit; and the same question about other
    data. Everything that decides this is declared, so the refusal says nothing about the data.
    """
    known = {release.statement.identifier: release for release in releases}
    for one, other in combinations(known.values(), 2):
        left, right = _cut(one), _cut(other)
        if not _alike(left, right):
            raise Refused(
                f"the limits can cut these releases differently, and {what} would be off by that, outside of its "
                f"interval: one counts {_words(one)}, the other {_words(other)}. Nothing was computed. Ask for both in "
                "one question, such as agg(part=sf.count(...), all=sf.count()) or sf.proportion(...); ask both with "
                "the same condition, groups and limit; or count persons, with sf.persons()."
            )


def _alike(left: LimitCut, right: LimitCut) -> bool:
    if not (left.cuts or right.cuts):
        return True
    return left.rows == right.rows and (left.most == right.most or not (left.cuts and right.cuts))


def _cut(release: Release) -> LimitCut:
    said = release.statement
    return cut_of(said.query, said.unit, said.limit)


def _words(release: Release) -> str:
    groups = " × ".join(release.statement.query.labels())
    return f"{release.limit_words() or 'all rows'}{f', by {groups}' if groups else ', in all'}"
