"""What a question is asked with, as one digest: code, weights, arrays. Two processes find the same for the same."""

import copyreg
import functools
import hashlib
import secrets
from collections import deque
from collections.abc import Iterator
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

from sfumato.learning.unchanged import (
    caller_module,
    cell_content,
    class_home,
    function_home,
    global_names,
    keeps_accounts,
)

__all__ = ["content_of"]

PLAIN = frozenset({type(None), bool, int, float, complex, str, bytes, range, type(...), type(NotImplemented)})
UNSEEN = (tuple, frozenset, CodeType)  # whether two of these are one object can differ between processes
SHOWN = frozenset({"dtype", "device", "layout", "memory_format"})  # of torch and NumPy: told by how they are shown
LEFT_OUT = frozenset({"__dict__", "__weakref__", "__doc__", "__module__", "__firstlineno__", "__static_attributes__"})
GENERATORS = frozenset(
    {("random", "Random"), ("_random", "Random"), ("torch", "Generator")}
    | {("numpy", name) for name in ("Generator", "BitGenerator", "RandomState")}
)
_NAMELESS: dict[int, tuple[object, str]] = {}


def content_of(*what: object) -> str:
    """The SHA-256 of code or data and of all that it reaches, so that stored answers go by what was asked.

    Of functions and classes of the caller it takes code, defaults, closures and the globals that they name, of those of
    a library their names; of objects class and attributes; of tensors and arrays types, shapes and numbers. What cannot
    be looked into (a lock, an object of an extension) has a name of its own in each process: answers of another
    process are never taken for its own, and are paid for again. So they are under another version of Python. Where a
    generator of random numbers stands is no part of it.

    Guarantee: what differs in any of this has another digest. Assumes: libraries behave alike under the same names;
    what is read from files or the environment stays what it is. Public: all of it; it must not hang on private rows.

    >>> content_of(lambda x: x + 1) == content_of(lambda x: x + 1), content_of(lambda x: x + 1) == content_of(None)
    (True, False)
    """
    walk = _Walk()
    for each in what:
        walk.take(each)
    return walk.found.hexdigest()


class _Walk:
    """One walk over objects, in one order; what was met before is told by when that was."""

    def __init__(self) -> None:
        self.found = hashlib.sha256()
        self.seen: dict[int, tuple[int, object]] = {}

    def say(self, *words: object) -> None:
        """Take in some words, each with its length, so that none runs into the next."""
        for word in words:
            own = word if isinstance(word, bytes) else str(word).encode("utf-8", "surrogatepass")
            self.found.update(b"%d:" % len(own))
            self.found.update(own)

    def take(self, one: Any) -> None:
        """Take in an object and all that it reaches."""
        todo: deque[Any] = deque([one])
        while todo:
            each = todo.popleft()
            if type(each) in PLAIN:
                self.say(type(each).__name__, repr(each))
            elif id(each) in self.seen:
                self.say("again", self.seen[id(each)][0])
            else:
                if not isinstance(each, UNSEEN):
                    self.seen[id(each)] = len(self.seen), each  # held on to: no other object gets its number
                todo.extendleft(reversed(list(self._parts(each))))

    def _parts(self, one: Any) -> Iterator[Any]:
        """Say what an object is by itself, and give its parts in order."""
        match one:
            case ModuleType():
                self.say("module", one.__name__)
            case CodeType():
                self.say(
                    "code", one.co_code, one.co_flags, one.co_argcount, one.co_kwonlyargcount, one.co_exceptiontable
                )
                yield from (one.co_consts, one.co_names, one.co_varnames, one.co_freevars, one.co_cellvars)
            case FunctionType():
                yield from self._function(one)
            case type():
                yield from self._class(one)
            case MethodType():
                self.say("method")
                yield from (one.__self__, one.__func__)
            case functools.partial():
                self.say("partial")
                yield from (one.func, one.args, one.keywords, vars(one))
            case functools._lru_cache_wrapper():
                self.say("cached")
                yield one.__wrapped__
            case property():
                self.say("property")
                yield from (one.fget, one.fset, one.fdel)
            case staticmethod() | classmethod():
                self.say(type(one).__name__)
                yield one.__func__
            case _:
                yield from self._object(one)

    def _function(self, one: FunctionType) -> Iterator[Any]:
        home = function_home(one)
        if caller_module(home):
            names = [name for name in global_names(one.__code__) if name in one.__globals__]
            self.say("function", len(names), *names)
            yield one.__code__
            yield from (one.__globals__[name] for name in names)
        else:
            self.say("function of a library", home, one.__qualname__)
        yield from (one.__defaults__, one.__kwdefaults__, [cell_content(cell) for cell in one.__closure__ or ()])

    def _class(self, one: type) -> Iterator[Any]:
        self.say("class", one.__module__, one.__qualname__)
        if caller_module(class_home(one)):
            own = {name: value for name, value in vars(one).items() if name not in LEFT_OUT and not _is_slot(value)}
            yield from (own, one.__bases__)

    def _object(self, one: Any) -> Iterator[Any]:
        """Containers, arrays and tensors by what they hold; others by class and attributes."""
        kind = type(one)
        if any(keeps_accounts(class_home(base)) for base in kind.__mro__):
            self.say("of this library", kind.__module__, kind.__qualname__)
            return
        if any(base.__name__ in SHOWN and base.__module__ in ("torch", "numpy") for base in kind.__mro__):
            self.say("shown", kind.__module__, repr(one))
            return
        if any((base.__module__.partition(".")[0], base.__name__) in GENERATORS for base in kind.__mro__):
            self.say("generator", kind.__module__, kind.__qualname__)
            return
        if isinstance(one, BuiltinFunctionType):
            self.say("builtin", one.__module__, one.__qualname__)
            yield one.__self__
            return
        yield kind
        held = _held(one)
        if held is None:
            self.say("nameless", _nameless(one))
            return
        self.say(*held[0])
        yield from held[1]


def _held(one: Any) -> tuple[list[Any], list[Any]] | None:
    """What an object is made of: words and parts; None where it cannot be looked into."""
    own = [value for value in (getattr(one, "__dict__", None),) if type(value) is dict and value]
    own += [getattr(one, name, None) for base in type(one).__mro__ for name in _slots(base)]
    match one:
        case list() | tuple() | deque():
            return ["sequence", len(one)], [*own, *one]
        case dict():
            return ["mapping", len(one)], [*own, getattr(one, "default_factory", None), *one.keys(), *one.values()]
        case set() | frozenset():
            return ["set", *sorted(content_of(each) for each in one)], own  # in an order that hangs on no hash
    if hasattr(one, "detach") and hasattr(one, "requires_grad"):
        return _tensor(one, own)
    if hasattr(one, "dtype") and hasattr(one, "tobytes") and hasattr(one, "shape"):
        plain = not one.dtype.hasobject
        return ["array", one.dtype, one.shape, one.tobytes() if plain else b""], own if plain else [*own, *one.flat]
    return _reduced(one, own)


def _tensor(one: Any, own: list[Any]) -> tuple[list[Any], list[Any]] | None:
    import torch

    try:
        flat = one.detach().cpu().contiguous().reshape(-1)
        held = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    except (RuntimeError, TypeError, NotImplementedError):  # sparse, quantised, of a device without memory
        return None
    return ["tensor", one.dtype, tuple(one.shape), one.requires_grad, held], own


def _reduced(one: Any, own: list[Any]) -> tuple[list[Any], list[Any]] | None:
    """An object as it would be pickled: that fails where there is more in it than attributes."""
    kind = type(one)
    try:
        way = copyreg.dispatch_table.get(kind)
        found = one.__reduce_ex__(4) if way is None else way(one)
    except Exception:  # noqa: BLE001 - whatever a class says to being pickled, it is not looked into then
        return None
    home = str(getattr(one, "__module__", None) or kind.__module__)
    if isinstance(found, str) and not caller_module(home):
        return ["global", home, found], []
    if not isinstance(found, tuple):
        return None
    usual = way is None and kind.__reduce_ex__ is object.__reduce_ex__ and kind.__reduce__ is object.__reduce__
    more = [] if usual and not hasattr(kind, "__getnewargs_ex__") and not hasattr(kind, "__getnewargs__") else found
    return ["object"], [*own, *more[:3], *(list(items or ()) for items in more[3:5])]


def _slots(base: type) -> list[str]:
    return [name for name, value in vars(base).items() if isinstance(value, MemberDescriptorType)]


def _is_slot(value: object) -> bool:
    return isinstance(value, MemberDescriptorType | GetSetDescriptorType)


def _nameless(one: object) -> str:
    """A name that only this object has, and only in this process."""
    return _NAMELESS.setdefault(id(one), (one, secrets.token_hex(16)))[1]
