"""Certificates made before the renovation stay readable, verify, cost what they cost, and can be explained."""

import json
import lzma
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from sfumato.accounting.basic import cost, guarantee_of
from sfumato.core.documents import canonical, encode, parse
from sfumato.reports.declarations import DECLARATIONS
from sfumato.reports.verify import load, verify

FOLDER = Path(__file__).parent / "certificates"
TEXTS = lzma.decompress((FOLDER / "db53c92.jsonl.xz").read_bytes()).decode().splitlines()
TEXTS += (FOLDER / "c0d62a0-derived.jsonl").read_text(encoding="utf-8").splitlines()
OTHERS = (FOLDER / "db53c92-other-kinds.jsonl").read_text(encoding="utf-8").splitlines()
KINDS = (FOLDER / "db53c92-kinds.txt").read_text(encoding="utf-8").split()


def by_query() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for text in TEXTS:
        found[json.loads(text)["statement"]["query"]["kind"]].append(text)
    return dict(sorted(found.items()))


BY_QUERY = by_query()


def kinds(part: Any) -> set[str]:
    """All kinds of documents that occur in one."""
    inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    own = {part["kind"]} if isinstance(part, dict) and "kind" in part else set()
    return own.union(*(kinds(each) for each in inside))


def holds(now: Any, then: Any) -> bool:
    """Whether a document is written now as it was then; a newer version may have fields of its own."""
    if isinstance(then, dict):
        return all(holds(now[name], part) if name != "version" else now[name] >= part for name, part in then.items())
    if isinstance(then, list):
        return len(now) == len(then) and all(map(holds, now, then))
    return type(now) is type(then) and bool(now == then)


def test_every_kind_of_that_commit_occurs_and_is_still_read() -> None:
    found = set().union(*(kinds(json.loads(text)["statement"]) for text in TEXTS), *(kinds(parse(it)) for it in OTHERS))
    assert found == set(KINDS)
    assert found <= DECLARATIONS.kinds
    assert {kind for kind in KINDS if kind.startswith("query.")} == set(BY_QUERY)


@pytest.mark.parametrize("query", BY_QUERY)
def test_it_verifies_from_itself_alone_and_costs_what_it_cost(query: str) -> None:
    for text in BY_QUERY[query]:
        document = parse(text)
        assert isinstance(document, dict)
        outcome = verify(document, key=json.loads(text)["signature"]["key"])
        assert outcome.authenticated, f"{outcome}\n{text}"
        said = DECLARATIONS.decode(document["statement"], "statement")
        event = said.mechanism.loss(said.query.sensitivity(said.unit, said.limit))
        assert cost(guarantee_of(event, said.spend)) == said.spend
        assert holds(encode(said), document["statement"])


@pytest.mark.few(6)
@pytest.mark.parametrize("query", BY_QUERY)
def test_it_is_explained_in_both_languages(query: str, tmp_path: Path) -> None:
    for place, text in enumerate(BY_QUERY[query]):
        path = tmp_path / f"{place}.json"
        path.write_text(text, encoding="utf-8")
        release = load(path, key=json.loads(text)["signature"]["key"])
        for language in ("en", "zh"):
            assert len(release.explain(language)) > 100


def test_a_changed_number_is_noticed() -> None:
    document = json.loads(TEXTS[0])
    document["statement"]["spend"]["epsilon"] = "1/1000"
    assert not verify(document, key=document["signature"]["key"]).consistent


@pytest.mark.parametrize("text", OTHERS, ids=lambda text: json.loads(text)["kind"])
def test_a_document_of_a_kind_that_no_release_has_comes_back_as_it_was(text: str) -> None:
    assert canonical(encode(DECLARATIONS.decode(parse(text)))) == text
