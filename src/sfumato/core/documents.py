"""Documents: what is written down, signed, stored and read again.

A document is a frozen dataclass with a ``KIND`` and a ``VERSION``. Its canonical JSON has sorted keys, no white
space and no floating-point number; rationals are the text ``p/q``. Reading is strict: an unknown kind, a newer
version, a missing, foreign or ill-typed field is an error that names the field. Nothing is looked up by a module
or class name found in data.
"""

import dataclasses
import importlib
import json
import pkgutil
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, ClassVar, ParamSpec, Protocol, TypeVar, runtime_checkable

from sfumato.errors import InvalidInput, SfumatoError, Unsupported

__all__ = [
    "LEFT_OUT",
    "UNWRITTEN",
    "Document",
    "Json",
    "Registry",
    "canonical",
    "check_types",
    "declared_in",
    "encode",
    "parse",
]

MOST_DIGITS = 80
MOST_MADE = 4_096  # small documents inside others that a reader keeps
MOST_BITS = 13_000  # of each part of a rational: its text is read up to 4,000 signs

_PLAIN = frozenset({type(None), bool, int, str})
_HASHED = frozenset({type(None), int, str})
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)

UNWRITTEN = "unwritten"
"""In the metadata of a field: it stands in no document, and why; None is the one value that may be left out."""

LEFT_OUT = "left out"
"""In the metadata of a field whose default is None: documents leave it out where it is None, and stay as they were."""

Hint = Any  # a type as a field is declared with it: a class, a union or a generic alias
Decoded = Any  # a document of the class that its kind names
Given = ParamSpec("Given")
Found = TypeVar("Found")

Json = None | bool | int | str | list["Json"] | dict[str, "Json"]


def _kept(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """``functools.cache``, with the types of the arguments: mypy does not take every class for hashable."""
    return cache(function)  # type: ignore[return-value]  # arguments need not be known as hashable


@runtime_checkable
class Document(Protocol):
    """A frozen dataclass that can be written down: its kind and the version of that kind."""

    KIND: ClassVar[str]
    VERSION: ClassVar[int]


def encode(value: object) -> Json:
    """Turn a document, or a part of one, into plain JSON values.

    >>> encode(Fraction(1, 2))
    '1/2'
    """
    if type(value) in _PLAIN:
        return value  # type: ignore[return-value]  # mypy does not narrow by the exact type
    match value:
        case None | bool() | int() | str():
            return value.value if isinstance(value, Enum) else value
        case Fraction():
            if max(value.numerator.bit_length(), value.denominator.bit_length()) > MOST_BITS:
                raise InvalidInput("a number has too many digits to be read again; nothing was written.")
            return f"{value.numerator}/{value.denominator}"
        case Enum():
            return encode(value.value)
        case tuple() | list():
            return [encode(item) for item in value]
        case _ if (names := _names(type(value))) is not None:
            _check_written(value)
            body = {
                name: encode(part)
                for name in names
                if (part := getattr(value, name)) is not None or name not in _absent(type(value))
            }
            return {"kind": value.KIND, "version": value.VERSION, **body}  # type: ignore[attr-defined]  # what has names has both
    raise InvalidInput(f"a {type(value).__name__} cannot be written into a document; nothing was written.")


def check_types(document: object, path: str = "document") -> None:
    """Refuse a document with a field that is not of exactly the type it is declared with, however deep.

    What was made in Python was never read: a text in place of an enumeration, or a fraction in place of a whole number,
    would be charged as one thing and computed as another.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Asked:
    ...     KIND, VERSION = "asked", 1
    ...     rows: tuple[int, ...]
    >>> check_types(Asked((1, 2)))
    >>> check_types(Asked((1, Fraction(1, 2))))
    Traceback (most recent call last):
    sfumato.errors.InvalidInput: document.rows[1] is not of the type that it must have; nothing was done.
    """
    hints, _ = _hints(type(document))
    for name, hint in hints.items():
        _check_type(getattr(document, name), hint, f"{path}.{name}")


def canonical(value: Json) -> str:
    """Write JSON in its one canonical form.

    >>> canonical({"b": "1/2", "a": [1, None]})
    '{"a":[1,null],"b":"1/2"}'
    """
    if _holds_float(value):
        _refuse_floats(value, "document")
    text = _CANONICAL.encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            "a text holds half a surrogate pair, which has no bytes and could be neither hashed nor signed; nothing "
            "was written."
        ) from None
    return text


def _refuse_token(token: str) -> Json:
    raise InvalidInput(f"the document holds the floating-point number {token}; rationals are written 'p/q'.")


def _unique(pairs: list[tuple[str, Json]]) -> Json:
    body = dict(pairs)
    if len(body) != len(pairs):
        raise InvalidInput("the document names a field twice; it was not read.")
    return body


def _whole(token: str) -> Json:
    if len(token) > MOST_DIGITS:
        raise InvalidInput("the document holds a whole number with too many digits; it was not read.")
    return int(token)


_READ = json.JSONDecoder(
    parse_float=_refuse_token, parse_constant=_refuse_token, parse_int=_whole, object_pairs_hook=_unique
).decode


def parse(text: str) -> Json:
    """Read JSON that holds no floating-point number and no field twice.

    >>> parse('{"a": 1}')
    {'a': 1}
    """
    try:
        value: Json = _READ(text)
        # Half a surrogate pair has no bytes and could be neither hashed nor signed; it comes as itself or as an escape.
        (canonical(value) if "\\u" in text else text).encode()
    except InvalidInput:
        raise
    except (ValueError, RecursionError):  # ValueError: no JSON, or a whole number of thousands of digits
        raise InvalidInput("this is not a JSON document; it was not read.") from None
    return value


def by_kind(classes: Iterable[type[Document]]) -> dict[str, type[Document]]:
    """Document classes by their kind; two of one kind are refused."""
    found: dict[str, type[Document]] = {}
    for cls in classes:
        if cls.KIND in found:
            raise InvalidInput(f"two declarations share the kind {cls.KIND!r}")
        found[cls.KIND] = cls
    return found


def declared_in(package: str, folder: Iterable[str], kinds: str) -> tuple[type[Document], ...]:
    """All declarations in the files of a package whose kind begins with ``kinds``; folders in it are not looked into.

    >>> from sfumato import laws
    >>> [cls.KIND for cls in declared_in("sfumato.laws", laws.__path__, "law.discrete_laplace")]
    ['law.discrete_laplace']
    """
    found: list[type[Document]] = []
    for name in sorted(module.name for module in pkgutil.iter_modules(folder) if not module.ispkg):
        module = importlib.import_module(f"{package}.{name}")
        for cls in vars(module).values():
            own = isinstance(cls, type) and cls.__module__ == module.__name__
            if own and str(getattr(cls, "KIND", "")).startswith(kinds):
                found.append(cls)
    return tuple(found)


class _Odd(Exception):
    """Not what most documents look like: to be read step by step."""


class Registry:
    """The explicit list of document classes that a reader knows, by kind."""

    def __init__(self, classes: Iterable[type[Document]]) -> None:
        self._listed = by_kind(classes)
        self._made: dict[tuple[object, ...], object] = {}

    @property
    def _classes(self) -> dict[str, type[Document]]:
        return self._listed

    @property
    def kinds(self) -> frozenset[str]:
        """All kinds that can be read."""
        return frozenset(self._classes)

    def lists(self, document: object) -> bool:
        """Whether the class of a document is listed: not one made from it, which could say anything of itself."""
        return type(document) is self._classes.get(getattr(type(document), "KIND", ""))

    def decode(self, body: Json, path: str = "document") -> Decoded:
        """Read one document, checking kind, version and every field; ``path`` is what errors call it."""
        try:
            return self._quickly(body)
        except (_Odd, SfumatoError, RecursionError):
            return self._strictly(body, path)  # which also says what is wrong, and where

    def _quickly(self, body: Json, *, inside: bool = False) -> Decoded:
        """The same for a document of the newest version with nothing wrong in it, which most are; else an error.

        Documents ``inside`` others repeat, and are frozen: one that holds plain values alone is made once.
        """
        if type(body) is not dict:
            raise _Odd
        kind, version = body.get("kind"), body.get("version")
        cls = self._classes.get(kind) if type(kind) is str else None
        if cls is None or type(version) is not int or version != cls.VERSION:
            raise _Odd
        shapes, simple = _shapes(cls)
        key = None
        if inside and simple:  # of texts alone, so that equal keys are equal documents
            key = (*body, *body.values()) if _HASHED.issuperset(map(type, body.values())) else None
            if key is not None and key in self._made:
                return self._made[key]
        values = {}
        for name, plain, shape in shapes:
            if name in body:
                value = body[name]
                values[name] = value if type(value) in plain else self._part(value, shape)
            elif name not in _absent(cls):
                raise _Odd
        if len(values) != len(body) - 2:
            raise _Odd
        made = cls(**values)
        if key is not None:
            if len(self._made) >= MOST_MADE:
                self._made.clear()
            self._made[key] = made
        return made

    def _part(self, value: Json, shape: "_Shape") -> object:
        if type(value) in shape.plain:
            return value
        if type(value) is dict:
            document = self._quickly(value, inside=True)
            if type(document) in shape.options:
                return document
            for option in shape.options:
                if _meets(document, option):
                    return document
        elif type(value) is list and shape.each is not None:
            if shape.each.plain.issuperset(map(type, value)):
                return tuple(value)
            return tuple([self._part(item, shape.each) for item in value])
        elif type(value) is list and shape.inner is not None and len(shape.inner) == len(value):
            return tuple([self._part(item, each) for item, each in zip(value, shape.inner, strict=True)])
        elif type(value) is str and shape.rational:
            return _rational(value)
        elif shape.member is not None:
            return _member(shape.member, value, "")
        raise _Odd

    def _strictly(self, body: Json, path: str) -> Decoded:
        if not isinstance(body, dict):
            raise InvalidInput(f"{path} is not a document (an object with kind and version); it was not read.")
        cls = self._class(body, path)
        hints, optional = _hints(cls)
        # A field that an older version did not have yet takes its default.
        older = int(str(body["version"])) < cls.VERSION
        for name in body:
            if name not in hints and name not in ("kind", "version"):
                raise InvalidInput(f"{path}.{name} is not a field of {body['kind']!r}; the document was not read.")
        values = {}
        for name, hint in hints.items():
            if name not in body and ((older and name in optional) or name in _absent(cls)):
                continue
            if name not in body:
                raise InvalidInput(f"{path}.{name} is missing; the document was not read.")
            values[name] = self._value(body[name], hint, f"{path}.{name}")
        try:
            return cls(**values)
        except InvalidInput as wrong:
            raise InvalidInput(f"{path}: {wrong}") from None

    def _class(self, body: Mapping[str, Json], path: str) -> type[Document]:
        kind, version = body.get("kind"), body.get("version")
        if not isinstance(kind, str) or kind not in self._classes:
            raise Unsupported(f"{path}.kind = {kind!r} is unknown; known are {', '.join(sorted(self._classes))}.")
        cls = self._classes[kind]
        newest = cls.VERSION
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise InvalidInput(f"{path}.version = {version!r} is not a version number; the document was not read.")
        if version > newest:
            raise Unsupported(
                f"{path}.version = {version} of {kind!r} is newer than this code, which reads up to {newest}; "
                "the document was not read. Update sfumato."
            )
        return cls

    def _value(self, value: Json, hint: Hint, path: str) -> object:
        plain, options = _options(hint)
        if type(value) in plain:
            return value
        for option, inner in options:
            if option is Fraction and isinstance(value, str):
                return _fraction(value, path)
            if inner and isinstance(value, list):
                hints = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
                if len(hints) != len(value):
                    raise InvalidInput(f"{path} must have {len(hints)} entries; the document was not read.")
                return tuple(
                    self._value(item, each, f"{path}[{place}]")
                    for place, (item, each) in enumerate(zip(value, hints, strict=True))
                )
            if isinstance(option, type) and issubclass(option, Enum):
                return _member(option, value, path)
            if option in (str, bool, int) and type(value) is option:
                return value
        if isinstance(value, dict):
            document = self._strictly(value, path)
            if any(_meets(document, option) for option, _ in options):
                return document
        raise InvalidInput(f"{path} has the wrong type; the document was not read.")


def _check_type(value: object, hint: Hint, path: str) -> None:
    _, options = _options(hint)
    if any(type(value) is option for option, _ in options):
        if _names(type(value)) is not None:
            check_types(value, path)
        return
    for option, inner in options:
        if inner and type(value) is tuple:
            hints = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
            if len(hints) == len(value):
                if not (len(inner) == 2 and inner[-1] is Ellipsis and set(map(type, value)) <= _bare(inner[0])):
                    for place, (item, each) in enumerate(zip(value, hints, strict=True)):
                        _check_type(item, each, f"{path}[{place}]")
                return
        if _names(type(value)) is not None and _meets(value, option):
            check_types(value, path)
            return
    raise InvalidInput(f"{path} is not of the type that it must have; nothing was done.")


@_kept
def _bare(hint: Hint) -> frozenset[type]:
    """The types of a hint that have nothing inside to look at."""
    return frozenset(option for option, _ in _options(hint)[1] if option in (*_PLAIN, Fraction))


@_kept
def _options(hint: Hint) -> tuple[frozenset[type], tuple[tuple[Hint, tuple[Hint, ...]], ...]]:
    """The types that a field may have, each with the types inside a tuple; first those that are taken as they are."""
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    plain: list[type] = [types.NoneType] if types.NoneType in options else []  # before an enumeration refuses it
    if not any(option is Fraction or (isinstance(option, type) and issubclass(option, Enum)) for option in options):
        plain += [option for option in options if option in (str, bool, int)]
    inside = tuple(
        (option, typing.get_args(option) if typing.get_origin(option) is tuple else ()) for option in options
    )
    return frozenset(plain), inside


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """What a field may hold, worked out once from its type: the first option of each sort, as they are read."""

    plain: frozenset[type]
    options: tuple[Hint, ...]
    rational: bool
    member: type[Enum] | None
    each: "_Shape | None"
    inner: "tuple[_Shape, ...] | None"


@_kept
def _shape(hint: Hint) -> _Shape:
    plain, options = _options(hint)
    inside = next((inner for _, inner in options if inner), ())
    repeated = bool(inside) and inside[-1] is Ellipsis
    members = [option for option, _ in options if isinstance(option, type) and issubclass(option, Enum)]
    return _Shape(
        plain=plain,
        options=tuple(option for option, _ in options),
        rational=options[0][0] is Fraction,
        member=members[0] if members and len(options) == 1 else None,
        each=_shape(inside[0]) if repeated else None,
        inner=tuple(_shape(each) for each in inside) if inside and not repeated else None,
    )


@_kept
def _shapes(cls: type) -> tuple[tuple[tuple[str, frozenset[type], _Shape], ...], bool]:
    """The fields of a class with their shapes, and whether all of them are texts, rationals, members or None.

    The plain types of a shape stand beside it too: they are asked for of every field of every document.
    """
    shapes = [_shape(hint) for hint in _hints(cls)[0].values()]
    texts = {str, types.NoneType, Fraction}
    simple = all(option in texts or option is shape.member for shape in shapes for option in shape.options) and all(
        type(member.value) is str for shape in shapes for member in shape.member or ()
    )
    return tuple((name, shape.plain, shape) for name, shape in zip(_hints(cls)[0], shapes, strict=True)), simple


@_kept
def _names(cls: type) -> tuple[str, ...] | None:
    """The fields of a class of documents; None for any other class."""
    if not (hasattr(cls, "KIND") and hasattr(cls, "VERSION")):
        return None
    return tuple(field.name for field in dataclasses.fields(cls) if UNWRITTEN not in field.metadata)


@_kept
def _absent(cls: type) -> frozenset[str]:
    """The fields of a class that a document leaves out where they are None."""
    return frozenset(field.name for field in dataclasses.fields(cls) if LEFT_OUT in field.metadata)


@_kept
def _unwritten(cls: type) -> tuple[tuple[str, str], ...]:
    """The fields of a class that no document has, each with what to say to whoever wants to write one down."""
    fields = dataclasses.fields(cls)
    return tuple((field.name, field.metadata[UNWRITTEN]) for field in fields if UNWRITTEN in field.metadata)


def _check_written(value: object) -> None:
    """Refuse to write down what a document would not say."""
    for name, why in _unwritten(type(value)):
        if getattr(value, name) is not None:
            raise InvalidInput(why)


@_kept
def _hints(cls: type) -> tuple[Mapping[str, Hint], frozenset[str]]:
    """The fields of a class of documents with their types, and those that have a default."""
    fields = [field for field in dataclasses.fields(cls) if UNWRITTEN not in field.metadata]
    hints = typing.get_type_hints(cls)
    optional = frozenset(field.name for field in fields if field.default is not dataclasses.MISSING)
    return {field.name: hints[field.name] for field in fields}, optional


def _meets(document: object, option: Hint) -> bool:
    """Whether a document is of a class, or has all that a Protocol asks for; looked up on the class, nothing is run."""
    if getattr(option, "_is_protocol", False):
        asked = {*vars(option), *vars(option).get("__annotations__", {})}
        return all(hasattr(type(document), name) for name in asked if not name.startswith("_"))
    return isinstance(option, type) and isinstance(document, option)


@lru_cache(maxsize=1024)
def _rational(text: str) -> Fraction:
    top, slash, bottom = text.partition("/")
    short = len(text) <= 4000  # Python refuses to read whole numbers of more than 4,300 digits
    if short and slash and top.removeprefix("-").isdecimal() and bottom.isdecimal() and int(bottom) > 0:
        value = Fraction(int(top), int(bottom))
        # In lowest terms; encode refuses very long ones.
        if text == (f"{value.numerator}/{value.denominator}" if len(text) < 3000 else encode(value)):
            return value
    raise _Odd


def _fraction(text: str, path: str) -> Fraction:
    try:
        return _rational(text)
    except _Odd:
        raise InvalidInput(f"{path} is not a rational 'p/q' in lowest terms; the document was not read.") from None


def _member(option: type[Enum], value: Json, path: str) -> Enum:
    for member in option:
        if member.value == value and type(member.value) is type(value):
            return member
    known = ", ".join(repr(member.value) for member in option)
    raise InvalidInput(f"{path} must be one of {known}; the document was not read.")


def _holds_float(value: object) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in items:  # a generator takes twice the stack, and documents are deep
        if type(item) not in _PLAIN and _holds_float(item):
            return True
    return isinstance(value, float)


def _refuse_floats(value: object, path: str) -> None:
    if isinstance(value, float):
        raise InvalidInput(f"{path} is a floating-point number; write rationals as 'p/q'.")
    if isinstance(value, dict):
        for name, item in value.items():
            _refuse_floats(item, f"{path}.{name}")
    elif isinstance(value, list):
        for place, item in enumerate(value):
            _refuse_floats(item, f"{path}[{place}]")
