"""What a question is asked with, as one digest: code, weights, arrays. Two processes find the same for the same."""

import dis
import functools
import hashlib
import re
import secrets
import struct
import sys
from collections import OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)

from sfumato.core.interrupts import FAILED, attempt
from sfumato.learning.given import Thing
from sfumato.learning.unchanged import caller_module, cell_content, class_home, function_home, slots_kept

__all__ = ["content_of"]

SHOWN = frozenset({type(None), bool, float, complex, str, bytes, range, type(...), type(NotImplemented)})
SHOWN |= {Fraction, Decimal}
PARTS: dict[type, tuple[str, ...]] = {
    MethodType: ("__self__", "__func__"),
    BuiltinFunctionType: ("__name__", "__self__"),
    MethodWrapperType: ("__name__", "__self__"),
    **dict.fromkeys((MethodDescriptorType, WrapperDescriptorType), ("__objclass__", "__name__")),
    **dict.fromkeys((ClassMethodDescriptorType, GetSetDescriptorType), ("__objclass__", "__name__")),
    MemberDescriptorType: ("__objclass__", "__name__"),
    functools.partial: ("func", "args", "keywords"),
    functools._lru_cache_wrapper: ("__wrapped__",),
    property: ("fget", "fset", "fdel"),
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    slice: ("start", "stop", "step"),
}
CODE = (
    *("co_consts", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_code", "co_exceptiontable"),
    *("co_flags", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount"),
)
NO_MATTER = (tuple, frozenset, CodeType)  # whether two of these are one object can differ between processes
LOADS = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
BOOKKEEPING = frozenset({"_abc_impl"}) | {
    f"__{name}__"
    for name in (
        *("dict", "weakref", "doc", "module", "firstlineno", "static_attributes", "slotnames", "orig_bases"),
        *("annotations", "annotations_cache", "annotate", "annotate_func", "parameters"),
        *("dataclass_fields", "dataclass_params"),
    )
}
"""Of classes: kept by Python for itself, and some of it only once somebody looks."""
_EMPTY = object()
_NAMELESS: dict[int, tuple[object, str]] = {}


def content_of(*what: object) -> str:
    """The SHA-256 of code or data and of all that it reaches, so that stored answers go by what was asked.

    Of functions and classes of the caller it takes code, defaults, closures and the globals that they read, of those of
    a library their names; of objects class and attributes; of tensors and arrays types, shapes and numbers. What cannot
    be looked into (a lock, a generator of random numbers, an object of an extension or of this library, a module of the
    caller) has a name of its own in each process: answers of another process are never taken for its own, and are paid
    for again. So they are under another version of Python.

    Guarantee: what differs in any of this has another digest, and nothing that an object does or raises gets out. Taken
    in is only what :class:`~sfumato.learning.unchanged.Unchanged` puts back, so code that saw data leaves no trace in a
    digest. Assumes: libraries behave alike under the same names; what is imported or read by code while it runs stays
    what it is. Public: all of it; it must not depend on private rows.

    >>> content_of(lambda x: x + 1) == content_of(lambda x: x + 1), content_of(lambda x: x + 1) == content_of(None)
    (True, False)
    """
    found = [attempt(partial(_digest, each)) for each in what]
    return _digest([_nameless(each) if own is FAILED else own for each, own in zip(what, found, strict=True)])


def _digest(one: Thing) -> str:
    """Walk over an object and all that it reaches in one order; what was met before is identified by when that was."""
    found, seen, todo = hashlib.sha256(), dict[int, tuple[int, object]](), [one]
    while todo:
        each = todo.pop()
        if id(each) in seen:
            words, parts = ["again", seen[id(each)][0]], None
        else:
            words, parts = _made_of(each, type(each))
            if parts is not None and not issubclass(type(each), NO_MATTER):
                seen[id(each)] = len(seen), each  # held on to: no other object gets its number
        for word in (len(words), *words, len(parts or ())):
            own = word if type(word) is bytes else str(word).encode("utf-8", "surrogatepass")
            found.update(b"%d:" % len(own) + own)
        todo.extend(reversed(parts or ()))
    return found.hexdigest()


def _made_of(one: Thing, kind: type) -> tuple[list[Thing], list[Thing] | None]:
    """The words that say what an object is by itself, and its parts; a plain value has None."""
    if kind is int:
        return ["int", hex(one)], None
    if kind in SHOWN:
        return [kind.__name__, repr(one)], None
    if kind is re.Pattern:
        return ["pattern", repr(one.pattern), one.flags], None
    if kind is CodeType:
        return ["code"], [getattr(one, name) for name in CODE]
    if kind in PARTS:
        return [kind.__name__], [getattr(one, name) for name in PARTS[kind]]
    if kind is FunctionType:
        return _function(one)
    if issubclass(kind, type):
        return _class(one)
    return _listed(one, kind) or _numbers(one, kind) or _object(one, kind)


def _function(one: FunctionType) -> tuple[list[Thing], list[Thing]]:
    home, closed = function_home(one), [cell_content(cell) for cell in one.__closure__ or ()]
    given = [one.__defaults__, one.__kwdefaults__, *closed]
    if not caller_module(home):
        return ["function of a library", home, one.__qualname__], given
    names = [name for name in _read(one.__code__) if name in one.__globals__]
    return ["function", *names], [one.__code__, one.__dict__, *given, *(one.__globals__[name] for name in names)]


@functools.lru_cache(maxsize=4096)
def _read(code: CodeType) -> tuple[str, ...]:
    """The global names that a function reads, those of functions inside it as well, without names of attributes."""
    own = (each.argval for each in dis.get_instructions(code) if each.opname in LOADS)
    inside = (name for each in code.co_consts if isinstance(each, CodeType) for name in _read(each))
    return tuple(dict.fromkeys((*own, *inside)))


def _class(one: type) -> tuple[list[Thing], list[Thing]]:
    words = ["class", one.__module__, one.__qualname__]
    if not _is_callers(one):
        return words, []
    own = {name: value for name, value in vars(one).items() if name not in BOOKKEEPING}
    return [*words, *own], [*own.values(), *one.__bases__, type(one)]


def _listed(one: Thing, kind: type) -> tuple[list[Thing], None] | None:
    """A module of a library, or what one lists under its name, such as a function of C: by that name."""
    if issubclass(kind, ModuleType):
        name = one.__name__
        return (["module", name], None) if sys.modules.get(name) is one and not caller_module(name) else None
    if _is_callers(kind):
        return None
    home, name = getattr(one, "__module__", None) or kind.__module__, getattr(one, "__name__", None)
    if type(home) is not str or type(name) is not str or caller_module(home):
        return None
    return (["listed", home, name], None) if getattr(sys.modules.get(home), name, None) is one else None


def _numbers(one: Thing, kind: type) -> tuple[list[Thing], list[Thing] | None] | None:
    """Arrays and tensors, where their libraries are in use; not of a class of the caller, whose methods would run."""
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and issubclass(kind, numpy.dtype):
        return ["dtype", repr(one)], None
    scalar = numpy is not None and issubclass(kind, numpy.generic) and not _is_callers(kind)
    if numpy is not None and (kind is numpy.ndarray or scalar):
        words = ["array", repr(one.dtype), one.shape]
        if not one.dtype.hasobject:
            return [*words, one.tobytes()], None if scalar else []
        return (words, list(one.flat)) if one.dtype == object else None
    if torch is not None and kind in (torch.dtype, torch.device, torch.layout, torch.memory_format):
        return [kind.__name__, repr(one)], None
    if torch is not None and kind in (torch.Tensor, torch.nn.Parameter):
        try:
            flat = one.detach().cpu().contiguous().reshape(-1)
            held = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
        except (RuntimeError, TypeError):  # sparse, quantised, of a device without memory
            return None
        return [kind.__name__, one.dtype, tuple(one.shape), one.requires_grad, held], []
    return None


def _object(one: Thing, kind: type) -> tuple[list[Thing], list[Thing] | None]:
    """Containers by what they hold, others by their attributes; by a name of its own where there can be more in it."""
    words, parts = _contained(one, kind)
    slots = slots_kept(kind)
    if kind is not object and not words and (slots is None or not _is_open(kind, len(slots))):
        return ["nameless", _nameless(one)], None
    own = [one.__dict__] if kind.__dictoffset__ else []
    return ["object", *words], [kind, *parts, *own, *(getattr(one, name, _EMPTY) for name in slots or ())]


def _contained(one: Thing, kind: type) -> tuple[list[Thing], list[Thing]]:
    """What is in a container, by the ways of Python's own class and never those of a class that the caller wrote."""
    if issubclass(kind, dict):
        own: Thing = OrderedDict if issubclass(kind, OrderedDict) else dict
        made = [one.default_factory] if issubclass(kind, defaultdict) else []
        return ["mapping", dict.__len__(one)], [*made, *own.keys(one), *own.values(one)]
    for base in (list, tuple, deque):
        if issubclass(kind, base):
            most = [one.maxlen] if base is deque else []
            return ["sequence", base.__len__(one)], [*most, *base.__iter__(one)]
    for members in (set, frozenset):
        if issubclass(kind, members):
            return ["set", *sorted(_digest(each) for each in members.__iter__(one))], []  # an order without hashes
    return [], []


def _is_callers(kind: type) -> bool:
    return caller_module(class_home(kind))


def _is_open(kind: type, slots: int) -> bool:
    """Whether objects of a class are their attributes and nothing else: they have no memory of another kind."""
    places = slots + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return not kind.__itemsize__ and kind.__basicsize__ <= object.__basicsize__ + places * struct.calcsize("P")


def _nameless(one: object) -> str:
    """A name that only this object has, and only in this process."""
    return _NAMELESS.setdefault(id(one), (one, secrets.token_hex(16)))[1]
