"""The facts of a release, each under its name, in the words of a language."""

from collections.abc import Iterator
from fractions import Fraction

from sfumato.core.exact import decimal_up, fraction_text
from sfumato.core.release import Release
from sfumato.core.statement import Statement
from sfumato.core.units import Family, Relation, Unit, User
from sfumato.mechanisms import Gaussian, Laplace
from sfumato.reports.catalogue import counted, message, messages
from sfumato.reports.conditions import condition
from sfumato.tables.queries.count import Count

__all__ = ["CONFIDENCE", "asked", "column", "margins", "particulars", "protected"]

CONFIDENCE = Fraction(19, 20)


def particulars(release: Release, language: str) -> Iterator[tuple[str, str]]:
    """The names of facts (messages of the group ``fact``) and the facts, as plain text."""
    said = release.statement

    def say(identifier: str, **facts: object) -> str:
        return message(language, identifier, **facts)

    yield "unit", protected(said.unit, language, told_by=True)
    yield "relation", say("relation.add_remove" if said.unit.relation is Relation.ADD_REMOVE else "relation.replace")
    limit = said.limit
    yield (
        "limit",
        say("fact.limit_none")
        if limit is None
        else say(
            "fact.limit_person",
            groups=counted(language, "group", limit.groups),
            rows=counted(language, "row", limit.rows_per_group),
        ),
    )
    yield "epsilon", fraction_text(said.spend.epsilon)
    yield "delta", fraction_text(said.spend.delta)
    yield "margin", margins(said, language)
    yield "noise", _noise(said, language)
    yield "sensitivity", _sensitivity(said, language)
    account = said.account
    yield "account", say("fact.account_state", name=account.name, spent=account.spent, total=account.budget)
    yield "ledger", say("fact.ledger_memory") if account.ledger.startswith("none") else account.ledger
    yield "issued", said.issued
    yield "identifier", said.identifier
    yield "code", said.code
    signature = release.certificate.document.get("signature")
    if isinstance(signature, dict):
        yield "key", str(signature.get("key"))


def asked(said: Statement, language: str) -> str:
    """What was asked, in one line, with the condition spelled out."""
    where = said.query.where if isinstance(said.query, Count) else None
    if where is None:
        rows = message(language, "page.rows_all")
    else:
        rows = message(language, "page.rows_where", condition=condition(where, language))
    columns = " × ".join(said.query.labels())
    return message(language, "page.rows_by", rows=rows, columns=columns) if columns else rows


def protected(unit: Unit, language: str, *, told_by: bool = False) -> str:
    """Who is protected, and where asked for, by which column they are told apart."""
    size = unit.size if isinstance(unit, Family) else 1
    named = message(language, f"unit.{unit.KIND.removeprefix('unit.')}", size=size)
    if told_by and isinstance(unit, User | Family):
        return message(language, "fact.unit_column", unit=named, column=unit.column)
    return named


def margins(said: Statement, language: str) -> str:
    """The 95% margin of each number, and of all at once."""
    numbers, margin = len(said.values), said.law.margin(CONFIDENCE)
    if numbers == 1:
        return message(language, "fact.margin_one", margin=f"{margin:,}")
    joint = said.law.margin(CONFIDENCE, numbers=numbers)
    return message(language, "fact.margin_many", margin=f"{margin:,}", joint=f"{joint:,}")


def column(name: str, language: str) -> str:
    """The heading of a column of the answer; a name that has none stays as it is."""
    return messages(language).get(f"column.{name}", name)


def _noise(said: Statement, language: str) -> str:
    match said.mechanism:
        case Laplace():
            return message(language, "noise.laplace", scale=fraction_text(said.mechanism.scale))
        case Gaussian():
            return message(language, "noise.gaussian", sigma=decimal_up(said.mechanism.sigma))
    return said.mechanism.KIND


def _sensitivity(said: Statement, language: str) -> str:
    """The bound that the noise was made for; one is always there, as a mechanism needs its norm."""
    moved = said.sensitivity
    if isinstance(said.mechanism, Gaussian) and moved.l2 is not None:
        return message(language, "fact.sensitivity_l2", squared=fraction_text(moved.l2.squared))
    if moved.l1 is not None:
        return message(language, "fact.sensitivity_l1", l1=fraction_text(moved.l1.value))
    return message(language, "fact.sensitivity_other")
