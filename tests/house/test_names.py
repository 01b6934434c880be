"""Names and types, read from the source: no private name is borrowed, one name is one class, and Any has its reasons.

What a rule still finds is listed beside it, with the reason; a list may shrink and never grow.
"""

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

import sfumato

PACKAGE = Path(sfumato.__file__).parent


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ("sfumato", *path.relative_to(PACKAGE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text("utf-8"))
    return found


def package_of(module: str) -> str:
    return module.split(".")[1] if "." in module else module


def imported(tree: ast.Module, known: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Every module that is imported anywhere, within functions and for types alone too, with the name taken from it."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((each.name, "") for each in names)
            case ast.ImportFrom(module=str(module), names=names, level=0):
                for each in names:
                    whole = f"{module}.{each.name}"
                    yield (whole, "") if whole in known else (module, each.name)


# ------------------------------------------------------------------------------------------------- private names

FOREIGN = {("sfumato.learning.engine.record", "_version")}  # of a tensor: torch has no public name for it


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def defined(tree: ast.Module) -> set[str]:
    """The private names that a module gives to functions, classes, fields and attributes."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.Constant(value=str(name)):  # __slots__, and object.__setattr__(self, "_name", …)
                found.add(name)
    return {name for name in found if private(name)}


@pytest.mark.long
def test_no_package_reaches_for_the_private_names_of_another() -> None:
    known = modules()
    homes: dict[str, set[str]] = defaultdict(set)
    for module, tree in known.items():
        for name in defined(tree):
            homes[name].add(package_of(module))
    found = set()
    for module, tree in known.items():
        own = package_of(module)
        for source, name in imported(tree, known):
            if private(name) and source in known and package_of(source) != own:
                found.add((module, name))
        for node in ast.walk(tree):
            match node:
                case ast.Attribute(value=ast.Name(id="self" | "cls")):
                    pass  # what a class inherits is its own
                case ast.Attribute(attr=name) if private(name) and own not in homes.get(name, {own}):
                    found.add((module, name))
    assert found - FOREIGN == set()


# ------------------------------------------------------------------------------------------------ one name, one class

LAYERS = {"events", "laws", "mechanisms"}
"""A distribution has the same name as an event, as a law and as a mechanism: ``events.Gaussian``, ``laws.Gaussian``."""


def layer_of(module: str) -> str:
    return next((part for part in module.split(".") if part in LAYERS), module)


def shared_names() -> set[str]:
    homes: dict[str, list[str]] = defaultdict(list)
    for module, tree in modules().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module)
    return {
        name for name, found in homes.items() if len(found) > 1 and not {layer_of(module) for module in found} <= LAYERS
    }


SHARED = {
    # two things that the public knows by the same name: a unit and a device, two ways in, a plan of releases and one
    # of a training run, and what is compared and what is asked
    *("Client", "Inbox", "Plan", "EdgeCount"),
}


@pytest.mark.long
def test_no_two_classes_have_one_name() -> None:
    assert shared_names() - SHARED == set()


# ---------------------------------------------------------------------------------------------- checks switched off

IGNORED = re.compile(r"#\s*type: ignore(?P<code>\[[\w, -]+\])?(?P<reason>\s+#\s*\S.*)?$")


def lines() -> Iterator[tuple[Path, int, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        named = path.relative_to(PACKAGE)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            yield named, number, line


def test_every_check_of_types_that_is_switched_off_says_which_and_why() -> None:
    silent = []
    for path, number, line in lines():
        if (found := IGNORED.search(line)) and not (found["code"] and found["reason"]):
            silent.append(f"{path}:{number}")
    assert silent == [], "name the code and give the reason: # type: ignore[code]  # reason"


# ------------------------------------------------------------------------------------------ values of any type

ANY_BY_PACKAGE = {
    "audit": 4,
    "cli": 3,
    "client": 6,
    "core": 22,  # a connection over HTTP is of a class above core
    "engines": 16,
    "gate": 1,
    "governance": 12,
    "graphs": 4,
    "inference": 2,
    "laws": 1,
    "learning": 24,
    "local": 12,
    "mechanisms": 4,
    "noise": 1,
    "reports": 10,
    "runner": 1,
    "server": 29,  # JSON, ASGI messages, and pages of any dataclass
    "streams": 7,  # the client of a broker
    "tables": 8,
    "vault.py": 2,
    "__init__.py": 1,
}
"""Lines that say ``Any``, imports left out: values from outside the project. May shrink and never grow."""


@cache
def uses_of_any() -> dict[Path, dict[int, str]]:
    """Every line on which ``Any`` of typing stands in code, those of imports among them."""
    found: dict[Path, dict[int, str]] = defaultdict(dict)
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        before = ""
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            quoted = (
                token.type == tokenize.STRING and "\n" not in token.string and re.search(r"\bAny[],)]", token.string)
            )
            if (token.type == tokenize.NAME and token.string == "Any" and before != ".") or quoted:
                found[path.relative_to(PACKAGE)][token.start[0]] = token.line
            before = token.string
    return found


def is_import(line: str) -> bool:
    return line.startswith("from typing import ")


@pytest.mark.long
def test_any_is_for_values_from_outside_and_becomes_rarer() -> None:
    found: Counter[str] = Counter()
    for path, uses in uses_of_any().items():
        found[path.parts[0]] += sum(not is_import(line) for line in uses.values())
    assert {package: count for package, count in found.items() if count > ANY_BY_PACKAGE.get(package, 0)} == {}


@pytest.mark.long
def test_whoever_says_any_says_why() -> None:
    """On the line of the import, or on each that uses it; most give the value a name with a reason, and use that."""
    silent = []
    for path, uses in uses_of_any().items():
        explained = any(is_import(line) and "  # " in line for line in uses.values())
        if not explained:
            bare = (number for number, line in uses.items() if not is_import(line) and "  # " not in line)
            silent += [f"{path}:{number}" for number in bare]
    assert silent == [], "say why: from typing import Any  # frames of engines have no common type"
