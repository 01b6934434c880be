"""What a review of the streams found: each of these told of somebody, or said something false, once."""

import dataclasses
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

import sfumato as sf
from sfumato import errors
from sfumato.gate import checkpoint
from sfumato.reports.verify import verify
from sfumato.streams.people import listed
from sfumato.vault import Vault
from tests.reports.forgeries import signed_anew

UNIT = sf.event(relation="add/remove")
ASK: dict[str, Any] = {"epsilon": 1, "delta": 1e-7}


def vault(unit: Any = UNIT) -> Vault:
    return Vault(unit=unit, budget=sf.Budget(epsilon=4, delta=1e-6), name="v")


def full(*_: Any, **__: Any) -> None:
    raise errors.Refused("the disk is full. Nothing was released.")


def shown(total: Any) -> tuple[Any, ...]:
    return total.steps, total.totals, repr(total)


@pytest.mark.parametrize("part", ["write_sealed", "move"])
def test_a_step_that_was_refused_is_told_nowhere(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it could be drawn again and again for one charge: one number each time, and their mean is the truth."""
    question = vault().stream(name="x", version="1", horizon=8).running_total(strategy="increments")
    total = question.open(**ASK, state=tmp_path / "s")
    total.add(3)
    before = shown(total)
    place = checkpoint if part == "write_sealed" else type(total._gate)
    with monkeypatch.context() as patched:
        patched.setattr(place, part, full)
        with pytest.raises(errors.Refused, match="disk is full"):
            total.add(5)
    assert shown(total) == before
    assert total.window(1).total == before[1][0]
    with pytest.raises(errors.InvalidInput, match="only 1 steps"):
        total.window(2)
    with pytest.raises(errors.Refused, match="stopped within a step"):
        total.close()


def test_an_overtaken_copy_shows_no_other_draw(tmp_path: Path) -> None:
    question = vault().stream(name="x", version="1", horizon=8).running_total()
    old = question.open(**ASK, state=tmp_path / "s")
    old.add(3)
    before = shown(old)
    shutil.copy(tmp_path / "s", tmp_path / "copy")
    new = question.resume(**ASK, state=tmp_path / "copy")
    with pytest.raises(errors.Refused, match="another"):
        old.add(5)
    assert shown(old) == before
    assert new.totals == before[1]


def test_an_alarm_that_was_refused_is_shown_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = vault().stream(name="x", version="1", horizon=8).alarms(threshold=-(2**20), alarms=1)
    open_ = watch.open(epsilon=1, state=tmp_path / "s")
    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "write_sealed", full)
        with pytest.raises(errors.Refused, match="disk is full"):
            open_.check(5)
    assert (open_.halted, open_.steps) == (False, 0)


def test_no_thread_sees_a_number_before_its_state_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    total = vault().stream(name="x", version="1", horizon=8).running_total().open(**ASK, state=tmp_path / "s")
    writing, seen, write = threading.Event(), [], checkpoint.write_sealed

    def slow(*given: Any) -> None:
        writing.set()
        reader = threading.Thread(target=lambda: seen.append((total.steps, total.totals)))
        reader.start()
        reader.join(0.2)  # it waits for the step to end, and so must not be waited for
        assert not seen or seen == [(0, ())]
        write(*given)
        readers.append(reader)

    readers: list[threading.Thread] = []
    monkeypatch.setattr(checkpoint, "write_sealed", slow)
    told = total.add(3)
    readers[0].join()
    assert writing.is_set()
    assert seen[-1][1] in ((), (told.total,))


def test_a_watch_ends_at_its_horizon_as_the_window_that_is_charged_does() -> None:
    home = vault()
    watch = home.stream(name="w", version="1", horizon=2, window=40).alarms(threshold=10**6, alarms=1, watched="total")
    open_ = watch.open(epsilon=1)
    open_.check(1)
    assert (open_.check(1).alarm, open_.left) == (False, 0)
    for value in (1, 10**9):
        with pytest.raises(errors.Refused, match="opened for 2 steps and has had them"):
            open_.check(value)
    assert verify(open_.close().certificate.document).consistent


@pytest.mark.parametrize("kind", ["totals", "alarms"])
def test_events_are_held_to_no_separation_and_none_may_be_counted_on(kind: str) -> None:
    stream = dataclasses.replace(vault().stream(name="x", version="1", horizon=12, window=6), separation=50)
    question: Any = stream.running_total() if kind == "totals" else stream.alarms(threshold=5, alarms=1)
    with pytest.raises(errors.Unsupported, match="with a limit and a separation"):
        question.open(epsilon=1)


def test_a_certificate_of_events_with_a_separation_is_refused() -> None:
    unit = sf.user("id", relation="add/remove")
    stream = vault(unit).stream(
        name="x", version="1", horizon=12, limit=sf.Limit(groups=3, rows_per_group=1), separation=2
    )
    total = stream.running_total(strategy="square root").open(**ASK)
    total.add(people=["a"])
    document: Any = total.close().certificate.document
    assert verify(document).consistent
    event = vault().stream(name="x", version="1", horizon=12, window=3).running_total(strategy="square root")
    other: Any = event.open(**ASK)
    other.add(1)
    forged = other.close().certificate.document
    fields = ("query", "mechanism", "event", "sensitivity", "guarantee")
    swapped = {**forged, "statement": {**forged["statement"], **{key: document["statement"][key] for key in fields}}}
    assert not verify(signed_anew(swapped)).consistent


@pytest.mark.parametrize("state", [True, False])
def test_a_stream_of_a_closed_dataset_tells_nothing_more(state: bool, tmp_path: Path) -> None:
    home = vault()
    stream = home.stream(name="x", version="1", horizon=8)
    kept = {"state": tmp_path / "s"} if state else {}
    total = stream.running_total().open(**ASK, **kept)  # type: ignore[arg-type]
    watch = stream.alarms(threshold=10**4, alarms=1).open(epsilon=1)
    total.add(1)
    watch.check(1)
    before = shown(total)
    home._ledger.close([stream.dataset], {})
    for tell in (lambda: total.add(1), lambda: watch.check(1)):
        with pytest.raises(errors.Refused, match="its dataset was closed"):
            tell()
    assert shown(total) == before


def test_ids_as_data_frames_make_them_where_one_is_missing() -> None:
    assert listed([1.0, 1, float("nan"), None, 1.5, float("inf")]) == {"i1": 2}
    assert listed({"a": 2.0, "b": float("nan"), "c": 1.5, 7.0: 1}) == {"sa": 2, "i7": 1}


def test_what_cannot_be_held_costs_nothing(tmp_path: Path) -> None:
    home = vault()
    question = home.stream(name="x", version="1", horizon=8).running_total()
    (tmp_path / "s.lock").mkdir()
    with pytest.raises(errors.Refused, match="nothing was spent"):
        question.open(**ASK, state=tmp_path / "s")
    first = question.open(**ASK, state=tmp_path / "t")
    with pytest.raises(errors.Refused, match="running elsewhere"):
        question.open(**ASK, state=tmp_path / "t")
    assert home.spent == first.charged


def test_two_streams_of_one_question_go_on_each_by_itself(tmp_path: Path) -> None:
    question = vault().stream(name="x", version="1", horizon=8).running_total()
    one, two = (question.open(**ASK, state=tmp_path / name) for name in "ab")
    told = [stream.add(3).total for stream in (one, two)]
    for stream in (one, two):
        stream._stack.close()
    again = [question.resume(**ASK, state=tmp_path / name) for name in "ab"]
    assert [stream.totals[0] for stream in again] == pytest.approx(told)
    again[0].close()
    again[1]._stack.close()
    assert question.resume(**ASK, state=tmp_path / "b").totals[0] == pytest.approx(told[1])


def test_a_link_beside_a_state_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "s.new").symlink_to(tmp_path / "secret")
    vault().stream(name="x", version="1", horizon=8).running_total().open(**ASK, state=tmp_path / "s").add(1)
    assert (tmp_path / "secret").read_text() == "mine"


def test_the_best_of_one_step_is_that_step() -> None:
    total = vault().stream(name="x", version="1", horizon=1).running_total(strategy="optimal").open(**ASK)
    assert total.add(3).step == 1


def test_whatever_runs_while_a_step_is_read_cannot_push_it_beyond_the_horizon() -> None:
    """Ids may come from a generator, and a generator may ask the stream itself."""
    unit = sf.user("id", relation="add/remove")
    stream = vault(unit).stream(name="x", version="1", horizon=1, limit=sf.Limit(groups=1, rows_per_group=1))
    total, watch = stream.running_total().open(**ASK), stream.alarms(threshold=10**6, alarms=1).open(epsilon=1)
    for tell in (total.add, watch.check):

        def ids(tell: Any = tell) -> Any:
            tell(people=["a"])
            yield "b"

        with pytest.raises(errors.Refused, match="has had them"):
            tell(people=ids())
    assert (total.steps, watch.steps) == (1, 1)
