"""A program over blocks of persons, as a project hands it in: what is asked stands in its first comment.

So the text that is signed and approved says all of it: the table, the columns, the bounds, the blocks and the cost.
"""

import re
import tomllib
from dataclasses import dataclass
from fractions import Fraction

from sfumato.boxes.box import BoxLimits
from sfumato.boxes.trial import tested_level
from sfumato.core.budget import Budget
from sfumato.core.exact import Exact, natural, positive
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.research.served import ServedProject

__all__ = ["BlocksJob", "BlocksWanted", "wanted_of"]

_HEAD = re.compile(r"\A# /// blocks\n((?:#[^\n]*\n)+?)# ///\n")
_NEEDED = ("table", "columns", "bounds", "epsilon")
_KNOWN = (*_NEEDED, "delta", "blocks", "median", "seconds", "memory", "libraries")


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksWanted:
    """What a program over blocks asks for. Public: every field."""

    table: str
    columns: tuple[str, ...]
    bounds: tuple[Exact, Exact]
    spend: Budget
    blocks: int
    median: bool
    limits: BoxLimits


def wanted_of(code: str) -> BlocksWanted:
    """Read the first comment of a program over blocks, which is TOML between ``# /// blocks`` and ``# ///``.

    >>> said = ["/// blocks", 'table = "stays"', 'columns = ["days"]', "bounds = [0, 30]", "epsilon = 1", "///"]
    >>> wanted_of("".join(f"# {line}\\n" for line in said)).blocks
    100
    """
    found = _HEAD.match(code)
    if found is None:
        raise NotDeclared("a program over blocks begins with a comment, # /// blocks to # ///; nothing was run.")
    try:
        lines = "\n".join(line.removeprefix("#").removeprefix(" ") for line in found[1].splitlines())
        said = tomllib.loads(lines, parse_float=Fraction)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError):
        raise InvalidInput("the first comment of the program is not TOML; nothing was run.") from None
    missing = [name for name in _NEEDED if name not in said]
    if missing or not set(said) <= set(_KNOWN):
        raise InvalidInput(f"the first comment needs {', '.join(_NEEDED)}, and may say {', '.join(_KNOWN[4:])}.")
    columns, bounds, median = said["columns"], said["bounds"], said.get("median", False)
    libraries = said.get("libraries", ["pandas"])
    shaped = _names(columns) and bool(columns) and _names(libraries)
    if not shaped or not isinstance(bounds, list) or len(bounds) != 2 or type(median) is not bool:
        raise InvalidInput(
            "columns and libraries are lists of names, bounds two numbers, median true or false; nothing was run."
        )
    return BlocksWanted(
        table=str(said["table"]),
        columns=tuple(columns),
        bounds=(bounds[0], bounds[1]),
        spend=Budget.asked(epsilon=said["epsilon"], delta=said.get("delta", 0)),
        blocks=natural(said.get("blocks", 100), "blocks", least=2),
        median=median,
        limits=BoxLimits(
            seconds=positive(said.get("seconds", 2), "seconds"),
            memory=said.get("memory", 2048),
            libraries=tuple(libraries),
        ),
    )


def _names(given: object) -> bool:
    return isinstance(given, list) and all(isinstance(name, str) for name in given)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlocksJob:
    """Runs ``analyse(rows)`` over blocks of persons, each in a box, and releases the mean or the median of its numbers.

    Guarantee: that of ``vault.block_mean``; the program is given columns that the project was approved for alone.
    """

    @property
    def level(self) -> str:
        """How it is shut off: at the strongest level that keeps a hostile program in on this host."""
        return tested_level().value

    def run(self, code: str, project: ServedProject) -> bool:
        """Run a program over all its blocks, as one release."""
        wanted = wanted_of(code)
        table = project.handle(wanted.table, wanted.columns)
        ask = project.vault.block_quantiles if wanted.median else project.vault.block_mean
        question = ask(
            table,
            code,
            bounds=wanted.bounds,
            blocks=wanted.blocks,
            columns=wanted.columns,
            limits=wanted.limits,
        )
        project.hand_out(question.release(epsilon=wanted.spend.epsilon, delta=wanted.spend.delta))
        return True
