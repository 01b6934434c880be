"""The facts of a release, each under its name, in the words of a language."""

from collections.abc import Iterator
from functools import reduce

from sfumato.accounting.basic import cost
from sfumato.accounting.composition import compose
from sfumato.core import enclosures
from sfumato.core.budget import LONGEST_TEXT, Budget
from sfumato.core.exact import decimal_up, fraction_text
from sfumato.core.guarantees import Approximate
from sfumato.core.release import Release
from sfumato.core.statement import Account, Statement
from sfumato.core.units import Family, Node, Relation, Unit, User
from sfumato.graphs import GRAPH_QUERIES
from sfumato.graphs.queries.top import TopNodes
from sfumato.learning import EXAMPLE_QUERIES, ConfidentMax
from sfumato.learning.evaluation import Evaluations
from sfumato.learning.training import Training
from sfumato.mechanisms import Gaussian, Laplace, NoisyThreshold, OptimalSelection, SparseVector, TopChoice
from sfumato.reports.catalogue import counted, message, messages
from sfumato.reports.columns import CONFIDENCE, columns_of, magnitude, row_height, shared_margins
from sfumato.reports.conditions import condition
from sfumato.reports.words.facts import Facts, Span, guarantee_of
from sfumato.reports.words.figures import exact, span_line
from sfumato.reports.words.learning import trained_noise
from sfumato.reports.words.measured import listed, ranges
from sfumato.reports.words.streams import strategy_name, stream_unit
from sfumato.streams.alarms import Alarms
from sfumato.streams.noise import SeriesNoise
from sfumato.streams.total import RunningTotal
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.queries.found_keys import FoundKeys
from sfumato.tables.queries.quantiles import Quantiles
from sfumato.tables.queries.top import TopGroups

__all__ = ["CONFIDENCE", "asked", "column", "margins", "particulars", "protected"]

LINKS = 10  # the example of a node under the edge unit


def particulars(release: Release, language: str) -> Iterator[tuple[str, str]]:
    """The names of facts (messages of the group ``fact``) and the facts, as plain text."""
    said = release.statement

    def say(identifier: str, **facts: object) -> str:
        return message(language, identifier, **facts)

    yield "unit", stream_unit(said, language) or protected(said.unit, language, told_by=True)
    yield "relation", say("relation.add_remove" if said.unit.relation is Relation.ADD_REMOVE else "relation.replace")
    limit, none = said.limit, say("fact.limit_none")
    if isinstance(said.unit, Node):
        none = say("fact.limit_degree", degree=f"{said.unit.max_degree:,}")
    if limit is not None and isinstance(said.query, RunningTotal | Alarms):
        limit, none = None, _stream_limit(said.query, language)
    yield (
        "limit",
        none
        if limit is None
        else say(
            "fact.limit_person",
            groups=counted(language, "group", limit.groups),
            rows=counted(language, "row", limit.rows_per_group),
        ),
    )
    if said.derived:
        names = _all([dataset.name for dataset in said.derived], language)
        yield "derived", say("fact.derived_rows", names=names)
    held = []
    if isinstance(said.query, Aggregate | Quantiles):
        held = list(ranges(Facts.of(release).subject.measures, language))
    if held:
        texts = [say("fact.range_of", value=value, low=low, high=high) for value, low, high in held]
        yield "range", _all(texts, language)
    yield "epsilon", fraction_text(said.spend.epsilon)
    written = fraction_text(said.spend.delta)
    yield "delta", written if len(written) <= LONGEST_TEXT else f"≤ {decimal_up(said.spend.delta)}"
    if type(said.query) in GRAPH_QUERIES:
        yield from _levels(said, language)
    yield "margin", margins(release, language)
    yield "noise", _noise(release, language)
    yield "sensitivity", _sensitivity(release, language)
    account = said.account
    spent, total = _standing(account, language)
    yield "account", say("fact.account_state", name=account.name, spent=spent, total=total)
    yield "ledger", say("fact.ledger_memory") if account.ledger.startswith("none") else account.ledger
    yield "issued", said.issued
    yield "identifier", said.identifier
    yield "code", said.code
    signature = release.certificate.document.get("signature")
    if isinstance(signature, dict):
        yield "key", str(signature.get("key"))


def _standing(account: Account, language: str) -> tuple[str, str]:
    """What an account spent and what it may: as ε and δ, after the measure of its filter where it has one."""
    if account.filter_cap is None or account.filter_spent is None:
        return str(account.spent), str(account.budget)
    order = {} if account.order is None else {"order": fraction_text(account.order)}
    shown = (
        message(language, f"amount.{account.method}", loss=exact(loss, up=up), **order)
        for loss, up in ((account.filter_spent, True), (account.filter_cap, False))
    )
    spent, total = shown
    return f"{spent} ({account.spent})", f"{total} ({account.budget})"


def asked(said: Statement, language: str) -> str:
    """What was asked, in one line, with the condition spelled out."""
    if type(said.query) in GRAPH_QUERIES:
        return _of_network(said, language)
    if isinstance(said.query, RunningTotal | Alarms):
        by_group = "_groups" if isinstance(said.query, RunningTotal) and said.query.groups else ""
        return message(language, f"page.{said.query.KIND.removeprefix('query.')}{by_group}")
    if isinstance(said.query, Training | Evaluations) or type(said.query) in EXAMPLE_QUERIES:
        return message(language, f"page.{said.query.KIND.removeprefix('query.')}")
    where = getattr(said.query, "where", None)
    facts = {} if where is None else {"condition": condition(where, language)}
    name = "page.rows_all" if where is None else "page.rows_where"
    if said.query.measure is None:
        kind = {FoundKeys: "found", TopGroups: "top"}.get(type(said.query), "measured")
        names = said.query.over if isinstance(said.query, FoundKeys) else said.query.names
        facts["names"] = listed([*names], language)
        name = f"page.{kind}_all" if where is None else f"page.{kind}_where"
    if isinstance(said.query, TopGroups):
        return message(language, name, **facts)
    rows = message(language, name, **facts)
    columns = " × ".join(said.query.labels())
    return message(language, "page.rows_by", rows=rows, columns=columns) if columns else rows


def _stream_limit(query: RunningTotal | Alarms, language: str) -> str:
    """How much of each person counts in a stream."""
    apart = "_apart" if query.separation > 1 and query.times > 1 else ""
    return message(
        language,
        f"fact.limit_stream{apart}",
        width=counted(language, "step", query.times),
        separation=counted(language, "step", query.separation),
        each=f"{query.each:,}",
    )


def _levels(said: Statement, language: str) -> Iterator[tuple[str, str]]:
    """What the release costs one link, and what a node with its links: the two levels at which a graph is protected.

    A node with so many links is as many links; where nodes are protected, one link alone moves the answer less.
    """
    if isinstance(said.unit, Node):
        one_edge = getattr(said.query, "one_edge", None)
        if one_edge is not None and said.spend.delta == 0:
            yield "link", str(cost(compose(said.mechanism.loss(one_edge(said.unit.max_degree)))))
        yield "whole_node", str(said.spend)
        return
    group = guarantee_of(said.spend).group(LINKS)
    yield "link", str(said.spend)
    delta = group.delta if isinstance(group, Approximate) else 0
    yield (
        "whole_node",
        message(
            language, "fact.node_of_links", links=LINKS, amount=str(Budget(epsilon=group.epsilon, delta=min(delta, 1)))
        ),
    )


def _of_network(said: Statement, language: str) -> str:
    """What was asked of a graph."""
    name = f"page.{said.query.KIND.removeprefix('query.')}"
    asked = message(language, name) if name in messages(language) else ", ".join(said.query.names)
    columns = "" if isinstance(said.query, TopNodes) else " × ".join(said.query.labels())
    return message(language, "page.rows_by", rows=asked, columns=columns) if columns else asked


def protected(unit: Unit, language: str, *, told_by: bool = False) -> str:
    """Who is protected, and where asked for, by which column they are told apart."""
    size = unit.size if isinstance(unit, Family) else 1
    named = message(language, f"unit.{unit.KIND.removeprefix('unit.')}", size=size)
    if told_by and isinstance(unit, User | Family):
        return message(language, "fact.unit_column", unit=named, column=unit.column)
    return named


def margins(release: Release, language: str) -> str:
    """The 95% margin of each number and of all at once; of each column, where numbers err differently."""
    if not columns_of(release):
        return message(language, "fact.margin_model")
    shared = shared_margins(release)
    if shared is None:
        return _all([span_line(Span.of(column), language) for column in columns_of(release)], language)
    margin, joint = (magnitude(each, 4) for each in shared)
    if release.statement.query.measure is not None:
        alone = len(release.values) == 1
    else:
        alone = len(columns_of(release)[0].values) == 1
    return message(language, "fact.margin_one" if alone else "fact.margin_many", margin=margin, joint=joint)


def column(name: str, language: str) -> str:
    """The heading of a column of the answer; a name that has none stays as it is."""
    return messages(language).get(f"column.{name}", name)


def _noise(release: Release, language: str) -> str:
    """The law of the noise; where columns are computed, in units of what one row brings."""
    said, height = release.statement, row_height(release.statement.query)
    if isinstance(said.query, Training):
        return trained_noise(said, language)
    if isinstance(said.query, Quantiles):
        return message(language, "fact.noise_chosen")
    match said.mechanism:
        case NoisyThreshold(scale=scale, threshold=least):
            law = message(language, "noise.laplace", scale=fraction_text(scale))
            return message(language, "fact.noise_threshold", noise=law, least=f"{least:,}")
        case OptimalSelection(sure=sure):
            return message(language, "fact.noise_selection", sure=f"{sure:,}")
        case ConfidentMax(check_sigma=check, sigma=sigma):
            return message(language, "fact.noise_confident", check=decimal_up(check), sigma=decimal_up(sigma))
        case SeriesNoise():
            return _series_noise(said, said.mechanism, language)
        case SparseVector():
            scales = (said.mechanism.threshold_scale, said.mechanism.query_scale)
            threshold, query = (fraction_text(scale) for scale in scales)
            return message(language, "fact.noise_alarms", threshold=threshold, query=query)
        case TopChoice(scale=scale):
            return message(language, "fact.noise_top", scale=fraction_text(scale))
        case Laplace(scale=scale):
            text = fraction_text(scale) if height == 1 else decimal_up(scale / height)
            law = message(language, "noise.laplace", scale=text)
        case Gaussian(sigma=sigma):
            law = message(language, "noise.gaussian", sigma=decimal_up(sigma / height))
        case _:
            law = said.mechanism.KIND
    if said.query.measure is not None:
        return law
    name = "fact.noise_whole" if height == 1 else "fact.noise_rows"
    numbers = counted(language, "number", len(said.values))
    return message(language, name, noise=law, numbers=numbers, steps=f"{height:,}")


def _series_noise(said: Statement, mechanism: SeriesNoise, language: str) -> str:
    """The noise of a stream in units of one, and what it was put on."""
    size = mechanism.noise / 2**mechanism.strategy.bits
    kind, name = ("laplace", "scale") if mechanism.norm == "l1" else ("gaussian", "sigma")
    return message(
        language,
        "fact.noise_series",
        noise=message(language, f"noise.{kind}", **{name: decimal_up(size)}),
        numbers=counted(language, "number", len(said.values)),
        strategy=message(language, strategy_name(mechanism)),
    )


def _sensitivity(release: Release, language: str) -> str:
    """The bound that the noise was made for; one is always there, as a mechanism needs its norm."""
    said, height = release.statement, row_height(release.statement.query)
    if isinstance(said.query, Quantiles):
        return message(language, "fact.sensitivity_other")
    moved = said.sensitivity
    if isinstance(said.query, Training) and moved.l2 is not None:
        return message(language, "fact.sensitivity_trained", clip=decimal_up(enclosures.sqrt(moved.l2.squared).high))
    if isinstance(said.query, RunningTotal) and moved.l0 is not None and moved.linf is not None:
        most = fraction_text(moved.linf.value)
        return message(
            language, "fact.sensitivity_stream", steps=counted(language, "step", int(moved.l0.count)), each=most
        )
    if isinstance(said.query, FoundKeys) and moved.l0 is not None and moved.linf is not None:
        most = fraction_text(moved.linf.value)
        return message(language, "fact.sensitivity_found", l0=f"{moved.l0.count:,}", linf=most)
    if isinstance(said.query, TopGroups) and moved.linf is not None:
        return message(language, "fact.sensitivity_top", linf=fraction_text(moved.linf.value))
    plain = (*GRAPH_QUERIES, *EXAMPLE_QUERIES)
    rows = "" if said.query.measure is not None or type(said.query) in plain else "rows_"
    if isinstance(said.mechanism, Gaussian) and moved.l2 is not None:
        return message(language, f"fact.sensitivity_{rows}l2", squared=fraction_text(moved.l2.squared / height**2))
    if moved.l1 is not None:
        return message(language, f"fact.sensitivity_{rows}l1", l1=fraction_text(moved.l1.value / height))
    return message(language, "fact.sensitivity_other")


def _all(texts: list[str], language: str) -> str:
    return reduce(lambda left, right: message(language, "span.between", left=left, right=right), texts)
