"""Verification: a certificate checked from itself alone, without data, engine or vault.

What it proves: the numbers of the claim follow from each other, the document is as it was signed, and, with a trusted
key, who signed it. What it cannot prove: which noise was drawn, or that the rows were the rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from pathlib import Path

from sfumato.accounting.basic import cost, guarantee_of
from sfumato.accounting.filter_cost import filter_cost, reading
from sfumato.core.budget import Budget
from sfumato.core.certificate import KIND, VERSION, Certificate, seals, signed_text
from sfumato.core.days import check_days
from sfumato.core.documents import Json, canonical, encode, parse
from sfumato.core.events import PrivacyEvent
from sfumato.core.finding import Finding
from sfumato.core.query import Dataset
from sfumato.core.release import Release
from sfumato.core.sensitivity import Sensitivity
from sfumato.core.signature import read_public_key, signature_holds
from sfumato.core.statement import OWNER_PROCESS, Statement
from sfumato.core.units import Relation
from sfumato.errors import InvalidInput, Refused, SfumatoError
from sfumato.mechanisms import (
    Gaussian,
    Ladder,
    Ladders,
    Laplace,
    LimitSearch,
    LInfKNorm,
    NoisyCells,
    NoisyThreshold,
    OptimalSelection,
    QuantileChoice,
    TopChoice,
)
from sfumato.mechanisms.ladder import edges_of
from sfumato.reports.declarations import DECLARATIONS
from sfumato.reports.presenter import Reports

__all__ = ["Finding", "Verification", "load", "parsed", "read", "verify"]

PARTS = ("kind", "version", "statement", "seals", "signature")
WIDEST = 2**200


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The outcome: no findings means consistent; ``authenticated`` also that the trusted key signed it."""

    findings: tuple[Finding, ...]
    authenticated: bool

    @property
    def consistent(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings

    def __str__(self) -> str:
        if self.findings:
            return "\n".join(f"{finding.field}: {finding.problem}" for finding in self.findings)
        if self.authenticated:
            return "consistent, and signed by the trusted key"
        return "consistent, not authenticated: no trusted key was given"


def read(path: str | Path) -> dict[str, Json]:
    """Read a certificate file; what is not one is refused."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput(f"{path} cannot be read as a text file; nothing was verified.") from None
    return parsed(text)


def parsed(text: str) -> dict[str, Json]:
    """Read the text of a certificate; what is not one is refused."""
    document = parse(text)
    if not isinstance(document, dict):
        raise InvalidInput("this is not a certificate (a JSON object); nothing was verified.")
    return document


def verify(document: dict[str, Json], *, key: str | Path | None = None) -> Verification:
    """Check a certificate: seals, signature, and every number that follows from another.

    ``key`` is the public key (or its file) that the reader trusts; without it nobody is authenticated.
    """
    trusted = None if key is None else read_public_key(key)
    findings: list[Finding] = []
    try:
        document = parsed(canonical(document))
        findings += [*_shape(document), *_seals(document), *_signature(document, trusted)]
        statement = DECLARATIONS.decode(document.get("statement"), "statement")
        if isinstance(statement, Statement):
            findings += _derivation(statement)
        else:
            findings.append(Finding(field="statement.kind", problem="this is not the statement of a release"))
    except SfumatoError as wrong:
        findings.append(Finding(field=str(wrong).split(" ")[0].rstrip(":"), problem=str(wrong)))
    except (RecursionError, ValueError, TypeError, OverflowError):
        findings.append(Finding(field="document", problem="holds text, numbers or nesting that no certificate has"))
    return Verification(findings=tuple(findings), authenticated=trusted is not None and not findings)


def load(path: str | Path, *, key: str | Path | None = None) -> Release:
    """Read a release from its certificate, after verifying it; a forged or inconsistent one is refused.

    The release comes with words and pictures, and can be post-processed; it costs nothing.
    """
    document = read(path)
    outcome = verify(document, key=key)
    if not outcome.consistent:
        raise Refused(f"{path} does not verify and was not loaded.\n{outcome}")
    return Release(
        statement=DECLARATIONS.decode(document["statement"], "statement"),
        certificate=Certificate(canonical(document)),
        charged=Budget.none(),
        repeated=False,
        presenter=Reports(),
    )


def _shape(document: dict[str, Json]) -> Iterator[Finding]:
    for name in document:
        if name not in PARTS:
            yield Finding(field=name, problem="is not a part of a certificate")
    for name in PARTS:
        if name not in document:
            yield Finding(field=name, problem="is missing")
    if document.get("kind") != KIND:
        yield Finding(field="kind", problem=f"must be {KIND!r}")
    if document.get("version") != VERSION or isinstance(document.get("version"), bool):
        yield Finding(field="version", problem=f"must be {VERSION}, the one version that this code reads")


def _seals(document: dict[str, Json]) -> Iterator[Finding]:
    stated, signature = document.get("seals"), document.get("signature")
    found = seals(document.get("statement"), signature.get("key") if isinstance(signature, dict) else None)
    if not isinstance(stated, dict):
        yield Finding(field="seals", problem="must be an object with one digest for each field")
        return
    for name in sorted({*stated, *found}):
        if stated.get(name) != found.get(name):
            yield Finding(field=name, problem="differs from its seal: one of the two was changed")


def _signature(document: dict[str, Json], trusted: str | None) -> Iterator[Finding]:
    signature = document.get("signature")
    if not isinstance(signature, dict) or set(signature) != {"algorithm", "key", "value"}:
        yield Finding(field="signature", problem="must hold algorithm, key and value")
        return
    algorithm, signer, value = signature["algorithm"], signature["key"], signature["value"]
    if algorithm != "Ed25519":
        yield Finding(field="signature.algorithm", problem="must be Ed25519")
    if not _hexadecimal(signer, 64):
        yield Finding(field="signature.key", problem="must be 64 hexadecimal digits")
    elif trusted is not None and signer != trusted:
        yield Finding(field="signature.key", problem="is not the trusted key: someone else signed this")
    if not _hexadecimal(value, 128):
        yield Finding(field="signature.value", problem="must be 128 hexadecimal digits")
    elif not signature_holds(str(signer), str(value), signed_text(document)):
        yield Finding(field="signature.value", problem="does not hold: the document is not as this key signed it")


def _derivation(said: Statement) -> Iterator[Finding]:
    """Derive again what follows: sensitivity from query, unit and limit; loss from mechanism; cost from loss."""
    if said.query.dataset != said.dataset:
        yield Finding(field="statement.dataset", problem="is not the dataset that the query asks")
    try:
        sensitivity = said.query.sensitivity(said.unit, said.limit)
    except SfumatoError as wrong:
        yield Finding(field="statement.unit", problem=f"unit, limit and query do not fit: {wrong}")
        return
    if said.mechanism.KIND not in said.query.ANSWERED_BY:
        yield Finding(field="statement.mechanism.kind", problem=f"must be one of {', '.join(said.query.ANSWERED_BY)}")
        return
    try:
        event = said.mechanism.loss(sensitivity)
    except SfumatoError as wrong:
        yield Finding(field="statement.mechanism", problem=f"cannot have made this release: {wrong}")
        return
    yield from _same("sensitivity", encode(said.sensitivity), encode(sensitivity))
    yield from _same("event", encode(said.event), encode(event))
    yield from _same("law", encode(said.law), encode(said.mechanism.law))
    yield from _calibration(said, sensitivity)
    yield from _price(said, event)
    if not all(abs(value) < 2**63 for value in said.values):
        yield Finding(field="statement.values", problem="must be whole numbers of 64 bits")
    yield from said.query.check_answer(said)
    yield from _account(said)
    private = {said.dataset, *_joined(getattr(said.query, "joins", ()))}
    if len(set(said.derived)) != len(said.derived) or not private.issuperset(said.derived):
        yield Finding(field="statement.derived", problem="must name private datasets of the query, each once")
    try:
        if said.reads is not None:
            check_days(said.reads)
    except InvalidInput:
        yield Finding(field="statement.reads", problem="must be a first and a last day, such as 2026-01-31")


def _joined(steps: Sequence[object]) -> Iterator[Dataset]:
    """The private datasets that the steps of a query read; a step may have steps of its own."""
    for step in steps:
        dataset = getattr(step, "dataset", None)
        if isinstance(dataset, Dataset) and not getattr(step, "public", False):
            yield dataset
        yield from _joined(getattr(step, "steps", ()))


def _calibration(said: Statement, sensitivity: Sensitivity) -> Iterator[Finding]:
    """The mechanism states the bound that it was calibrated for: it must be the one that holds."""
    match said.mechanism:
        case Laplace(scale=scale) | LInfKNorm(scale=scale) if scale >= WIDEST:
            yield Finding(field="statement.mechanism.scale", problem="is wider than any noise that this code draws")
        case Gaussian(sigma=sigma) if sigma >= WIDEST:
            yield Finding(field="statement.mechanism.sigma", problem="is wider than any noise that this code draws")
        case Laplace(l1=stated) if sensitivity.l1 is not None and stated != sensitivity.l1.value:
            yield _miscalibrated("l1", sensitivity.l1.value)
        case Gaussian(l2_squared=stated) if sensitivity.l2 is not None and stated != sensitivity.l2.squared:
            yield _miscalibrated("l2_squared", sensitivity.l2.squared)
        case NoisyThreshold(keys=stated) | OptimalSelection(keys=stated) if (
            sensitivity.l0 is not None and stated != sensitivity.l0.count
        ):
            yield Finding(
                field="statement.mechanism.keys", problem=f"must be {sensitivity.l0.count}, which a unit moves"
            )
        case TopChoice(monotone=True) if said.unit.relation is not Relation.ADD_REMOVE:
            yield Finding(
                field="statement.mechanism.monotone", problem="must be false: who is replaced moves both ways"
            )
        case TopChoice(choices=stated) if stated != said.query.size:
            yield Finding(field="statement.mechanism.choices", problem="must be as many as the query asks for")
        case QuantileChoice(quantiles=stated) if stated != getattr(said.query, "levels", None):
            yield Finding(field="statement.mechanism.quantiles", problem="must be those that the query asks for")
        case QuantileChoice(steps=stated) if stated != getattr(getattr(said.query, "lattice", None), "steps", None):
            yield Finding(field="statement.mechanism.steps", problem="must be those of the query's lattice")
        case Ladder() | Ladders():
            yield from _ladders(said)
        case LimitSearch():
            yield from _rebuilt(said)
        case NoisyCells(cells=cells, count_step=count, cell_step=cell):
            if cells != getattr(said.query, "cells", None):
                yield Finding(field="statement.mechanism.cells", problem="must be the pairs of the query's nodes")
            if (count, cell) != getattr(said.query, "cell_steps", None):
                yield Finding(field="statement.mechanism.cell_step", problem="must be the steps of the sensitivity")
        case LInfKNorm(linf=stated) if sensitivity.linf is not None and stated != sensitivity.linf.value:
            yield _miscalibrated("linf", sensitivity.linf.value)


def _ladders(said: Statement) -> Iterator[Finding]:
    """A ladder is for the count that is asked, and for as many edges as a unit is."""
    parts = said.mechanism.parts if isinstance(said.mechanism, Ladders) else (said.mechanism,)
    counts = (None, 2) if isinstance(said.mechanism, Ladders) else (getattr(said.query, "leaves", None),)
    if tuple(getattr(part, "leaves", None) for part in parts) != counts:
        yield Finding(field="statement.mechanism.leaves", problem="must be those of the count that is asked")
    try:
        edges = edges_of(said.unit)
    except SfumatoError as wrong:
        yield Finding(field="statement.unit", problem=f"cannot have a ladder: {wrong}")
        return
    if any(getattr(part, "edges", None) != edges for part in parts):
        yield Finding(field="statement.mechanism.edges", problem=f"must be {edges}, which one unit adds or removes")
    if any((getattr(part, "guide", 0) != 0) != (getattr(said.query, "share", 0) != 0) for part in parts):
        yield Finding(
            field="statement.mechanism.guide", problem="must be above 0 exactly if the query gives it a share"
        )
    yield from _rebuilt(said)


def _rebuilt(said: Statement) -> Iterator[Finding]:
    """The mechanism is the one that the query makes of what was charged, where the query makes it."""
    if not hasattr(said.query, "mechanism"):
        return
    try:
        made = said.query.mechanism(said.sensitivity, said.unit, said.spend)
    except SfumatoError as wrong:
        yield Finding(field="statement.mechanism", problem=f"cannot be made of the charge: {wrong}")
        return
    if made != said.mechanism:
        yield Finding(field="statement.mechanism", problem="is not the one that the query makes of the charge")


def _miscalibrated(norm: str, holds: Fraction) -> Finding:
    return Finding(field=f"statement.mechanism.{norm}", problem=f"must be the bound that holds, {norm} = {holds}")


def _price(said: Statement, event: PrivacyEvent) -> Iterator[Finding]:
    """The charge is what the noise costs, and the stated guarantee is what was charged."""
    try:
        guarantee = guarantee_of(event, said.spend)
    except SfumatoError as wrong:
        yield Finding(field="statement.spend", problem=f"is {said.spend}, and {wrong}")
        return
    except ImportError:
        yield Finding(
            field="statement.spend", problem="cannot be checked for a sampled release without NumPy and SciPy"
        )
        return
    yield from _same("guarantee", encode(said.guarantee), encode(guarantee))
    if said.spend != cost(guarantee):
        yield Finding(field="statement.spend", problem=f"is {said.spend}; the noise stated costs {cost(guarantee)}")


def _account(said: Statement) -> Iterator[Finding]:
    account = said.account
    if account.method == "basic":
        yield from _summed(said)
    elif account.method in ("zcdp", "rdp"):
        yield from _filtered(said)
    else:
        yield Finding(field="statement.account.method", problem="must be basic, zcdp or rdp")
    if not account.budget.covers(account.spent):
        yield Finding(field="statement.account.budget", problem="is less than what was spent")
    if account.releases < 1:
        yield Finding(field="statement.account.releases", problem="must count this release")
    if account.custody not in (None, OWNER_PROCESS):
        yield Finding(field="statement.account.custody", problem=f"must be {OWNER_PROCESS!r}, or not be there")
    if account.witness is not None and not _hexadecimal(account.witness, 64):
        yield Finding(field="statement.account.witness", problem="must be 64 hexadecimal digits, or not be there")
    if not _hexadecimal(said.identifier, 32):
        yield Finding(field="statement.identifier", problem="must be 32 hexadecimal digits")
    try:
        datetime.fromisoformat(said.issued)
    except ValueError:
        yield Finding(field="statement.issued", problem="must be a date and time")


def _summed(said: Statement) -> Iterator[Finding]:
    """Of an account that adds up ε and δ: it spent at least what this release costs, and has no filter."""
    account = said.account
    if not account.spent.covers(said.spend):
        yield Finding(field="statement.account.spent", problem="is less than this release alone costs")
    for name in ("order", "filter_cap", "filter_spent"):
        if getattr(account, name) is not None:
            yield Finding(field=f"statement.account.{name}", problem="must be null: sums of ε and δ decide")


def _filtered(said: Statement) -> Iterator[Finding]:
    """Of an account with a filter: what this release loses was counted, and ε and δ follow from what was."""
    account, place = said.account, "statement.account"
    order, cap, spent = account.order, account.filter_cap, account.filter_spent
    if (order is None) is not (account.method == "zcdp") or (order is not None and order <= 1):
        yield Finding(field=f"{place}.order", problem="must be an order above 1 for method rdp, else null")
        return
    if cap is None or spent is None:
        name = "filter_cap" if cap is None else "filter_spent"
        yield Finding(field=f"{place}.{name}", problem=f"must be stated for method {account.method}")
        return
    if not 0 < account.budget.delta < 1:
        yield Finding(field=f"{place}.budget", problem="must have a δ between 0 and 1, at which the filter is read")
        return
    try:
        lost = filter_cost(said.event, order)
    except SfumatoError as wrong:
        yield Finding(field=f"{place}.method", problem=f"cannot have admitted this release: {wrong}")
        return
    except ImportError:
        yield Finding(field=f"{place}.method", problem="cannot be checked for a sampled release without NumPy")
        return
    if spent < lost:
        yield Finding(field=f"{place}.filter_spent", problem="is less than this release alone loses")
    if cap < spent:
        yield Finding(field=f"{place}.filter_cap", problem="is less than what was spent")
    if not account.budget.covers(reading(cap, order, account.budget.delta)):
        yield Finding(field=f"{place}.filter_cap", problem="allows more than the budget: its ε is larger")
    derived = reading(spent, order, account.budget.delta)
    yield from _same("spent", encode(account.spent), encode(derived), place)


def _same(name: str, stated: Json, derived: Json, path: str = "statement") -> Iterator[Finding]:
    if stated == derived:
        return
    if isinstance(stated, dict) and isinstance(derived, dict) and set(stated) == set(derived):
        for inner in stated:
            yield from _same(inner, stated[inner], derived[inner], f"{path}.{name}")
        return
    yield Finding(field=f"{path}.{name}", problem=f"is {stated}; it follows from the rest as {derived}")


def _hexadecimal(text: Json, digits: int) -> bool:
    return isinstance(text, str) and len(text) == digits and all(sign in "0123456789abcdef" for sign in text)
