"""One catalogue of messages for each language: the same identifiers in all, with the same facts, and nothing empty.

The files lie in ``messages``, a few groups in each: ``en.toml``, ``audiences.en.toml`` and so on; each kind of data has
such a folder of its own. What is missing or empty in any language stops every text at the door, so that no page is ever
published with a hole in it.
"""

import string
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources

from sfumato.core.data_kind import DataKind, kinds
from sfumato.errors import Refused, Unsupported
from sfumato.reports.chinese import fill

__all__ = ["LANGUAGES", "counted", "in_chinese", "message", "messages", "read"]

LANGUAGES = {"en": "en", "zh-Hans": "zh-Hans", "zh": "zh-Hans"}


def message(language: str, identifier: str, **facts: object) -> str:
    """Fill in a message.

    >>> message("en", "unit.user")
    'one person, with all rows of that person'
    """
    words = messages(language)[identifier]
    return fill(words, facts) if in_chinese(language) else words.format(**facts)


def in_chinese(language: str) -> bool:
    """Whether this is a name of Chinese."""
    return LANGUAGES.get(language) == "zh-Hans"


def counted(language: str, noun: str, number: int) -> str:
    """A number of things, in the grammatical number that the language asks for.

    >>> counted("en", "row", 1), counted("en", "row", 1200)
    ('one row', '1,200 rows')
    """
    return message(language, f"count.{noun}_{'one' if number == 1 else 'many'}", n=f"{number:,}")


def messages(language: str) -> Mapping[str, str]:
    """All messages of a language, by identifier."""
    if language not in LANGUAGES:
        raise Unsupported(f"there is no text in {language!r}; the languages are en and zh-Hans (zh for short).")
    return _catalogues(kinds())[LANGUAGES[language]]


def read(files: Mapping[str, Iterable[str]]) -> dict[str, dict[str, str]]:
    """Read the catalogue files of each language, given as TOML, and refuse what is empty, doubled or not in all.

    >>> read({"en": ['[unit]\\nrow = "one row"'], "zh-Hans": ['[unit]\\nrow = ""']})
    Traceback (most recent call last):
    sfumato.errors.Refused: the message unit.row is empty in zh-Hans; no text is made until it is written.
    """
    found: dict[str, dict[str, str]] = {}
    for language, texts in files.items():
        entries = found.setdefault(language, {})
        for text in texts:
            for group, named in tomllib.loads(text).items():
                for name, words in named.items():
                    _add(entries, f"{group}.{name}", words, language)
    for identifier in sorted({identifier for entries in found.values() for identifier in entries}):
        missing = [language for language, entries in found.items() if identifier not in entries]
        if missing:
            raise Refused(
                f"the message {identifier} is missing in {', '.join(missing)}; no text is made until it is written."
            )
        if len({frozenset(_facts(entries[identifier])) for entries in found.values()}) > 1:
            raise Refused(
                f"the message {identifier} has other facts in one language than in another; no text is made until all "
                "have the same."
            )
    return found


def _add(entries: dict[str, str], identifier: str, words: object, language: str) -> None:
    if not isinstance(words, str) or not words.strip():
        raise Refused(f"the message {identifier} is empty in {language}; no text is made until it is written.")
    if identifier in entries:
        raise Refused(f"the message {identifier} stands twice in {language}; no text is made until one is left.")
    entries[identifier] = words


def _facts(words: str) -> set[str]:
    return {field for _, field, _, _ in string.Formatter().parse(words) if field is not None}


@cache
def _catalogues(known: tuple[DataKind, ...]) -> dict[str, dict[str, str]]:
    """The messages of the reports themselves and of every kind of data."""
    files: dict[str, list[str]] = {language: [] for language in sorted(set(LANGUAGES.values()))}
    for package in ("sfumato.reports", *(kind.messages for kind in known if kind.messages is not None)):
        folder = resources.files(package).joinpath("messages")
        for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
            language = file.name.removesuffix(".toml").rpartition(".")[2]
            if file.name.endswith(".toml"):
                files[language].append(file.read_text("utf-8"))
    return read(files)
