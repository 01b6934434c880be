"""The client runs with the standard library alone, keeps its count, and memoises as declared."""

import copy
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from fractions import Fraction

import pytest

from sfumato import local
from sfumato.core import enclosures
from sfumato.errors import InvalidInput, Refused, Unsupported
from sfumato.local import (
    MEANS,
    ORACLES,
    Client,
    Collection,
    DuchiMean,
    HybridMean,
    KaryResponse,
    LocalHash,
    OptimisedUnary,
    SubsetSelection,
    collection_from_json,
    read_report,
    write_report,
)

ALONE = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numpy", "scipy", "numba", "cryptography", "pyarrow", "ibis", "sqlalchemy"):
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Blocked())
from sfumato.local.client import Client, write_report
from sfumato.local.inbox import Inbox
text = sys.stdin.read()
client = Client(text)
sent = write_report(client.report(client.collection.labels[1] if client.collection.labels else "0.25"))
assert Inbox(client.collection).take(sent)
print(sent)
"""


def asked_with(ask, **more) -> Collection:
    return Collection(name="asked", ask=ask, **more)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "ask",
    [
        *(oracle.calibrated(epsilon=1, values=5) for oracle in ORACLES if hasattr(oracle, "calibrated")),
        *(oracle(epsilon=1, values=5) for oracle in ORACLES if not hasattr(oracle, "calibrated")),
        HybridMean.calibrated(epsilon=1),
    ],
    ids=lambda ask: ask.KIND,
)
def test_the_client_runs_without_numpy(ask) -> None:
    labels = None if isinstance(ask, MEANS) else ("a", "b", "c", "d", "e")
    answer = subprocess.run(
        [sys.executable, "-c", ALONE], input=asked_with(ask, labels=labels).to_json(), capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    report = read_report(answer.stdout)
    assert report in list(ask.outputs()) if isinstance(report, bytes) else report >= 0


def test_the_block_blocks() -> None:
    code = ALONE.replace("text = sys.stdin.read()", "import sfumato.local.simulate")
    answer = subprocess.run([sys.executable, "-c", code], input="", capture_output=True, text=True)
    assert answer.returncode != 0
    assert "numpy is blocked" in answer.stderr


def test_a_collection_is_a_document() -> None:
    for ask in (LocalHash.calibrated(epsilon="1/3", values=9), DuchiMean(epsilon=2)):
        collection = asked_with(ask, reports=3)
        assert collection_from_json(collection.to_json()) == collection
    text = asked_with(KaryResponse(epsilon=1, values=2)).to_json()
    with pytest.raises(Unsupported, match="newer"):
        collection_from_json(text.replace('"version":1', '"version":2'))
    with pytest.raises(InvalidInput, match="not a collection"):
        collection_from_json('{"epsilon":"1/1","kind":"local.kary_response","values":2,"version":1}')


def test_reports_beyond_those_agreed_to_are_refused() -> None:
    client = Client(asked_with(KaryResponse(epsilon="1/2", values=2), reports=2))
    client.report(0)
    assert client.spent == Fraction(1, 2)
    client.report(1)
    with pytest.raises(Refused, match="all 2 reports"):
        client.report(1)
    assert (client.sent, client.spent) == (2, 1)


def test_a_client_reports_a_mean() -> None:
    client = Client(asked_with(DuchiMean(epsilon="1/2"), reports=2))
    assert {client.report(0.25), client.report("-1/3")} <= {0, 1}
    assert client.spent == 1 == client.collection.cost().epsilon
    assert client.collection.loss().event.guarantee.epsilon == Fraction(1, 2)


def test_a_refused_value_costs_nothing_and_is_not_repeated() -> None:
    client = Client(asked_with(KaryResponse(epsilon=1, values=2), labels=("no", "yes")))
    with pytest.raises(InvalidInput) as refused:
        client.report("secret")
    assert "secret" not in str(refused.value)
    assert refused.value.__context__ is None
    assert client.sent == 0


@pytest.mark.parametrize("value", ["hiv-positive", float("nan"), "1e999", None, True, [3]])
def test_nothing_behind_a_refusal_names_the_value(value) -> None:
    for ask in (DuchiMean(epsilon=1), HybridMean.calibrated(epsilon=1), KaryResponse(epsilon=1, values=2)):
        client = Client(asked_with(ask))
        with pytest.raises(InvalidInput) as refused:
            client.report(value)
        assert str(value) not in str(refused.value)
        assert refused.value.__context__ is None
        assert refused.value.__cause__ is None
        assert client.sent == 0


class SlowLabel(str):
    """Takes long to be compared, which is between the look at the count and the counting."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        time.sleep(0.005)
        return str.__eq__(self, other)


@pytest.mark.parametrize("reports", [1, 3])
def test_threads_share_the_count(reports: int) -> None:
    asked = asked_with(KaryResponse(epsilon=1, values=2), labels=("no", "yes"), reports=reports)
    client, got = Client(asked), []

    def ask() -> None:
        try:
            got.append(client.report(SlowLabel("yes")))
        except Refused:
            got.append(None)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(got), got.count(None), client.sent) == (8, 8 - reports, reports)


class Failing:
    def below(self, bound: int) -> int:
        raise OSError("no randomness")


def test_a_report_is_counted_before_it_is_drawn() -> None:
    client = Client(asked_with(KaryResponse(epsilon=1, values=2)), bits=Failing())
    with pytest.raises(OSError, match="no randomness"):
        client.report(1)
    assert client.sent == 1
    with pytest.raises(Refused, match="all 1 reports"):
        client.report(1)


def test_another_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(asked_with(KaryResponse(epsilon=1, values=2)))
    own = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: own + 1)
    with pytest.raises(Refused, match="another process"):
        client.report(1)
    monkeypatch.undo()
    assert client.report(1) in (0, 1)


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_client_is_not_copied(make) -> None:
    with pytest.raises(Refused, match="not copied"):
        make(Client(asked_with(KaryResponse(epsilon=1, values=2))))


@pytest.mark.parametrize("more", [{}, {"memoised": True}])
def test_the_state_is_saved_before_the_report_is_handed_out(more) -> None:
    collection = asked_with(KaryResponse(epsilon=1, values=3), reports=2, **more)
    client, saved = Client(collection), []
    report = client.report(1, save=lambda state: saved.append((state, client.state())))
    assert saved == [(client.state(), client.state())]
    later = Client.resumed(collection, saved[0][0])
    assert later.sent == 1
    assert not more or later.report(1) == report


def test_a_report_whose_state_was_not_saved_is_not_handed_out_but_counted() -> None:
    def full(state: str) -> None:
        raise OSError("no space left")

    client, report = Client(asked_with(KaryResponse(epsilon=1, values=3), reports=2)), None
    with pytest.raises(OSError, match="no space left"):
        report = client.report(1, save=full)
    assert report is None
    assert client.sent == 1
    client.report(1)
    with pytest.raises(Refused, match="all 2 reports"):
        client.report(1)


class Least:
    """Answers with 0, so that a k-ary response tells the truth."""

    def below(self, bound: int) -> int:
        return 0


def test_what_is_not_listed_reports_as_the_label_for_the_rest() -> None:
    ask = KaryResponse(epsilon=1, values=3)
    asked = asked_with(ask, labels=("never", "else", "current"), other="else", reports=9)
    asked = collection_from_json(asked.to_json())
    client = Client(asked, bits=Least())
    given = ("never", "cigars", "current", "", None, 7, -1, float("nan"), 2)
    assert [client.report(value) for value in given] == [0, 1, 2, 1, 1, 1, 1, 1, 2]


def memoised(distinct: int | None = None, reports: int = 3) -> Collection:
    return asked_with(KaryResponse(epsilon=1, values=3), reports=reports, memoised=True, distinct=distinct)


def test_the_same_value_gets_the_same_report_and_too_many_values_the_last_one() -> None:
    client = Client(memoised(distinct=2, reports=40))
    first, second = client.report(0), client.report(1)
    assert [client.report(value) for value in (0, 1, 0, 0)] == [first, second, first, first]
    assert client.report(2) == first  # the third value: what was sent last
    assert client.report(1) == second


def test_a_client_goes_on_where_it_stopped() -> None:
    for ask in (KaryResponse(epsilon=1, values=3), OptimisedUnary(epsilon=1, values=3)):
        collection = asked_with(ask, reports=9, memoised=True)
        client = Client(collection)
        before = [client.report(value) for value in (0, 1, 2)]
        later = Client.resumed(collection.to_json(), client.state())
        assert [later.report(value) for value in (0, 1, 2)] == before
        assert later.sent == 6
    state = client.state()
    for wrong in (
        "{}",
        "[]",
        "3",
        *(state.replace('"sent":3', f'"sent":{sent}') for sent in ('"x"', "-3", "true", "null")),
    ):
        with pytest.raises(InvalidInput, match="not the state"):
            Client.resumed(collection, wrong)
    for damaged in (state.replace('"last":', '"lost":'), state.replace('"memory":{', '"memory":{"x":"1",')):
        with pytest.raises(InvalidInput, match="not the state"):
            Client.resumed(collection, damaged)
    with pytest.raises(InvalidInput, match="another collection"):
        Client.resumed(asked_with(ask, reports=10, memoised=True), state)


@pytest.mark.parametrize(
    "change",
    [
        {"memory": {"0": "7"}, "last": "7"},  # a report that there is not
        {"memory": {"0": '"01"'}, "last": '"01"'},
        {"memory": {"3": "1"}},  # a value that there is not
        {"memory": {"-1": "1"}},
        {"memory": {"00": "1"}},
        {"memory": {"0": "1", "00": "1"}},
        {"memory": {"0": "1", "1": "1", "2": "1"}},  # more than distinct
        {"memory": {"0": "1", "1": "1"}, "sent": 1},  # more than were sent
        {"memory": {"0": "1"}, "last": "0"},  # sent last, and never drawn
        {"memory": {}},
        {"last": None},
        {"sent": 10},
    ],
    ids=str,
)
def test_a_state_that_no_client_can_have_is_refused(change) -> None:
    collection = memoised(distinct=2, reports=9)
    client = Client(collection)
    client.report(0)
    body = json.loads(client.state()) | {"sent": 3, "memory": {"0": "1"}, "last": "1"}
    assert Client.resumed(collection, json.dumps(body)).report(0) == 1
    with pytest.raises(InvalidInput, match="not the state") as refused:
        Client.resumed(collection, json.dumps(body | change))
    assert refused.value.__context__ is None


def test_a_state_holds_a_memory_only_where_reports_are_memoised() -> None:
    for ask in (KaryResponse(epsilon=1, values=2), DuchiMean(epsilon=1)):
        collection = asked_with(ask, reports=2)
        client = Client(collection)
        client.report(1)
        body = json.loads(client.state())
        assert Client.resumed(collection, client.state()).sent == 1
        for change in ({"memory": {"0": "0"}}, {"last": "5"}, {"sent": 0}):
            with pytest.raises(InvalidInput, match="not the state"):
                Client.resumed(collection, json.dumps(body | change))


def test_a_refused_state_is_not_behind_its_refusal() -> None:
    """The error of a JSON reader holds the whole text."""
    for damaged in ("{'memory': secret", '{"memory": 1.5}', "[3]"):
        with pytest.raises(InvalidInput, match="not the state") as refused:
            Client.resumed(memoised(), damaged)
        assert refused.value.__context__ is None


def test_reports_are_written_and_read() -> None:
    for report in (0, 12, b"\x00\xff"):
        assert read_report(write_report(report)) == report
    for wrong in ("-1", "true", '"xyz"', "null", "1.5"):
        with pytest.raises(InvalidInput):
            read_report(wrong)


@pytest.mark.parametrize(
    "make",
    [
        lambda: asked_with(KaryResponse(epsilon=1, values=2), labels=("a",)),
        lambda: asked_with(KaryResponse(epsilon=1, values=2), labels=("a", "a")),
        lambda: asked_with(DuchiMean(epsilon=1), labels=("a", "b")),
        lambda: asked_with(DuchiMean(epsilon=1), memoised=True),
        lambda: asked_with(KaryResponse(epsilon=1, values=2), distinct=1),
        lambda: asked_with(KaryResponse(epsilon=1, values=2), reports=0),
        lambda: asked_with("anything"),
        lambda: memoised(distinct=0),
        lambda: memoised(distinct=-1),
        lambda: memoised(distinct=True),
        lambda: asked_with(KaryResponse(epsilon=1, values=2), memoised="no"),
        lambda: asked_with(KaryResponse(epsilon=1, values=2), memoised=1),
        lambda: asked_with(KaryResponse(epsilon=1, values=2), reports=True),
        lambda: asked_with(KaryResponse(epsilon=1, values=2), labels="ab"),
        lambda: asked_with(KaryResponse(epsilon=1, values=2), labels=("a", 5)),
        lambda: asked_with(KaryResponse(epsilon=1, values=2), labels=5),
        lambda: Collection(name=5, ask=KaryResponse(epsilon=1, values=2)),
        lambda: asked_with(KaryResponse(epsilon=1, values=2), labels=("a", "b"), other="c"),
        lambda: asked_with(KaryResponse(epsilon=1, values=2), other="c"),
        lambda: asked_with(KaryResponse(epsilon=1, values=2), labels=("a", "b"), other=1),
        lambda: asked_with(SubsetSelection.calibrated(epsilon=1, values=4)).index("a"),
    ],
)
def test_wrong_collections_are_refused(make) -> None:
    with pytest.raises(InvalidInput):
        make()


def test_the_stated_cost_is_an_upper_bound() -> None:
    oracle = KaryResponse(epsilon=1, values=3)
    assert oracle.ratio**3 <= enclosures.exp(3).low


def test_every_declaration_can_be_read() -> None:
    exported = [getattr(local, name) for name in local.__all__]
    declared = {item.KIND for item in exported if isinstance(item, type) and hasattr(item, "KIND")}
    assert len(declared) == 12
    assert declared == local.collection._REGISTRY.kinds | local.heavy_hitters._REGISTRY.kinds


def test_importing_the_local_model_stays_light() -> None:
    heavy = ("numpy", "scipy", "numba", "altair", "cryptography")
    code = (
        f"from sfumato import local; local.Inbox; import sys; print([name for name in {heavy} if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
    assert local.reports is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        local.nothing  # noqa: B018


class Noted:
    """Notes the bounds that are asked for, and answers with the largest number below each."""

    def __init__(self) -> None:
        self.bounds: list[int] = []

    def below(self, bound: int) -> int:
        self.bounds.append(bound)
        return bound - 1


@pytest.mark.parametrize(
    "ask",
    [
        *(oracle.calibrated(epsilon=1, values=9) for oracle in ORACLES if hasattr(oracle, "calibrated")),
        *(oracle(epsilon=1, values=9) for oracle in ORACLES if not hasattr(oracle, "calibrated")),
        DuchiMean(epsilon=1),
        HybridMean.calibrated(epsilon=1),
    ],
    ids=lambda ask: ask.KIND,
)
def test_a_client_asks_for_the_same_randomness_whatever_the_value(ask) -> None:
    """How long a draw takes depends on its bound: the bounds are the same for all values, given the same answers."""
    values = [Fraction(value, 9) for value in range(-9, 10)] if isinstance(ask, MEANS) else range(9)
    asked = set()
    for value in values:
        bits = Noted()
        ask.report(value, bits)
        asked.add(tuple(bits.bounds))
    assert len(asked) == 1
