"""One catalogue of messages for each language; the same identifiers in all."""

import tomllib
from functools import cache
from importlib import resources

from sfumato.errors import Unsupported

__all__ = ["LANGUAGES", "message"]

LANGUAGES = {"en": "en", "zh-Hans": "zh-Hans", "zh": "zh-Hans"}


def message(language: str, identifier: str, **facts: object) -> str:
    """Fill in a message.

    >>> message("en", "unit.user")
    'one person, with all rows of that person'
    """
    return messages(language)[identifier].format(**facts)


@cache
def messages(language: str) -> dict[str, str]:
    """All messages of a language, by identifier."""
    if language not in LANGUAGES:
        raise Unsupported(f"there is no text in {language!r}; the languages are en and zh-Hans (zh for short).")
    text = resources.files("sfumato.reports").joinpath("messages", f"{LANGUAGES[language]}.toml").read_text("utf-8")
    return {
        f"{group}.{name}": words for group, entries in tomllib.loads(text).items() for name, words in entries.items()
    }
