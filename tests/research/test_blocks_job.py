"""Programs over blocks of persons, handed in by a project: what is asked stands in the text that is approved."""

from pathlib import Path

import pytest

from sfumato.core.budget import Budget
from sfumato.errors import Refused, SfumatoError
from sfumato.governance.research_entries import RunPhase
from sfumato.research.blocks_job import BlocksJob, wanted_of
from sfumato.research.environment import JOBS
from tests.governance.signers import key_of
from tests.parts import boxes
from tests.research.worlds import project, world

HEAD = """# /// blocks
# table = "visits"
# columns = ["age"]
# bounds = [0, 100]
# epsilon = 0.5
# blocks = 10
# seconds = 1
# libraries = []
# ///
"""
CODE = (
    HEAD
    + """
def analyse(rows):
    return sum(rows["age"].to_pylist()) / max(1, rows.num_rows)
"""
)


def test_what_is_asked_stands_in_the_first_comment() -> None:
    found = wanted_of(CODE)
    assert (found.table, found.columns, found.blocks, found.spend) == ("visits", ("age",), 10, Budget(epsilon="1/2"))
    for wrong in (
        "def analyse(rows): return 1",
        " " + CODE,
        CODE.replace("# table", "# tabel"),
        CODE.replace("bounds = [0, 100]", "bounds = 3"),
        CODE.replace('columns = ["age"]', "columns = []"),
        CODE.replace("epsilon = 0.5", "epsilon = -1"),
        CODE.replace("epsilon = 0.5", "epsilon"),
        CODE.replace("blocks = 10", "blocks = 1"),
        CODE.replace("blocks = 10", "libraries = 5"),
        CODE.replace("blocks = 10", "libraries = [[1]]"),
        CODE.replace("blocks = 10", "memory = 1000000000"),
    ):
        with pytest.raises(SfumatoError):
            wanted_of(wrong)


@pytest.mark.claim("S3-22")
def test_a_program_over_blocks_gets_approved_columns_alone(tmp_path: Path) -> None:
    made = world(tmp_path)
    study = project(reviewed=False)
    made.opened(study)
    served = made.environment.served(study)
    for column in ("diagnosis", "patient_id"):
        with pytest.raises(Refused, match="not approved for this table, or for one of these columns"):
            BlocksJob().run(CODE.replace('["age"]', f'["age", "{column}"]'), served)
    with pytest.raises(Refused, match="not approved for this table"):
        BlocksJob().run(CODE.replace('"visits"', '"labs"'), served)
    assert made.ledger.balance(study.account).spent == Budget.none()


@pytest.mark.long
def test_a_program_over_blocks_runs_once_and_is_stored(tmp_path: Path) -> None:
    boxes()
    made = world(tmp_path, JOBS)
    study = project(reviewed=False)
    made.opened(study)
    number = made.ledger.submit_program(study.name, by="sven", code=CODE, key=key_of("sven"), job="blocks")
    first = made.environment.run(number)
    assert (first.phase, len(first.certificates)) == (RunPhase.RELEASED, 1)
    again = made.environment.run(number)
    assert (again.phase, again.certificates) == (RunPhase.STORED, first.certificates)
    assert made.ledger.balance(study.account).spent == Budget(epsilon="1/2")
