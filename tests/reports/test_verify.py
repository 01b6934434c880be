"""Certificates: consistent as signed, and every single change is caught in the field where it was made."""

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato import errors
from sfumato.core.signature import SigningKey
from sfumato.reports.verify import load, read, verify
from tests.reports.forgeries import Change, added, at, cut, gone, signed_anew


@pytest.fixture(scope="module")
def vault() -> sf.Vault:
    return sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=2), name="patients")


@pytest.fixture(scope="module")
def release(vault: sf.Vault) -> Any:
    rows = pa.table({"id": [1, 2, 3], "region": ["north", "south", "south"], "age": [30, 70, 80]})
    table = vault.table(
        rows,
        name="visits",
        version="1",
        limit=sf.Limit(groups=2, rows_per_group=3),
        keys={"region": ["north", "south", "west"]},
    )
    return table.where(sf.col("age") >= 65).group_by("region").count().release(epsilon="1/2")


@pytest.fixture
def document(release: Any) -> dict[str, Any]:
    return copy.deepcopy(release.certificate.document)


CHANGES = [
    at("kind", "letter"),
    at("version", 2),
    at("version", True),
    at("statement.kind", "dataset"),
    at("statement.version", 99),
    at("statement.identifier", "0" * 32),
    at("statement.issued", "2020-01-01T00:00:00+00:00"),
    at("statement.code", "sfumato 9.9"),
    at("statement.dataset.name", "other"),
    at("statement.dataset.edition", "2"),
    at("statement.unit.kind", "unit.record"),
    at("statement.unit.column", "doctor"),
    at("statement.unit.relation", "replace"),
    at("statement.limit.groups", 1),
    at("statement.limit.rows_per_group", 4),
    at("statement.limit", None),
    at("statement.query.kind", "query.sum"),
    at("statement.query.where", None),
    at("statement.query.by", []),
    at("statement.sensitivity.l0", None),
    at("statement.sensitivity.l1", {"kind": "sensitivity.l1", "version": 1, "value": "3/1"}),
    at("statement.sensitivity.l2", {"kind": "sensitivity.l2", "version": 1, "squared": "9/1"}),
    at("statement.sensitivity.linf", {"kind": "sensitivity.linf", "version": 1, "value": "1/1"}),
    at("statement.mechanism.scale", "6/1"),
    at("statement.mechanism.l1", "3/1"),
    at("statement.law.scale", "6/1"),
    at("statement.event.l1", "3/1"),
    at("statement.event.scale", "24/1"),
    at("statement.guarantee.epsilon", "1/4"),
    at("statement.spend.epsilon", "1/4"),
    at("statement.spend.delta", "1/1000"),
    at("statement.account.name", "others"),
    at("statement.account.ledger", "PostgreSQL"),
    at("statement.account.budget", {"kind": "budget", "version": 1, "epsilon": "9/1", "delta": "0/1"}),
    at("statement.account.spent", {"kind": "budget", "version": 1, "epsilon": "1/4", "delta": "0/1"}),
    at("statement.account.releases", 0),
    at("statement.values", [0, 0, 10**12]),
    gone("statement.limit"),
    gone("statement.guarantee"),
    gone("seals"),
    gone("signature"),
    at("signature.algorithm", "RSA"),
    at("signature.key", "0" * 64),
    at("signature.key", "short"),
    at("signature.value", "0" * 128),
    at("signature.value", "00"),
    cut("signature.value", 2),
    added("statement.noise", "0/1"),
    added("statement.mechanism.realised_scale", "1/1"),
    added("statement.guarantee.delta", "0/1"),
    added("exact", [500, 300]),
    at("statement.mechanism.kind", "mechanism.gaussian"),
    at("statement.values", [0, 0]),
    at("statement.values", ["0", 0, 0]),
]

# What cannot be told from the rest of the certificate: a forger who seals and signs anew is caught by the key alone.
FREE = {
    "statement.identifier",
    "statement.issued",
    "statement.code",
    "statement.unit.column",
    "statement.query.where",
    "statement.account.name",
    "statement.account.ledger",
    "statement.account.budget",
    "statement.values",
}


def test_an_untouched_certificate_is_consistent_and_authenticated_by_its_key(
    vault: sf.Vault, document: dict[str, Any]
) -> None:
    assert verify(document).consistent
    assert not verify(document).authenticated
    assert "not authenticated" in str(verify(document))
    assert verify(document, key=vault.public_key).authenticated


@pytest.mark.parametrize(("field", "change"), CHANGES, ids=[f"{n}-{field}" for n, (field, _) in enumerate(CHANGES)])
def test_each_single_change_is_caught_and_named(field: str, change: Change, document: dict[str, Any]) -> None:
    change(document)
    outcome = verify(document)
    assert not outcome.consistent
    assert not outcome.authenticated
    named = [finding.field for finding in outcome.findings]
    assert any(name == field or name.startswith(f"{field}.") for name in named), named


@pytest.mark.parametrize(("field", "change"), CHANGES, ids=[f"{n}-{field}" for n, (field, _) in enumerate(CHANGES)])
def test_a_forger_who_seals_and_signs_anew_is_caught(
    field: str, change: Change, document: dict[str, Any], vault: sf.Vault
) -> None:
    change(document)
    if field.startswith("statement"):
        signed_anew(document)
    pinned = verify(document, key=vault.public_key)
    assert not pinned.consistent
    if field.startswith("statement"):
        assert "signature.key" in {finding.field for finding in pinned.findings}
    if field not in FREE:
        assert not verify(document).consistent


def test_load_gives_a_release_back_and_refuses_a_forged_one(
    release: Any, document: dict[str, Any], vault: sf.Vault, tmp_path: Path
) -> None:
    path = release.certificate.save(tmp_path / "release.json")
    loaded = load(path, key=vault.public_key)
    assert loaded.statement == release.statement
    assert loaded.explain("zh")
    assert loaded.charged == sf.Budget(epsilon=0)
    path.write_text(path.read_text(encoding="utf-8").replace('"replace"', "").replace('"1/2"', '"1/4"'))
    with pytest.raises(errors.Refused, match="was not loaded"):
        load(path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"a": 0.5}', '{"a": NaN}', '{"a": 1, "a": 2}'])
def test_what_is_no_certificate_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(errors.InvalidInput):
        read(path)
    with pytest.raises(errors.InvalidInput, match="cannot be read"):
        read(tmp_path / "absent.json")


@pytest.mark.parametrize("document", [{}, {"statement": [], "seals": [], "signature": []}, {"statement": None}])
def test_a_hollow_certificate_has_findings_and_no_crash(document: dict[str, Any]) -> None:
    assert {"kind", "version"} <= {finding.field for finding in verify(document).findings}


def test_a_malformed_trusted_key_is_an_error(document: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput, match="64 hexadecimal digits"):
        verify(document, key="not a key")


BLOCKED = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "ibis", "duckdb", "pandas", "polars", "numpy", "scipy", "pyarrow"}:
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Block())
from sfumato.core.signature import SigningKey
from sfumato.reports.verify import load, read, verify
outcome = verify(read(sys.argv[1]), key=sys.argv[2])
assert outcome.authenticated, str(outcome)
print(load(sys.argv[1]).explain("en"))
"""


@pytest.mark.long
def test_verify_runs_with_engines_and_torch_blocked(release: Any, vault: sf.Vault, tmp_path: Path) -> None:
    path = release.certificate.save(tmp_path / "release.json")
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", BLOCKED, str(path), vault.public_key],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert "noise was added on purpose" in answer.stdout


def hostile(document: dict[str, Any], how: str) -> dict[str, Any]:
    statement = document["statement"]
    match how:
        case "another mechanism":
            statement["mechanism"] = {
                "kind": "mechanism.gaussian",
                "version": 1,
                "l2_squared": "18/1",
                "sigma": "1/1",
            }
        case "endless nesting":
            part: Any = {"kind": "expression.missing", "version": 1, "column": "age"}
            for _ in range(3000):
                part = {"kind": "expression.not", "version": 1, "part": part}
            statement["query"]["where"] = part
        case "a float":
            statement["values"][0] = 0.5
        case "half a character":
            statement["code"] = "\ud800"
        case "a number without end":
            statement["limit"]["groups"] = 10**5000
        case "an empty combination":
            statement["query"]["where"] = {"kind": "expression.all_of", "version": 1, "parts": []}
        case "another document":
            document["statement"] = statement["dataset"]
    return document


@pytest.mark.parametrize(
    "how",
    [
        "another mechanism",
        "endless nesting",
        "a float",
        "half a character",
        "a number without end",
        "an empty combination",
        "another document",
    ],
)
def test_a_hostile_document_has_findings_and_raises_nothing(how: str, document: dict[str, Any]) -> None:
    outcome = verify(hostile(document, how))
    assert outcome.findings
    assert not outcome.authenticated


def test_a_file_that_is_named_like_a_key_does_not_stand_in_for_it(
    document: dict[str, Any], vault: sf.Vault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forger = SigningKey.new()
    document["statement"]["values"] = [999_999] * 3
    signed_anew(document, forger)
    monkeypatch.chdir(tmp_path)
    Path(vault.public_key).write_text(forger.public_text, encoding="ascii")
    assert not verify(document, key=vault.public_key).authenticated
    with pytest.raises(errors.InvalidInput, match="64 hexadecimal"):
        verify(document, key="x" * 5000)
