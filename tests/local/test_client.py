"""The client runs with the standard library alone, keeps its count, and memoises as declared."""

import subprocess
import sys
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
    assert client.sent == 0


def memoised(distinct: int | None = None, reports: int = 3) -> Collection:
    return asked_with(KaryResponse(epsilon=1, values=3), reports=reports, memoised=True, distinct=distinct)


def test_the_same_value_gets_the_same_report_and_too_many_values_the_last_one() -> None:
    client = Client(memoised(distinct=2, reports=40))
    first, second = client.report(0), client.report(1)
    assert [client.report(value) for value in (0, 1, 0, 0)] == [first, second, first, first]
    assert client.report(2) == first  # the third value: what was sent last
    assert client.report(1) == second
    assert client.spent == 2


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
    """How long a draw takes hangs on its bound: the bounds are the same for all values, given the same answers."""
    values = [Fraction(value, 9) for value in range(-9, 10)] if isinstance(ask, MEANS) else range(9)
    asked = set()
    for value in values:
        bits = Noted()
        ask.report(value, bits)
        asked.add(tuple(bits.bounds))
    assert len(asked) == 1
