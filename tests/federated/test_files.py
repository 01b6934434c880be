"""Sites without a network: what is carried in files, resumed at any point, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, Refused
from sfumato.federated import AnswersAwaited, FileTransport
from sfumato.federated.file_transport import read_request, signed_answer
from tests.federated.hospitals import SPEND, Network, network, without_noise
from tests.federated.test_coordinator_state import begun

NORTH, SOUTH = SigningKey.new(), SigningKey.new()
SITES = {"north": NORTH.public_text, "south: 2": SOUTH.public_text}


def carried(net: Network, keys: dict[str, SigningKey], folder: Path) -> int:
    """Take every request to its site, and its answer back; how many there were."""
    requests = sorted((folder / "outbox").iterdir())
    for file in requests:
        name = file.name.partition("-")[0]
        request = read_request(file)
        answer = signed_answer(keys[name], request, net.sites[name].answer(request))
        (folder / "inbox" / file.with_suffix(".answer").name).write_bytes(answer)
    return len(requests)


@pytest.mark.long
def test_a_round_by_files_goes_on_whenever_answers_were_brought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_noise(monkeypatch)
    net = network()
    keys = {name: vault._notary.key for name, vault in net.vaults.items()}
    members = {name: site.public_key for name, site in net.sites.items()}
    numbers, home = list[int](), tmp_path / "home"
    release: Any = None
    for _ in range(10):
        ledger, consortium, (vault, stays) = begun(net, home)
        left = ["west"] if len(numbers) >= 4 else []
        consortium.connect(FileTransport(home, sites=members, left=left))
        try:
            release = stays.group_by("sex").count().release(**SPEND)
        except AnswersAwaited:
            assert len(list((home / "outbox").iterdir())) == (2 if left else 3)
            numbers.append(carried(net, keys, home))
        finally:
            spent = vault.spent.epsilon
            consortium.close()
            ledger.close()
        if release is not None:
            break
    assert numbers == [3, 3, 3, 3, 2, 2]  # votes and five phases, of which the west was in three
    assert release.values == (5, 4)
    assert spent == 1
    assert {site.spent.epsilon for site in net.vaults.values()} == {1}
    assert not list((home / "outbox").iterdir())


def test_files_that_are_wrong_old_or_swapped_are_refused(tmp_path: Path) -> None:
    way = FileTransport(tmp_path, sites=SITES)
    with pytest.raises(AnswersAwaited, match=r"1 of 1 sites .* Carry each of these files"):
        way.ask(NORTH.public_text, b"one")
    asked = next((tmp_path / "outbox").iterdir())
    assert read_request(asked) == b"one"
    place = tmp_path / "inbox" / asked.with_suffix(".answer").name
    good = signed_answer(NORTH, b"one", b"yes")
    for foul, why in (
        (signed_answer(SOUTH, b"one", b"yes"), "answer of another site"),
        (signed_answer(NORTH, b"an older request", b"yes"), "answers another request"),
        (good + b"!", "changed on its way"),
        (good[:60], "another site|changed"),
        (asked.read_bytes(), "is not an answer"),
        (b"", "is not an answer"),
    ):
        place.write_bytes(foul)
        with pytest.raises((Refused, InvalidInput), match=why):
            way.ask(NORTH.public_text, b"one")
    place.write_bytes(good)
    assert way.ask(NORTH.public_text, b"one") == b"yes"
    assert not asked.exists()
    with pytest.raises(InvalidInput, match="is not a request"):
        read_request(place)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_request(tmp_path / "none")
    with pytest.raises(InvalidInput, match="no such site"):
        FileTransport(tmp_path, sites=SITES, left=["west"])
    gone = FileTransport(tmp_path, sites=SITES, left=["south: 2"])
    assert gone.ask(SOUTH.public_text, b"two") is None
