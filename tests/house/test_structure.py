"""The page on architecture is what the imports are, and there is no import circle inside a package."""

from pathlib import Path

import pytest

from scripts import structure
from scripts.structure import Module


@pytest.mark.long
def test_no_modules_of_a_package_import_each_other() -> None:
    assert not structure.circles(structure.modules())


@pytest.mark.long
def test_the_page_is_current() -> None:
    assert structure.main(["--check"]) == 0


@pytest.mark.long
def test_every_package_has_a_layer_and_says_what_it_is() -> None:
    found = structure.modules()
    packages = {one.package for one in found.values()} - {"sfumato", "version"}
    assert packages == {one for layer in structure.layers() for one in layer}
    assert all(found[f"sfumato.{package}"].sentence for package in packages)


def test_circles_are_found_around_corners_and_not_across_packages() -> None:
    def module(name: str, *imports: str) -> Module:
        return Module(name=name, sentence="", lines=1, imports=frozenset(imports))

    found = {
        one.name: one
        for one in (
            module("s.a.x", "s.a.y"),
            module("s.a.y", "s.a.z"),
            module("s.a.z", "s.a.x", "s.b.x"),
            module("s.b.x", "s.a.x"),
            module("s.b.y", "s.b.x"),
        )
    }
    assert structure.circles(found) == [("s.a.x", "s.a.y", "s.a.z")]
    assert structure.arrows(found) == {"a": ("b",), "b": ("a",)}


def test_imports_inside_functions_count_and_those_for_types_do_not(tmp_path: Path) -> None:
    folder = tmp_path / "sfumato" / "part"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").touch()
    (folder / "__init__.py").touch()
    (folder / "one.py").write_text("def f():\n    from . import two\n    return two\n", encoding="utf-8")
    (folder / "two.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sfumato.part.one import f\n", encoding="utf-8"
    )
    found = structure.modules(tmp_path)
    assert found["sfumato.part.one"].imports == {"sfumato.part.two"}
    assert not found["sfumato.part.two"].imports


@pytest.mark.long
@pytest.mark.parametrize(("option", "said"), [("--circles", "no import circles"), ("--sizes", "tables")])
def test_what_it_counts_is_printed(option: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert structure.main([option]) == 0
    assert said in capsys.readouterr().out
