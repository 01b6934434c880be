"""The three questions of Opinion 05/2014 (singling out, linkage, inference) and the facts for an expert under HIPAA.

The figures follow from the guarantee alone (:mod:`sfumato.reports.evidence.attacks`). They bound what the releases in
the record can add to what an attacker knows; they say nothing of data that left the house in another way.
"""

from collections.abc import Sequence

from sfumato.core.budget import Budget
from sfumato.core.units import Relation, describe
from sfumato.governance.balances import Balance
from sfumato.governance.provenance import Provenance
from sfumato.reports.evidence.attacks import HOUSEHOLD, gains
from sfumato.reports.evidence.sections import Section, distinct

__all__ = ["hipaa", "inference", "linkage", "singling_out"]

_OPINION = "Article 29 Working Party, Opinion 05/2014 on anonymisation techniques (GDPR, recital 26)"
Exposure = tuple[str, Budget, Relation]


def singling_out(charges: Sequence[Provenance], touched: Sequence[Balance]) -> Section:
    """How well somebody can tell whether one unit is in the data."""
    rows = tuple(
        (name, *(str(gains(spent, relation)[column]) for column in ("epsilon", "delta", "accuracy", "auc", "missed")))
        for name, spent, relation in _exposures(charges, touched)
    )
    return Section(
        title="Singling out",
        source=_OPINION,
        says=(
            "The question is whether a unit can be isolated: shown to be in the data, or not.",
            "The figures bound every attack, also one by somebody who knows all other records and the code. 0.5 for a "
            "guess and for the area under the curve is what guessing blindly gives, and 1 is certainty. A figure for a "
            "balance covers everything that was ever charged to it, in this pack or not.",
        ),
        columns=(
            "what",
            "ε",
            "δ",
            "best guess from even odds is right, at most",
            "area under the curve, at most",
            "missed at 1% false alarms, at least",
        ),
        rows=rows,
        questions=(
            "Is the unit that is protected the one that people would name: a person, and not one record of a person?",
            "Are these figures acceptable to those in the data, and who asked them?",
        ),
    )


def linkage(charges: Sequence[Provenance], touched: Sequence[Balance]) -> Section:
    """What all releases on the same people give when they are laid side by side."""
    rows = tuple(
        (
            balance.name,
            describe(balance.unit),
            str(balance.charges),
            str(found["epsilon"]),
            str(found["delta"]),
            str(found["accuracy"]),
            str(found["household"]),
        )
        for balance in touched
        if (found := gains(balance.spent, balance.unit.relation))
    )
    return Section(
        title="Linkage",
        source=_OPINION,
        says=(
            "The question is whether records or releases on the same unit can be joined to reveal more than each does.",
            "Versions, copies and overlapping datasets of the same people draw on one population balance, so that its "
            "figure covers all of them together, whatever else is known about these people. The last column is for "
            f"{HOUSEHOLD} units that are known to belong together, such as a household.",
            f"Charges in this pack: {len(charges)}. Charges without an answer count too: rows may have been read.",
        ),
        columns=(
            "balance",
            "unit",
            "charges",
            "ε in all",
            "δ in all",
            "best guess, at most",
            f"best guess about {HOUSEHOLD} units, at most",
        ),
        rows=rows,
        questions=(
            "Are there releases about the same people outside this ledger? Their losses add to these.",
            "Are populations that were declared apart really different people?",
        ),
    )


def inference(charges: Sequence[Provenance], touched: Sequence[Balance]) -> Section:
    """How far a belief about a unit can be moved."""
    rows = tuple(
        (name, *(str(gains(spent, relation)[column]) for column in ("epsilon", "delta", "belief", "trait")))
        for name, spent, relation in _exposures(charges, touched)
    )
    return Section(
        title="Inference",
        source=_OPINION,
        says=(
            "The question is whether the value of an attribute of a unit can be deduced from the releases.",
            "The figures say how far a belief of 100 in 1,000 can be moved, out of 1,000 and rounded outward: that the "
            "unit is in the data, and that a unit known to be in them has a certain trait.",
            "No figure bounds what the releases teach about groups, and so about every member of a group, in the data "
            "or not.",
        ),
        columns=("what", "ε", "δ", "belief that the unit is in the data", "belief that the unit has a trait"),
        rows=rows,
        questions=(
            "Could a true statement about a group harm its members, and were they heard?",
            "Which belief does an attacker here start from, if not 100 in 1,000?",
        ),
    )


def hipaa(charges: Sequence[Provenance], touched: Sequence[Balance]) -> Section:
    """The facts that an expert needs; the determination itself is the expert's."""
    terms = [reading.terms for charge in charges for reading in charge.readings]
    people = [balance for balance in touched if balance.name.startswith("population ")] or list(touched)
    answered = [charge for charge in charges if charge.certificate is not None]
    worst = [gains(balance.spent, balance.unit.relation)["accuracy"] for balance in people]
    return Section(
        title="Facts for an expert determination",
        source="HIPAA, 45 CFR 164.514(b)(1)",
        says=(
            "A person with knowledge of accepted statistical methods determines the risk and documents methods and "
            "results. The facts gathered here are for that person; the pack determines nothing.",
        ),
        columns=("fact", "as the record states it"),
        rows=(
            ("basis declared for the data", distinct(None if each is None else each.hipaa.value for each in terms)),
            ("anticipated recipients", distinct(charge.recipient for charge in charges)),
            ("methods", distinct(_mechanism(charge) for charge in answered)),
            ("units", distinct(describe(charge.unit) for charge in charges)),
            (
                "best guess from even odds about any one unit, from everything charged, at most",
                "; ".join(f"{balance.name}: {figure}" for balance, figure in zip(people, worst, strict=True)) or "none",
            ),
            ("version of the code", distinct(charge.code for charge in answered)),
            ("data versions", distinct(_version(charge) for charge in charges)),
        ),
        questions=(
            "Who is the expert, and what are that person's knowledge and experience?",
            "Is the risk very small that an anticipated recipient identifies someone, alone or with what is reasonably "
            "available to that recipient?",
            "Where are the methods and results of the analysis documented, and until when does the determination hold?",
        ),
    )


def _exposures(charges: Sequence[Provenance], touched: Sequence[Balance]) -> list[Exposure]:
    """Each charge by itself, then everything that was charged to each balance that it touched."""
    alone = [(f"charge {charge.number}", charge.cost, charge.unit.relation) for charge in charges]
    return alone + [(f"all charged to {balance.name}", balance.spent, balance.unit.relation) for balance in touched]


def _mechanism(charge: Provenance) -> str | None:
    mechanism = charge.statement.get("mechanism")
    return str(mechanism.get("kind")) if isinstance(mechanism, dict) else None


def _version(charge: Provenance) -> str:
    return ", ".join(f"{reading.dataset.name} {reading.dataset.edition}" for reading in charge.readings)
