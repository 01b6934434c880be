"""The page docs/claims.md, and the verdict of ``make claims``."""

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum

from tests.claims.catalogue import OWNERS, Catalogue, Claim

__all__ = ["Result", "Tests", "page", "problems", "result"]

Tests = Mapping[str, Mapping[str, str]]
"""For each number, how each of its tests ended: what ``--claims-report`` writes."""

INTRODUCTION = """\
# Claims

Each row is something that Sfumato claims, with the check that has to show it. A test says which claims it
checks (`@pytest.mark.claim("S2-06")`), and `make claims` runs those tests and writes this page from
`claims/catalogue.toml` and their results.

A claim *passes* when it has tests and every one of them passed. It *fails* when one failed. It is *open* when
it has no test, or when one of its tests was skipped, since a skipped test shows nothing.

The verdict says how the claim stands to what is usually stated: *true* as it stands; true *assuming* what the
statement names; *corrected*, because the usual statement is wrong or loose; or a *policy*, checked by
behaviour.
"""


class Result(StrEnum):
    """How a claim stands after its tests ran."""

    PASSES = "passes"
    FAILS = "fails"
    OPEN = "open"


def result(outcomes: Mapping[str, str]) -> Result:
    """The result of a claim, given how each of its tests ended."""
    if "failed" in outcomes.values():
        return Result.FAILS
    return Result.PASSES if set(outcomes.values()) == {"passed"} else Result.OPEN


def problems(catalogue: Catalogue, tests: Tests) -> list[str]:
    """What makes ``make claims`` fail: claims that fail, and open ones of owners who are finished."""
    found = []
    for claim in catalogue.claims.values():
        match result(tests.get(claim.number, {})):
            case Result.FAILS:
                found.append(f"{claim.number} ({claim.owner}) fails")
            case Result.OPEN if claim.owner in catalogue.finished:
                found.append(f"{claim.number} is open, but {claim.owner} is listed as finished")
    return found


def page(catalogue: Catalogue, tests: Tests) -> str:
    """The whole page as Markdown."""
    return "\n".join([INTRODUCTION, *_counts(catalogue, tests), *_areas(catalogue, tests)])


def _counts(catalogue: Catalogue, tests: Tests) -> Iterator[str]:
    counts = Counter((claim.owner, result(tests.get(claim.number, {}))) for claim in catalogue.claims.values())
    yield "## Counts\n"
    yield "| owner | passing | failing | still open | in all | finished |"
    yield "|---|---:|---:|---:|---:|---|"
    for owner in OWNERS:
        row = [counts[owner, each] for each in Result]
        yield _row(owner, *row, sum(row), "yes" if owner in catalogue.finished else "no")
    totals = [sum(counts[owner, each] for owner in OWNERS) for each in Result]
    yield _row("all", *totals, sum(totals), "") + "\n"


def _areas(catalogue: Catalogue, tests: Tests) -> Iterator[str]:
    for area in dict.fromkeys(claim.area for claim in catalogue.claims.values()):
        yield f"## {area}\n"
        yield "| number | statement | verdict | owner | tests | result |"
        yield "|---|---|---|---|---|---|"
        for claim in catalogue.claims.values():
            if claim.area == area:
                yield _claim_row(claim, tests.get(claim.number, {}))
        yield ""


def _claim_row(claim: Claim, outcomes: Mapping[str, str]) -> str:
    text = f"{_escaped(claim.statement)}<br>*Check:* {_escaped(claim.check)}"
    shown = sorted({f"`{_short(test)}`" for test in outcomes})
    return _row(claim.number, text, claim.verdict, claim.owner, "<br>".join(shown), result(outcomes))


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _short(test: str) -> str:
    """``tests/a/test_b.py::test_c[d]`` as ``test_b.py::test_c``."""
    path, _, name = test.partition("::")
    return f"{path.rpartition('/')[2]}::{name.partition('[')[0]}"


def _escaped(text: str) -> str:
    for mark in "\\|*_":
        text = text.replace(mark, f"\\{mark}")
    return text.replace("<", "&lt;")
