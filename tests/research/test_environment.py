"""Projects, programs and runs: what the board approved runs, is logged, and lets certificates out, nothing else."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.boxes.levels import BoxLevel
from sfumato.core.budget import Budget
from sfumato.errors import InvalidInput, NotDeclared, Refused, SfumatoError
from sfumato.governance.ledger_state import replay
from sfumato.governance.research_entries import ProgramSubmitted, Project, RunPhase
from sfumato.research.connection import Connection
from sfumato.research.environment import ScriptJob, dry_run
from sfumato.research.script_box import ScriptBox
from tests.governance.homes import Home
from tests.governance.signers import key_of
from tests.parts import boxes
from tests.research.worlds import CANARY, COUNTS, PERSON, PLAYED, ROWS, SCHEMA, World, project, world

AGES = COUNTS.replace("ward, COUNT(*) AS n FROM visits GROUP BY ward", "AVG(age) AS n FROM visits")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    found = world(tmp_path)
    yield found
    found.ledger.close()


@pytest.mark.claim("S3-21")
def test_a_program_from_submission_to_release_with_every_run_in_the_log(made: World) -> None:
    study = project()
    made.opened(study)
    number = made.submitted(study)
    first = made.environment.run(number)
    assert first.phase is RunPhase.RELEASED
    (text,) = first.certificates.values()
    assert CANARY not in text
    spent = made.ledger.balance(study.account).spent
    assert spent == Budget(epsilon="1/10")
    again = made.environment.run(number)  # the same program on the same data: what it let out before
    assert (again.phase, again.certificates) == (RunPhase.STORED, first.certificates)
    assert made.ledger.balance(study.account).spent == spent
    other = made.environment.run(made.submitted(study, AGES))  # another program is charged
    assert other.phase is RunPhase.RELEASED
    assert made.ledger.balance(study.account).spent == Budget(epsilon="2/10")
    failed = made.environment.run(made.submitted(study, "raise SystemError"))
    assert (failed.phase, failed.certificates) == (RunPhase.FAILED, {})
    phases = [logged.phase for logged in made.ledger.research().runs.values()]
    start = RunPhase.STARTED
    assert phases == [start, RunPhase.RELEASED, RunPhase.STORED, start, RunPhase.RELEASED, start, RunPhase.FAILED]
    assert made.ledger.verify() == ()
    assert replay(made.ledger.rows()).decided.research == made.ledger.research()


@pytest.mark.claim("S3-21")
def test_rows_do_not_leave_and_neither_does_what_nobody_certified(made: World) -> None:
    study = project()
    made.opened(study)
    served = made.environment.served(study)
    seen = Connection(served.answered)
    for stub in (seen, seen.tables["visits"], seen.tables["visits"]._gate):
        assert CANARY not in repr(vars(stub) if hasattr(stub, "__dict__") else stub)
    release = seen.sql("SELECT COUNT(*) AS n FROM visits", epsilon=0.1)
    text = release.certificate.text
    assert served.export.certificate(text) == text
    altered = json.loads(text)
    altered["statement"]["values"] = [one + 1 for one in altered["statement"]["values"]]
    theirs = sf.Vault(unit=PERSON, budget=Budget(epsilon=1), name=study.account)
    theirs.table(ROWS, schema=SCHEMA)
    foreign = sf.Vault(unit=PERSON, budget=Budget(epsilon=1), name=study.account)
    forged = foreign.table(ROWS, schema=SCHEMA).count().release(epsilon=1).certificate.text
    for thing in (
        ROWS,
        ROWS.to_pylist(),
        400,
        "400",
        b"400",
        text.encode(),
        json.dumps(altered),
        forged,
        json.dumps({"statement": {"values": [400]}}),
        None,
        "[" * 100_000,
    ):
        with pytest.raises(Refused, match="does not leave the research environment"):
            served.export.certificate(thing)
    assert list(served.released.values()) == [text]


@pytest.mark.claim("S3-22")
def test_minimisation_blocks_by_itself(made: World) -> None:
    """Who asks is of the project, and what is asked would be charged and noised: the columns alone are refused."""
    study = project()
    made.opened(study)
    before = made.ledger.balance(study.account).spent
    served = made.environment.served(study)
    seen = Connection(served.answered)
    asked = (
        "SELECT diagnosis, COUNT(*) FROM visits GROUP BY diagnosis",
        "SELECT COUNT(*) FROM visits WHERE diagnosis = 'flu'",
        "SELECT COUNT(*) FROM (SELECT diagnosis AS ward FROM visits) AS visits WHERE ward = 'flu'",
        "WITH v AS (SELECT diagnosis AS age FROM visits) SELECT COUNT(*) FROM v WHERE age = 'flu'",
        "SELECT COUNT(*) FROM visits v WHERE v.diagnosis = 'flu'",
        "SELECT COUNT(*) FROM visits WHERE patient_id = 'x'",
        "SELECT COUNT(*) FROM visits WHERE LENGTH(patient_id) > 3",
        "SELECT COUNT(*) FROM visits WHERE patient_id IN (SELECT patient_id FROM visits WHERE diagnosis = 'flu')",
    )
    for text in asked:
        with pytest.raises(SfumatoError, match=r"(?i)no column|not approved|nothing was done"):
            seen.sql(text, epsilon=0.1)
    whole = sf.Vault(unit=PERSON, budget=Budget(epsilon=1), name="forged").table(ROWS, schema=SCHEMA)
    for question in (
        whole.group_by("diagnosis").count(),
        whole.where(sf.col("patient_id") == "x").count(),
        whole.where(sf.col("diagnosis").isnull()).count(),
    ):
        gate = seen.tables["visits"]._gate
        with pytest.raises(SfumatoError, match=r"no column|not approved"):
            gate.release(question.query, Budget(epsilon="1/10"))  # type: ignore[call-arg]
    assert made.ledger.balance(study.account).spent == before
    assert seen.sql("SELECT COUNT(*) FROM visits WHERE age > 50", epsilon=0.1).charged == Budget(epsilon="1/10")


@pytest.mark.claim("S3-22")
def test_minimisation_holds_for_answers_that_another_project_paid_for(made: World) -> None:
    wide = project("ages", columns=(("visits", ("diagnosis", "ward")),))
    narrow = project()
    for study in (wide, narrow):
        made.opened(study)
    text = "SELECT COUNT(*) AS n FROM visits WHERE diagnosis = 'flu'"
    whole = Connection(made.environment.served(wide).answered)
    question = whole.tables["visits"].sql(text)
    question.release(epsilon=0.1)
    gate = Connection(made.environment.served(narrow).answered).tables["visits"]._gate
    with pytest.raises(InvalidInput, match="no column 'diagnosis'"):
        gate.release(question.query, Budget(epsilon="1/10"))  # type: ignore[call-arg]


@pytest.mark.claim("S3-22")
def test_access_blocks_by_itself(made: World) -> None:
    """What is asked would be approved columns, charged and noised: who asks is refused."""
    study = project()
    with pytest.raises(NotDeclared, match="no project 'wards' is open"):
        made.ledger.submit_program("wards", by="rosa", code=COUNTS, key=key_of("rosa"))
    made.opened(study)
    for by, key in (("tara", "tara"), ("rosa", "tara"), ("tara", "rosa")):
        with pytest.raises(Refused, match="not signed by one of the people"):
            made.ledger.submit_program("wards", by=by, code=COUNTS, key=key_of(key))
    number = made.submitted(study, approve=False)
    with pytest.raises(Refused, match="has not approved this program"):
        made.environment.run(number)
    assert made.ledger.research().runs == {}
    assert made.ledger.balance(study.account).spent == Budget.none()


@pytest.mark.claim("S3-22")
def test_the_guarantee_blocks_by_itself(made: World) -> None:
    """Who asks is of the project, and the columns are approved: without room for its ε nothing is released."""
    study = project()
    made.opened(study)
    greedy = COUNTS.replace("epsilon=0.1", "epsilon=1.5")
    assert made.environment.run(made.submitted(study, greedy)).phase is RunPhase.FAILED
    assert made.ledger.balance(study.account).spent == Budget.none()
    silent = made.environment.run(made.submitted(study, "rows = [['Zanzibar', 4711]]"))
    assert (silent.phase, silent.certificates) == (RunPhase.RELEASED, {})


def test_an_approval_counts_for_its_own_text_and_once(made: World) -> None:
    study = project()
    number = made.approved(study.subject, account=study.account)
    wider = replace(study, columns=(("visits", ("ward", "age", "diagnosis")),))
    for other in (wider, replace(study, people=study.people[:1]), replace(study, purpose="research")):
        with pytest.raises(Refused, match="is no approval in force of this project"):
            made.ledger.open_project(other, proposal=number)
    made.ledger.open_project(study, proposal=number)
    with pytest.raises(Refused, match="a later decision opened the project"):
        made.ledger.open_project(study, proposal=number)
    unnamed = made.approved(wider.subject, account=study.account, datasets=())
    with pytest.raises(Refused, match="is no approval in force"):
        made.ledger.open_project(wider, proposal=unnamed)  # whoever could veto was not asked
    made.submitted(study)
    swapped = made.submitted(study, AGES, approve=False)
    with pytest.raises(Refused, match="has not approved this program"):
        made.environment.run(swapped)
    other = project("ages")
    made.opened(other)
    with pytest.raises(Refused, match="has not approved this program"):  # approved in another project
        made.environment.run(made.submitted(other, COUNTS, approve=False))


def test_a_program_of_the_project_as_it_was_does_not_run_in_the_one_that_it_became(made: World) -> None:
    study = project(reviewed=False)
    made.opened(study)
    number = made.submitted(study)
    made.opened(replace(study, people=study.people[1:]))
    with pytest.raises(Refused, match="not signed by one of the people"):
        made.environment.run(number)


def test_a_veto_ends_the_project_and_its_programs(made: World) -> None:
    study = project()
    made.opened(study)
    number = made.submitted(study)
    assert made.environment.run(number).phase is RunPhase.RELEASED
    said = {"by": "mele", "community": "valley", "dataset": "visits", "key": key_of("mele")}
    made.ledger.veto(**said, reason="not asked")  # type: ignore[arg-type]
    with pytest.raises(Refused, match="the approval of the project 'wards' has ended"):
        made.environment.run(number)  # not even what is stored
    made.ledger.lift_veto(**said, reason="asked now")  # type: ignore[arg-type]
    with pytest.raises(Refused, match="the approval of the project 'wards' has ended"):
        made.environment.run(number)


def test_a_program_that_was_edited_in_the_database_is_found(made: World, tmp_path: Path) -> None:
    study = project()
    made.opened(study)
    number = made.submitted(study)
    home = Home(url=str(tmp_path / "ledger.db"), folder=str(tmp_path))
    home.unlocked(f"UPDATE record SET body = replace(body, 'epsilon=0.1', 'epsilon=0.9') WHERE number = {number}")  # noqa: S608 - ours
    with pytest.raises(SfumatoError, match="decisions in the database are not those"):
        home.open().runnable(number)


def test_a_dry_run_reads_nothing_of_anybody(made: World) -> None:
    study = project()
    vault = sf.Vault(unit=PERSON, budget=Budget(epsilon=1), name="dry run")
    found = dry_run(study, COUNTS, {"visits": SCHEMA}, vault=vault, job=PLAYED["script"])
    assert found.finished
    assert found.cost == Budget(epsilon="1/10")
    assert sum(found.releases[0].values) > 1000  # two thousand invented rows, at most two of each person
    assert made.ledger.balance(study.account).spent == Budget.none()
    wrong = sf.Vault(unit=PERSON, budget=Budget(epsilon=1), name="dry run")
    assert not dry_run(study, "nothing", {"visits": SCHEMA}, vault=wrong, job=PLAYED["script"]).finished


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", " "),
        ("people", ()),
        ("people", (("rosa", "0" * 64), ("rosa", "1" * 64))),
        ("people", (("rosa", "0" * 64), ("sven", "0" * 64))),
        ("people", (("rosa", "key"),)),
        ("columns", ()),
        ("columns", (("visits", ()),)),
        ("columns", (("visits", ("age", "Age")),)),
        ("purpose", ""),
    ],
)
def test_a_project_that_does_not_say_what_it_is_is_refused(field: str, value: object) -> None:
    with pytest.raises(SfumatoError, match="nothing was done"):
        replace(project(), **{field: value})  # type: ignore[arg-type]


def test_a_program_has_an_end() -> None:
    said = {"at": "", "project": "p", "subject": "s", "by": "rosa", "job": "script", "signature": ""}
    for code in ("", " ", "x" * (64 * 2**10 + 1), "\ud800"):
        with pytest.raises(SfumatoError, match="nothing was done"):
            ProgramSubmitted(code=code, **said)
    assert isinstance(project(), Project)


@pytest.mark.long
@pytest.mark.claim("S3-21")
@pytest.mark.parametrize("level", list(BoxLevel), ids=lambda level: level.value)
def test_in_the_box_a_script_asks_and_reaches_nothing_else(tmp_path: Path, level: BoxLevel) -> None:
    boxes(level.value)
    made = world(tmp_path, {"script": ScriptJob(box=ScriptBox(level=level))})
    study = project(reviewed=False)
    made.opened(study)
    found = made.environment.run(made.submitted(study))
    assert found.phase is RunPhase.RELEASED
    assert len(found.certificates) == 1
    hostile = (
        COUNTS
        + f"""
import os, socket
for path in ({str(tmp_path)!r}, "/etc/passwd", "/proc/self/environ", "/tmp"):
    try:
        seen = os.listdir(path) if os.path.isdir(path) else [os.stat(path)]
    except OSError:
        continue
    if seen:
        raise SystemError
try:
    socket.socket(socket.AF_UNIX)
except OSError:
    pass
else:
    raise SystemError
os.write(1, b"x" * 3)
"""
    )
    # Everything that is tried fails, or the run would; then it spoils its own pipe, and the run fails.
    assert (
        made.environment.run(made.submitted(study, hostile.replace('os.write(1, b"x" * 3)', ""))).phase.value
        == "released"
    )
    assert made.environment.run(made.submitted(study, hostile)).phase is RunPhase.FAILED
