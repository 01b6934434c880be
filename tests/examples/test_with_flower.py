"""A secure sum over Flower: with stand-ins for its messages, and in Flower's own environment where that was built."""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.flower_peer import FLOWER
from benchmarks.table_peers import CACHE
from examples import with_flower
from sfumato.core.signature import SigningKey
from sfumato.errors import Refused
from sfumato.federated import Parties, RoundTerms, ServerTrust
from tests.parts import ROOT


@dataclass
class Records:
    """What the example asks of Flower's record."""

    config_records: dict[str, dict[str, bytes]]


@dataclass
class StandIn:
    """What the example asks of Flower's message."""

    content: Records
    metadata: Any = None
    failed: bool = False

    def has_error(self) -> bool:
        return self.failed


def message(content: Records, *, dst_node_id: int = 0, message_type: str = "", reply_to: Any = None) -> StandIn:
    assert message_type == ("query" if reply_to is None else "")
    source = 0 if reply_to is None else reply_to.metadata.dst_node_id
    return StandIn(content, SimpleNamespace(src_node_id=source, dst_node_id=dst_node_id))


class ClientApp:
    """What the example asks of Flower's client app."""

    def query(self) -> Any:
        def kept(function: Any) -> Any:
            self.function = function
            return function

        return kept

    def __call__(self, asked: Any, context: Any) -> Any:
        return self.function(asked, context)


@pytest.fixture
def flower(monkeypatch: pytest.MonkeyPatch) -> None:
    app = SimpleNamespace(RecordDict=Records, ConfigRecord=dict, Message=message)
    monkeypatch.setattr(with_flower, "flower", lambda: (app, SimpleNamespace(ClientApp=ClientApp)))


@dataclass
class Grid:
    """A grid that hands messages over, and alters what some nodes answer."""

    apps: dict[int, ClientApp]
    silent: Sequence[int] = ()
    altering: Sequence[int] = ()
    seen: list[bytes] = field(default_factory=list)

    def send_and_receive(self, messages: Sequence[Any], *, timeout: float | None) -> list[Any]:
        assert timeout
        answers = []
        for one in messages:
            node = one.metadata.dst_node_id
            if node in self.silent:
                answers.append(StandIn(Records({}), SimpleNamespace(src_node_id=node), failed=True))
                continue
            answer = self.apps[node](one, None)
            record = answer.content.config_records[with_flower.RECORD]
            self.seen.append(record[with_flower.FIELD])
            if node in self.altering:
                record[with_flower.FIELD] = record[with_flower.FIELD][:-1] + bytes([record[with_flower.FIELD][-1] ^ 1])
            answers.append(answer)
        return answers


def carried(**how: Any) -> tuple[list[int], Grid]:
    keys = [SigningKey.new() for _ in range(4)]
    terms = RoundTerms(
        run="over Flower",
        number=1,
        roster=tuple(key.public_text for key in keys),
        parties=Parties(sites=4, missing=1, colluding=0, server=ServerTrust.LYING),
        length=3,
        bits=32,
    )
    values = [np.array([place, 10, -place]) for place in range(4)]
    sites = [with_flower.OneSum(terms=terms, key=key, values=own) for key, own in zip(keys, values, strict=True)]
    grid = Grid({100 + place: with_flower.client_app(site) for place, site in enumerate(sites)}, **how)
    nodes = {key.public_text: 100 + place for place, key in enumerate(keys)}
    transport = with_flower.FlowerTransport(grid=grid, nodes=nodes)
    return with_flower.summed(transport, terms).result().total.tolist(), grid


@pytest.mark.usefixtures("flower")
def test_flower_carries_a_sum_and_is_trusted_with_nothing() -> None:
    found, grid = carried()
    assert found == [6, 40, -6]
    assert len(grid.seen) == 4 * 5  # a message of each site in each phase
    assert carried(silent=[103])[0] == [3, 30, -3]
    assert carried(altering=[100])[0] == [6, 30, -6]  # an altered message is as none: the first site has left
    with pytest.raises(Refused, match="2 sites are in the phase"):
        carried(altering=[100], silent=[103])


def test_without_flower_the_example_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent() -> None:
        raise ImportError

    monkeypatch.setattr(with_flower, "flower", absent)
    with_flower.main()
    assert capsys.readouterr().out.startswith("skipped: Flower is not installed (pip install flwr")


@pytest.mark.long
def test_the_example_runs_in_flowers_own_environment() -> None:
    folder = CACHE / FLOWER.package
    if not (folder / "complete").exists():
        pytest.skip(f"the environment of {FLOWER.package} is not built here; python -m benchmarks federated builds it")
    told = subprocess.run(
        [folder / "bin" / "python", ROOT / "examples" / "with_flower.py"],
        env=os.environ | {"PYTHONPATH": str(Path(ROOT, "src"))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "all four sites: [6, 40, -6]; without the last: [3, 30, -3]"
