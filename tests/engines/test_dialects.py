"""Every engine states every rule: none is read by the rules of another one in silence."""

import inspect

import pytest

from sfumato.engines.dialect import Dialect
from sfumato.engines.dialects import DIALECTS

RULES = sorted(Dialect.__abstractmethods__)


def test_no_rule_has_a_default() -> None:
    public = {name for name, _ in inspect.getmembers(Dialect) if not name.startswith("_")}
    assert public == set(RULES)


@pytest.mark.parametrize("engine", DIALECTS)
@pytest.mark.parametrize("rule", RULES)
def test_a_dialect_that_leaves_a_rule_out_cannot_be_made(engine: str, rule: str) -> None:
    stated = type(DIALECTS[engine])
    assert rule in vars(stated), f"{engine} does not state {rule} itself"
    forgetful = type("Forgetful", (stated,), {rule: inspect.getattr_static(Dialect, rule)})
    with pytest.raises(TypeError, match=rule):
        forgetful()


def test_each_engine_is_found_by_the_name_that_ibis_has_for_it() -> None:
    assert all(dialect.name == name for name, dialect in DIALECTS.items())
    assert {"duckdb", "postgres", "pyspark"} <= DIALECTS.keys()
