"""The evidence pack: gathered from the record, of the shape it states, quoting everybody and judging nobody."""

import copy
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import markdown
import pyarrow as pa
import pytest
from markdown_it import MarkdownIt
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli.app import app
from sfumato.cli.exits import Exit
from sfumato.core.adversary import accuracy, auc, belief, tradeoff
from sfumato.core.budget import Budget
from sfumato.core.certificate import Certificate
from sfumato.core.guarantees import Approximate, Pure
from sfumato.core.query import Dataset
from sfumato.core.signature import SigningKey
from sfumato.core.units import Relation, event
from sfumato.errors import InvalidInput, NotDeclared
from sfumato.governance.board import Action, Board, Choice, Community, Reasons, signed_by
from sfumato.governance.ledger import Ledger
from sfumato.governance.periods import Cadence
from sfumato.governance.settings import Settings
from sfumato.governance.time_windows import TimeWindows
from sfumato.reports.evidence import Declared, Pack, Scope, pack, write
from sfumato.reports.evidence.attacks import gains
from sfumato.reports.evidence.markdown import rendered
from sfumato.reports.evidence.metadata import fair, missing
from sfumato.reports.evidence.quoting import code, plain, quoted
from sfumato.reports.evidence.registry import registry
from sfumato.reports.evidence.shape import check, problems, schema
from sfumato.reports.verify import load, read, verify
from tests.governance.homes import ACCOUNT, PATIENT, VISITS, Home, sqlite_home
from tests.governance.signers import key_of, keyed
from tests.governance.test_governed import TERMS
from tests.governance.test_provenance import ONCOLOGY, ROOMY, ROWS, approved, institution, released

RECORD = {"reason": "The plan for winter needs ±40.", "legal_basis": "Section 7 of the health statistics act."}
PUBLIC = Declared(
    publisher="City Hospital", licence="CC-BY-4.0", access="https://example.org/releases", region="the city", **RECORD
)
VERDICT = re.compile(r"compliant|compliance|合规|合規", re.IGNORECASE)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "house").mkdir()
    return sqlite_home(tmp_path / "house")


@pytest.fixture
def ledger(home: Home) -> Ledger:
    """One release before there was a board, one under it, one charge without an answer."""
    made = institution(home)
    released(made)
    approved(made)
    released(made, "1/4", **ONCOLOGY)
    made.account(ACCOUNT, unit=PATIENT, **ONCOLOGY).reserve(Budget(epsilon="1/10"), datasets=[VISITS])
    made.veto(by="mele", key=key_of("mele"), community="valley", dataset="visits", reason="nobody asked us")
    return made


def texts(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text("utf-8") for file in folder.rglob("*") if file.is_file()}


def test_a_pack_is_in_shape(ledger: Ledger) -> None:
    made = pack(ledger, Scope(), PUBLIC)
    for name, document in (("evidence", made.evidence), ("registry", made.registry), ("fair", made.fair)):
        jsonschema.Draft202012Validator.check_schema(schema(name))
        jsonschema.Draft202012Validator(schema(name)).validate(document)
        check(document, name)
    assert made.sound


FREE = ("stated", "terms", "account", "declared", "@context")  # objects of any shape


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for name, item in items:
        yield from _places({} if name in FREE else item, (*path, name))


def _changed(document: Any, path: tuple[Any, ...], change: Callable[[Any, Any], None]) -> Any:
    made = copy.deepcopy(document)
    inner = made
    for step in path[:-1]:
        inner = inner[step]
    change(inner, path[-1])
    return made


def _removed(inner: Any, name: Any) -> None:
    del inner[name]


def _added(inner: Any, name: Any) -> None:
    inner[name] = {**inner[name], "surprise": True} if isinstance(inner[name], dict) else {"surprise": True}


def _put(value: Any) -> Callable[[Any, Any], None]:
    def change(inner: Any, name: Any) -> None:
        inner[name] = value

    return change


@pytest.mark.long
def test_every_broken_document_is_told_with_its_place(ledger: Ledger) -> None:
    """Each field is taken away, and given another type, in turn; what the validator refuses must have words."""
    made = pack(ledger, Scope(release=str(_answered(ledger))), PUBLIC)
    made.evidence["sections"] = made.evidence["sections"][:1] * 7
    broken = 0
    for name, document in (("evidence", made.evidence), ("registry", made.registry), ("fair", made.fair)):
        judge = jsonschema.Draft202012Validator(schema(name))
        for path in list(_places(document))[1:]:
            for change in (_removed, _added, _put(None), _put(7), _put("?"), _put(True)):
                other = _changed(document, path, change)
                ours = problems(other, schema(name))
                assert bool(ours) is not judge.is_valid(other), (name, path, ours)
                assert all(line.startswith("document") for line in ours)
                broken += bool(ours)
    assert broken > 500


def _answered(ledger: Ledger) -> int:
    from sfumato.governance.provenance import Trail

    return next(each.number for each in Trail.of(ledger).charges if each.approvals)


def _rules(stated: Any) -> Iterator[str]:
    """Every keyword of a schema, its inner schemas included."""
    yield from stated
    for name in ("$defs", "properties"):
        for inner in stated.get(name, {}).values():
            yield from _rules(inner)
    for name in ("items", "additionalProperties"):
        if isinstance(stated.get(name), dict):
            yield from _rules(stated[name])


@pytest.mark.parametrize("name", ["evidence", "fair", "registry"])
def test_a_schema_states_nothing_that_is_not_checked(name: str) -> None:
    silent = {"$schema", "$id", "$defs", "title", "description"}
    assert set(_rules(schema(name))) <= silent | set(jsonschema.Draft202012Validator.VALIDATORS)


def test_a_document_out_of_shape_is_refused_with_the_place_and_without_the_value() -> None:
    with pytest.raises(
        InvalidInput, match=r"does not match its schema; nothing was written\. document\.kind is missing"
    ):
        check({}, "registry")
    stated = {
        "properties": {"a": {"minLength": 9}, "b": {"items": {"enum": [1, "x"]}}, "c": {"const": "y"}, "d": {}},
        "additionalProperties": False,
    }
    assert problems({"a": "secret", "b": ["secret"], "c": "secret", "e": "secret"}, stated) == [
        "document.e is not a field",
        "document.a does not meet minLength 9",
        "document.c is not 'y'",
        "document.b[0] must be one of 1, 'x'",
    ]


@pytest.mark.claim("S0-32", "S0-35")
def test_each_release_in_the_pack_has_its_data_code_and_consent_or_says_that_they_were_not_declared(
    ledger: Ledger,
) -> None:
    made = pack(ledger, Scope(), PUBLIC)
    early, late, unanswered = made.evidence["releases"]
    for each in (early, late):
        assert each["datasets"][0]["version"] == "2026-10"
        assert each["code"] == f"sfumato {sf.__version__}"
    assert late["datasets"][0]["terms"]["consent"] == ["research/oncology"]
    assert late["datasets"][0]["terms"]["consent_text"] == "form 3 of 2024"
    assert late["approvals"][0]["reasons"]["choice"] == "±6 is enough for that"
    assert early["datasets"][0]["terms"] is None
    assert unanswered["state"] == "charged, no answer yet"
    assert unanswered["counts"] is True
    text = rendered(made.evidence)
    parts = text.split("\n### Charge ")[1:]
    assert "| consent scope | not declared |" in parts[0]
    assert "| purpose | not declared |" in parts[0]
    assert "Approval: not declared." in parts[0]
    assert "| consent scope | research/oncology |" in parts[1]
    assert "| consent text | form 3 of 2024 |" in parts[1]
    assert "| legal ground | consent |" in parts[1]
    assert "| vote of ben | yes, entry " in parts[1]
    assert signed_by(key_of("ben").public_text) in parts[1]
    assert "There is no answer, and no certificate." in parts[2]
    who = f"mele ({signed_by(key_of('mele').public_text)})"
    assert all(f"| veto of valley | {who} | nobody asked us |" in part for part in parts)


@pytest.mark.claim("S1-28")
def test_metadata_meet_the_fair_schema_or_say_what_is_missing(ledger: Ledger) -> None:
    made = pack(ledger, Scope(), PUBLIC)
    assert missing(made.fair) == ()
    jsonschema.Draft202012Validator(schema("fair")).validate(made.fair)
    for item in made.fair["@graph"]:
        assert item["identifier"] in item["@id"]
        assert item["license"] == "CC-BY-4.0"
        way = item["distribution"]
        assert (way["dcat:accessURL"], way["encodingFormat"]) == ("https://example.org/releases", "application/json")
        text = made.certificates[way["contentUrl"]]
        assert way["sha256"] == hashlib.sha256(text.encode()).hexdigest()
    bare = pack(ledger, Scope(), Declared(**RECORD))
    short = " ".join(missing(bare.fair))
    assert "license is missing" in short
    assert "dcat:accessURL is missing" in short
    assert "Nobody declared the licence: give it with --licence when the pack is written." in bare.evidence["questions"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"access": "javascript:alert(1)"},
        {"access": "//x"},
        {"licence": "all rights"},
        {"licence": "<b>"},
        {"region": ""},
    ],
)
def test_a_declaration_that_is_none_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        Declared(**wrong)


@pytest.mark.long
def test_the_registry_has_every_tier_and_the_numbers_as_they_were_drawn(ledger: Ledger) -> None:
    made = pack(ledger, Scope(), PUBLIC)
    first, second = made.registry["releases"]
    assert (first["entry"]["tier"], second["entry"]["tier"]) == (1, 3)  # nobody stated what the first is for
    assert second["approved"] == ["proposal 1: ben, cho"]
    assert second["later"][0].endswith("veto of valley: nobody asked us")
    stored = json.loads(made.certificates[f"certificates/charge-{second['charge']}.json"])
    assert second["values"] == stored["statement"]["values"]
    loss = second["entry"]["deployment"]["privacy_loss"]
    assert loss["privacy_parameters"] == {"epsilon": 0.25, "delta": 0.0}
    assert second["entry"]["deployment"]["dp_variant"]["variant_name"] == "Pure DP"
    assert second["error"] == "95% margins from the noise: ±12 for each number, ±15 for all at once"


def test_a_parameter_that_no_float_holds_is_rounded_up() -> None:
    from fractions import Fraction

    from sfumato.reports.evidence.registry import _above

    for value in (Fraction(1, 10), Fraction(1, 3), Fraction(2, 3), Fraction(0), Fraction(1, 4), Fraction(1, 10**30)):
        assert Fraction(_above(value)) >= value
        assert Fraction(_above(value)) <= value * Fraction(10**15 + 1, 10**15)


def test_the_figures_follow_from_the_guarantee() -> None:
    found = gains(Budget(epsilon="1/2"), Relation.ADD_REMOVE)
    half, whole = Pure(epsilon=Budget(epsilon="1/2").epsilon), Pure(epsilon=Budget(epsilon=1).epsilon)
    assert (found["accuracy"], found["auc"]) == ("0.6225", "0.6225")
    assert 0 <= float(str(found["accuracy"])) - float(accuracy(half)) < 1e-4
    assert 0 <= float(str(found["auc"])) - float(auc(half)) < 1e-4
    assert 0 <= float(tradeoff(half, 0.01)) - float(str(found["missed"])) < 1e-4
    assert 0 <= float(str(found["household"])) - float(accuracy(half.group(4))) < 1e-4
    assert found["belief"] == "63 to 155 (from 100)"
    assert found["trait"] == "39 to 232 (from 100)"  # twice the ε under add/remove
    assert 232 >= 1000 * belief(whole, 0.1).high > 231
    replaced = gains(Budget(epsilon="1/2"), Relation.REPLACE)
    assert replaced["trait"] == "63 to 155 (from 100)"
    assert "does not apply" in str(replaced["belief"])
    both = Budget(epsilon=1, delta="1/1000")
    shown = gains(both, Relation.ADD_REMOVE)
    assert 0 <= float(str(shown["accuracy"])) - float(accuracy(Approximate(epsilon=1, delta=both.delta))) < 1e-4
    assert str(shown["belief"]).startswith("no bound with a δ; a guess is right 732 times at most")
    assert gains(Budget(epsilon=1, delta=1), Relation.ADD_REMOVE)["accuracy"] == "1"
    assert gains(Budget(epsilon=10**6), Relation.REPLACE)["missed"] == "0"


@pytest.mark.long
def test_sections_bound_each_release_and_everything_on_the_same_people(ledger: Ledger) -> None:
    late = _answered(ledger)
    made = pack(ledger, Scope(release=str(late)))
    sections = {each["title"]: each for each in made.evidence["sections"]}
    assert list(sections) == [
        "Singling out",
        "Linkage",
        "Inference",
        "Facts for an expert determination",
        "Five Safes",
        "CARE",
        "FAIR",
        "Provenance and batch effects",
    ]
    rows = {row[0]: row for row in sections["Singling out"]["rows"]}
    assert rows[f"charge {late}"][1:4] == ["1/4", "0", "0.5622"]
    # 1/2 before there was a board, 1/4, and 1/10 that has no answer: all of it is on the same people.
    assert rows["all charged to population patients"][1:4] == ["17/20", "0", "0.7006"]
    (people,) = [row for row in sections["Linkage"]["rows"] if row[0] == "population patients"]
    assert people[2:4] == ["3", "17/20"]
    facts = dict(sections["Facts for an expert determination"]["rows"])
    assert facts["anticipated recipients"] == "public"
    assert facts["methods"] == "mechanism.laplace"
    care = dict(sections["CARE"]["rows"])
    assert care["authority to control: communities with a veto"] == "valley"
    assert "nobody asked us" in care["authority to control: vetoes after the releases"]
    assert "form 3 of 2024" in care["ethics: what the people agreed to"]


@pytest.mark.long
def test_the_markdown_is_made_of_the_json_alone_and_the_same_record_gives_the_same_pack(
    ledger: Ledger, tmp_path: Path
) -> None:
    one, two = pack(ledger, Scope(), PUBLIC), pack(ledger, Scope(), PUBLIC)
    assert one == two
    write(one, tmp_path / "one")
    write(two, tmp_path / "two")
    assert texts(tmp_path / "one") == texts(tmp_path / "two")
    stored = json.loads((tmp_path / "one" / "evidence.json").read_text("utf-8"))
    assert rendered(stored) == (tmp_path / "one" / "evidence.md").read_text("utf-8")


@pytest.mark.long
def test_no_text_holds_a_verdict_and_none_calls_a_release_safe(ledger: Ledger, tmp_path: Path) -> None:
    write(pack(ledger, Scope(), PUBLIC), tmp_path / "pack")
    found = texts(tmp_path / "pack")
    assert len(found) >= 10
    for name, text in found.items():
        assert not VERDICT.search(text), name
        assert not re.search(r"\bsafe\b|\bsafely\b|安全", text, re.IGNORECASE), name
    folder = Path(sf.__file__).parent / "reports" / "evidence"
    sources = [file for file in folder.rglob("*") if file.suffix in (".py", ".json") and file.name != "quoting.py"]
    assert len(sources) >= 15
    for file in sources:
        assert not VERDICT.search(file.read_text("utf-8")), file.name
        assert not re.search(r"\bsafe\b", file.read_text("utf-8"), re.IGNORECASE), file.name
    page = Path(__file__).parents[2] / "docs" / "explanation" / "evidence.md"
    assert not re.search(r"is (?:GDPR |HIPAA )?compliant", page.read_text("utf-8"), re.IGNORECASE)


# What hostile hands can write into a record.

HOSTILE = (
    "</td></table><script>alert(1)</script>",
    "[click](javascript:alert(1)) ![x](https://evil.example/x.png)",
    "a | b | c\n\n# GDPR compliant\n\n- 完全合规",
    "`code` **bold** _it_ ~~no~~ <img src=x onerror=alert(2)> &lt;b&gt;",
    "\x1b[2J\x1b[31mred\x07 \u202egnp.exe \u2066",
    "../../../../etc/passwd",
    "https://evil.example www.evil.example <https://evil.example> [a]: https://evil.example",
    "$\\href{javascript:alert(1)}{x}$ {: onclick=alert(1) } [^1] ||| \\| \\",
    "=HYPERLINK('x') 100% COMPLIANT, HIPAA-compliance",
)


class Seen(HTMLParser):
    """What a reader's program makes of a page: its tags, and how many cells each row has."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.tables: list[list[int]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append(0)
        elif tag in ("td", "th"):
            self.tables[-1][-1] += 1


def seen(text: str) -> Seen:
    """The text as two programs show it: one of the kind that makes our own pages, and one that follows CommonMark."""
    found = Seen()
    found.feed(markdown.markdown(text, extensions=["tables", "attr_list", "footnotes", "md_in_html"]))
    found.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))
    return found


def hostile_ledger(home: Home, words: str) -> Ledger:
    made = home.create()
    made.open_account("hospital", unit=PATIENT, cap=ROOMY, reason=words)
    made.declare_population(words, unit=PATIENT, cap=ROOMY, reason=words)
    dataset = Dataset(name=words, edition=words)
    made.declare_dataset(dataset, population=words, cap=ROOMY)
    board = Board(
        members=(words, "ben", "cho"),
        quorum=2,
        communities=(Community(name=words, representatives=(words,), datasets=(words,)),),
    )
    made.seat(keyed(board), by=words, reason=words)
    purpose = "research/oncology"  # a purpose is held to a plain spelling; everything else can be any text
    terms = replace(TERMS, dataset=words, purposes=(purpose,), forbidden=(), recipients=(words,), consent_text=words)
    made.declare_terms(terms)
    number = made.propose(
        by=words,
        action=Action.DATASET,
        subject=words,
        reasons=Reasons(benefit=words, risk=words, choice=words),
        datasets=(words,),
        key=key_of(words),
    )
    for voter in ("ben", "cho"):
        made.vote(number, by=voter, key=key_of(voter), choice=Choice.YES, reason=words)
    vault = sf.Vault(unit=PATIENT, ledger=made, account="hospital", purpose=purpose, recipient=words)
    table = vault.table(
        pa.table({"patient_id": [1, 2], words: [words, "b"]}),
        name=words,
        version=words,
        limit=sf.Limit(groups=1, rows_per_group=1),
        keys={words: [words, "b"]},
    )
    table.group_by(words).count().release(epsilon=1)
    made.veto(by=words, key=key_of(words), community=words, dataset=words, reason=words)
    return made


@pytest.mark.few(1)
@pytest.mark.parametrize("words", HOSTILE)
def test_words_of_strangers_are_quoted_and_never_obeyed(home: Home, tmp_path: Path, words: str) -> None:
    declared = Declared(publisher=words, region=words, reason=words, legal_basis=words)
    made = pack(hostile_ledger(home, words), Scope(), declared)
    assert made.sound
    files = write(made, tmp_path / "pack")
    assert all((tmp_path / "pack").resolve() in file.resolve().parents for file in files)
    assert {file.name for file in tmp_path.iterdir()} == {"house", "pack"}
    text = (tmp_path / "pack" / "evidence.md").read_text("utf-8")
    page = seen(text)
    assert page.tags <= {"h1", "h2", "h3", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code"} | {
        "blockquote"
    }
    assert page.attributes == set()
    assert all(len(set(cells)) == 1 for cells in page.tables), "a row has more cells than its head"
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings[0] == "# Evidence pack"
    assert len([line for line in headings if line.startswith("# ")]) == 1
    assert all(sign == "\n" or sign.isprintable() for sign in text)
    assert not VERDICT.search(text)
    for published in (made.fair, made.registry):
        shown = json.dumps(published, ensure_ascii=False)
        assert not VERDICT.search(shown)
    for entry in made.registry["releases"]:
        for field in _strings(entry["entry"]):
            assert seen(field).tags <= {"p"}
    # The JSON keeps the record's own words: evidence that was changed would be none.
    assert made.evidence["releases"][0]["datasets"][0]["name"] == words


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _strings(item)


@pytest.mark.parametrize(
    "word",
    [
        *("C\N{CYRILLIC SMALL LETTER O}mpliant", "compli\u00adant", "c\u200bompliance", "ｃｏｍｐｌｉａｎｔ"),
        *("Compl\N{CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I}ant", "c\N{GREEK SMALL LETTER OMICRON}mpliant"),
        *("cómpliant", "comp\nliant", "非合\u200b规"),
    ],
)
def test_a_verdict_is_not_passed_by_its_spelling(word: str) -> None:
    held = "[a verdict in the record, not repeated here]"
    before = "非" if word.startswith("非") else ""
    assert plain(f"α = 1, it is {word}.") == f"α = 1, it is {before}{held}."
    assert code(f"α {word}") == f"`α {before}{held}`"


def test_words_that_are_no_verdict_are_repeated_as_they_were_written() -> None:
    words = "Комплект данных, ολοκληρωμένο, compliments, naïve ﬁgures"
    assert plain(words) == words


def test_a_quotation_that_is_not_escaped_would_be_found() -> None:
    """The twin of the test above: the same words unquoted do become tags, so that the test can fail."""
    assert any(seen(words).tags - {"p", "code"} for words in HOSTILE)
    assert all(
        seen(f"| a |\n|---|\n| {quoted(words)} |").tags <= {"table", "thead", "tbody", "tr", "th", "td"}
        for words in HOSTILE
    )
    assert all(seen(f"x {code(words)}").tags <= {"p", "code"} for words in HOSTILE)
    assert plain("非合规的") == "非[a verdict in the record, not repeated here]的"


# Records and answers that do not verify.


def forged(text: str, key: SigningKey, change: Callable[[dict[str, Any]], None]) -> str:
    """A certificate with a changed statement: sealed anew and signed, as somebody with a key could."""
    from sfumato.core.certificate import seals, signed_text
    from sfumato.core.documents import canonical

    document = json.loads(text)
    change(document["statement"])
    document["seals"] = seals(document["statement"], key.public_text)
    document.pop("signature")
    value = key.sign(signed_text(document))
    return canonical(document | {"signature": {"algorithm": "Ed25519", "key": key.public_text, "value": value}})


def stored(ledger: Ledger, change: Callable[[dict[str, Any]], None], key: SigningKey | None = None) -> int:
    """Charge, and store what a forger makes of an honest certificate."""
    honest = released(ledger)
    account = ledger.account(ACCOUNT, unit=PATIENT)
    reservation = account.reserve(Budget(epsilon="1/2"), datasets=[VISITS])

    def all_of_it(said: dict[str, Any]) -> None:
        said["account"] = json.loads(Certificate(honest.certificate.text).text)["statement"]["account"] | {
            "releases": reservation.account.releases,
            "spent": {**said["account"]["spent"], "epsilon": "1/1"},
        }
        change(said)

    text = forged(honest.certificate.text, key or ledger.key, all_of_it)
    account.commit_text(reservation, "another question", text)
    return reservation.number


def test_an_answer_that_is_honest_but_for_its_key_is_named_by_its_signer(home: Home) -> None:
    ledger, other = institution(home), SigningKey.new()
    number = stored(ledger, lambda said: None, other)
    made = pack(ledger, Scope(release=str(number)))
    certificate = made.evidence["releases"][0]["certificate"]
    assert certificate["consistent"], certificate["findings"]
    assert (certificate["signer"], certificate["signed_by_ledger"]) == (other.public_text, False)
    assert f"signed by the key {other.public_text}" in rendered(made.evidence)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda said: said.update(identifier="../../x"), "statement.identifier"),
        (lambda said: said.update(values=[1]), "statement.values"),
        (lambda said: said["mechanism"].update(scale="1/1"), "statement.event"),
        (lambda said: said["spend"].update(epsilon="1/4"), "charge"),
        (lambda said: said["account"].update(name="elsewhere"), "charge"),
    ],
)
def test_a_stored_answer_that_does_not_verify_is_named_and_not_handed_on(
    home: Home, tmp_path: Path, change: Callable[[dict[str, Any]], None], field: str
) -> None:
    ledger = institution(home)
    number = stored(ledger, change)
    made = pack(ledger, Scope(), PUBLIC)
    assert not made.sound
    assert made.evidence["record"]["verified"]
    assert made.evidence["charges"]["unsound"] == 1
    wrong = made.evidence["releases"][-1]["certificate"]
    assert any(finding["field"].startswith(field) for finding in wrong["findings"]), wrong["findings"]
    assert wrong["file"] is None
    assert len(made.certificates) == len(made.fair["@graph"]) == len(made.registry["releases"]) == 1
    assert number not in {each["charge"] for each in made.registry["releases"]}
    text = rendered(made.evidence)
    assert "**The stored answer does not verify.**" in text
    assert "| stored answers that do not verify | 1 |" in text
    names = {str(file.relative_to(tmp_path / "pack")) for file in write(made, tmp_path / "pack")}
    assert not any("x" in Path(name).stem and "charge" in name for name in names)


def settings_of(home: Home) -> Path:
    file = Path(home.folder) / "ledger.toml"
    Settings(file=file, url=home.url, key=home.key, anchor=home.anchor).write()
    return file


def run(*words: object) -> Any:
    runner = CliRunner(env={"COLUMNS": "400", "TERM": "dumb", "NO_COLOR": "1"})
    return runner.invoke(app, [str(word) for word in words])


def test_a_record_that_was_edited_is_said_to_be_wrong_on_the_cover(home: Home, tmp_path: Path) -> None:
    ledger = institution(home)
    released(ledger)
    ledger.close()
    home.unlocked(
        "UPDATE record SET body = REPLACE(body, 'decided by the tests', 'decided by nobody') WHERE number = 2"
    )
    outcome = run("evidence", "--all", "--out", tmp_path / "pack", "--ledger", settings_of(home))
    assert outcome.exit_code == Exit.FOUND_WRONG, outcome.output
    text = (tmp_path / "pack" / "evidence.md").read_text("utf-8")
    assert "| the record | does not verify, see below |" in text
    assert "| 2 | was edited: its digest is not that of its number, place and text |" in text


@pytest.mark.claim("S0-32")
def test_the_commands_list_and_write_what_verifies(ledger: Ledger, home: Home, tmp_path: Path) -> None:
    where = settings_of(home)
    outcome = run("releases", "--ledger", where)
    assert outcome.exit_code == Exit.DONE, outcome.output
    lines = outcome.stdout.splitlines()
    assert len(lines) == 5
    assert "not declared" in lines[1]
    narrow = CliRunner(env={"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}).invoke(
        app, ["releases", "--ledger", str(where)]
    )
    assert len(narrow.stdout.splitlines()) == 3 * 4 + 1
    assert "  purpose research/oncology, approval proposal 1" in narrow.stdout.splitlines()
    assert all(part in lines[2] for part in ("research/oncology", "proposal 1", "visits 2026-10", "1/4"))
    assert "none: charged, no answer yet" in lines[3]
    assert lines[4] == "2 releases; 1 charges without an answer, which count"
    listed = json.loads(run("releases", "--json", "--ledger", where).stdout)
    assert [each["epsilon"] for each in listed["releases"]] == ["1/2", "1/4", "1/10"]
    assert run("releases", "--dataset", "nothing", "--ledger", where).stdout.startswith("0 releases")
    assert run("releases", "--account", "hospital/x", "--ledger", where).stdout.startswith("0 releases")

    out = tmp_path / "pack"
    wrote = run("evidence", "--account", "hospital/oncology", "--out", out, "--ledger", where, "--licence", "CC-BY-4.0")
    assert wrote.exit_code == Exit.DONE, wrote.output
    key = ledger.key.public_text
    files = sorted((out / "certificates").iterdir())
    assert len(files) == 2
    for file in files:
        assert run("verify", file, "--key", key).exit_code == Exit.DONE
        receipt = out / "receipts" / f"{file.stem}.receipt.json"
        shown = run("verify", file, "--key", key, "--receipt", receipt, "--head", out / "head.json")
        assert shown.exit_code == Exit.DONE
        assert "final: whoever changes entry" in shown.stdout
        words = f"sfumato verify certificates/{file.name} --receipt receipts/{receipt.name} --head head.json"
        assert words in (out / "evidence.md").read_text("utf-8")
        assert verify(read(file), key=key).authenticated
        assert load(file, key=key).statement.identifier in {each["identifier"] for each in listed["releases"]}
    evidence = json.loads((out / "evidence.json").read_text("utf-8"))
    assert evidence["scope"] == {"by": "account", "of": "hospital/oncology"}
    assert evidence["head"]["text"] + "\n" == (out / "head.json").read_text("utf-8")
    identifier = listed["releases"][1]["identifier"]
    one = run("evidence", "--release", identifier, "--out", tmp_path / "one", "--ledger", where, "--json")
    assert json.loads(one.stdout)["charges"]["answered"] == 1


@pytest.mark.long
def test_what_the_commands_refuse_changes_nothing(ledger: Ledger, home: Home, tmp_path: Path) -> None:
    where, out = settings_of(home), tmp_path / "pack"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    for words, said in (
        (("--all",), "not an empty folder; nothing was written"),
        ((), "say what the pack is about"),
        (("--all", "--release", "1"), "say what the pack is about"),
        (("--release", "../../etc/passwd"), "the record holds no release '../../etc/passwd'"),
        (("--account", "hospital/nowhere"), "the record holds no charge of 'hospital/nowhere'"),
        (("--all", "--access", "javascript:x"), "is not an http address"),
    ):
        outcome = run("evidence", *words, "--out", out, "--ledger", where)
        assert outcome.exit_code == Exit.REFUSED, (words, outcome.output)
        assert said in outcome.stderr, words
        assert [file.name for file in out.iterdir()] == ["mine.txt"]
    with pytest.raises(InvalidInput):
        Scope(release="1", account="a")


def test_escapes_in_names_do_not_reach_the_terminal(home: Home) -> None:
    hostile_ledger(home, HOSTILE[4]).close()
    where = settings_of(home)
    for words in (("releases",), ("releases", "--json")):
        outcome = run(*words, "--ledger", where)
        assert outcome.exit_code == Exit.DONE, outcome.output
        assert all(sign == "\n" or sign.isprintable() for sign in outcome.stdout)
        assert "\\u202e" in outcome.stdout


def test_a_pack_of_nothing_is_a_pack(home: Home, tmp_path: Path) -> None:
    made: Pack = pack(institution(home), Scope())
    assert made.sound
    assert made.evidence["releases"] == []
    write(made, tmp_path / "pack")
    assert (tmp_path / "pack" / "evidence.md").is_file()


def test_releases_of_one_account_do_not_show_those_of_another(home: Home) -> None:
    ledger = institution(home)
    ledger.open_account("hospital/surgery", unit=PATIENT, cap=ROOMY, reason="tests")
    released(ledger)
    vault = sf.Vault(unit=PATIENT, ledger=ledger, account="hospital/surgery")
    table = vault.table(ROWS, name="visits", version="2026-10", limit=sf.Limit(groups=1, rows_per_group=1))
    table.count().release(epsilon=1)
    made = pack(ledger, Scope(account="hospital/surgery"))
    assert [each["account"]["name"] for each in made.evidence["releases"]] == ["hospital/surgery"]
    rows = {row[0]: row[1] for row in made.evidence["sections"][0]["rows"]}
    # Its own figures, and those of everybody who drew on the same people.
    assert rows["all charged to account hospital/surgery"] == "1"
    assert rows["all charged to population patients"] == "3/2"
    assert f"all charged to account {ACCOUNT}" not in rows


def test_windows_and_the_lifetime_behind_them_are_among_the_balances(home: Home) -> None:
    unit = event(relation="add/remove")
    ledger = home.create()
    ledger.open_account("dashboard", unit=unit, cap=ROOMY, reason="tests")
    ledger.declare_population("patients", unit=unit, cap=ROOMY, reason="tests")
    ledger.declare_dataset(VISITS, population="patients", cap=ROOMY)
    month, cap, life = Cadence.MONTHLY, Budget(epsilon=1), Budget(epsilon=9)
    ledger.set_windows("dashboard", TimeWindows(unit=unit, stretch=month, every=month, cap=cap, lifetime=life))
    charge = ledger.account("dashboard", unit=unit).reserve(
        Budget(epsilon="1/2"), datasets=[VISITS], reads=("2026-01-15", "2026-02-15")
    )
    made = pack(ledger, Scope(release=str(charge.number)))
    (found,) = made.evidence["releases"]
    assert found["reads"] == ["2026-01-15", "2026-02-15"]
    assert "| days read | 2026-01-15 to 2026-02-15 |" in rendered(made.evidence)
    rows = {row[0]: row[3] for row in made.evidence["sections"][1]["rows"]}
    lives = {name: spent for name, spent in rows.items() if name.startswith("lifetime ")}
    assert lives == {"lifetime dashboard": "1"}  # two windows, each of which a person may have been in
    assert [spent for name, spent in rows.items() if name.startswith("window ")] == ["1/2", "1/2"]


@pytest.mark.claim("S1-25", "S1-26", "S1-33")
@pytest.mark.parametrize(
    ("said", "missing"), [((), ["reason", "legal_basis"]), (("--reason", RECORD["reason"]), ["legal_basis"])]
)
def test_a_pack_without_its_grounds_is_a_draft_and_has_nothing_that_exists_to_be_published(
    ledger: Ledger, home: Home, tmp_path: Path, said: tuple[str, ...], missing: list[str]
) -> None:
    outcome = run("evidence", "--all", "--out", tmp_path / "pack", "--ledger", settings_of(home), *said)
    assert outcome.exit_code == Exit.DONE, outcome.output
    assert "Draft: not for publication" in outcome.stdout
    assert not {"fair.jsonld", "registry.json"} & {file.name for file in (tmp_path / "pack").iterdir()}
    stated = json.loads((tmp_path / "pack" / "evidence.json").read_text("utf-8"))["publication"]
    assert (stated["status"], stated["missing"]) == ("draft", missing)
    lines = (tmp_path / "pack" / "evidence.md").read_text("utf-8").splitlines()
    assert lines[0] == "# Evidence pack"
    assert lines[2].startswith("> **Draft: not for publication")
    assert any(line.startswith("> **草稿：不得公布") for line in lines[:8])


@pytest.mark.claim("S1-25", "S1-33")
def test_a_pack_with_its_grounds_states_them_and_is_published(ledger: Ledger, home: Home, tmp_path: Path) -> None:
    grounds = ("--reason", RECORD["reason"], "--legal-basis", RECORD["legal_basis"])
    outcome = run("evidence", "--all", "--out", tmp_path / "pack", "--ledger", settings_of(home), *grounds, "--json")
    assert outcome.exit_code == Exit.DONE, outcome.output
    assert json.loads(outcome.stdout)["publication"]["status"] == "publication"
    text = (tmp_path / "pack" / "evidence.md").read_text("utf-8")
    assert "Draft" not in text.partition("## ")[0]
    assert f"| legal basis | {RECORD['legal_basis']} |" in text
    for entry in json.loads((tmp_path / "pack" / "registry.json").read_text("utf-8"))["releases"]:
        assert {name: entry[name] for name in RECORD} == RECORD
    assert (tmp_path / "pack" / "fair.jsonld").is_file()


@pytest.mark.claim("S1-25", "S1-33")
@pytest.mark.parametrize("left_out", ["reason", "legal_basis"])
def test_registry_and_metadata_are_refused_without_their_grounds(left_out: str) -> None:
    declared = Declared(**RECORD | {left_out: " "})
    for made in (registry, fair):
        with pytest.raises(NotDeclared, match=rf"needs its {left_out.replace('_', ' ')}.*nothing was published"):
            made([], declared)
        made([], Declared(**RECORD))
