"""How many edges run inside and between public blocks of nodes, and inside unions of blocks: all for one charge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from sfumato.core.budget import Budget
from sfumato.core.description import Description
from sfumato.core.exact import natural
from sfumato.core.finding import check_fit
from sfumato.core.limits import Limit
from sfumato.core.query import Dataset, DrawnMechanism, Law, Mechanism
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.statement import Statement
from sfumato.core.units import Edge, Node, Relation, Unit
from sfumato.errors import InvalidInput, Refused
from sfumato.graphs.adjacency import Adjacency
from sfumato.graphs.describe import by_sentence
from sfumato.graphs.moves import cap_of, check_unit
from sfumato.graphs.shape import Shape
from sfumato.inference.derived import Derived
from sfumato.inference.figure import Figure
from sfumato.inference.linear_combination import LinearCombination, Noise
from sfumato.mechanisms.matrix.declaration import MatrixNoise
from sfumato.mechanisms.matrix.rational import all_least_squares

__all__ = ["MOST_CELLS", "BlockEdges", "cells_of", "questions_of", "strategy_for"]

MOST_CELLS = 120
BITS = 8  # of a strategy: a finer one lowers no error that anyone sees
Row = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockEdges:
    """The number of edges in each of several parts of the graph, each a sum over pairs of public blocks.

    ``member`` is the block of each node; the edges between each two blocks are a cell, in the order of
    :func:`cells_of`. ``questions`` are the sums of cells that are asked for and ``asked`` their names. What is released
    is the ``strategy`` applied to the cells, in units of 2^−bits, with noise; the answers follow from it by least
    squares (the matrix mechanism), so that sums and parts agree.

    Guarantee: an edge is counted in one cell, so it moves the cells by l1 = 1; the mechanism states the rest.
    Assumes: nodes and blocks are public. Public: every field. Proof: docs/proofs/matrix.md
    """

    KIND: ClassVar[str] = "query.block_edges"
    VERSION: ClassVar[int] = 1
    ANSWERED_BY: ClassVar[tuple[str, ...]] = ("mechanism.matrix",)
    dataset: Dataset
    shape: Shape
    member: Row
    questions: tuple[Row, ...]
    asked: tuple[str, ...]
    strategy: tuple[Row, ...]
    bits: int

    def __post_init__(self) -> None:
        if self.shape.nodes is None:
            raise Refused("blocks are of public nodes, which are secret here; nothing was done.")
        found = set(self.member)
        if not found or len(self.member) != self.shape.nodes or found != set(range(len(found))):
            raise InvalidInput(f"each of {self.shape.nodes} nodes needs a block, 0, 1, …; nothing was done.")
        natural(self.bits, "bits", least=0, most=32)
        _check_cells(self.blocks, directed=self.shape.directed)
        if not self.questions or {len(row) for row in (*self.questions, *self.strategy)} != {self.cells}:
            raise InvalidInput(f"questions and strategy must be about {self.cells} pairs of blocks; nothing was done.")
        if len(self.asked) != len(self.questions) or len(set(self.asked)) != len(self.asked):
            raise InvalidInput("each question needs its own name; nothing was done.")
        _factors(self.strategy, self.questions)

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return max(self.member) + 1

    @property
    def cells(self) -> int:
        """How many pairs of blocks there are."""
        return len(cells_of(self.blocks, directed=self.shape.directed))

    @property
    def size(self) -> int:
        """One number for each row of the strategy."""
        return len(self.strategy)

    @property
    def measure(self) -> None:
        """None: the answers are computed from the numbers."""
        return

    @property
    def names(self) -> tuple[str, ...]:
        """The one column."""
        return ("edges",)

    def labels(self) -> Mapping[str, Sequence[str]]:
        """The name of each question."""
        return {"part": self.asked}

    def columns(self, release: Release) -> Mapping[str, Derived]:
        """The answers by least squares, each with its error distribution."""
        forms = tuple(self._forms(release.statement.law, release.statement.identifier, release.values))
        return {"edges": Figure(forms=forms, labels={"part": self.asked}, measure="edges", sources=(release,))}

    def expected(self, law: Law, confidence: Fraction, *, joint: bool, rows: int | None) -> Mapping[str, Fraction]:
        """The largest margin of any answer, which depends on the noise alone."""
        level = 1 - (1 - confidence) / len(self.questions) if joint else confidence
        by_shape = {form.shape: form for form in self._forms(law, "", (0,) * self.size)}
        return {"edges": max(form.margin(level) for form in by_shape.values())}

    check_answer = check_fit

    def describe(self, said: Statement) -> Description:
        """What a reader must know of an answer."""
        return by_sentence(self, said)

    def cap(self, unit: Unit) -> int | None:
        """None: an edge needs none."""
        return cap_of(unit)

    def sensitivity(self, unit: Unit, limit: Limit | None) -> Sensitivity:
        """An edge moves one cell by 1; one that is replaced, perhaps two.

        >>> from sfumato.core.units import edge
        >>> asked = BlockEdges(
        ...     dataset=Dataset(name="wards", edition="1"), shape=Shape(nodes=3), member=(0, 0, 1),
        ...     questions=((1, 1, 1),), asked=("all",), strategy=((1, 1, 1),), bits=0,
        ... )
        >>> asked.sensitivity(edge(relation="replace"), None).l1
        L1(value=Fraction(2, 1))
        """
        check_unit(unit, self.shape)
        if isinstance(unit, Node):
            raise Refused(
                "blocks are of named nodes, and a node is what is protected; nothing was done. Protect edges, or ask "
                "for edges() of a graph of each block."
            )
        many = 2 if isinstance(unit, Edge) and unit.relation is Relation.REPLACE else 1
        return Sensitivity.of(l0=min(many, self.cells), l1=many, l2_squared=many, linf=1)

    def mechanism(self, moved: Sensitivity, unit: Unit, spend: Budget) -> DrawnMechanism:
        """The strategy with the least noise that the spend allows."""
        return MatrixNoise.calibrated(
            strategy=self.strategy,
            bits=self.bits,
            questions=self.questions,
            moved=moved,
            epsilon=spend.epsilon,
            delta=spend.delta,
        )

    def misfit(self, mechanism: Mechanism, unit: Unit, values: Sequence[int]) -> str | None:
        """What is wrong with a mechanism that is said to answer this."""
        said = (self.strategy, self.bits, self.questions)
        if not isinstance(mechanism, MatrixNoise) or (mechanism.strategy, mechanism.bits, mechanism.questions) != said:
            return "strategy and questions of the mechanism must be those of the query"
        return None

    def exact(self, graph: Adjacency) -> list[int]:
        """The number of edges of each cell. Sensitive."""
        import numpy as np

        member, blocks = np.asarray(self.member, dtype=np.int64), self.blocks
        head, tail = (member[ends] for ends in graph.pairs())
        if not graph.directed:
            head, tail = np.minimum(head, tail), np.maximum(head, tail)
        found = np.bincount(head * blocks + tail, minlength=blocks * blocks)
        exact: list[int] = [int(found[a * blocks + b]) for a, b in cells_of(blocks, directed=self.shape.directed)]
        return exact

    def _forms(self, law: Law, identifier: str, values: Sequence[int]) -> list[LinearCombination]:
        noises = [Noise(identifier, place, law) for place in range(self.size)]
        forms = []
        for row in _factors(self.strategy, self.questions):
            value = sum((r * y for r, y in zip(row, values, strict=True)), Fraction(0))
            forms.append(LinearCombination(value, {noise: r for noise, r in zip(noises, row, strict=True) if r}))
        return forms


def cells_of(blocks: int, *, directed: bool) -> list[tuple[int, int]]:
    """The pairs of blocks: (0, 0), (0, 1), …; in both directions where edges point.

    >>> cells_of(2, directed=False)
    [(0, 0), (0, 1), (1, 1)]
    """
    return [(one, other) for one in range(blocks) for other in range(0 if directed else one, blocks)]


def questions_of(
    blocks: Sequence[str], subgraphs: Mapping[str, Sequence[str]] | None, *, directed: bool
) -> tuple[tuple[str, ...], tuple[Row, ...]]:
    """The names and the coefficients of what is asked: every pair of blocks, and more.

    ``subgraphs`` names unions of blocks, whose inner edges are counted. Without it each block's edges to anywhere are,
    and all edges.

    >>> questions_of(["A", "B"], {"both": ["A", "B"]}, directed=False)
    (('A – A', 'A – B', 'B – B', 'both'), ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)))
    """
    _check_cells(len(blocks), directed=directed)
    cells = cells_of(len(blocks), directed=directed)
    arrow = " → " if directed else " – "
    names = [f"{blocks[one]}{arrow}{blocks[other]}" for one, other in cells]
    rows = [tuple(int(place == cell) for cell in range(len(cells))) for place in range(len(cells))]
    if subgraphs is None:
        for place, block in enumerate(blocks):
            names.append(f"{block} to all")
            rows.append(tuple(int(place in cell) for cell in cells))
        names.append("all")
        rows.append((1,) * len(cells))
    else:
        for name, parts in subgraphs.items():
            unknown = [part for part in parts if part not in blocks]
            if unknown or not parts:
                raise InvalidInput(
                    f"the part {name!r} must name blocks, each of them one of {', '.join(map(str, blocks))}; nothing "
                    "was done."
                )
            held = {blocks.index(part) for part in parts}
            names.append(name)
            rows.append(tuple(int(one in held and other in held) for one, other in cells))
    return tuple(names), tuple(rows)


def strategy_for(questions: Sequence[Row], *, gaussian: bool) -> tuple[tuple[Row, ...], int]:
    """A strategy of little error for these questions, in units of 2^−bits; never worse than one noise for each cell.

    Needs NumPy and SciPy, and no data.
    """
    from sfumato.mechanisms.matrix import Matrix, given

    asked = given(questions)
    found = Matrix.optimal(asked, bits=BITS) if gaussian else Matrix.pure(asked, bits=BITS)
    return tuple(tuple(row) for row in found.strategy.tolist()), found.bits


def _check_cells(blocks: int, *, directed: bool) -> None:
    cells = blocks**2 if directed else blocks * (blocks + 1) // 2
    if cells > MOST_CELLS:
        raise InvalidInput(
            f"{blocks} blocks have {cells:,} pairs, more than {MOST_CELLS}; nothing was done. Join some blocks."
        )


@lru_cache(maxsize=8)
def _factors(strategy: tuple[Row, ...], questions: tuple[Row, ...]) -> list[tuple[Fraction, ...]]:
    """How each answer is computed from the released numbers."""
    return all_least_squares(strategy, questions)
