"""What a reader must know of an answer about a network: what was asked, what did not count, what each level costs."""

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.accounting.basic import cost
from sfumato.accounting.composition import compose
from sfumato.core.budget import Budget
from sfumato.core.description import Counted, Description, Form, Paragraph, Word, phrase, plain
from sfumato.core.guarantees import Approximate, Pure
from sfumato.core.units import Node
from sfumato.graphs.shape import Direction

if TYPE_CHECKING:
    from sfumato.core.statement import Statement
    from sfumato.graphs.query import GraphQuery

__all__ = ["by_sentence", "network"]

LINKS = 10  # the example of a node under the edge unit


def network(
    query: "GraphQuery",
    said: "Statement",
    *,
    words: str | None = None,
    cap: int | None = None,
    corners: int | None = None,
    leaves: int | None = None,
    bound: Fraction | None = None,
    flow: Fraction | None = None,
    sentence: bool = False,
    by: bool = True,
    aside: tuple[str, ...] = (),
    named: str | None = None,
) -> Description:
    """Describe an answer; each query has its own words, by its kind, or by ``words``.

    ``cap`` is how many links of each node count, ``corners`` in how many triangles a node does, ``flow`` which part of
    all rank a link passes on, ``leaves`` are those of a star, ``bound`` is the largest weight that counts. ``sentence``
    says that a sentence of its own tells what was released, since a table of numbers tells it badly, and ``named`` how
    exact names are that were chosen. The question is described ``by`` its columns, and columns ``aside`` have no
    margin.
    """
    kind = query.KIND.removeprefix("query.")
    words = words or kind
    columns, numbers = tuple(query.labels()), _numbers(query, said)
    figures: dict[str, Word] = {"nodes": Counted("node", numbers)} if sentence else {}
    counts = {"cap": cap, "corners": corners, "leaves": leaves}
    figures |= {name: f"{count:,}" for name, count in counts.items() if count is not None}
    shares = {"bound": bound, "flow": flow}
    figures |= {name: plain(share) for name, share in shares.items() if share is not None}
    way = getattr(query, "direction", Direction.TOTAL)
    held: list[Paragraph] = [] if way is Direction.TOTAL else [(f"limit.links_{way.value}",)]
    limits = {"degree": cap, "corners": corners, "weight": bound, "flow": flow}
    held += [(f"limit.{name}",) for name, limit in limits.items() if limit is not None]
    paragraphs: dict[str, tuple[Paragraph, ...]] = {"held_back": tuple(held)}
    if sentence:
        paragraphs["what"] = ((f"network.{words}",),)
    if query.shape.nodes is not None:
        paragraphs["listed"] = (("limit.nodes",),)
    if named is not None:
        paragraphs["named"] = ((named,),)
    asked: Word = phrase(f"page.{kind}")
    if by and columns:
        asked = phrase("page.rows_by", rows=asked, columns=" × ".join(columns))
    return Description(
        form=Form.TABLE if columns else Form.NUMBER if numbers == 1 else Form.NUMBERS,
        numbers=numbers,
        asked=asked,
        columns=columns,
        measure=None if sentence else f"measure.{words}",
        figures=figures,
        paragraphs=paragraphs,
        facts=dict(_levels(said)),
        aside=aside,
        counts=False,
    )


def by_sentence(query: "GraphQuery", said: "Statement") -> Description:
    """Describe an answer in a sentence of its own, under the degree cap of the unit."""
    return network(query, said, cap=query.cap(said.unit), sentence=True)


def _numbers(query: "GraphQuery", said: "Statement") -> int:
    """How many numbers are shown: they may be computed from others."""
    labels = query.labels()
    if query.measure is not None:
        return len(said.values)
    return (len(next(iter(labels.values()))) or len(said.values)) if labels else len(query.names)


def _levels(said: "Statement") -> Iterator[tuple[str, Word]]:
    """What the release costs one link, and what a node with its links: the two levels at which a graph is protected.

    A node with k links counts as k links; where nodes are protected, one link alone moves the answer less.
    """
    if isinstance(said.unit, Node):
        one_edge = getattr(said.query, "one_edge", None)
        if one_edge is not None and said.spend.delta == 0:
            yield "link", str(cost(compose(said.mechanism.loss(one_edge(said.unit.max_degree)))))
        yield "whole_node", str(said.spend)
        return
    spend = said.spend
    one = Pure(epsilon=spend.epsilon) if spend.delta == 0 else Approximate(epsilon=spend.epsilon, delta=spend.delta)
    group = one.group(LINKS)
    delta = group.delta if isinstance(group, Approximate) else Fraction(0)
    amount = Budget(epsilon=group.epsilon, delta=min(delta, Fraction(1)))
    yield "link", str(spend)
    yield "whole_node", phrase("fact.node_of_links", links=str(LINKS), amount=str(amount))
