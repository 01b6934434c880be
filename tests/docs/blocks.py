"""The tables of programs over blocks, from results and tests; ``python -m tests.docs.blocks`` writes the page."""

import re

from tests.boxes.hostile import HOSTILE
from tests.docs.costs import measured
from tests.docs.training import DOCS

PAGE = DOCS / "how-to" / "run-code-on-blocks.md"
TIMES = "times by outcome"
LEVELS = ("A", "B")


def analyses() -> str:
    """Stated and measured error at ε = 1, beside the normal calls."""
    head = ("analysis", "range", "all rows", "mean of blocks", "noise: stated", "measured", "error", "normal calls")
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for name, found in measured("blocks").items():
        if not name.startswith(TIMES):
            low, high = found["range"]
            numbers = ("all_rows", "mean_of_blocks", "stated_deviation", "measured_deviation", "error_of_blocks")
            shown = [f"{found[each]:.4f}" for each in (*numbers, "error_of_normal_calls")]
            lines.append(f"| {name} | {low:g} to {high:g} | {' | '.join(shown)} |")
    return "\n".join(lines)


def times() -> str:
    """How long runs take whatever their programs do."""
    found = measured("blocks")
    each_level = {level: found[f"{TIMES} {level}"] for level in LEVELS}
    one = each_level[LEVELS[0]]
    lines = [f"| {one['blocks']} blocks of a program that | seconds at A | at B |", "|---|---|---|"]
    for name in one["seconds"]:
        shown = [f"{taken['seconds'][name]:.3f}" for taken in each_level.values()]
        lines += [f"| {name} | {' | '.join(shown)} |"]
    analysed = [each for name, each in found.items() if not name.startswith(TIMES)]
    apart = " and ".join(f"{taken['apart_ms']:.1f} ms at {level}" for level, taken in each_level.items())
    beyond = max(each["beyond_slots_seconds"] for each in analysed)
    lines += [
        "",
        f"They are {apart} apart at most. {analysed[0]['blocks']} blocks at level {analysed[0]['level']} took "
        f"{beyond:.1f} seconds beyond the sum of their slots.",
    ]
    return "\n".join(lines)


def hostile() -> str:
    """Every program that was tried."""
    names = sorted(HOSTILE)
    lines = ["| looks for | level A | level B |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {name} | kept in | kept in |" for name in names)])


TABLES = {"analyses": analyses, "times": times, "hostile": hostile}


def written(page: str) -> str:
    """The page with its tables as they are now."""
    for name, table in TABLES.items():
        page = re.sub(
            rf"(<!-- table: {name} -->\n\n).*?(\n\n<!-- end -->)",
            lambda found, table=table: found[1] + table() + found[2],  # type: ignore[misc]
            page,
            flags=re.DOTALL,
        )
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
