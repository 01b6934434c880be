"""The map of the state: the same keys and values give the same root, and nothing else can be read under it."""

import random
import secrets

import pytest

from sfumato.errors import LedgerError
from sfumato.governance.state_map import EMPTY, StateMap, hashed


def made(pairs: dict[int, int]) -> tuple[str, dict[str, bytes]]:
    """The root and the nodes of a map, put in this order."""
    whole = StateMap(lambda _: {})
    for key, value in pairs.items():
        whole.put(hashed(key), hashed(value))
    return whole.root(), whole.changed


def read(root: str, nodes: dict[str, bytes]) -> StateMap:
    return StateMap(lambda paths: {path: nodes[path] for path in paths if path in nodes}, root)


def test_the_root_depends_on_what_is_in_it_and_not_on_the_way_there() -> None:
    chance = random.Random(secrets.randbits(64))
    pairs = {key: chance.randrange(9) for key in range(600)}
    shuffled = dict(chance.sample(sorted(pairs.items()), len(pairs)))
    root, nodes = made(pairs)
    assert made(shuffled) == (root, nodes)
    assert made({}) == (EMPTY, {})
    again, stored = EMPTY, dict[str, bytes]()
    for start in range(0, 600, 7):  # in many transactions, each with what the ones before have stored
        part = read(again, stored)
        for key in range(start, min(600, start + 7)):
            part.put(hashed(key), hashed(-1))
            part.root()
            part.put(hashed(key), hashed(pairs[key]))
        again = part.root()
        stored |= part.changed
    assert (again, stored) == (root, nodes)
    whole = read(root, nodes)
    assert all(whole.get(hashed(key)) == hashed(value) for key, value in pairs.items())
    assert all(whole.get(hashed(key)) is None for key in range(600, 900))


def test_another_node_than_the_root_states_is_refused() -> None:
    pairs = dict.fromkeys(range(200), 1)
    root, nodes = made(pairs)
    _, others = made(pairs | {7: 2})
    differ = [path for path in nodes if nodes[path] != others[path]]
    assert "" in differ
    for path in differ:
        for forged in (nodes | {path: others[path]}, {name: node for name, node in nodes.items() if name != path}):
            with pytest.raises(LedgerError, match="is not the one that the signed head states"):
                read(root, forged).get(hashed(7))
    with pytest.raises(LedgerError, match="somebody wrote to the database"):
        read(root, others).get(hashed(7))


@pytest.mark.parametrize(
    "parts",
    [("a", "b"), ("ab",), ("a", 1), ("a", "1"), ("a", True), ("a", None), ("a", "None;"), ("1:a",), (b"a",), (1.0,)],
)
def test_values_are_told_apart(parts: tuple[object, ...]) -> None:
    others = [
        ("a", "b"),
        ("ab",),
        ("a", 1),
        ("a", "1"),
        ("a", True),
        ("a", None),
        ("a", "None;"),
        ("1:a",),
        ("a",),
        (1,),
    ]
    assert [other for other in others if hashed(*other) == hashed(*parts)] in ([parts], [])
