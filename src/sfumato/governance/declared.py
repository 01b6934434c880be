"""A board, terms of a dataset, reasons for ε and projects, as people write them down: TOML, strict to read."""

import tomllib
from collections.abc import Iterable
from dataclasses import fields
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar  # values of a TOML file, each checked below

from sfumato.core.foreign import TomlTable
from sfumato.core.signature import read_public_key
from sfumato.errors import InvalidInput, NotDeclared, SfumatoError
from sfumato.governance.board import Board, Committee, Community, Reasons
from sfumato.governance.consent import Ground, HipaaBasis, SpecialCategory, Terms
from sfumato.governance.research_entries import Project

__all__ = ["board_of", "project_of", "reasons_of", "terms_of"]

Word = TypeVar("Word", bound=Enum)
MOST = 10**6  # members; a number that is written in hexadecimal may be endless too
_LISTS = ("purposes", "consent", "forbidden", "recipients", "sites")


def board_of(file: str | Path) -> Board:
    """Read a board from a file.

    ``members`` and ``quorum``; a ``[[committees]]`` for each site (site, members, representatives, quorum); a
    ``[[communities]]`` for each veto (name, representatives, datasets); ``[keys]`` with the public key of a person, or
    its file; ``proposers`` who may ask without a seat.
    """
    place = Path(file)
    body = _body(place, "board", ("members", "quorum", "committees", "communities", "keys", "proposers"))
    with _Named(place):
        committees = tuple(
            Committee(
                site=_text(part, "site"),
                members=_names(part, "members"),
                representatives=_names(part, "representatives"),
                quorum=_quorum(part),
            )
            for part in _tables(body, "committees", ("site", "members", "representatives", "quorum"))
        )
        communities = tuple(
            Community(
                name=_text(part, "name"),
                representatives=_names(part, "representatives"),
                datasets=_names(part, "datasets"),
            )
            for part in _tables(body, "communities", ("name", "representatives", "datasets"))
        )
        return Board(
            members=_names(body, "members"),
            quorum=_quorum(body),
            committees=committees,
            communities=communities,
            keys=_keys(body, place) if "keys" in body else (),
            proposers=_names(body, "proposers") if "proposers" in body else (),
        )


def terms_of(file: str | Path) -> Terms:
    """Read the terms of a dataset from a file; each field is named as in :class:`Terms`."""
    place = Path(file)
    body = _body(place, "terms", tuple(field.name for field in fields(Terms)))
    with _Named(place):
        until = _needed(body, "until")
        return Terms(
            dataset=_text(body, "dataset"),
            ground=_word(body, "ground", Ground),
            condition=_word(body, "condition", SpecialCategory),
            hipaa=_word(body, "hipaa", HipaaBasis),
            consent_text=_text(body, "consent_text") if "consent_text" in body else "",
            until=until.isoformat() if isinstance(until, date) else until,
            **{name: _names(body, name) if name in body else () for name in _LISTS},
        )


def reasons_of(file: str | Path) -> Reasons:
    """Read the reasons for an ε from a file: benefit, risk and choice."""
    place = Path(file)
    body = _body(place, "reasons", ("benefit", "risk", "choice"))
    with _Named(place):
        return Reasons(benefit=_text(body, "benefit"), risk=_text(body, "risk"), choice=_text(body, "choice"))


def project_of(file: str | Path) -> Project:
    """Read a project of research from a file.

    ``name``, ``purpose``, ``recipient`` and ``account``; ``[keys]`` with the public key of each of its people, or its
    file; ``[columns]`` with the columns of each dataset that it may use; ``reviewed = false`` where the board does not
    approve each program.
    """
    place = Path(file)
    said = ("name", "purpose", "recipient", "account")
    body = _body(place, "project", (*said, "reviewed", "keys", "columns"))
    with _Named(place):
        columns, reviewed = _needed(body, "columns"), body.get("reviewed", True)
        if not isinstance(columns, dict) or type(reviewed) is not bool:
            raise InvalidInput(
                'columns must be a table such as [columns] visits = ["age"], and reviewed true or false; nothing was '
                "declared."
            )
        _needed(body, "keys")
        return Project(
            people=_keys(body, place),
            columns=tuple((name, _names(columns, name)) for name in columns),
            reviewed=reviewed,
            **{name: _text(body, name) for name in said},
        )


class _Named:
    """Puts the name of a file before what is wrong with it."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, wrong: BaseException | None, trace: object) -> None:
        if isinstance(wrong, SfumatoError):
            raise type(wrong)(f"{self.place.name}: {wrong}") from None


def _body(place: Path, kind: str, known: tuple[str, ...]) -> dict[str, Any]:
    try:
        body: dict[str, Any] = tomllib.loads(place.read_text("utf-8"), parse_float=Decimal)
    except OSError as wrong:
        raise InvalidInput(f"{place} could not be read: {wrong.strerror}. Nothing was declared.") from None
    except tomllib.TOMLDecodeError as wrong:
        raise InvalidInput(f"{place.name} is not TOML: {wrong}. Nothing was declared.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{place.name} is not a TOML text in UTF-8; nothing was declared.") from None
    except (RecursionError, ValueError):  # ValueError: a whole number of thousands of digits
        raise InvalidInput(
            f"{place.name} is nested too deep or holds an endless number; nothing was declared."
        ) from None
    if body.pop("kind", None) != kind:
        raise InvalidInput(f'{place.name} does not say kind = "{kind}": it is another file. Nothing was declared.')
    version = body.pop("version", None)
    if type(version) is not int or version != 1:
        raise InvalidInput(f"{place.name} does not say version = 1, the one this code reads; nothing was declared.")
    with _Named(place):
        _known(body, known)
    return body


def _known(body: TomlTable, known: Iterable[str]) -> None:
    for name in body:
        if name not in known:
            raise InvalidInput(f"{name!r} is an unknown field; nothing was declared. Known are {', '.join(known)}.")


def _needed(body: TomlTable, name: str) -> Any:
    if name not in body:
        raise NotDeclared(f"{name} is missing; nothing was declared. Say {name} = …")
    return body[name]


def _text(body: TomlTable, name: str) -> str:
    text = _needed(body, name)
    if not isinstance(text, str):
        raise InvalidInput(f"{name} must be a text in quotes; nothing was declared.")
    return text


def _quorum(body: TomlTable) -> int:
    quorum = _needed(body, "quorum")
    if type(quorum) is not int or abs(quorum) > MOST:
        raise InvalidInput("quorum must be a whole number, such as 2; nothing was declared.")
    return quorum


def _names(body: TomlTable, name: str) -> tuple[str, ...]:
    names = _needed(body, name)
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise InvalidInput(f'{name} must be a list of texts, such as ["ada", "ben"]; nothing was declared.')
    return tuple(names)


def _tables(body: TomlTable, name: str, known: tuple[str, ...]) -> list[TomlTable]:
    parts = body.get(name, [])
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        raise InvalidInput(f"{name} must be tables, each under [[{name}]]; nothing was declared.")
    for part in parts:
        _known(part, known)
    return parts


def _word(body: TomlTable, name: str, words: type[Word]) -> Word:
    said = _text(body, name)
    for word in words:
        if word.value == said:
            return word
    choices = ", ".join(repr(word.value) for word in words)
    raise InvalidInput(f"{name} = {said!r} is unknown; nothing was declared. Say one of {choices}.")


def _keys(body: TomlTable, place: Path) -> tuple[tuple[str, str], ...]:
    """The public key of each person; a file is looked for beside the one that names it."""
    named = body["keys"]
    if not isinstance(named, dict) or not all(isinstance(text, str) for text in named.values()):
        raise InvalidInput('keys must be a table such as [keys] ben = "ben.key.pub"; nothing was declared.')
    return tuple((name, _public_key(name, text, place.parent)) for name, text in named.items())


def _public_key(name: str, text: str, folder: Path) -> str:
    beside = folder / text
    try:
        return read_public_key(beside if beside.is_file() else text)
    except (InvalidInput, OSError):  # OSError: longer than the name of a file can be
        raise InvalidInput(
            f"the public key of {name!r} is neither 64 hexadecimal digits nor a file that holds them; nothing was "
            f"declared. Make a key: sfumato key new {name}.key, and give {name}.key.pub"
        ) from None
