"""A certificate of several measures: consistent as signed, and every single change is caught where it was made."""

import copy
from typing import Any

import pytest

import sfumato as sf
from sfumato.reports.verify import verify
from tests.reports.aggregates import table
from tests.reports.forgeries import Change, added, at, gone, signed_anew

STEPS = 2**30


@pytest.fixture(scope="module")
def release() -> Any:
    asked = {"n": sf.count(), "sbp": sf.mean("sbp"), "p": sf.persons(), "r": sf.correlation("sbp", "age")}
    return table().where(sf.col("age") >= 10).group_by("sex").agg(**asked).release(epsilon=2)


@pytest.fixture
def document(release: Any) -> dict[str, Any]:
    return copy.deepcopy(release.certificate.document)


def inside(path: str, place: int, name: str, value: object) -> tuple[str, Change]:
    """Another value in a field of one member of a list."""

    def change(document: dict[str, Any]) -> None:
        for part in path.split("."):
            document = document[part]
        member: Any = document[place]  # type: ignore[index]
        for part in name.split(".")[:-1]:
            member = member[part]
        assert member[name.rpartition(".")[2]] != value
        member[name.rpartition(".")[2]] = value

    return path, change


FOLLOWS = [  # what no longer follows from the rest, whoever signs it
    (inside("statement.query.measures", 3, "scaled", False), "statement.values"),
    (at("statement.query.kind", "query.count"), "statement.query"),
    (at("statement.query.by", []), "statement.sensitivity|statement.values"),
    (at("statement.query.number", 400), "statement.query|statement.unit"),
    (at("statement.query.dataset.name", "other"), "statement.dataset"),
    (at("statement.limit.rows_per_group", 6), "statement.sensitivity"),
    (at("statement.limit.groups", 1), "statement.sensitivity"),
    (at("statement.unit.relation", "replace"), "statement.sensitivity"),
    (at("statement.mechanism.scale", "1/1"), "statement.law|statement.event|statement.spend"),
    (at("statement.law.scale", "1/1"), "statement.law"),
    (at("statement.spend.epsilon", "1/1"), "statement.spend"),
    (at("statement.values", [0]), "statement.values"),
    (gone("statement.query.measures"), "statement.query.measures"),
    (added("statement.query.weights", []), "statement.query.weights"),
    (inside("statement.query.measures", 0, "kind", "measure.guess"), "statement.query.measures"),
]
SEALED = [  # what follows from nothing, and only the seal holds
    inside("statement.query.measures", 1, "kind", "measure.sum"),  # which is read off the same numbers
    inside("statement.query.measures", 1, "name", "dbp"),
    inside("statement.query.measures", 1, "of.low", "79/1"),
    inside("statement.query.measures", 1, "of.high", "300/1"),
    at("statement.query.where", None),
    at("statement.values", [7] * 17),
]


def test_it_is_consistent_as_signed(document: dict[str, Any], release: Any) -> None:
    assert verify(document).consistent
    assert len(document["statement"]["values"]) == release.statement.query.size


@pytest.mark.parametrize(("name", "change"), [*(forged for forged, _ in FOLLOWS), *SEALED])
def test_every_single_change_is_caught_where_it_was_made(name: str, change: Change, document: dict[str, Any]) -> None:
    if name == "statement.values":
        document["statement"]["values"] = list(document["statement"]["values"])
    change(document)
    outcome = verify(document)
    assert not outcome.consistent
    assert any(finding.field.startswith(name) or name.startswith(finding.field) for finding in outcome.findings), str(
        outcome
    )


@pytest.mark.parametrize(("forged", "field"), FOLLOWS)
def test_what_no_longer_follows_is_caught_under_any_signature(
    forged: tuple[str, Change], field: str, document: dict[str, Any]
) -> None:
    forged[1](document)
    signed_anew(document)
    outcome = verify(document)
    assert not outcome.consistent
    assert any(finding.field.startswith(tuple(field.split("|"))) for finding in outcome.findings), str(outcome)


def test_an_honest_one_signed_anew_is_consistent_and_not_the_trusted_key_s(
    document: dict[str, Any], release: Any
) -> None:
    """The twin of the tests above: the signing itself breaks nothing."""
    trusted = document["signature"]["key"]
    signed_anew(document)
    assert verify(document).consistent
    assert [finding.field for finding in verify(document, key=trusted).findings] == ["signature.key"]
