"""Optional parts are named with the command that installs them, and other failures are not hidden."""

import json
import sys

import pytest

from sfumato.core.extras import need
from sfumato.errors import MissingExtra


def test_what_is_installed_is_imported():
    assert need("json", "never shown") is json


@pytest.mark.parametrize("module", ["sfumato_no_such_module", "sfumato_no_such_module.part"])
def test_what_is_missing_is_named_with_its_command(module):
    with pytest.raises(MissingExtra, match=rf"needs '{module}', which is not installed\. Install it: pip install it"):
        need(module, "pip install it")
    assert issubclass(MissingExtra, ImportError)


def test_a_missing_part_of_an_installed_package_is_missing_too():
    with pytest.raises(MissingExtra, match=r"json\.no_such_part"):
        need("json.no_such_part", "pip install it")


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("import sfumato_no_such_module", ModuleNotFoundError),
        ("raise ModuleNotFoundError('without a name')", ModuleNotFoundError),
        ("raise RuntimeError('broken')", RuntimeError),
    ],
)
def test_a_module_that_is_there_but_broken_says_so_itself(tmp_path, monkeypatch, source, error):
    (tmp_path / "sfumato_broken_part.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sfumato_broken_part", raising=False)
    with pytest.raises(error) as raised:
        need("sfumato_broken_part", "pip install it")
    assert not isinstance(raised.value, MissingExtra)
