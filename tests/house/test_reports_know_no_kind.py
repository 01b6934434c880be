"""Reports render descriptions: no class of a kind of data, and no name of one, stands in their code."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import sfumato.reports
from sfumato.core.data_kind import kinds
from sfumato.reports.declarations import DECLARATIONS
from tests.parts import ROOT

FOLDER = Path(sfumato.reports.__file__).parent
SOURCES = sorted(FOLDER.rglob("*.py"))
DECLARED = [declared for kind in kinds() for declared in kind.declarations]
QUERIES = [declared for declared in DECLARED if hasattr(declared, "ANSWERED_BY")]
PACKAGES = {kind.messages for kind in kinds()}


def strangers(text: str, *, own: frozenset[str] = frozenset()) -> Iterator[str]:
    """What in a source belongs to a kind of data: its package, the class of a query, the kind of a declaration."""
    queries, names = {query.__name__ for query in QUERIES} - own, {declared.KIND for declared in DECLARED}
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.ImportFrom(module=str(module)) | ast.Import(names=[ast.alias(name=module)]):
                yield from (module for package in PACKAGES if f"{module}.".startswith(f"{package}."))
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name) if name in queries:
                yield name
            case ast.Constant(value=str(value)) if value in names:
                yield value


def test_no_source_of_the_reports_names_a_kind() -> None:
    texts = {path: path.read_text("utf-8") for path in SOURCES}
    assert len(texts) > 40
    trees = [ast.parse(text) for text in texts.values()]
    own = frozenset(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert not {str(path): [*strangers(text, own=own)] for path, text in texts.items() if [*strangers(text, own=own)]}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from sfumato.streams.total import RunningTotal", "sfumato.streams.total"),
        ("import sfumato.learning", "sfumato.learning"),
        ("if isinstance(query, Quantiles): pass", "Quantiles"),
        ("if isinstance(query, tables.TopGroups): pass", "TopGroups"),
        ("if query.KIND == 'query.training': pass", "query.training"),
    ],
)
def test_the_search_finds_what_it_is_for(text: str, found: str) -> None:
    assert found in [*strangers(text)]


def test_every_query_of_every_kind_describes_its_answers_and_checks_them() -> None:
    assert len(QUERIES) > 30
    for query in QUERIES:
        assert callable(getattr(query, "describe", None)), query
        assert callable(getattr(query, "check_answer", None)), query
        assert query.KIND in DECLARATIONS.kinds  # type: ignore[attr-defined]


def test_every_kind_has_its_words_in_a_folder_of_its_own() -> None:
    for kind in kinds():
        folder = ROOT / "src" / str(kind.messages).replace(".", "/") / "messages"
        languages = {path.name.removesuffix(".toml").rpartition(".")[2] for path in folder.glob("*.toml")}
        assert languages == {"en", "zh-Hans"}, kind.name
