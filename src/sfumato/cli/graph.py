"""One question about a graph, from an edge list to numbers with margins."""

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from sfumato.cli.asked import (
    Account,
    Book,
    Confidence,
    Days,
    Delta,
    Epsilon,
    KeyFile,
    NoLedger,
    Picture,
    Purpose,
    Recipient,
    Report,
    Save,
    check_account,
    check_files,
    check_ledger,
    days_of,
    document,
    show,
    vault_for,
    write,
)
from sfumato.cli.data import Within, source_of
from sfumato.cli.graph_options import (
    Asked,
    AsTable,
    Blocks,
    Bound,
    Called,
    Choices,
    ChooseCap,
    Counts,
    Damping,
    Directed,
    Direction,
    EdgeFlow,
    Edges,
    Eta,
    Foresee,
    From,
    HoldTo,
    Kind,
    LeastCap,
    Leaves,
    Length,
    Loops,
    MaxDegree,
    Most,
    Name,
    Nodes,
    Part,
    Partition,
    Population,
    Relation,
    Restart,
    Share,
    To,
    Version,
    Way,
    Weight,
)
from sfumato.cli.ledger import opened
from sfumato.cli.output import AsJson, LegalBasis, Reason, say, say_json
from sfumato.errors import InvalidInput, NotDeclared

if TYPE_CHECKING:
    from sfumato.core.question import Preview

__all__ = ["graph"]

CHOSEN = ("top", "communities", "synthetic")  # answers without a margin
MOST_ROWS = 60  # of an answer on a terminal


def graph(
    data: Edges,
    question: Asked,
    *,
    epsilon: Epsilon,
    delta: Delta = "0",
    nodes: Nodes = None,
    names: Called = None,
    unit: Kind = "edge",
    unit_relation: Relation = "add/remove",
    max_degree: MaxDegree = None,
    directed: Directed = False,
    source: From = "source",
    target: To = "target",
    weight: Weight = None,
    bound: Bound = None,
    counts: Counts = None,
    population: Population = None,
    name: Name = None,
    version: Version = None,
    leaves: Leaves = None,
    hold_to: HoldTo = None,
    direction: Direction = None,
    length: Length = None,
    most: Most = None,
    choices: Choices = None,
    way: Way = None,
    choose_cap: ChooseCap = False,
    least_cap: LeastCap = None,
    share: Share = None,
    damping: Damping = None,
    restart: Restart = None,
    loops: Loops = None,
    edge_flow: EdgeFlow = None,
    blocks: Blocks = None,
    part: Part = None,
    partition: Partition = None,
    eta: Eta = None,
    preview: Foresee = False,
    confidence: Confidence = "0.95",
    table_out: AsTable = None,
    plot: Picture = None,
    report: Report = None,
    reason: Reason = "",
    legal_basis: LegalBasis = "",
    save: Save = None,
    key: KeyFile = None,
    table: Within = None,
    ledger: Book = None,
    account: Account = None,
    purpose: Purpose = None,
    recipient: Recipient = None,
    reads: Days = None,
    no_ledger: NoLedger = False,
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
    others do not count. A ledger is kept as by sfumato query: with --account, and else by nobody but you
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
    given = {
        "leaves": leaves,
        "hold_to": hold_to,
        "direction": direction,
        "length": length,
        "most": most,
        "choices": choices,
        "way": way,
        "choose_cap": choose_cap,
        "least_cap": least_cap,
        "share": share,
        "damping": damping,
        "restart": restart,
        "loops": loops,
        "edge_flow": edge_flow,
        "blocks": blocks,
        "part": part,
        "partition": partition,
        "eta": eta,
    }
    said = check_options(question, given)
    Budget.asked(epsilon=epsilon, delta=delta)
    check_files(plot, report, save, table_out, grounds=(reason, legal_basis))
    if plot is not None and question in CHOSEN:
        raise InvalidInput(
            f"{question} is chosen and not measured, so there is no error to draw; nothing was read and nothing was "
            "spent. Leave --plot out."
        )
    if preview and any(file is not None for file in (plot, report, save, table_out)):
        raise InvalidInput("a preview has no answer to write; nothing was read and nothing was spent. Leave one out.")
    days = days_of(reads)
    check_account(account, ledger, purpose, recipient, days)
    if not preview:
        check_ledger(account, data, no_ledger=no_ledger)
    if account is not None and version is None:
        raise NotDeclared(
            "an account is charged for a version of the graph that the ledger knows; nothing was read and nothing was "
            "spent. Say --version, as in sfumato ledger dataset."
        )
    facts.check_edges(data, table)
    facts.check_weights(unit, question, weight, bound)
    protected = facts.unit_of(unit, unit_relation, max_degree=max_degree, bound=bound)
    if choose_cap and unit != "node":
        raise InvalidInput(f"only --unit node has a degree cap to choose. {facts.NOTHING} Leave --choose-cap out.")
    listed = facts.nodes_of(nodes, protected, names)
    with ExitStack() as held:
        book = None if account is None else held.enter_context(opened(ledger))
        vault = vault_for(
            protected,
            name="sfumato graph",
            population=population,
            epsilon=epsilon,
            delta=delta,
            key=key,
            charged=book,
            account=account,
            purpose=purpose,
            recipient=recipient,
        )
        declared = vault.graph(
            source_of(data, table),
            name=facts.name_of(data, table) if name is None else name,
            version=version,
            nodes=listed,
            directed=directed,
            source=source,
            target=target,
            weight=weight,
            bound=bound,
            counts=counts,
        )
        asked = question_of(declared, question, said, delta=delta != "0")
        if preview:
            _foresee(asked.preview(epsilon=epsilon, delta=delta, confidence=level), as_json=as_json)
            return
        release = asked.release(epsilon=epsilon, delta=delta, reads=days)
        # From here on there is an answer: whatever cannot be written, the numbers are shown.
        written, failed = write(
            release, plot=plot, report=report, save=save, table=table_out, reason=reason, legal_basis=legal_basis
        )
        if as_json:
            say_json(document(release, vault, level, written, charged=book is not None))
        else:
            beside = facts.PROTECTED[unit]
            show(release, vault, level, written, charged=book is not None, beside=beside, most=MOST_ROWS)
    if failed is not None:
        raise failed


def _foresee(found: "Preview", *, as_json: bool) -> None:
    """Print the error to expect."""
    from sfumato.core.units import describe

    if not as_json:
        say(str(found))
        say(f"protected: {describe(found.unit)}")
        return
    amounts: dict[str, Any] = {
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
        }
    )
