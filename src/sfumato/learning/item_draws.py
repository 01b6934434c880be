"""What code of the user draws while it makes one item: seeded by the step and the row alone, and put back afterwards.

An augmentation that draws from one generator for all items ties people to each other: how much one draws moves what
the next ones get. So every generator that the code can be seen to use is seeded anew before each item, from a secret
key.
"""

import functools
import hashlib
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinFunctionType, FunctionType, MethodType, MethodWrapperType

from sfumato.core.interrupts import FAILED, attempt
from sfumato.learning.given import Thing
from sfumato.learning.unchanged import ATOMS, caller_module, cell_content, class_home, function_home, global_names

__all__ = ["ItemDraws"]

MOST = 100_000
"""No more objects than this are looked through for generators."""
LONG = 1000
"""Longer lists are taken for rows, and are not looked through."""

Seed = Callable[[int], None]


class ItemDraws:
    """Seeds for the items of a run, from a fresh secret key. Sensitive: all of it.

    Seeded are the generators that everybody shares (of Python, NumPy and torch) and those that ``code`` holds: in its
    attributes, in lists and mappings there, in functions that it calls by attributes or names.

    Guarantee: what is drawn for an item depends on the key, the step and its row, whatever other items draw; and the
    generators are afterwards where they were. Assumes: the code makes no generator of its own that goes on from item to
    item where this does not look (in C, in other threads).

    >>> import numpy as np
    >>> draws = ItemDraws(None)
    >>> with draws.forked() as seeded:
    ...     seeded(3, 7)
    ...     first = np.random.random()
    ...     seeded(3, 8)
    ...     seeded(3, 7)
    ...     again = np.random.random()
    >>> first == again
    True
    """

    def __init__(self, code: object) -> None:
        self._key = secrets.token_bytes(32)
        self._held = _generators_in(code)

    @contextmanager
    def forked(self) -> Iterator[Callable[[int, int], None]]:
        """Let code draw; before each item call what is given with the step and the row."""
        kept = [_handled(one) for one in (*_shared(), *self._held)]
        try:
            yield lambda step, row: self._seed([seed for seed, _ in kept], step, row)
        finally:
            for _, put_back in kept:
                put_back()

    def _seed(self, seeds: list[Seed], step: int, row: int) -> None:
        about = b"%d\0%d" % (step, row)
        drawn = hashlib.blake2b(about, key=self._key, digest_size=16).digest()
        for place, seed in enumerate(seeds):
            # each of its own: two that are seeded alike would draw alike
            seed(int.from_bytes(hashlib.blake2b(drawn, salt=b"%d" % place, digest_size=8).digest(), "big"))


def _shared() -> list[object]:
    plain, numpy, torch = (sys.modules.get(name) for name in ("random", "numpy.random", "torch"))
    found: list[object] = [] if plain is None else [plain._inst]
    if numpy is not None:
        found.append(numpy.mtrand._rand)
    return found if torch is None else [*found, torch.default_generator]


def _handled(one: Thing) -> tuple[Seed, Callable[[], object]]:
    """How a generator is seeded, and how it comes back to where it is now."""
    plain, numpy, torch = (sys.modules.get(name) for name in ("random", "numpy", "torch"))
    if torch is not None and isinstance(one, torch.Generator):
        state = one.get_state()
        return lambda seed: _done(one.manual_seed(seed)), lambda: one.set_state(state)
    if numpy is not None and isinstance(one, numpy.random.RandomState):
        legacy = one.get_state()
        return lambda seed: one.seed([seed >> 32, seed & 0xFFFFFFFF]), lambda: one.set_state(legacy)
    if plain is not None and isinstance(one, plain.Random):
        drawn = one.getstate()
        return lambda seed: plain.Random.seed(one, seed), lambda: one.setstate(drawn)
    bits: Thing = getattr(one, "bit_generator", one)
    held, kind = bits.state, type(bits)
    return lambda seed: setattr(bits, "state", kind(seed).state), lambda: setattr(bits, "state", held)


def _is_generator(one: object) -> bool:
    plain, numpy, torch = (sys.modules.get(name) for name in ("random", "numpy", "torch"))
    return (
        (numpy is not None and isinstance(one, (numpy.random.Generator, numpy.random.BitGenerator)))
        or (numpy is not None and isinstance(one, numpy.random.RandomState))
        or (torch is not None and isinstance(one, torch.Generator))
        or (plain is not None and isinstance(one, plain.Random) and not isinstance(one, plain.SystemRandom))
    )


def _generators_in(code: object) -> list[object]:
    """The generators that some code holds. No array, tensor or long list is looked into: these are rows."""
    found: list[object] = []
    seen: dict[int, object] = {id(one): one for one in _shared()}
    todo: list[object] = [code]
    while todo and len(seen) < MOST:
        one = todo.pop()
        if type(one) in ATOMS or id(one) in seen:
            continue
        seen[id(one)] = one
        if _is_generator(one):
            found.append(one)
        else:
            held = attempt(lambda one=one: list(_within(one)))  # type: ignore[misc]  # mypy infers no type here
            todo.extend([] if held is FAILED else held)
    return found


def _within(one: Thing) -> Iterator[object]:
    if isinstance(one, dict):
        yield from one.values() if len(one) <= LONG else ()
    elif isinstance(one, list | tuple | set | frozenset):
        yield from one if len(one) <= LONG else ()
    elif isinstance(one, FunctionType):
        yield from (cell_content(cell) for cell in one.__closure__ or ())
        yield from (one.__defaults__, one.__kwdefaults__, one.__dict__)
        if caller_module(function_home(one)):
            yield from (one.__globals__.get(name) for name in global_names(one.__code__))
    elif isinstance(one, MethodType | BuiltinFunctionType | MethodWrapperType):
        yield from (one.__self__, getattr(one, "__func__", None))
    elif isinstance(one, functools.partial):
        yield from (one.func, one.args, one.keywords)
    elif isinstance(one, staticmethod | classmethod | property):
        yield from (getattr(one, "__func__", None), getattr(one, "fget", None))
    elif isinstance(one, type):
        if caller_module(class_home(one)):
            yield from list(vars(one).values())
            yield from one.__mro__[1:]
    else:
        own = getattr(one, "__dict__", None)
        if type(own) is dict:
            yield from list(own.values())
        slots = (each for base in type(one).__mro__ for each in _slots(base))
        yield from (getattr(one, name, None) for name in slots)
        yield type(one)


def _slots(base: type) -> tuple[str, ...]:
    said = base.__dict__.get("__slots__", ()) if caller_module(class_home(base)) else ()
    return (said,) if isinstance(said, str) else tuple(name for name in said if isinstance(name, str))


def _done(_: object) -> None:
    return
