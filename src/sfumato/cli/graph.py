"""One question about a graph, from an edge list to numbers with margins."""

import dataclasses
from contextlib import ExitStack
from typing import TYPE_CHECKING

from sfumato.cli.asked import (
    Confidence,
    DatedChargeOptions,
    FileAndTableOptions,
    Foresee,
    SpendOptions,
    deliver,
    vault_for,
)
from sfumato.cli.data import Within, source_of
from sfumato.cli.graph_options import Asked, Edges, GraphOptions, QuestionOptions
from sfumato.cli.groups import grouped
from sfumato.cli.ledger import charged
from sfumato.cli.output import AsJson, say, say_json
from sfumato.errors import InvalidInput, NotDeclared

if TYPE_CHECKING:
    from sfumato.core.question import Preview

__all__ = ["graph"]

CHOSEN = ("top", "communities", "synthetic")  # answers without a margin
MOST_ROWS = 60  # of an answer on a terminal


@grouped
def graph(
    data: Edges,
    question: Asked,
    *,
    spend: SpendOptions,
    about: GraphOptions,
    options: QuestionOptions,
    preview: Foresee = False,
    confidence: Confidence = "0.95",
    files: FileAndTableOptions,
    table: Within = None,
    charge: DatedChargeOptions,
    as_json: AsJson = False,
) -> None:
    """Ask one question about a graph and print the answer with its margins.

    - edges: how many; degrees: of each node; degree-sequence: without names; degree-histogram: nodes of each degree;
      edges-and-degrees: both at once
    - triangles, stars; clustering: which part of meeting edges is closed to a triangle
    - top: the nodes with the most edges; pagerank: of each node
    - communities: how many explain the edges best; blocks: edges inside and between public groups of nodes
    - weights: of all pairs; statistics: edges, 2-stars and triangles, for a random graph model; synthetic: a graph to
      use like a public one

    Protected is one edge, unless --unit says a node with all its edges (--max-degree) or the weight of a pair
    (--bound). Where edges or weights are protected the nodes are public and must be declared with --nodes; rows with
    others do not count. A ledger is kept as by sfumato query: with --account, and otherwise not
    (--no-ledger, where there is one). All options are checked before anything is read. Pictures, reports and tables
    replace earlier ones of the same name.

    Example: $ sfumato graph contacts.csv triangles --epsilon 1 --nodes 400

    Example: $ sfumato graph contacts.csv blocks --blocks wards.csv --nodes wards.csv --epsilon 1

    Example: $ sfumato graph contacts.csv degree-histogram --unit node --max-degree 20 --choose-cap --epsilon 1

    Example: $ sfumato graph contacts.csv edges --nodes 400 --epsilon 0.1 --preview
    """
    from sfumato.cli import graph_facts as facts
    from sfumato.cli.graph_questions import check_options, question_of
    from sfumato.core.budget import Budget
    from sfumato.laws.margins import level_of

    level = level_of(confidence)
    said = check_options(question, {each.name: getattr(options, each.name) for each in dataclasses.fields(options)})
    Budget.asked(epsilon=spend.epsilon, delta=spend.delta)
    files.check()
    if files.plot is not None and question in CHOSEN:
        raise InvalidInput(
            f"{question} is chosen by the exponential mechanism, so there is no error to draw; nothing was read and "
            "nothing was spent. Leave --plot out."
        )
    if preview and files.named:
        raise InvalidInput("a preview has no answer to write; nothing was read and nothing was spent. Leave one out.")
    days = charge.days
    charge.check_account()
    if not preview:
        charge.check_ledger(data)
    if charge.account is not None and about.version is None:
        raise NotDeclared(
            "an account is charged for a version of the graph that the ledger knows; nothing was read and nothing was "
            "spent. Say --version, as in sfumato ledger dataset."
        )
    facts.check_edges(data, table)
    facts.check_weights(about.unit, question, about.weight, about.bound)
    protected = facts.unit_of(about.unit, about.unit_relation, max_degree=about.max_degree, bound=about.bound)
    if options.choose_cap and about.unit != "node":
        raise InvalidInput(f"only --unit node has a degree cap to choose. {facts.NOTHING} Leave --choose-cap out.")
    listed = facts.nodes_of(about.nodes, protected, about.names)
    with ExitStack() as held:
        book = None if charge.account is None else held.enter_context(charged(charge.ledger))
        vault = vault_for(
            protected, name="sfumato graph", population=about.population, spend=spend, charge=charge, book=book
        )
        declared = vault.graph(
            source_of(data, table),
            name=facts.name_of(data, table) if about.name is None else about.name,
            version=about.version,
            nodes=listed,
            directed=about.directed,
            source=about.source,
            target=about.target,
            weight=about.weight,
            bound=about.bound,
            counts=about.counts,
        )
        asked = question_of(declared, question, said, delta=spend.delta != "0")
        if preview:
            _foresee(asked.preview(epsilon=spend.epsilon, delta=spend.delta, confidence=level), as_json=as_json)
            return
        release = asked.release(epsilon=spend.epsilon, delta=spend.delta, reads=days)
        beside = facts.PROTECTED[about.unit]
        failed = deliver(
            release, vault, level, files, charged=book is not None, as_json=as_json, beside=beside, most=MOST_ROWS
        )
    if failed is not None:
        raise failed


def _foresee(found: "Preview", *, as_json: bool) -> None:
    """Print the error to expect."""
    from sfumato.core.units import describe

    if not as_json:
        say(str(found))
        say(f"protected: {describe(found.unit)}")
        return
    amounts: dict[str, object] = {
        column: {"each": str(margin), "all": str(found.joint_margins[column])}
        for column, margin in found.margins.items()
    }
    say_json(
        {
            "protected": describe(found.unit),
            "spend": {"epsilon": str(found.spend.epsilon), "delta": str(found.spend.delta)},
            "confidence": str(found.confidence),
            "numbers": found.numbers,
            "margins": amounts,
            "untold": list(found.untold),
            "limit": found.limited or None,
        }
    )
