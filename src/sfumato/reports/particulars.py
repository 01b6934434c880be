"""The facts of a release, each under its name, in the words of a language."""

from collections.abc import Iterator
from functools import reduce

from sfumato.core import enclosures
from sfumato.core.budget import LONGEST_TEXT
from sfumato.core.cut import cut_of, row_words
from sfumato.core.exact import decimal_up, fraction_text
from sfumato.core.release import Release, whole
from sfumato.core.statement import Account, Statement
from sfumato.core.units import Family, Node, Relation, Unit, User
from sfumato.mechanisms import ADDED_NOISE, Gaussian, Laplace, TopChoice
from sfumato.reports.amounts import written
from sfumato.reports.catalogue import counted, in_chinese, message, messages
from sfumato.reports.columns import CONFIDENCE, columns_of, described, magnitude, shared_margins
from sfumato.reports.words.facts import Span
from sfumato.reports.words.figures import exact, ranges, span_line
from sfumato.reports.words.rendering import render

__all__ = ["CONFIDENCE", "asked", "column", "margins", "particulars", "protected"]

LEVELS = ("link", "whole_node")  # what a release costs at other levels than that of its unit


def particulars(release: Release, language: str) -> Iterator[tuple[str, str]]:
    """The names of facts (messages of the group ``fact``) and the facts, as plain text."""
    said = release.statement

    def say(identifier: str, **facts: object) -> str:
        return message(language, identifier, **facts)

    own = {name: render(word, language) for name, word in described(said).facts.items()}
    yield "unit", own.get("unit") or protected(said.unit, language, told_by=True)
    yield "relation", say("relation.add_remove" if said.unit.relation is Relation.ADD_REMOVE else "relation.replace")
    limit, none = said.limit, say("fact.limit_none")
    if isinstance(said.unit, Node):
        none = say("fact.limit_degree", degree=f"{said.unit.max_degree:,}")
    if limit is not None:
        groups, rows = (
            counted(language, "group", limit.groups),
            render(row_words(limit, limit.rows_per_group), language),
        )
        none = own.get("limit") or say("fact.limit_person", groups=groups, rows=rows)
    yield "limit", none
    if said.derived:
        names = _all([dataset.name for dataset in said.derived], language)
        yield "derived", say("fact.derived_rows", names=names)
    if said.reads is not None:
        yield "reads", say("fact.reads_days", first=said.reads[0], last=said.reads[1])
    held = [*ranges(described(said), language)]
    if held:
        texts = [say("fact.range_of", value=value, low=low, high=high) for value, low, high in held]
        yield "range", _all(texts, language)
    yield "epsilon", fraction_text(said.spend.epsilon)
    delta = fraction_text(said.spend.delta)
    yield "delta", delta if len(delta) <= LONGEST_TEXT else f"≤ {decimal_up(said.spend.delta)}"
    yield from ((name, own[name]) for name in LEVELS if name in own)
    yield "margin", margins(release, language)
    yield "noise", own.get("noise") or _noise(said, language)
    yield "sensitivity", own.get("sensitivity") or _sensitivity(said, language)
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
        return written(account.spent, language), written(account.budget, language)
    order = {} if account.order is None else {"order": fraction_text(account.order)}
    shown = (
        message(language, f"amount.{account.method}", loss=exact(loss, up=up), **order)
        for loss, up in ((account.filter_spent, True), (account.filter_cap, False))
    )
    spent, total = shown
    bracket = "{}（{}）" if in_chinese(language) else "{} ({})"
    return (
        bracket.format(spent, written(account.spent, language)),
        bracket.format(total, written(account.budget, language)),
    )


def asked(said: Statement, language: str) -> str:
    """What was asked, in one line, with the condition spelled out and with what a limit leaves of each person."""
    words, cut = render(described(said).asked, language), cut_of(said.query, said.unit, said.limit).words
    return words if cut is None else message(language, "page.limited", asked=words, limit=render(cut, language))


def protected(unit: Unit, language: str, *, told_by: bool = False) -> str:
    """Who is protected, and where asked for, the column that identifies them."""
    size = unit.size if isinstance(unit, Family) else 1
    named = message(language, f"unit.{unit.KIND.removeprefix('unit.')}", size=size)
    if told_by and isinstance(unit, User | Family):
        return message(language, "fact.unit_column", unit=named, column=unit.column)
    return named


def margins(release: Release, language: str) -> str:
    """The 95% margin of each number and of all at once; of each column, where numbers err differently."""
    release = whole(release)
    if not columns_of(release):
        return message(language, "fact.margin_model")
    shared = shared_margins(release)
    if shared is None:
        return _all([span_line(Span.of(column), language) for column in columns_of(release)], language)
    margin, joint = (magnitude(each, 4) for each in shared)
    alone = len(release.values) == 1 if release.measure is not None else len(columns_of(release)[0].values) == 1
    return message(language, "fact.margin_one" if alone else "fact.margin_many", margin=margin, joint=joint)


def column(name: str, language: str) -> str:
    """The heading of a column of the answer; a name that has none stays as it is."""
    return messages(language).get(f"column.{name}", name)


def _noise(said: Statement, language: str) -> str:
    """The noise distribution; where columns are computed, in units of what one row brings."""
    height = described(said).height
    match said.mechanism:
        case TopChoice(scale=scale):
            return message(language, "fact.noise_top", scale=fraction_text(scale))
        case Laplace(scale=scale):
            text = fraction_text(scale) if height == 1 else decimal_up(scale / height)
            law = message(language, "noise.laplace", scale=text)
        case Gaussian(sigma=sigma):
            law = message(language, "noise.gaussian", sigma=decimal_up(sigma / height))
        case _ if isinstance(said.mechanism, ADDED_NOISE):
            law = _other_noise(said, height, language)
        case _:
            law = said.mechanism.KIND
    if said.query.measure is not None:
        return law
    name = "fact.noise_whole" if height == 1 else "fact.noise_rows"
    numbers = counted(language, "number", len(said.values))
    return message(language, name, noise=law, numbers=numbers, steps=f"{height:,}")


def _other_noise(said: Statement, height: int, language: str) -> str:
    """Noise in the words of its kind where there are any, else by its name; both with the standard deviation."""
    kind = said.mechanism.KIND.removeprefix("mechanism.")
    own = f"noise.{kind}" in messages(language)
    deviation = decimal_up(enclosures.sqrt(said.law.variance).high / height)
    return message(
        language, f"noise.{kind}" if own else "noise.other", name=kind.replace("_", " "), deviation=deviation
    )


def _sensitivity(said: Statement, language: str) -> str:
    """The bound that the noise was made for; one is always there, as a mechanism needs its norm."""
    moved = said.sensitivity
    if isinstance(said.mechanism, Gaussian) and moved.l2 is not None:
        return message(language, "fact.sensitivity_l2", squared=fraction_text(moved.l2.squared))
    if moved.l1 is not None:
        return message(language, "fact.sensitivity_l1", l1=fraction_text(moved.l1.value))
    return message(language, "fact.sensitivity_other")


def _all(texts: list[str], language: str) -> str:
    return reduce(lambda left, right: message(language, "span.between", left=left, right=right), texts)
