"""Draw docs/explanation/architecture.md from the imports of the package, and count import circles, files and lines.

Without options the page is written. ``--check`` only compares it, ``--circles`` lists the groups of modules of one
package that import each other, and ``--sizes`` counts files and lines by package. Nothing of the package is imported.
"""

import argparse
import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
NAME = "sfumato"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
MARK = "<!-- drawn by scripts/structure.py: edit what stands above this line, and run it again -->\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A file: its dotted name, the first sentence of its docstring, its length, and the modules that it imports."""

    name: str
    sentence: str
    lines: int
    imports: frozenset[str] = field(default_factory=frozenset)

    @property
    def package(self) -> str:
        """The part of the library that it belongs to, the name after the first dot."""
        return self.name.split(".")[1] if "." in self.name else NAME


@cache
def modules(source: Path = SOURCE) -> Mapping[str, Module]:
    """All modules of the package by name; imports for types alone do not count."""
    files = {_dotted(path, source): path for path in sorted((source / NAME).rglob("*.py"))}
    return {name: _read(name, path, frozenset(files)) for name, path in files.items()}


def circles(found: Mapping[str, Module]) -> list[tuple[str, ...]]:
    """The groups of modules of one package that import each other, directly or around several corners."""
    groups = []
    for package in sorted({one.package for one in found.values()}):
        arrows = {
            name: sorted(other for other in one.imports if found[other].package == package and other != name)
            for name, one in found.items()
            if one.package == package
        }
        groups += [tuple(sorted(group)) for group in _components(arrows) if len(group) > 1]
    return sorted(groups)


def arrows(found: Mapping[str, Module]) -> dict[str, tuple[str, ...]]:
    """Which packages a package imports."""
    targets: dict[str, set[str]] = defaultdict(set)
    for one in found.values():
        targets[one.package] |= {found[other].package for other in one.imports} - {one.package, NAME, "version"}
    return {package: tuple(sorted(others)) for package, others in sorted(targets.items())}


def layers() -> list[list[str]]:
    """The layers of the package from the top down, as ``make lint`` enforces them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return [layer.split(" | ") for contract in contracts for layer in contract.get("layers", ())]


def sizes(found: Mapping[str, Module]) -> dict[str, tuple[int, int]]:
    """Files and lines by package."""
    counted: dict[str, list[int]] = defaultdict(list)
    for one in found.values():
        counted[one.package].append(one.lines)
    return {package: (len(lengths), sum(lengths)) for package, lengths in sorted(counted.items())}


def drawn(found: Mapping[str, Module]) -> str:
    """The drawn part of the page: the layers, then what each package is and imports."""
    targets = arrows(found)
    text = ["```text\n"]
    text += [f"  {'  ·  '.join(layer)}\n" for layer in layers()]
    text += ["```\n\n", "| package | what it is | imports |\n", "|---|---|---|\n"]
    for package in (one for layer in layers() for one in layer):
        sentence = found[f"{NAME}.{package}"].sentence.replace("|", "\\|")
        imported = ", ".join(f"`{other}`" for other in _from_above(targets.get(package, ()))) or "nothing"
        text.append(f"| `{package}` | {sentence} | {imported} |\n")
    return "".join(text)


def page(found: Mapping[str, Module]) -> str:
    """The whole page as it should be: what people wrote, and what is drawn."""
    written, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    if not mark:
        raise SystemExit(f"{PAGE} has lost the line after which it is drawn; nothing was written.")
    return f"{written}{MARK}\n{drawn(found)}"


def main(words: Sequence[str] | None = None) -> int:
    """Write, compare or count; the exit status is 1 where the page is not current."""
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="compare the page only")
    what.add_argument("--circles", action="store_true", help="list import circles inside packages")
    what.add_argument("--sizes", action="store_true", help="count files and lines by package")
    asked = parser.parse_args(words)
    found = modules()
    if asked.circles:
        print(*([" ".join(group) for group in circles(found)] or ["no import circles"]), sep="\n")
    elif asked.sizes:
        counted = sizes(found)
        print(*(f"{name:12} {files:4} files {lines:6} lines" for name, (files, lines) in counted.items()), sep="\n")
        files, lines = (sum(column) for column in zip(*counted.values(), strict=True))
        print(f"{'all':12} {files:4} files {lines:6} lines")
    elif asked.check:
        if page(found) != PAGE.read_text(encoding="utf-8"):
            print(f"{PAGE.relative_to(ROOT)} is stale: run scripts/structure.py and commit it")
            return 1
    else:
        PAGE.write_text(page(found), encoding="utf-8")
    return 0


def _dotted(path: Path, source: Path) -> str:
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _read(name: str, path: Path, known: frozenset[str]) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    home = name if path.name == "__init__.py" else name.rpartition(".")[0]
    imported = {other for node in _running(tree) for other in _named(node, home, known)}
    sentence = " ".join((ast.get_docstring(tree) or "").split("\n\n")[0].split())
    return Module(name=name, sentence=sentence, lines=text.count("\n"), imports=frozenset(imported - {name}))


def _running(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports of a file, wherever they stand, except those for types alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for other in node.orelse:
                yield from _running(other)
        else:
            yield from _running(node)


def _named(node: ast.Import | ast.ImportFrom, home: str, known: frozenset[str]) -> Iterator[str]:
    """The modules of the package that an import names: a name of a package may be a module of it."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
        return
    base = node.module or ""
    if node.level:
        parts = home.split(".")
        base = ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])
    for alias in node.names:
        whole = f"{base}.{alias.name}"
        if whole in known or base in known:
            yield whole if whole in known else base


def _components(graph: Mapping[str, Sequence[str]]) -> list[set[str]]:
    """The strongly connected components of a graph (Tarjan)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    groups: list[set[str]] = []

    def visit(node: str) -> None:
        order[node] = lowest[node] = len(order)
        stack.append(node)
        for other in graph[node]:
            if other not in order:
                visit(other)
                lowest[node] = min(lowest[node], lowest[other])
            elif other in stack:
                lowest[node] = min(lowest[node], order[other])
        if lowest[node] == order[node]:
            place = stack.index(node)
            groups.append(set(stack[place:]))
            del stack[place:]

    for node in graph:
        if node not in order:
            visit(node)
    return groups


def _from_above(packages: Sequence[str]) -> list[str]:
    places = [one for layer in layers() for one in layer]
    return sorted(packages, key=lambda one: places.index(one) if one in places else -1)


if __name__ == "__main__":
    sys.exit(main())
