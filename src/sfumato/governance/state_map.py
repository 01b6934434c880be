"""A Merkle map: one digest, its root, for any number of keys and values; each read and write takes O(log n) of it.

A trie with 16 branches over the SHA-256 of a key. A child of a node is empty, a leaf (the hashes of a key and of its
value) or the digest of a deeper node. Every node but the root leads to two leaves or more, so that the same keys and
values always give the same root, in whatever order they came. A ledger takes no key out; who verifies one does, to see
whether what came since a root is all that changed.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping

from sfumato.errors import LedgerError

__all__ = ["EMPTY", "StateMap", "hashed"]

AHEAD = 4  # levels that are read together: enough for some thousand keys
MOST_KNOWN = 10_000  # nodes that a process keeps, of a kilobyte at most
INNER = 32  # bytes of a digest; a leaf has two


def hashed(*parts: object) -> bytes:
    """The hash of a key or of a value: of texts, whole numbers, truth values and None, each told apart from the others.

    >>> hashed("a", 1).hex()[:8], hashed("a", "1") == hashed("a1"), hashed(1) == hashed("1")
    ('a378c431', False, False)
    """
    # A text has its length before it. What a database may hold besides begins with none of these signs.
    text = "".join([f"{len(part)}:{part}" if type(part) is str else f"{part!r};" for part in parts])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


_PARTS = bytes(length // INNER for length in range(256))


def _encoded(children: list[bytes]) -> bytes:
    return bytes(map(len, children)).translate(_PARTS) + b"".join(children)


def _decoded(node: bytes) -> list[bytes]:
    children, start = [], 16
    for parts in node[:16]:
        children.append(node[start : start + INNER * parts])
        start += INNER * parts
    return children


EMPTY = hashlib.sha256(_encoded([b""] * 16)).hexdigest()
"""The root of a map without keys."""


_DIGITS = {digit: value for value, digit in enumerate("0123456789abcdef")}


class StateMap:
    """The nodes that a transaction has met, each proven by the root, and those that it has changed.

    Guarantee: :meth:`get` gives what was put under the key when the root was made, or an error; also that there was
    nothing. Assumes: SHA-256 has no collisions. ``load`` gives stored nodes by their paths and is not trusted;
    ``known`` are nodes by their digests, that this process proved or made before.

    >>> first = StateMap(lambda paths: {})
    >>> first.put(hashed("a"), hashed(1))
    >>> stored, root = dict(first.changed), first.root()
    >>> stored = dict(first.changed)
    >>> again = StateMap(lambda paths: {path: stored[path] for path in paths if path in stored}, root)
    >>> again.get(hashed("a")) == hashed(1), again.get(hashed("b"))
    (True, None)
    """

    def __init__(
        self,
        load: Callable[[list[str]], Mapping[str, bytes]],
        root: str = EMPTY,
        known: dict[bytes, tuple[bytes, ...]] | None = None,
    ) -> None:
        self.changed: dict[str, bytes] = {}
        self._known = {} if known is None else known
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        self._load = load
        self._root = root
        self._stored: dict[str, bytes | None] = {}
        self._nodes: dict[str, list[bytes]] = {"": [b""] * 16} if root == EMPTY else {}
        self._dirty: set[str] = set()

    def fetch(self, keys: Iterable[bytes]) -> None:
        """Read all nodes on the way to some keys together, before they are asked for one by one."""
        names = [key.hex() for key in keys]
        while names:
            missing = [(name, path) for name in names if (path := self._missing(name)) is not None]
            paths = {name[:depth] for name, path in missing for depth in range(len(path), len(path) + AHEAD)}
            wanted = sorted(paths - self._stored.keys())
            if wanted:
                self._stored.update(dict.fromkeys(wanted))
                self._stored.update(self._load(wanted))
            names = [name for name, _ in missing]

    def get(self, key: bytes) -> bytes | None:
        """The hash of the value under a key; None where there is none."""
        name, path = key.hex(), ""
        while True:
            if path not in self._nodes:
                self.fetch([key])
            child = self._nodes[path][int(name[len(path)], 16)]
            if len(child) != INNER:
                return child[INNER:] if child[:INNER] == key else None
            path = name[: len(path) + 1]

    def put(self, key: bytes, value: bytes) -> None:
        """Keep the hash of a value under a key."""
        name, path, nodes = key.hex(), "", self._nodes
        for depth, digit in enumerate(name):
            node = nodes.get(path)
            if node is None:
                self.fetch([key])
                node = nodes[path]
            self._dirty.add(path)
            slot = _DIGITS[digit]
            child = node[slot]
            if not child or child[:INNER] == key:
                node[slot] = key + value
                return
            path = name[: depth + 1]
            if len(child) != INNER:  # the leaf of another key: both go one level down
                other = [b""] * 16
                other[_DIGITS[child[:INNER].hex()[depth + 1]]] = child
                nodes[path] = other
                node[slot] = bytes(INNER)  # its digest is worked out with all others

    def take_out(self, key: bytes) -> None:
        """Leave a key out, as if nothing had ever been put under it; nothing where there is none."""
        if self.get(key) is None:
            return
        name, path = key.hex(), ""
        while len(self._nodes[path][int(name[len(path)], 16)]) == INNER:
            path = name[: len(path) + 1]
        self._nodes[path][int(name[len(path)], 16)] = b""
        while path:  # a leaf that is alone in its node goes up
            rest = [child for child in self._nodes[path] if child]
            if len(rest) != 1 or len(rest[0]) == INNER:
                break
            del self._nodes[path]
            self._dirty.discard(path)
            self._nodes[path[:-1]][int(path[-1], 16)] = rest[0]
            path = path[:-1]
        self._dirty.update(path[:depth] for depth in range(len(path) + 1))

    def root(self) -> str:
        """The root, after all that was put."""
        for path in sorted(self._dirty, key=len, reverse=True):
            node = _encoded(self._nodes[path])
            self.changed[path] = node
            digest = hashlib.sha256(node)
            self._known[digest.digest()] = tuple(self._nodes[path])
            if path:
                self._nodes[path[:-1]][int(path[-1], 16)] = digest.digest()
            else:
                self._root = digest.hexdigest()
        self._dirty.clear()
        return self._root

    def _missing(self, name: str) -> str | None:
        """The first node on the way to a key that was not read yet; what was read is proven here."""
        path, expected = "", bytes.fromhex(self._root) if len(self._root) == 64 else b""
        while True:
            if path not in self._nodes and expected in self._known:
                self._nodes[path] = list(self._known[expected])
            if path not in self._nodes:
                if path not in self._stored:
                    return path
                node = self._stored[path]
                if type(node) is not bytes or hashlib.sha256(node).digest() != expected:
                    raise LedgerError(
                        f"the node {path!r} of the map of the stored state is not the one that the signed head "
                        "states: somebody wrote to the database. Nothing was read and nothing was spent. Find the "
                        "place: sfumato ledger verify"
                    )
                self._nodes[path] = _decoded(node)
                self._known[expected] = tuple(self._nodes[path])
            child = self._nodes[path][int(name[len(path)], 16)]
            if len(child) != INNER:
                return None
            path, expected = name[: len(path) + 1], child
