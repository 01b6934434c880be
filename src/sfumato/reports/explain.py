"""A release in plain words: what it says, how exact it is, what it promises, what has been used up."""

import math
from fractions import Fraction

from sfumato.core import enclosures
from sfumato.core.adversary import belief
from sfumato.core.exact import decimal_up, fraction_text
from sfumato.core.guarantees import Pure
from sfumato.core.release import Release, only_release
from sfumato.core.units import Family, Record, Relation, Unit
from sfumato.errors import Unsupported
from sfumato.reports.catalogue import message
from sfumato.tables.queries.count import Count

__all__ = ["explain"]

PRIOR = Fraction(1, 10)
CONFIDENCE = Fraction(19, 20)


def explain(release: Release, language: str, audience: str = "public") -> str:
    """Explain a table of counts, a paragraph for each point.

    Assumes: pure DP. The belief sentence speaks of everything charged to the account so far, not of this release alone.
    """
    said = only_release(release).statement
    if not isinstance(said.query, Count) or not isinstance(said.guarantee, Pure):
        raise Unsupported(f"there is no text yet for a {said.query.KIND} with a {said.guarantee.KIND}.")
    several = len(said.values) > 1
    unit = _named("unit", said.unit, language)
    paragraphs = [
        message(
            language,
            "what.many" if said.query.by else "what.one",
            numbers=len(said.values),
            dataset=said.dataset.name,
            edition=said.dataset.edition,
            columns=" × ".join(keys.column for keys in said.query.by),
            filter="" if said.query.where is None else message(language, "what.filter"),
        ),
        message(
            language,
            f"promise.{_about(said.unit)}",
            unit=unit,
            factor=decimal_up(enclosures.exp(said.guarantee.epsilon).high),
        ),
        _belief(said.unit, Pure(epsilon=said.account.spent.epsilon), language),
        message(
            language,
            "accuracy.many" if several else "accuracy.one",
            numbers=len(said.values),
            margin=said.law.margin(CONFIDENCE),
            joint=said.law.margin(CONFIDENCE, numbers=len(said.values)),
        ),
    ]
    if said.query.by:
        paragraphs.append(message(language, "limit.keys"))
    if said.limit is not None:
        paragraphs.append(message(language, "limit.person", groups=said.limit.groups, rows=said.limit.rows_per_group))
    paragraphs.append(
        message(
            language,
            "account.composition",
            releases=said.account.releases,
            spent=fraction_text(said.account.spent.epsilon),
            total=fraction_text(said.account.budget.epsilon),
            delta=fraction_text(said.account.spent.delta),
        )
    )
    if said.account.ledger.startswith("none"):
        paragraphs.append(message(language, "account.memory"))
    if release.repeated:
        paragraphs.append(message(language, "account.repeated"))
    return "\n\n".join(paragraphs)


def _belief(unit: Unit, spent: Pure, language: str) -> str:
    present, trait = belief(spent, PRIOR), belief(spent.group(2), PRIOR)
    return message(
        language,
        f"belief.{_about(unit)}",
        member=_named("member", unit, language),
        prior=int(1000 * PRIOR),
        high=math.ceil(1000 * present.high),
        low=math.floor(1000 * present.low),
        trait_high=math.ceil(1000 * trait.high),
        trait_low=math.floor(1000 * trait.low),
    )


def _about(unit: Unit) -> str:
    """Rows and persons have sentences of their own, for each relation."""
    relation = {Relation.ADD_REMOVE: "add_remove", Relation.REPLACE: "replace"}[unit.relation]
    return f"row_{relation}" if isinstance(unit, Record) else relation


def _named(role: str, unit: Unit, language: str) -> str:
    size = unit.size if isinstance(unit, Family) else 1
    return message(language, f"{role}.{unit.KIND.removeprefix('unit.')}", size=size)
