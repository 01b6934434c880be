"""Which cases ``make test`` runs of a test that has many: ``@pytest.mark.few(3)`` keeps three, and the others are long.

The first case is kept. Then, one after the other, the one with the most values of parameters that none of those kept
has, and among equals the one that stands furthest from them. The choice depends on the list of the cases alone, not on
what is asked for on the command line; ``few(2)`` is a part of ``few(3)``. A case that is long by a mark of its own is
not chosen from. A mark beside the test counts before one for its file.
"""

from collections.abc import Generator, Sequence
from collections.abc import Set as AbstractSet

import pytest

MARK = "few"
LONG = "long"


def chosen(cases: Sequence[AbstractSet[object]], number: int) -> list[int]:
    """The places of those cases that are kept, in the order in which they are chosen; a case is its values."""
    kept: list[int] = []
    seen: set[object] = set()
    left = list(range(len(cases)))
    while left and len(kept) < number:
        best = max(left, key=lambda place: (len(cases[place] - seen) if kept else 0, _apart(place, kept), -place))
        kept.append(best)
        seen |= cases[best]
        left.remove(best)
    return kept


def _apart(place: int, kept: Sequence[int]) -> int:
    return min((abs(place - other) for other in kept), default=0)


def problem(item: pytest.Item) -> str | None:
    """What is wrong with a mark: it takes one whole number of at least 1."""
    for mark in item.iter_markers(MARK):
        match mark.args, mark.kwargs:
            case (int(number),), {} if number >= 1 and not isinstance(number, bool):
                pass
            case _:
                return f"{item.nodeid}: few takes one whole number, of at least 1"
    return None


def thin(items: Sequence[pytest.Item]) -> None:
    """Mark as long what the marks among these cases, all those of some functions, leave out."""
    functions: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker(MARK) and not item.get_closest_marker(LONG):
            functions.setdefault(item.originalname, []).append(item)
    for cases in functions.values():
        number: int = min(mark.args[0] for item in cases if (mark := item.get_closest_marker(MARK)))
        kept = set(chosen([_values(item) for item in cases], number))
        for place, item in enumerate(cases):
            if place not in kept:
                item.add_marker(LONG)


def _values(item: pytest.Function) -> frozenset[object]:
    # Each list of parameters has its word in the name of a case. Words, unlike values, are the same in every process.
    return frozenset(enumerate(item.callspec._idlist)) if hasattr(item, "callspec") else frozenset()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    # Here every case of a function is seen, whatever the command line asks for.
    items = [item for item in report.result or () if isinstance(item, pytest.Item)]
    if wrong := [found for item in items if (found := problem(item))]:
        report.outcome, report.longrepr, report.result = "failed", "\n".join(wrong), []
    else:
        thin(items)
    return report
