"""Programs that a vault runs over blocks of persons, and how their questions are answered."""

import hashlib
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, TypeGuard

from sfumato.boxes.block_answers import BlockAnswer, BlockMean, BlockQuantiles, BlockTrimmedMean, blocks_moved
from sfumato.boxes.sealed_program import SealedProgram
from sfumato.core.data_kind import DataStore
from sfumato.core.exact import Exact, decimal_up, rational
from sfumato.core.query import Dataset, Law, Query, ReleasedQuery
from sfumato.core.question import Question
from sfumato.core.stored import Stored
from sfumato.core.units import Family, User
from sfumato.engines.expressions import Type
from sfumato.errors import InvalidInput, Refused
from sfumato.gate.setting import Setting
from sfumato.tables.held_rows import HeldRows, held_rows
from sfumato.tables.queries.count import Count

if TYPE_CHECKING:
    from sfumato.boxes.box import BoxLimits

__all__ = ["BoxStore"]

BlockQuery = BlockMean | BlockQuantiles
Bounds = tuple[Exact, Exact] | Mapping[str, tuple[Exact, Exact]]
CONFIDENCE = Fraction(19, 20)
NAME = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """A program that may run: its text and the limits of its boxes."""

    code: str
    limits: "BoxLimits"


class BoxStore(DataStore[BlockQuery]):
    """Programs of researchers, by what certificates say of them, and the tables that they run on."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._secret = partial(setting.secret, "blocks of persons")
        self._tables: dict[Dataset, HeldRows] = {}
        self._programs: dict[SealedProgram, _Ready] = {}
        self._floor = "B"

    def require_boxes(self, level: str) -> None:
        """Run programs in boxes of this level or a stronger one only: "A", gVisor, or "B", bubblewrap (as it is).

        Whoever holds the vault says it, once, before others ask; it only rises.

        >>> import sfumato as sf
        >>> vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=1), name="trial")
        >>> vault.require_boxes("A")
        """
        if level not in ("A", "B"):
            raise InvalidInput("the level of boxes is 'A' or 'B'; nothing was done.")
        self._floor = min(self._floor, level)

    def block_mean(
        self,
        table: object,
        code: str,
        *,
        bounds: Bounds,
        blocks: int = 100,
        columns: Sequence[str] | None = None,
        missing: Exact | Mapping[str, Exact] | None = None,
        limits: "BoxLimits | None" = None,
    ) -> Question:
        """Run a program on each of some blocks of persons, and ask for the mean of what it says.

        ``code`` is the text of a program that defines ``analyse(rows)``; ``rows`` is a data frame of pandas with the
        rows of one block, or a table of pyarrow without pandas among the libraries of ``limits``. It gives one
        number, with ``bounds`` as a pair, or one for each name of ``bounds`` in their order. Numbers are held to their
        bounds; where the program fails, gives anything else or takes too long, ``missing`` counts, by default the
        middle of the range. ``columns`` are those that it is given, by default all.

        Before anything is charged, ``preview(epsilon=…)`` says the error: with 100 blocks and ε = 1 the standard
        deviation is 1.4% of the range under add/remove, and 2.8% under replace. More blocks have less noise, and fewer
        persons in each.

        Guarantee: one ordinary release, charged before a row is read. One person is in one block, whatever the
        program does. Assumes: boxes keep their word, but for what ``program.not_hidden`` of the question says.
        Proof: docs/proofs/blocks.md

        >>> import pyarrow as pa, sfumato as sf
        >>> vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=1), name="trial")
        >>> stays = vault.table(pa.table({"id": [1, 2], "days": [3, 5]}), name="stays", version="1")
        >>> vault.block_mean(stays, "def analyse(rows): return rows['days'].mean()", bounds=(0, 20))  # doctest: +SKIP
        Question: answer of stays. Nothing was read or spent. Call preview(epsilon=…) for the error to expect, …
        """
        held, dataset = self._held(table)
        query = BlockMean(
            dataset=dataset,
            program=self._sealed(code, limits),
            given=_given(held, columns),
            answers=_answers(bounds, missing),
            blocks=blocks,
        )
        return Question(query=query, gate=self._setting.gate)

    declare = block_mean

    def block_quantiles(
        self,
        table: object,
        code: str,
        *,
        bounds: Bounds,
        levels: Sequence[Exact] = (Fraction(1, 2),),
        blocks: int = 100,
        columns: Sequence[str] | None = None,
        missing: Exact | Mapping[str, Exact] | None = None,
        limits: "BoxLimits | None" = None,
    ) -> Question:
        """Run a program on each of some blocks of persons, and ask for quantiles of what it says: the median.

        A median is moved little by blocks where the program fails or is far off, and needs no narrow bounds. The rest
        is as for :meth:`block_mean`.

        Guarantee and assumptions: as for :meth:`block_mean`. Proof: docs/proofs/blocks.md
        """
        held, dataset = self._held(table)
        query = BlockQuantiles(
            dataset=dataset,
            program=self._sealed(code, limits),
            given=_given(held, columns),
            answers=_answers(bounds, missing),
            blocks=blocks,
            levels=tuple(rational(level, "level") for level in levels),
        )
        return Question(query=query, gate=self._setting.gate)

    def block_trimmed_mean(
        self,
        table: object,
        code: str,
        *,
        bounds: Bounds,
        trim: Exact = Fraction(1, 10),
        blocks: int = 100,
        columns: Sequence[str] | None = None,
        missing: Exact | Mapping[str, Exact] | None = None,
        limits: "BoxLimits | None" = None,
    ) -> Question:
        """Run a program on each of some blocks of persons, and ask for the mean without the lowest and highest blocks.

        At each end ``trim`` of the blocks, rounded up, count for nothing, for each answer by itself: so blocks that are
        far off move the mean no further than others. The noise is wider than that of :meth:`block_mean` by
        1 / (1 - 2 trim), and is stated by ``preview`` in the same way. The rest is as for :meth:`block_mean`.

        Guarantee and assumptions: as for :meth:`block_mean`. Proof: docs/proofs/blocks.md
        """
        share = rational(trim, "trim")
        if not 0 < share < Fraction(1, 2):
            raise InvalidInput("trim is a share of the blocks above 0 and below 1/2; nothing was done.")
        held, dataset = self._held(table)
        query = BlockTrimmedMean(
            dataset=dataset,
            program=self._sealed(code, limits),
            given=_given(held, columns),
            answers=_answers(bounds, missing),
            blocks=blocks,
            dropped=math.ceil(share * blocks),
        )
        return Question(query=query, gate=self._setting.gate)

    def answers(self, query: Query) -> TypeGuard[ReleasedQuery]:
        """Whether this is a question about blocks."""
        return type(query) in (BlockMean, BlockTrimmedMean, BlockQuantiles)

    def check(self, query: BlockQuery) -> None:
        """Refuse a program or data that this vault does not have: what a certificate says of them would not be true."""
        types = {type(query.program), *map(type, query.answers)}
        if types != {SealedProgram, BlockAnswer} or type(query.dataset) is not Dataset:
            raise InvalidInput("this question was not made by a vault; nothing was read and nothing was spent.")
        if query.program not in self._programs or query.dataset not in self._tables:
            raise InvalidInput(
                "this vault has no such program or table; nothing was read and nothing was spent. Ask with "
                "vault.block_mean(…), vault.block_trimmed_mean(…) or vault.block_quantiles(…)."
            )

    def derived(self, query: BlockQuery) -> Sequence[Dataset]:
        """The table, where it was declared as derived."""
        return [query.dataset] if self._tables[query.dataset].source.derived else []

    def check_fit(self, query: BlockQuery) -> None:
        """Refuse columns that are not there, a box below the level that is required, and one that is not tight."""
        held = self._tables[query.dataset]
        held.store.check_fit(Count(dataset=query.dataset))  # the column of persons
        if _given(held, query.given) != query.given:
            raise InvalidInput("these columns are not those of the table; nothing was read and nothing was spent.")
        if query.program.level > self._floor:
            raise Refused(
                f"boxes of level {query.program.level} run on this host, and level {self._floor} is required; nothing "
                "was read and nothing was spent. Run on a host with gVisor, or ask the steward."
            )
        from sfumato.boxes.trial import check_starts, tested_level

        level = tested_level()
        if level.value != query.program.level:
            raise Refused("boxes of this host have another level by now; nothing was read and nothing was spent.")
        check_starts(self._programs[query.program].limits, level)

    def stored(self, query: BlockQuery) -> Mapping[Dataset, Stored]:
        """What the rows of the table are known by."""
        return {query.dataset: self._tables[query.dataset].source.stored}

    def says_nothing(self, query: BlockQuery, law: Law) -> str | None:
        """Where the noise is wider than the range."""
        if isinstance(query, BlockQuantiles):
            return None
        margins = query.expected(law, CONFIDENCE, joint=False, rows=None)
        for answer in query.answers:
            if margins[answer.name] >= answer.high - answer.low:
                return (
                    f"{answer.name!r} would say nothing: its 95% margin would be ±{decimal_up(margins[answer.name])}, "
                    "as wide as its bounds. Spend more ε, or ask for more blocks"
                )
        return None

    def read(self, query: BlockQuery) -> object:
        """Run the program on every block. Sensitive: the result is exact."""
        from sfumato.boxes.box import Box
        from sfumato.boxes.levels import BoxLevel
        from sfumato.boxes.person_blocks import blocks_of
        from sfumato.boxes.slots import answers_of_blocks
        from sfumato.boxes.trial import check_starts
        from sfumato.engines.person_blocks import rows_by_person

        held, ready = self._tables[query.dataset], self._programs[query.program]
        assert isinstance(held.unit, User | Family)  # noqa: S101 - the sensitivity refuses others
        rows, hashes = rows_by_person(held.source, query.given, person=held.unit.column, secret=self._secret().hex())
        blocks = blocks_of(rows, hashes, query.blocks)
        limits = replace(ready.limits, numbers=len(query.answers))  # each question has its own
        level = BoxLevel(query.program.level)
        box = Box(limits=limits, level=level, starts_in=check_starts(ready.limits, level))  # known since the check
        return exact_numbers(query, answers_of_blocks(box, ready.code, blocks))

    def _held(self, table: object) -> tuple[HeldRows, Dataset]:
        held = held_rows(table)
        if held is None or held.notary is not self._setting.notary:
            raise InvalidInput(
                "a program runs on a table of this vault as it was declared, without where, join or group_by; nothing "
                "was done. Choose rows in the program."
            )
        blocks_moved(held.unit)
        dataset: Dataset = table.dataset  # type: ignore[attr-defined]  # held_rows takes tables alone
        self._tables[dataset] = held
        return held, dataset

    def _sealed(self, code: str, limits: "BoxLimits | None") -> SealedProgram:
        """What a certificate will say of a program; its text is kept for the run."""
        from sfumato.boxes.box import BoxLimits, encoded
        from sfumato.boxes.control_groups import control_groups_hold
        from sfumato.boxes.levels import enclosure
        from sfumato.boxes.packages import packages_of
        from sfumato.boxes.trial import tested_level

        chosen = BoxLimits() if limits is None else limits
        level = tested_level()  # refused where this host can shut no box
        sealed = SealedProgram(
            code=hashlib.sha256(encoded(code)).hexdigest(),
            level=level.value,
            seconds=chosen.seconds,
            memory=chosen.memory,
            interpreter=f"{platform.python_implementation()} {platform.python_version()}",
            imported=chosen.libraries,
            libraries=tuple(map(str, packages_of(chosen.libraries))),
            not_hidden=enclosure(level).NOT_HIDDEN,
            control_groups=control_groups_hold(),
        )
        self._programs[sealed] = _Ready(code=code, limits=chosen)
        return sealed


def exact_numbers(query: BlockQuery, said: Sequence[tuple[float, ...] | None]) -> object:
    """What the mechanism draws from: sums of steps, or for each answer the steps that occur and how often. Sensitive.

    Guarantee: each block counts once, with one step from 0 to the last for each answer, whatever it said.
    """
    nothing = (None,) * len(query.answers)
    places = [
        [answer.place(number) for answer, number in zip(query.answers, each or nothing, strict=True)] for each in said
    ]
    columns = list(zip(*places, strict=True))
    if isinstance(query, BlockMean):
        ends = query.dropped if isinstance(query, BlockTrimmedMean) else 0
        return [sum(sorted(column)[ends : len(column) - ends]) for column in columns]
    import numpy as np

    return [np.unique(np.array(column, dtype=np.int64), return_counts=True) for column in columns]


def _answers(bounds: Bounds, missing: Exact | Mapping[str, Exact] | None) -> tuple[BlockAnswer, ...]:
    named = bounds if isinstance(bounds, Mapping) else {NAME: bounds}
    counted = missing if isinstance(missing, Mapping) else dict.fromkeys(named, missing)
    if not set(counted) <= set(named):
        raise InvalidInput("missing= names an answer that has no bounds; nothing was done.")
    made = []
    for name, pair in named.items():
        low, high = (rational(bound, "a bound") for bound in pair)
        given = counted.get(name)
        middle = (low + high) / 2 if given is None else rational(given, "missing")
        made.append(BlockAnswer(name=name, low=low, high=high, missing=middle))
    return tuple(made)


def _given(held: HeldRows, columns: Sequence[str] | None) -> tuple[str, ...]:
    """The columns that a program sees; by default all whose values are plain."""
    types = held.source.columns()
    if isinstance(columns, str):
        raise InvalidInput("columns are a list of names; nothing was done.")
    chosen = tuple(types if columns is None else columns)
    if columns is None:
        return tuple(name for name in chosen if types[name] is not Type.OTHER)
    for name in chosen:
        if name not in types or types[name] is Type.OTHER:
            raise InvalidInput(f"the table has no column {name!r} of plain values; nothing was done.")
    return chosen
