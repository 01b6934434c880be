"""What code that sees data can write to: a master copy of it from before, which always overwrites it afterwards.

A forward pass that writes to a weight, a buffer, an attribute or a list carries rows past the noise: out of a step, or
from one unit to the next. Refusing on real data would itself be an output, so nothing is refused and all is put back.
"""

import functools
import sys
from array import array
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from io import BytesIO, StringIO
from operator import is_
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Self  # whatever a user's code reaches, which is put back as it was

from sfumato.learning.given import Thing

__all__ = ["Unchanged"]

ATOMS = frozenset({type(None), bool, int, float, complex, str, bytes, range, type(...), ModuleType, CodeType})
PLAIN = frozenset({dict, OrderedDict, list, tuple, set, frozenset, deque, type, FunctionType})
LIBRARIES = frozenset(sys.stdlib_module_names) - {"__main__"} | {"torch", "numpy", "sfumato"}
ENTERED = frozenset({"torch", "numpy", "argparse", "collections", "queue", "_thread", "types", "weakref"})
"""Of these, the objects that are held by the caller's code are entered: they are places to put things."""
KEEPERS = frozenset(
    f"sfumato.learning.{name}"
    for name in ("evaluation", "kept_tensors", "open_run", "run", "step_view", "trainer", "unchanged")
)
_HEAP_TYPE = 1 << 9  # a class that was made at run time (CPython's Py_TPFLAGS_HEAPTYPE)


class Unchanged:
    """Leave everything that some objects can reach as it was, whatever happens in a ``with`` block.

    Reached are weights, buffers, tensors and arrays with their memory, gradients and flags; attributes; lists, dicts
    and sets; what functions and classes of the caller close over, have as defaults or name as globals; and generators
    of random numbers. Vaults, runs and ledgers are never entered: they must not forget what they charged. They refuse
    to be asked by code that sees data (:func:`~sfumato.core.interrupts.check_outside`).

    Guarantee: what was reached before the block is what it was, in place and by identity, after the block and after
    each :meth:`restore` in it. Assumes: the code reaches out in no other way (files, attributes of modules, the
    environment, iterators, objects of extensions, other threads, what is done when an object dies, the count of writes
    to a tensor, graphs of tensors that are not leaves). Code that means to carry rows out has such ways, as all Python
    in the process of a vault has. Sensitive: what was overwritten.

    >>> import torch
    >>> layer, seen = torch.nn.Linear(2, 1), []
    >>> before = layer.weight.detach().clone()
    >>> with Unchanged(layer, seen):
    ...     _ = layer.weight.data.add_(1)
    ...     layer.calls = 1
    ...     seen.append(7)
    >>> seen, hasattr(layer, "calls"), torch.equal(layer.weight, before)
    ([], False, True)
    """

    def __init__(self, *roots: object) -> None:
        self._roots = roots
        self._found = _Found()
        self._tensors: Thing = None
        self._deep = 0

    def __enter__(self) -> Self:
        if not self._deep:
            self._found = _walked((*self._roots, *_shared_generators()))
            if self._found.tensors:
                self._tensors = self._tensors or _kept_tensors()
                self._tensors.keep(self._found.tensors)
        self._deep += 1
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.restore()
        except KeyboardInterrupt:  # a Ctrl-C must not leave half of it
            self.restore()
            raise
        finally:
            self._deep -= 1
            if not self._deep:
                self._found = _Found()
                if self._tensors is not None:
                    self._tensors.forget()

    def restore(self) -> None:
        """Put everything back, now."""
        self._found.restore()
        if self._found.tensors:
            self._tensors.restore()


def _shared_generators() -> list[object]:
    """The generators that all code of a process shares: what was drawn from them must not tell how much was seen."""
    plain, numpy = sys.modules.get("random"), sys.modules.get("numpy.random")
    torch = sys.modules.get("torch")
    found: list[object] = [] if plain is None else [plain._inst]
    if numpy is not None:
        found.append(numpy.mtrand._rand)
    return found if torch is None else [*found, torch.default_generator]


def _kept_tensors() -> Thing:
    from sfumato.learning.kept_tensors import KeptTensors

    return KeptTensors()


class _Found:
    """Containers as they were, and the tensors in them."""

    def __init__(self) -> None:
        self.tensors: list[Thing] = []
        self.empty: list[dict[Thing, Thing]] = []
        self.dicts: list[tuple[dict[Thing, Thing], list[Thing], list[Thing]]] = []
        self.lists: list[tuple[list[Thing] | deque[Thing], list[Thing]]] = []
        self.others: list[Callable[[], None]] = []

    def restore(self) -> None:
        for none in self.empty:
            if dict.__len__(none):
                _own(none).clear(none)
        for one, names, values in self.dicts:
            base = _own(one)
            same = dict.__len__(one) == len(names) and all(map(is_, base.values(one), values))
            if not same or not all(map(is_, base.keys(one), names)):
                base.clear(one)
                base.update(one, zip(names, values, strict=True))
        for each, items in self.lists:
            kind: Thing = list if isinstance(each, list) else deque
            if kind.__len__(each) != len(items) or not all(map(is_, kind.__iter__(each), items)):
                kind.clear(each)
                kind.extend(each, items)
        for put_back in self.others:
            put_back()


def _own(one: dict[Thing, Thing]) -> Thing:
    """The class whose methods a mapping is asked by: never those of a class that the caller wrote."""
    return OrderedDict if isinstance(one, OrderedDict) else dict


def _walked(roots: tuple[object, ...]) -> _Found:
    found, seen, todo, torch = _Found(), {}, list(roots), sys.modules.get("torch")
    while todo:
        one = todo.pop()
        kind = type(one)
        if kind in ATOMS or id(one) in seen:
            continue
        seen[id(one)] = one  # held on to, so that no other object gets its number
        if isinstance(one, dict):
            if dict.__len__(one):
                values = list(_own(one).values(one))
                found.dicts.append((one, list(_own(one).keys(one)), values))
                todo.extend(values)
                todo.extend(name for name in found.dicts[-1][1] if type(name) not in ATOMS)
            else:
                found.empty.append(one)
            if isinstance(one, defaultdict):
                found.others.append(functools.partial(_put_attribute, one, "default_factory", one.default_factory))
                todo.append(one.default_factory)
        elif isinstance(one, list | deque):
            items = list(list.__iter__(one) if isinstance(one, list) else deque.__iter__(one))
            found.lists.append((one, items))
            todo.extend(items)
        elif isinstance(one, tuple | frozenset):
            todo.extend(tuple.__iter__(one) if isinstance(one, tuple) else frozenset.__iter__(one))
        elif torch is not None and isinstance(one, torch.Tensor):
            found.tensors.append(one)
            if one.is_leaf:
                todo += (one.grad, one._backward_hooks, one._post_accumulate_grad_hooks)
        elif isinstance(one, FunctionType):
            todo.extend(_of_function(one, found))
        elif isinstance(one, type):
            todo.extend(_of_class(one, found))
        else:
            todo.extend(_of_other(one, found))
        if kind not in PLAIN and (facts := _facts(kind))[0]:  # type: ignore[arg-type]  # mypy takes not every class for hashable
            _of_object(one, facts[1], facts[2], found, todo)
    return found


def _of_other(one: Thing, found: _Found) -> Iterator[object]:
    match one:
        case MethodType():
            yield from (one.__self__, one.__func__)
        case BuiltinFunctionType() | MethodWrapperType():
            yield one.__self__  # such as [].append
        case functools.partial():
            yield from (one.func, one.args, one.keywords, one.__dict__)
        case functools._lru_cache_wrapper():
            found.others.append(one.cache_clear)  # what is in it, and how often it was asked, depends on what was seen
            yield one.__wrapped__
        case BaseException():
            found.others.append(functools.partial(_put_attribute, one, "args", one.args))
            yield one.args
        case property():
            yield from (one.fget, one.fset)
        case staticmethod() | classmethod():
            yield one.__func__
        case set():
            members = list(set.__iter__(one))
            found.others.append(lambda: _put_set(one, members))
            yield from members
        case bytearray() | array():
            content: Thing = bytes(one) if isinstance(one, bytearray) else one[:]
            found.others.append(lambda: one.__setitem__(slice(None), content))
        case StringIO() | BytesIO():
            written, place = one.getvalue(), one.tell()
            found.others.append(lambda: _put_file(one, written, place))
        case _ if type(one).__module__ != "builtins":
            yield from _of_library(one, found)


def _of_library(one: Thing, found: _Found) -> Iterator[object]:
    """Arrays and generators of random numbers, where their libraries are in use: none is loaded for this."""
    torch, numpy, plain = (sys.modules.get(name) for name in ("torch", "numpy", "random"))
    if numpy is not None and isinstance(one, numpy.ndarray):
        values, flag = one.copy(), bool(one.flags.writeable)
        found.others.append(lambda: _put_array(one, values, writeable=flag))
        yield one.base
        if one.dtype.hasobject:
            yield from one.flat
    elif numpy is not None and isinstance(one, numpy.random.Generator):
        bits = one.bit_generator.state
        found.others.append(lambda: setattr(one.bit_generator, "state", bits))
    elif numpy is not None and isinstance(one, numpy.random.BitGenerator):
        place = one.state
        found.others.append(lambda: setattr(one, "state", place))
    elif numpy is not None and isinstance(one, numpy.random.RandomState):
        legacy = one.get_state()
        found.others.append(lambda: one.set_state(legacy))
    elif plain is not None and isinstance(one, plain.Random):
        drawn = one.getstate()
        found.others.append(lambda: one.setstate(drawn))
    elif torch is not None and isinstance(one, torch.Generator):
        state = one.get_state()
        found.others.append(lambda: _put(one.set_state(state)))
    elif torch is not None and isinstance(one, torch.jit.ScriptModule):
        yield from (*one.parameters(), *one.buffers())


def _of_object(one: Thing, its_class: type | None, slots: tuple[str, ...], found: _Found, todo: list[Thing]) -> None:
    """The attributes of an object, and of its class where that is the caller's."""
    if its_class is not None:
        todo.append(its_class)
    own, kind = getattr(one, "__dict__", None), type(one)
    if type(own) is dict:
        found.others.append(lambda: _put_identity(one, own, kind))
        todo.append(own)
    for name in slots:
        value = getattr(one, name, _NOTHING)
        found.others.append(functools.partial(_put_attribute, one, name, value))
        todo.append(value)


@functools.lru_cache(maxsize=4096)
def _facts(kind: type) -> tuple[bool, type | None, tuple[str, ...]]:
    """Whether objects of a class are entered, the class itself where it is the caller's, and its slots."""
    home = class_home(kind)
    library = home.partition(".")[0]
    foreign = library in LIBRARIES and library not in ENTERED and not home.startswith("sfumato.learning.")
    if foreign or any(_keeps_accounts(class_home(base)) for base in kind.__mro__):
        return False, None, ()
    slots = tuple(name for base in kind.__mro__ for name in _slots(base))
    return True, kind if caller_module(class_home(kind)) else None, slots


def slots_kept(kind: type) -> tuple[str, ...] | None:
    """The slots of objects of a class whose attributes are put back; None for a class where they are not."""
    entered, _, slots = _facts(kind)
    return slots if entered else None


def _keeps_accounts(home: str) -> bool:
    """Whether a module is one of this library that must not forget: what was charged, drawn, told or put aside."""
    return home.startswith("sfumato.") and (not home.startswith("sfumato.learning.") or home in KEEPERS)


@functools.lru_cache(maxsize=4096)
def class_home(kind: type) -> str:
    """The module in which a class is found under its name; none where it only says so."""
    found: object = sys.modules.get(kind.__module__)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    # Some classes of C name the public module that they are not listed in; nobody can make one of these by hand.
    heap = kind.__flags__ & _HEAP_TYPE
    return kind.__module__ if found is kind or not heap else ""


def _slots(base: type) -> tuple[str, ...]:
    if class_home(base).partition(".")[0] in LIBRARIES:
        return ()
    said = base.__dict__.get("__slots__", ())
    names = (said,) if isinstance(said, str) else tuple(said)
    private = f"_{base.__name__.lstrip('_')}"
    return tuple(
        f"{private}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in names
        if name not in ("__dict__", "__weakref__")
    )


def _of_class(one: type, found: _Found) -> Iterator[object]:
    if not caller_module(class_home(one)):
        return
    own = {name: value for name, value in vars(one).items() if name not in ("__dict__", "__weakref__")}
    found.others.append(lambda: _put_class(one, own))
    yield from own.values()
    yield from one.__mro__[1:]


def _of_function(one: FunctionType, found: _Found) -> Iterator[object]:
    for cell in one.__closure__ or ():
        value = cell_content(cell)
        found.others.append(functools.partial(_put_cell, cell, value))
        yield value
    for name in ("__defaults__", "__kwdefaults__", "__code__", "__dict__", "__doc__", "__annotations__"):
        value = getattr(one, name)
        found.others.append(functools.partial(_put_attribute, one, name, value))
        yield value
    if not caller_module(function_home(one)):
        return
    for name in global_names(one.__code__):
        value = one.__globals__.get(name, _NOTHING)  # a name that is not there yet must not be there afterwards
        found.others.append(functools.partial(_put_global, one.__globals__, name, value))
        yield value


@functools.lru_cache(maxsize=4096)
def caller_module(module: str) -> bool:
    """Whether a module is the caller's own code, and no installed library: what those keep is not followed."""
    if module.partition(".")[0] in LIBRARIES:
        return False
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return "site-packages" not in file and "dist-packages" not in file


def function_home(one: FunctionType) -> str:
    """The module whose names a function sees, whatever it says of itself."""
    name = str(one.__globals__.get("__name__", ""))
    return name if getattr(sys.modules.get(name), "__dict__", None) is one.__globals__ else ""


@functools.lru_cache(maxsize=4096)
def global_names(code: CodeType) -> tuple[str, ...]:
    """The global names that a function mentions, those of functions inside it as well."""
    inside = (name for each in code.co_consts if isinstance(each, CodeType) for name in global_names(each))
    return tuple(dict.fromkeys((*code.co_names, *inside)))


_NOTHING = object()


def cell_content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return _NOTHING


def _put(_: object) -> None:
    return


def _put_set(one: set[Thing], members: list[Thing]) -> None:
    if {id(each) for each in set.__iter__(one)} != {id(each) for each in members}:
        set.clear(one)
        set.update(one, members)


def _put_cell(cell: CellType, value: object) -> None:
    if cell_content(cell) is not value:
        if value is _NOTHING:
            del cell.cell_contents
        else:
            cell.cell_contents = value


def _put_attribute(one: object, name: str, value: object) -> None:
    if getattr(one, name, _NOTHING) is not value:
        if value is _NOTHING:
            object.__delattr__(one, name)
        else:
            object.__setattr__(one, name, value)


def _put_global(names: dict[str, Thing], name: str, value: object) -> None:
    if names.get(name, _NOTHING) is not value:
        if value is _NOTHING:
            del names[name]
        else:
            names[name] = value


def _put_identity(one: object, own: dict[str, Thing], kind: type) -> None:
    if type(one) is not kind:
        object.__setattr__(one, "__class__", kind)
    if getattr(one, "__dict__", None) is not own:
        object.__setattr__(one, "__dict__", own)


def _put_file(one: Thing, written: Thing, place: int) -> None:
    one.seek(0)
    one.truncate()
    one.write(written)
    one.seek(place)


def _put_class(one: type, own: dict[str, Thing]) -> None:
    for name in [name for name in vars(one) if name not in own and name not in ("__dict__", "__weakref__")]:
        type.__delattr__(one, name)
    for name, value in own.items():
        if vars(one).get(name, _NOTHING) is not value:
            type.__setattr__(one, name, value)


def _put_array(one: Thing, values: Thing, *, writeable: bool) -> None:
    if one.dtype != values.dtype:
        one.dtype = values.dtype
    if one.shape != values.shape:
        one.resize(values.shape, refcheck=False)
    if writeable:
        one.flags.writeable = True
        one[...] = values
