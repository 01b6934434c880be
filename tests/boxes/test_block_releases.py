"""Programs over blocks through the vault: charged before they run, once, and never moved by what a program does."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.boxes import BlockMean, BlockTrimmedMean, slots, trial
from sfumato.boxes.block_answers import STEPS
from sfumato.boxes.box import BoxLimits
from sfumato.boxes.levels import BoxLevel
from sfumato.core.question import Question
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.reports.words import AUDIENCES
from tests.parts import boxes

PERSON = sf.user("id", relation="add/remove")
FEW = BoxLimits(seconds=Fraction(1, 2), libraries=())
MEAN = "def analyse(rows): return sum(rows['days'].to_pylist()) / max(1, rows.num_rows)"
ROWS = pa.table({"id": [1, 2, 3, 4, None], "days": [4.0, 4.0, 4.0, 4.0, 1e9]})


def opened(unit: object = PERSON, rows: pa.Table = ROWS) -> tuple[sf.Vault, object]:
    """A vault with so large a budget that noise can be made to vanish."""
    boxes()
    vault = sf.Vault(unit=unit, budget=sf.Budget(epsilon=10**6), name="trial")  # type: ignore[arg-type]
    return vault, vault.table(rows, name="stays", version="1")


@pytest.fixture
def unboxed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Programs that run without boxes and slots, and the texts that ran: for what does not depend on boxes."""
    ran: list[str] = []

    def answers(box: object, code: str, blocks: Sequence[pa.Table]) -> list[tuple[float, ...] | None]:
        ran.append(code)
        names: dict[str, object] = {}
        exec(code, names)  # noqa: S102 - ours
        return [(float(names["analyse"](block)),) if block.num_rows else None for block in blocks]  # type: ignore[operator]

    monkeypatch.setattr(slots, "answers_of_blocks", answers)
    monkeypatch.setattr(trial, "tested_level", lambda: BoxLevel.NAMESPACES)
    monkeypatch.setattr(trial, "check_starts", lambda limits, level: 0.0)
    return ran


def asked(vault: sf.Vault, table: object, code: str = MEAN, **said: object) -> Question:
    given: dict[str, object] = {"bounds": (0, 8), "blocks": 2, "limits": FEW}
    made: Question = vault.block_mean(table, code, **{**given, **said})  # type: ignore[arg-type]
    return made


def test_a_program_runs_in_boxes_and_its_mean_is_released() -> None:
    vault, table = opened()
    release = asked(vault, table).release(epsilon=10**5)
    assert vault.spent == sf.Budget(epsilon=10**5)
    (mean,) = release["answer"].values
    assert float(mean) == pytest.approx(4, abs=0.01)


def test_the_same_code_is_answered_from_storage_and_another_is_charged(unboxed: list[str]) -> None:
    vault, table = opened()
    first, second = (asked(vault, table).release(epsilon=5) for _ in range(2))
    assert (second.values, second.charged) == (first.values, sf.Budget.none())
    asked(vault, table, MEAN + "\n").release(epsilon=5)
    assert vault.spent == sf.Budget(epsilon=10)
    assert unboxed == [MEAN, MEAN + "\n"]


def test_the_error_is_stated_before_and_is_that_of_the_issue() -> None:
    """k = 100, ε = 1: sd 1.4% of the range under add/remove, 2.8% under replace."""
    for relation, percent in (("add/remove", 1.4143), ("replace", 2.8286)):
        vault, table = opened(sf.user("id", relation=relation))
        question = asked(vault, table, bounds=(0, 100), blocks=100)
        query = question.query
        assert isinstance(query, BlockMean)
        law = question.preview(epsilon=1).mechanism.law
        assert float(query.expected_mse(law, rows=None)["answer"]) ** 0.5 == pytest.approx(percent, abs=0.001)
        assert vault.spent == sf.Budget.none()


def test_the_certificate_says_what_ran(unboxed: list[str], tmp_path: Path) -> None:
    vault, table = opened()
    release = asked(vault, table).release(epsilon=5)
    release.certificate.save(tmp_path / "blocks.json")
    said = sf.load(tmp_path / "blocks.json", key=vault.public_key).statement.query
    assert isinstance(said, BlockMean)
    program = said.program
    assert (program.level, program.code) == ("B", hashlib.sha256(MEAN.encode()).hexdigest())
    assert "clock" in program.not_hidden
    assert [each.split()[0] for each in program.libraries] == ["pyarrow"]
    assert all(len(each.partition("sha256:")[2]) == 64 for each in program.libraries)
    for language, words in (("en", "level B"), ("zh", "B 级")):
        assert any(words in release.explain(language, audience) for audience in AUDIENCES)


def test_rows_of_nobody_and_answers_far_off_move_nothing_beyond_the_range(unboxed: list[str]) -> None:
    vault, table = opened()
    far = asked(vault, table, "def analyse(rows): return 1e300").release(epsilon=10**5)
    assert max(far.values) <= 2 * STEPS + 1000


def test_blocks_without_persons_count_as_declared(unboxed: list[str]) -> None:
    vault, table = opened(rows=ROWS.slice(4))  # a row of nobody
    release = asked(vault, table, blocks=4, missing=2).release(epsilon=10**5)
    query = release.statement.query
    assert isinstance(query, BlockMean)
    assert abs(release.values[0] - 4 * query.answers[0].place(2.0)) < 1000


def test_a_floor_above_this_host_is_refused_before_anything_is_spent(unboxed: list[str]) -> None:
    vault, table = opened()
    vault.require_boxes("A")
    vault.require_boxes("B")  # it only rises
    with pytest.raises(Refused, match="level A is required; nothing was read and nothing was spent"):
        asked(vault, table).release(epsilon=5)
    assert vault.spent == sf.Budget.none()
    assert not unboxed


def test_a_box_that_leaks_is_refused_before_anything_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    vault, table = opened()
    trial.tested_level.cache_clear()
    monkeypatch.setattr(trial, "ways_out", lambda box: ("a thread",))
    with pytest.raises(Refused, match="ways out: a thread"):
        asked(vault, table).release(epsilon=5)
    assert vault.spent == sf.Budget.none()
    trial.tested_level.cache_clear()


def test_a_library_that_fails_to_be_imported_costs_nothing() -> None:
    """It is part of Python by name, and of none on Linux."""
    vault, table = opened()
    with pytest.raises(Unsupported, match="a library could not be imported"):
        asked(vault, table, limits=BoxLimits(libraries=("winreg",))).release(epsilon=5)
    assert vault.spent == sf.Budget.none()


def test_one_program_is_asked_for_one_number_and_for_two() -> None:
    """Questions share the program, and each has its own size of the answer."""
    vault, table = opened()
    one = asked(vault, table, code="def analyse(rows): return 4")
    asked(vault, table, code="def analyse(rows): return 4", bounds={"x": (0, 8), "y": (0, 8)})
    assert one.release(epsilon=10**5)["answer"].values[0] == pytest.approx(4, abs=0.01)


def test_ids_that_do_not_compare_exactly_are_refused_before_anything_is_spent() -> None:
    vault, table = opened(rows=pa.table({"id": [0.5, 1.5], "days": [1.0, 2.0]}))
    with pytest.raises((InvalidInput, Unsupported)):
        asked(vault, table).release(epsilon=5)
    assert vault.spent == sf.Budget.none()


def test_what_is_no_table_of_this_vault_or_has_no_persons_is_refused() -> None:
    vault, table = opened()
    other, _ = opened()
    with pytest.raises(InvalidInput, match="a table of this vault"):
        asked(other, table)
    with pytest.raises(InvalidInput, match="a table of this vault"):
        asked(vault, table.where("days > 3"))  # type: ignore[attr-defined]
    rows, records = opened(sf.record(relation="add/remove"))
    with pytest.raises(Unsupported, match="blocks are of persons"):
        asked(rows, records)


def test_a_question_that_no_vault_made_is_refused(unboxed: list[str]) -> None:
    """It would have a certificate that says what did not run."""
    vault, table = opened()
    query = asked(vault, table).query
    assert isinstance(query, BlockMean)
    made = replace(query, program=replace(query.program, level="A"))
    with pytest.raises(InvalidInput, match="no such program"):
        vault.release(made, sf.Budget(epsilon=5))


@pytest.mark.parametrize(
    "wrong",
    [
        {"bounds": (1, 1)},
        {"bounds": (0, 8), "missing": 9},
        {"bounds": {"x": (0, 1)}, "missing": {"y": 1}},
        {"blocks": 1},
        {"columns": "days"},
        {"columns": ["age"]},
        {"code": "x" * (1 << 20 | 1)},
    ],
    ids=["no range", "missing outside", "missing of nothing", "one block", "a text", "no column", "long code"],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    vault, table = opened()
    with pytest.raises(InvalidInput):
        asked(vault, table, **wrong)  # type: ignore[arg-type]  # one is a code


def test_noise_as_wide_as_the_range_is_not_paid_for(unboxed: list[str]) -> None:
    vault, table = opened()
    with pytest.raises(Refused, match="would say nothing"):
        asked(vault, table).release(epsilon=1.0 / 2)
    assert not unboxed


def test_a_trimmed_mean_states_its_error_before_and_forgets_the_ends(unboxed: list[str]) -> None:
    """k = 100, 10 dropped at each end: the noise of the mean of 80 blocks; two ends that fail move nothing."""
    vault, table = opened()
    question = vault.block_trimmed_mean(table, MEAN, bounds=(0, 100), limits=FEW)
    query = question.query
    assert isinstance(query, BlockTrimmedMean)
    assert (query.dropped, query.kept) == (10, 80)
    law = question.preview(epsilon=1).mechanism.law
    assert float(query.expected_mse(law, rows=None)["answer"]) ** 0.5 == pytest.approx(100 * 2**0.5 / 80, rel=1e-3)
    few = vault.block_trimmed_mean(table, MEAN, bounds=(0, 8), blocks=20, missing=8, limits=FEW)
    release = few.release(epsilon=10**5)
    assert 4 <= float(release["answer"].values[0]) <= 8
    for language, words in (("en", "the 2 lowest and the 2 highest blocks"), ("zh", "最低的 2 组和最高的 2 组")):
        assert any(words in release.explain(language, audience) for audience in AUDIENCES)


@pytest.mark.parametrize("trim", [0, "1/2", -1])
def test_a_trim_that_leaves_nothing_or_everything_is_refused(trim: object) -> None:
    vault, table = opened()
    with pytest.raises(InvalidInput, match="trim is a share"):
        vault.block_trimmed_mean(table, MEAN, bounds=(0, 8), trim=trim, limits=FEW)  # type: ignore[arg-type]
