"""Hierarchies: tables of the same counts at several levels, made to add up, with less error than each had alone.

Region > county > ZIP: each level was released with noise of its own, so the counties of a region do not add up to it.
Least squares on the tree weighs every number by its variance. Proof: docs/proofs/adjusting.md
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from sfumato.core.release import Release
from sfumato.errors import InvalidInput
from sfumato.inference.cut_alike import check_cut_alike
from sfumato.inference.derived import Label, joined
from sfumato.inference.figure import Figure, figure
from sfumato.inference.linear_combination import LinearCombination

__all__ = ["consistent"]

SHORT = 10**4  # weights are rationals with at most this denominator: nearly the best, and short to compute with

Cell = tuple[Label, ...]


@dataclass(slots=True)
class _Node:
    """A cell of one level with its own number, and the cells of the next level inside it."""

    form: LinearCombination
    variance: float
    children: list["_Node"] = field(default_factory=list)


def consistent(levels: Sequence[Release | Figure], *, cut_alike: bool = False) -> list[Figure]:
    """Make the levels of a hierarchy add up, from the coarsest to the finest; one figure for each level comes back.

    Each level's label columns are those of the level above and more; a level without labels is the total of all.
    Guarantee: costs nothing; the estimates are linear in the released numbers, unbiased, and of nearly the least
    variance among those; finer ones add up to coarser ones exactly. Assumes: the numbers of a level are exact parts of
    those above it, that is, every row that counts in a cell counts in one of its finer cells. Levels that a limit can
    cut differently are refused; with ``cut_alike`` you vouch that it cuts none more than another, as where the finer
    groups part no person's rows (regions by sex).
    """
    figures = [figure(level) for level in levels]
    if len(figures) < 2:
        raise InvalidInput("a hierarchy has two levels or more; nothing was adjusted.")
    sources = figures[0].sources
    for one in figures[1:]:
        sources = joined(sources, one.sources)
    if not cut_alike:
        check_cut_alike(sources, "what they add up to")
    nodes = [_nodes(one) for one in figures]
    for upper, lower, above, below in zip(figures, figures[1:], nodes, nodes[1:], strict=False):
        _attach(upper, lower, above, below)
    leaves = _leaves(list(nodes[0].values()))
    finest = dict(zip(nodes[-1], (leaves[id(node)] for node in nodes[-1].values()), strict=True))
    return [
        Figure(forms=_sums(one, figures[-1], finest), labels=one.labels, measure=one.measure, sources=sources)
        for one in figures
    ]


def _cells(one: Figure) -> list[Cell]:
    return list(zip(*one.labels.values(), strict=True)) if one.labels else [()]


def _nodes(one: Figure) -> dict[Cell, _Node]:
    return {
        cell: _Node(form=form, variance=form.spread().deviation ** 2)
        for cell, form in zip(_cells(one), one.forms, strict=True)
    }


def _attach(upper: Figure, lower: Figure, above: dict[Cell, _Node], below: dict[Cell, _Node]) -> None:
    missing = [name for name in upper.labels if name not in lower.labels]
    if missing or len(lower.labels) <= len(upper.labels):
        raise InvalidInput(
            "each level of a hierarchy must have the label columns of the level above and one more at the least; "
            "nothing was adjusted."
        )
    places = [list(lower.labels).index(name) for name in upper.labels]
    for cell, node in below.items():
        parent = above.get(tuple(cell[place] for place in places))
        if parent is None:
            raise InvalidInput(f"the cell {cell} lies in no cell of the level above; nothing was adjusted.")
        parent.children.append(node)
    if any(not node.children for node in above.values()):
        raise InvalidInput("a cell of the upper level has no cells below it; nothing was adjusted.")


def _leaves(roots: list[_Node]) -> dict[int, LinearCombination]:
    """The least-squares estimate of each leaf: once up the tree, once down."""
    best: dict[int, tuple[LinearCombination, float]] = {}

    def up(node: _Node) -> tuple[LinearCombination, float]:
        if node.children:
            parts = [up(child) for child in node.children]
            total, variance = parts[0][0], sum(one for _, one in parts)
            for part, _ in parts[1:]:
                total = total.plus(part, Fraction(1))
            share = _short(variance / (variance + node.variance)) if variance + node.variance else Fraction(0)
            joint = total.scaled(1 - share).plus(node.form, share)
            best[id(node)] = joint, float(share) * node.variance
        else:
            best[id(node)] = node.form, node.variance
        return best[id(node)]

    found: dict[int, LinearCombination] = {}

    def down(node: _Node, form: LinearCombination) -> None:
        if not node.children:
            found[id(node)] = form
            return
        parts = [best[id(child)] for child in node.children]
        total = sum(variance for _, variance in parts)
        gap = form
        for part, _ in parts:
            gap = gap.plus(part, Fraction(-1))
        for child, (part, variance) in zip(node.children, parts, strict=True):
            down(child, part.plus(gap, _short(variance / total) if total else Fraction(1, len(parts))))

    for root in roots:
        down(root, up(root)[0])
    return found


def _sums(one: Figure, finest: Figure, leaves: dict[Cell, LinearCombination]) -> tuple[LinearCombination, ...]:
    """The cells of a level as sums of leaves, so that all levels add up exactly."""
    places = [list(finest.labels).index(name) for name in one.labels]
    found: dict[Cell, LinearCombination] = {}
    for cell, form in leaves.items():
        key = tuple(cell[place] for place in places)
        found[key] = found[key].plus(form, Fraction(1)) if key in found else form
    return tuple(found[cell] for cell in _cells(one))


def _short(weight: float) -> Fraction:
    return Fraction(weight).limit_denominator(SHORT)
