"""The brute-force law of groups and codes that are counted together: one unit moves them no further than claimed."""

from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.limits import Limit
from sfumato.core.sensitivity import L1, L2
from sfumato.core.units import Relation
from sfumato.engines import marginal_counts as engine_part
from sfumato.engines.marginal_counts import coded_rows, codes_of, tables_of
from sfumato.engines.totals import whole_numbers
from sfumato.tables.execution import key_column
from sfumato.tables.queries.weighted_marginals import WeightedMarginals
from tests.laws.neighbours import Neighbours, around_persons, around_records, slack, violations
from tests.laws.plans import engine
from tests.laws.scenarios import RELATIONS, limit_for, share_for, unit_of

pytestmark = pytest.mark.no_cover

CHAPTERS = {"I21": "I", "I50": "I", "J18": "J", "J45": "J", "J99": "J"}


class Stay(NamedTuple):
    """One row."""

    person: str | None
    code: str | None
    sex: str | None


SCHEMA = pa.schema([("world", pa.int64()), ("person", pa.string()), ("code", pa.string()), ("sex", pa.string())])
ROWS = [Stay(None, *cell) for cell in product([*CHAPTERS, "X99", None], ["F", "M", None])]
TABLE = (ROWS[0]._replace(person="ö0"), ROWS[4]._replace(person="ö0"), ROWS[9]._replace(person="1"))
LIMITS = [Limit(groups=1, rows_per_group=1), Limit(groups=1, rows_per_group=3)]
UNITS = [("record", LIMITS[0]), ("user", LIMITS[0]), ("user", LIMITS[1])]


@cache
def query(*missing: str) -> WeightedMarginals:
    """The question that is asked; J99 is no declared key, and counts as another code of its chapter."""
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=1), name="trial")
    keys = {"sex": ["F", "M"], "code": ["I21", "I50", "J18", "J45"]}
    table = vault.table(pa.table({"code": ["I21"], "sex": ["F"]}), name="stays", version="1", keys=keys)
    found = table.synthesis(rows=100, missing=missing, hierarchies={"code": CHAPTERS}).question(epsilon=1).query
    assert isinstance(found, WeightedMarginals)
    return found


@cache
def neighbours(kind: str) -> Neighbours:
    if kind == "record":
        return around_records(TABLE, tuple(ROWS))  # type: ignore[arg-type]
    several = [*((row,) for row in ROWS), *((row,) * 5 for row in ROWS[::2]), tuple(ROWS), ()]
    return around_persons(TABLE, several, newcomer="2")  # type: ignore[arg-type]


@cache
def loaded(kind: str) -> Any:
    rows = [(world, *row) for world, table in enumerate(neighbours(kind).worlds) for row in table]
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)]
    engine().con.register(f"codes {kind}", pa.table(columns, SCHEMA))
    return engine().table(f"codes {kind}")


def counted(asked: WeightedMarginals, kind: str, limit: Limit) -> np.ndarray:
    keys = [replace(key_column(each), other=each.column in asked.missing) for each in asked.by]
    plan = coded_rows(loaded(kind), where=None, keys=keys, share=share_for(kind, limit), world="world")
    found = whole_numbers(plan)
    codes, every = codes_of(found, keys), []
    for world in range(len(neighbours(kind).worlds)):
        there = found["world"] == world
        tables = tables_of([code[there] for code in codes], keys, asked.tables)
        every.append(np.concatenate([each * weight for each, weight in zip(tables, asked.weights, strict=True)]))
    return np.array(every)


@pytest.mark.claim("S1-16")
@pytest.mark.parametrize("relation", RELATIONS, ids=lambda it: it.value)
@pytest.mark.parametrize(("kind", "limit"), UNITS)
def test_no_unit_moves_groups_and_codes_further_than_claimed_and_some_as_far(
    kind: str, limit: Limit, relation: Relation
) -> None:
    for missing in ((), ("code", "sex")):
        asked = query(*missing)
        sums = counted(asked, kind, limit)
        claim = asked.sensitivity(unit_of(kind, relation), limit_for(kind, limit))
        assert violations(lambda _, it=sums: it, claim, around=neighbours(kind), relation=relation) == [], missing
        loose = slack(lambda _, it=sums: it, claim, around=neighbours(kind), relation=relation)
        assert [it for it in loose if not it.startswith("l0")] == [], missing


def test_codes_that_are_left_out_of_the_claim_are_found_out() -> None:
    """The wrong claim that a code costs nothing because its chapter is counted."""
    asked = query()
    sums = counted(asked, "record", LIMITS[0])
    claim = asked.sensitivity(unit_of("record", Relation.ADD_REMOVE), None)
    assert claim.l1 is not None
    without = asked.weights[:-1]
    wrong = replace(claim, l1=L1(sum(without)), l2=L2(sum(weight**2 for weight in without)))
    around = neighbours("record")
    assert violations(lambda _: sums, wrong, around=around, relation=Relation.ADD_REMOVE) != []


def test_a_limit_that_is_not_kept_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_part, "few_rows", lambda rows, **_: rows)
    asked = query()
    sums = counted(asked, "user", LIMITS[0])
    claim = asked.sensitivity(unit_of("user", Relation.ADD_REMOVE), LIMITS[0])
    assert violations(lambda _: sums, claim, around=neighbours("user"), relation=Relation.ADD_REMOVE) != []


def test_codes_add_up_to_their_chapters() -> None:
    """The same rows are in both tables: a chapter has the rows of its codes, and of those that are not declared."""
    asked = query()
    sums = counted(asked, "record", LIMITS[0])
    pairs, codes = sums[:, :4] // asked.weights[0], sums[:, 4:] // asked.weights[1]
    chapters = {name: pairs.reshape(-1, 2, 2).sum(axis=1)[:, place] for place, name in enumerate("IJ")}
    if asked.by[0].column != "sex":
        chapters = {name: pairs.reshape(-1, 2, 2).sum(axis=2)[:, place] for place, name in enumerate("IJ")}
    assert (chapters["I"] == codes[:, 0] + codes[:, 1]).all()
    assert (chapters["J"] == codes[:, 2] + codes[:, 3] + codes[:, 4]).all()
    assert codes[:, 4].any()
