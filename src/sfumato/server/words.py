"""What the pages say, by identifier: one catalogue for each language, complete in all of them or refused."""

from collections.abc import Mapping
from functools import cache
from importlib import resources

from sfumato.reports.catalogue import LANGUAGES, in_chinese, read
from sfumato.reports.chinese import fill

__all__ = ["OFFERED", "PageWords", "language_of"]

OFFERED = {"en": "English", "zh-Hans": "简体中文"}
"""The languages of the pages, each by its own name."""


class PageWords:
    """The messages of one language.

    >>> PageWords("en").say("frame.sign_in"), PageWords("zh").say("frame.sign_in")
    ('Sign in', '登录')
    """

    def __init__(self, language: str) -> None:
        self.language = LANGUAGES[language]

    def has(self, identifier: str) -> bool:
        """Whether there is such a message."""
        return identifier in _catalogues()[self.language]

    def say(self, identifier: str, **facts: object) -> str:
        """Fill in a message."""
        words = _catalogues()[self.language][identifier]
        return fill(words, facts) if in_chinese(self.language) else words.format(**facts)


def language_of(asked: str | None, kept: str | None, accepted: str | None) -> str:
    """The language for somebody: what they ask for now, what they asked for before, or what their browser states.

    >>> language_of(None, None, "fr, zh-CN;q=0.8, en;q=0.7"), language_of("en", "zh-Hans", "zh")
    ('zh-Hans', 'en')
    """
    for said in (asked, kept):
        if said in LANGUAGES:
            return LANGUAGES[said]
    for part in (accepted or "")[:200].split(","):
        first = part.partition(";")[0].strip().partition("-")[0].lower()
        if first in LANGUAGES:
            return LANGUAGES[first]
    return "en"


@cache
def _catalogues() -> Mapping[str, Mapping[str, str]]:
    files: dict[str, list[str]] = {language: [] for language in OFFERED}
    folder = resources.files("sfumato.server").joinpath("messages")
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            files[file.name.removesuffix(".toml").rpartition(".")[2]].append(file.read_text("utf-8"))
    return read(files)
