"""The device of a search: one report at the full ε, whatever the server asks, and whatever happens in between."""

import copy
import os
import pickle
import subprocess
import sys
import threading
from fractions import Fraction

import pytest

from sfumato.errors import InvalidInput, Refused
from sfumato.local import PrefixSearch, SearchClient
from sfumato.noise import SystemBits
from tests.local.enumerated import law

PLAN = PrefixSearch(epsilon=1, alphabet="-abc", length=12, step=2, kept=4)
FIRST = PLAN.first()


def test_a_server_that_asks_for_ever_gets_one_report() -> None:
    """480 questions for single symbols told a text of 12 symbols; now one of them is answered."""
    device, answers = SearchClient(PLAN), 0
    for at in range(480):
        size = 2 + 2 * (at % 6)
        try:
            device.report("abcabcabcabc", ["a" * size, "b" * size])
        except Refused:
            continue
        answers += 1
    assert answers == 1
    assert device.sent


def test_threads_share_the_one_report() -> None:
    device, drawn, start = SearchClient(PLAN), [], threading.Barrier(8)

    def ask() -> None:
        start.wait()
        try:
            drawn.append(device.report("ab", FIRST))
        except Refused:
            return

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == 1


def test_the_state_is_saved_before_anything_is_drawn() -> None:
    class Watched(SystemBits):
        def below(self, bound: int) -> int:
            told.append("drawn")
            return super().below(bound)

    told: list[str] = []
    device = SearchClient(PLAN, bits=Watched())
    device.report("ab", FIRST, told.append)
    assert told[0] == device.state()
    assert set(told[1:]) == {"drawn"}
    with pytest.raises(Refused, match="was sent"):
        SearchClient.resumed(PLAN.to_json(), told[0]).report("ab", FIRST)


def test_a_report_whose_state_was_not_saved_is_given_up() -> None:
    def full(state: str) -> None:
        raise OSError("no room")

    device = SearchClient(PLAN)
    with pytest.raises(OSError, match="no room"):
        device.report("ab", FIRST, full)
    with pytest.raises(Refused, match="was sent"):
        device.report("ab", FIRST)


def test_what_asks_again_while_saving_is_refused() -> None:
    device = SearchClient(PLAN)
    with pytest.raises(Refused, match="was sent"):
        device.report("ab", FIRST, lambda state: device.report("ab", FIRST))


def test_a_state_belongs_to_one_plan() -> None:
    fresh = SearchClient(PLAN).state()
    assert not SearchClient.resumed(PLAN, fresh).sent
    other = PrefixSearch(epsilon=2, alphabet="-abc", length=12, step=2, kept=4)
    with pytest.raises(InvalidInput, match="another search"):
        SearchClient.resumed(other, fresh)
    for wrong in ("{}", "[]", "7", fresh.replace("false", "0"), fresh.replace("false", "null")):
        with pytest.raises(InvalidInput, match="not the state"):
            SearchClient.resumed(PLAN, wrong)
    with pytest.raises(InvalidInput):
        SearchClient.resumed(PLAN, "{")


def test_a_client_is_not_copied() -> None:
    device = SearchClient(PLAN)
    for job in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(Refused, match="not copied"):
            job(device)


def test_another_process_does_not_report(monkeypatch: pytest.MonkeyPatch) -> None:
    device, own = SearchClient(PLAN), os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: own + 1)
    with pytest.raises(Refused, match="another process"):
        device.report("ab", FIRST)


@pytest.mark.parametrize(
    "candidates",
    [
        [],
        (),
        None,
        "ab",
        {"ab": 1},
        ["ab", "ab"],
        ["ab", "abab"],
        ["a", "b"],
        ["aba"],
        [""],
        ["a" * 14],
        ["aé"],
        [7],
        [["a", "b"]],
        ["ab", None],
        list(PLAN.extended(["a" * 2, "b" * 2, "c" * 2, "ab", "ac"])),
    ],
    ids=repr,
)
def test_candidates_that_are_none_are_refused_and_cost_nothing(candidates) -> None:
    device = SearchClient(PLAN)
    with pytest.raises(InvalidInput, match="nothing was reported"):
        device.report("ab", candidates)
    with pytest.raises(InvalidInput, match="came as"):
        device.report(None, FIRST)
    assert not device.sent
    device.report("ab", FIRST)


def test_foreign_and_empty_texts_report_too() -> None:
    for text in ("é", "abababababababé", "", "a" * 10_000):
        assert SearchClient(PLAN).report(text, FIRST) >= 0


def test_what_the_device_draws_is_the_law_of_the_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    """By every answer of the random source: 'b' is the second candidate, and a foreign text the last value."""
    monkeypatch.setattr("sfumato.local.oracle.odds", lambda epsilon: Fraction(3, 2))
    plan = PrefixSearch(epsilon=1, alphabet="ab", length=1, kept=1)
    oracle = plan.oracle(("a", "b"))
    for text, place in (("b", 1), ("é", 2)):
        drawn = law(lambda bits, text=text: SearchClient(plan, bits=bits).report(text, ["a", "b"]))
        assert drawn == {report: oracle.probability(report, place) for report in oracle.outputs()}


def test_a_device_needs_the_standard_library_alone() -> None:
    code = (
        "import sys; from sfumato.local import PrefixSearch, SearchClient;"
        "plan = PrefixSearch(epsilon=1, alphabet='ab', length=4);"
        "SearchClient(plan.to_json()).report('ab', plan.first());"
        "print(sorted({'numpy', 'scipy', 'numba', 'pyarrow'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_plan_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="PrefixSearch"):
        SearchClient(7)
