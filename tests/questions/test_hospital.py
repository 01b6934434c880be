"""Sixty questions as a hospital statistician types them: how many are understood. The count may only grow."""

import re
from collections import Counter

import sqlglot

from sfumato.errors import InvalidInput, NotDeclared, Unsupported
from tests.questions.hospital import Asked, declared, questions, tables

UNDERSTOOD = 19  # of the twenty about the generated hospital


def test_there_are_sixty_and_each_is_sql() -> None:
    asked = questions()
    assert Counter(each.on for each in asked) == {"stays": 20, "encounters": 20, "mimic": 20}
    assert len({each.sql for each in asked}) == 60
    for each in asked:
        assert isinstance(sqlglot.parse_one(each.sql, read="postgres"), sqlglot.exp.Select), each.asks


def test_no_fewer_are_understood_than_before() -> None:
    behind = declared("stays", tables("stays"))

    def understood(each: Asked) -> bool:
        named = dict.fromkeys(name for name in re.findall(r"(?:FROM|JOIN)\s+([a-z_]+)", each.sql) if name in behind)
        first, *others = (behind[name] for name in named)
        try:
            first.sql(each.sql, *others)
        except (InvalidInput, NotDeclared, Unsupported):
            return False
        return True

    assert sum(understood(each) for each in questions() if each.on == "stays") >= UNDERSTOOD
