"""The pack for people: Markdown, rendered from the JSON document alone, everything in it quoted."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sfumato.core.documents import Json, canonical
from sfumato.governance.board import signed_by
from sfumato.reports.evidence.quoting import code, quoted
from sfumato.reports.evidence.sections import NOT_DECLARED

__all__ = ["rendered"]

Evidence = dict[str, Any]  # a part of the evidence as JSON, whose shape a schema has checked


def rendered(evidence: dict[str, Json]) -> str:
    """The whole pack as Markdown."""
    return "\n".join(_lines(evidence)) + "\n"


def _lines(evidence: Evidence) -> Iterator[str]:
    scope, head, record = evidence["scope"], evidence["head"], evidence["record"]
    about = "all releases" if scope["of"] is None else f"{scope['by']} {scope['of']}"
    yield from ("# Evidence pack", "")
    yield from _grounds(evidence["publication"])
    yield from (quoted(evidence["note"]), "")
    yield from _table(
        ("fact", "value"),
        (
            ("scope", about),
            ("ledger", evidence["ledger"]),
            ("signed head", f"entry {head['entry']} of {head['at']}, digest {head['digest']}"),
            ("key to verify the ledger with, its own or its root", head["key"]),
            ("written by", evidence["code"]),
            ("charges with an answer", evidence["charges"]["answered"]),
            ("charges without an answer, which count", evidence["charges"]["without_answer"]),
            ("charges given back, which do not", evidence["charges"]["given_back"]),
            ("stored answers that do not verify", evidence["charges"]["unsound"]),
            ("the record", "verified: nothing found" if record["verified"] else "does not verify, see below"),
        ),
    )
    wrong = [*record["findings"], *record["unread"]]
    if wrong:
        yield from ("## What is wrong with the record", "")
        yield from _table(("entry", "problem"), ((each["entry"] or "all", each["problem"]) for each in wrong))
    yield from ("## Questions that only a person can answer", "")
    yield from (f"- {quoted(question)}" for question in evidence["questions"])
    yield ""
    for section in evidence["sections"]:
        yield from _section(section)
    yield from ("## Releases", "")
    for release in evidence["releases"]:
        yield from _release(release, head["key"])


def _grounds(publication: Evidence) -> Iterator[str]:
    """First of all: whether this may be published, or what is missing."""
    if publication["status"] == "draft":
        for words in publication["note"]:
            yield from (f"> **{quoted(words)}**", ">")
        yield ""
        return
    yield from _table(
        ("on record for publication", "in the publisher's words"),
        (("reason", publication["reason"]), ("legal basis", publication["legal_basis"])),
    )


def _section(section: Evidence) -> Iterator[str]:
    yield from (f"## {quoted(section['title'])}", "", quoted(section["source"]), "")
    for paragraph in section["says"]:
        yield from (quoted(paragraph), "")
    yield from _table(section["columns"], section["rows"])


def _release(release: Evidence, key: str) -> Iterator[str]:
    charge = release["charge"]
    yield from (f"### Charge {charge['entry']}: {quoted(release['state'])}", "")
    account = release["account"]
    yield from _table(
        ("fact", "as the record states it"),
        (
            ("charged", _place(charge)),
            ("settled", _place(release["settled"]) or "not yet"),
            ("unit", release["unit"]["words"]),
            ("spend", _amount(release["spend"])),
            (
                "account as it stood after",
                f"{account['name']}: {_amount(account['spent'])}, of {_amount(account['budget'])}, "
                f"charge {account['releases']}",
            ),
            ("purpose", release["purpose"]),
            ("recipient", release["recipient"]),
            *((("days read", " to ".join(release["reads"])),) if release["reads"] else ()),
            ("not declared", ", ".join(release["missing"]) or "nothing is missing"),
        ),
    )
    if release["certificate"] is not None:
        yield from _answer(release)
    yield from _data(release["datasets"])
    yield from _table(
        ("balance charged", "cap when opened", "reason for the cap"),
        (
            (line["name"], None if line["cap"] is None else _amount(line["cap"]), line["reason"])
            for line in release["lines"]
        ),
    )
    for title, approvals in (("Approval", release["approvals"]), ("Raised before", release["raises"])):
        for approval in approvals:
            yield from _approval(title, approval)
    if not release["approvals"]:
        yield from (f"Approval: {NOT_DECLARED}.", "")
    if release["later"]:
        yield from ("What happened later:", "")
        yield from _table(
            ("entry", "when", "what", "who", "reason"),
            (
                (each["record"]["entry"], each["record"]["at"], each["what"], _who(each), each["reason"])
                for each in release["later"]
            ),
        )
    yield from _certificate(release["certificate"], key)
    if release["words"] is not None:
        yield from (f"Margins: {quoted(release['words']['margins'])}", "")
        for language in ("en", "zh"):
            yield from (f"For an ethics board ({language}):", "")
            for paragraph in release["words"][language]:
                yield from (f"> {quoted(paragraph)}", ">")
            yield ""
    if release.get("batches") is not None:  # a pack of an earlier version has none
        yield from _batches(release["batches"])


def _batches(compared: Evidence) -> Iterator[str]:
    """A comparison of batches: its words in each language, and its table."""
    for language in ("en", "zh"):
        yield from (f"Comparison of batches ({language}):", "")
        for line in compared["words"][language]:
            yield from (f"> {quoted(line)}", ">")
        yield ""
    yield from _table(compared["columns"], compared["rows"])


def _answer(release: Evidence) -> Iterator[str]:
    """What was asked, and what the certificate says of itself; canonical JSON stands as code."""
    stated = release["stated"] or {}
    yield from _table(("answer", "as certified"), (("identifier", release["identifier"]), ("code", release["code"])))
    yield from ("Question, canonical:", "", code(release["question"]), "")
    for name in ("limit", "sensitivity", "mechanism"):
        said = stated.get(name)
        yield from (f"{name}: {NOT_DECLARED if said is None else code(canonical(said))}", "")


def _data(datasets: Sequence[Evidence]) -> Iterator[str]:
    rows = []
    for data in datasets:
        terms = data["terms"] or {}
        rows += [
            ("dataset", f"{data['name']} version {data['version']}"),
            ("people", data["population"]),
            ("declared", _place(data["declared"])),
            ("terms of", _place(data["terms_declared"])),
            ("purposes allowed", _all(terms.get("purposes"))),
            ("legal ground", terms.get("ground")),
            ("special category", terms.get("condition")),
            ("HIPAA basis", terms.get("hipaa")),
            ("consent scope", _all(terms.get("consent"), none="none" if terms else None)),
            ("consent text", terms.get("consent_text")),
            ("forbidden", _all(terms.get("forbidden"), none="nothing" if terms else None)),
            ("recipients allowed", _all(terms.get("recipients"), none="everybody" if terms else None)),
            ("last day of use", terms.get("until")),
            ("communities with a veto", _all(data["communities"], none="none")),
        ]
    yield from _table(("data", "as declared then"), rows)


def _approval(title: str, approval: Evidence) -> Iterator[str]:
    reasons = approval["reasons"]
    outcome = f"{approval['outcome']} on {approval['decided']} ({approval['why']})"
    yield from _table(
        (f"{title}: proposal {approval['proposal']}", "as recorded"),
        (
            ("asks to", f"{approval['action']}: {approval['subject']}"),
            ("made by", f"{approval['proposer']}, {_place(approval['record'])}, {signed_by(approval['key'])}"),
            ("outcome", outcome if approval["outcome"] else "undecided"),
            ("benefit weighed", reasons["benefit"]),
            ("risk weighed", reasons["risk"]),
            ("why this ε", reasons["choice"]),
            *(
                (
                    f"vote of {vote['voter']}",
                    f"{vote['choice']}, {_place(vote['record'])}, {signed_by(vote['key'])}"
                    f"{': ' + vote['reason'] if vote['reason'] else ''}",
                )
                for vote in approval["votes"]
            ),
        ),
    )


def _who(later: Evidence) -> str | None:
    key = later["key"]
    return later["who"] if key is None else f"{later['who']} ({signed_by(key)})"


def _certificate(certificate: Evidence | None, key: str) -> Iterator[str]:
    if certificate is None:
        yield from ("There is no answer, and no certificate.", "")
        return
    if certificate["consistent"]:
        signer = f"the key {certificate['signer']}"
        if certificate["signed_by_ledger"]:
            own = certificate["signer"] == key
            signer = "the ledger's own key" if own else f"{signer}, which the root had certified for releases"
        name = certificate["file"]
        if certificate["receipt"] is not None:
            name = f"{name} --receipt {certificate['receipt']} --head head.json"
        yield from (f"Certificate: consistent, signed by {quoted(signer)}. Check it: `sfumato verify {name}`", "")
        return
    yield from ("**The stored answer does not verify.** It is not among the certificates of this pack.", "")
    yield from _table(("field", "problem"), ((each["field"], each["problem"]) for each in certificate["findings"]))


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    yield f"| {' | '.join(quoted(column) for column in columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        cells = (NOT_DECLARED if cell is None or cell == "" else quoted(str(cell)) for cell in row)
        yield f"| {' | '.join(cells)} |"
    yield ""


def _place(place: Evidence | None) -> str | None:
    return None if place is None else f"entry {place['entry']}, {place['at']}"


def _all(names: Sequence[str] | None, *, none: str | None = None) -> str | None:
    return ", ".join(names) if names else none


def _amount(budget: dict[str, str]) -> str:
    """ε and δ; a whole number without its denominator."""
    return ", ".join(f"{sign} = {budget[name].removesuffix('/1')}" for name, sign in (("epsilon", "ε"), ("delta", "δ")))
