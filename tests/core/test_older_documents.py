"""Certificates that were signed by earlier code are read for ever: each older version, written out as it was then."""

import copy
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.documents import Registry, encode
from sfumato.core.query import Dataset
from sfumato.core.statement import Statement
from sfumato.errors import InvalidInput, Unsupported
from sfumato.reports.declarations import DECLARATIONS
from sfumato.reports.verify import verify
from sfumato.tables.keys import Keys
from sfumato.tables.queries.count import Count
from tests.documents import CLASSES

KEYS_1 = {"kind": "keys", "version": 1, "column": "region", "values": ["north", "south"]}
DATASET_1 = {"kind": "dataset", "version": 1, "name": "visits", "edition": "2026-10"}
COUNT_1 = {"kind": "query.count", "version": 1, "dataset": DATASET_1, "where": None, "by": [KEYS_1]}
ACCOUNT_1 = {
    "kind": "account",
    "version": 1,
    "name": "trial",
    "ledger": "none (in memory)",
    "budget": {"kind": "budget", "version": 1, "epsilon": "1/1", "delta": "0/1"},
    "spent": {"kind": "budget", "version": 1, "epsilon": "1/1", "delta": "0/1"},
    "releases": 1,
}
STATEMENT_1 = {
    "kind": "statement",
    "version": 1,
    "identifier": "0123456789abcdef0123456789abcdef",
    "issued": "2026-10-01T12:00:00+00:00",
    "code": "sfumato 0.1",
    "dataset": DATASET_1,
    "unit": {"kind": "unit.user", "version": 1, "column": "id", "relation": "add/remove"},
    "limit": {"kind": "limit", "version": 1, "groups": 2, "rows_per_group": 1},
    "query": COUNT_1,
    "sensitivity": {
        "kind": "sensitivity",
        "version": 1,
        "l0": {"kind": "sensitivity.l0", "version": 1, "count": 2},
        "l1": {"kind": "sensitivity.l1", "version": 1, "value": "2/1"},
        "l2": {"kind": "sensitivity.l2", "version": 1, "squared": "2/1"},
        "linf": {"kind": "sensitivity.linf", "version": 1, "value": "1/1"},
    },
    "mechanism": {"kind": "mechanism.laplace", "version": 1, "l1": "2/1", "scale": "2/1"},
    "law": {"kind": "law.discrete_laplace", "version": 1, "scale": "2/1"},
    "event": {"kind": "event.discrete_laplace", "version": 1, "l1": "2/1", "scale": "2/1"},
    "guarantee": {"kind": "guarantee.pure", "version": 1, "epsilon": "1/1"},
    "spend": {"kind": "budget", "version": 1, "epsilon": "1/1", "delta": "0/1"},
    "account": ACCOUNT_1,
    "values": [3, -1],
}
STATEMENT_2 = STATEMENT_1 | {"version": 2, "found": []}
JOIN_1 = {"kind": "join", "version": 1, "dataset": DATASET_1, "on": [["hospital", "code"]], "public": True}
JOIN_2 = JOIN_1 | {"version": 2, "content": None}
VOTES_1 = {
    "kind": "query.teacher_votes",
    "version": 1,
    "dataset": DATASET_1,
    "ensemble": "wards",
    "parts": 5,
    "classes": 2,
    "asked": "scans of May",
    "questions": 9,
}
CONFIDENT_1 = VOTES_1 | {"kind": "query.confident_votes", "answers": 3, "threshold": 4, "share": "1/5"}
CURVE_1 = {
    "kind": "query.learning_curve",
    "version": 1,
    "dataset": DATASET_1,
    "models": "by epoch",
    "epochs": 5,
    "number": 100,
}
OLDER: list[dict[str, Any]] = [KEYS_1, COUNT_1, ACCOUNT_1, STATEMENT_1, STATEMENT_2, JOIN_1, JOIN_2]
OLDER += [VOTES_1, CONFIDENT_1, CURVE_1]
older = pytest.mark.parametrize("body", OLDER, ids=lambda body: f"{body['kind']} {body['version']}")


def test_every_kind_that_has_an_older_version_is_written_out_here() -> None:
    assert {body["kind"] for body in OLDER} == {kind for kind, cls in CLASSES.items() if cls.VERSION > 1}
    for kind in {body["kind"] for body in OLDER}:
        written = sorted(body["version"] for body in OLDER if body["kind"] == kind)
        assert written == list(range(1, CLASSES[kind].VERSION))


def test_what_was_not_there_yet_is_what_it_always_meant() -> None:
    assert DECLARATIONS.decode(KEYS_1) == Keys(column="region", values=("north", "south"))
    count = Count(dataset=Dataset(name="visits", edition="2026-10"), by=(DECLARATIONS.decode(KEYS_1),))
    assert DECLARATIONS.decode(COUNT_1) == count
    statement: Statement = DECLARATIONS.decode(STATEMENT_1)
    assert statement.query == count
    assert (statement.found, statement.derived) == ((), ())
    assert DECLARATIONS.decode(STATEMENT_2) == statement
    assert {DECLARATIONS.decode(body).content for body in (JOIN_1, VOTES_1, CONFIDENT_1, CURVE_1)} == {None}
    assert statement.values == (3, -1)
    assert statement.account.method == "basic"
    assert (statement.account.order, statement.account.filter_cap, statement.account.filter_spent) == (None, None, None)
    assert statement.query.sensitivity(statement.unit, statement.limit) == statement.sensitivity


@older
def test_an_older_document_may_not_lack_what_it_had_then(body: dict[str, Any]) -> None:
    # What had a default by then.
    always = {"query.count": {"where", "by"}, "statement": {"found"}, "join": {"content"}}
    always |= {"query.confident_votes": {"share"}}
    optional = always.get(body["kind"], set())
    for name in set(body) - {"kind", "version"} - optional:
        less = {key: value for key, value in body.items() if key != name}
        with pytest.raises(InvalidInput, match=rf"^document\.{name} is missing"):
            DECLARATIONS.decode(less)


@older
def test_a_document_of_today_may_not_lack_the_new_fields(body: dict[str, Any]) -> None:
    new = "value|joins|found|derived|method|content|unmatched"
    with pytest.raises(InvalidInput, match=rf"^document\.({new}) is missing"):
        DECLARATIONS.decode(body | {"version": CLASSES[body["kind"]].VERSION})


@older
def test_a_newer_document_is_refused_with_what_to_do(body: dict[str, Any]) -> None:
    newer = CLASSES[body["kind"]].VERSION + 1
    with pytest.raises(
        Unsupported, match=rf"^document\.version = {newer} of .* is newer than this code.*Update sfumato"
    ):
        DECLARATIONS.decode(body | {"version": newer})


def test_a_newer_part_of_a_document_is_refused_with_its_place() -> None:
    inner = copy.deepcopy(STATEMENT_1)
    inner["query"]["by"][0]["version"] = 3  # type: ignore[index]
    with pytest.raises(Unsupported, match=r"^document\.query\.by\[0\]\.version = 3 of 'keys' is newer"):
        DECLARATIONS.decode(inner)


def test_only_fields_that_came_later_take_a_default() -> None:
    """A registry whose class has not changed since reads no shortened document."""
    body = encode(Dataset(name="visits", edition="1"))
    assert isinstance(body, dict)
    del body["edition"]
    with pytest.raises(InvalidInput, match="edition is missing"):
        Registry([Dataset]).decode(body)


def test_what_is_found_is_part_of_what_is_signed() -> None:
    vault = sf.Vault(
        unit=sf.user("id", relation="add/remove"),
        budget=sf.Budget(epsilon=9, delta="1/1000"),
        name="trial",
        population=9,
    )
    rows = pa.table({"id": range(500), "code": ["K"] * 500})
    table = vault.table(rows, name="codes", version="1", limit=sf.Limit(groups=1, rows_per_group=1))
    release = table.find_keys("code").release(epsilon=1, delta=1e-6)
    body = encode(release.statement)
    assert isinstance(body, dict)
    assert body["version"] == 3
    assert body["found"] == [["K"]]
    assert DECLARATIONS.decode(body) == release.statement
    assert verify(release.certificate.document).consistent
    document = copy.deepcopy(release.certificate.document)
    document["statement"]["found"] = [["J"]]  # type: ignore[index, call-overload]
    assert not verify(document).consistent
