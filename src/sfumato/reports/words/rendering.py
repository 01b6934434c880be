"""Words of a description in one language: messages filled in, lists joined, names kept on one line."""

from collections.abc import Sequence
from functools import reduce

from sfumato.core.description import Counted, Joined, Listed, NamedWord, OneLine, Phrase, Word, WordRun
from sfumato.reports.catalogue import counted, in_chinese, message

__all__ = ["listed", "one_line", "render"]


def render(word: Word, language: str) -> str:
    """A word in a language.

    >>> render(Phrase("measure.rows_where", {"condition": Joined("condition.and", ("a", "b"))}), "en")
    'the number of rows where a and b'
    """
    match word:
        case str():
            return word
        case Phrase(key=key, words=words):
            return message(language, key, **{name: render(each, language) for name, each in words.items()})
        case Counted(noun=noun, number=number):
            return counted(language, noun, number)
        case NamedWord():
            return _named(word, language)
        case Listed(parts=parts):
            return listed([render(part, language) for part in parts], language)
        case Joined(by=by, parts=parts):
            texts = (render(part, language) for part in parts)
            return reduce(lambda left, right: message(language, by, left=left, right=right), texts)
        case WordRun(parts=parts):
            return "".join(render(part, language) for part in parts)
        case OneLine(word=inner):
            return one_line(render(inner, language))


def _named(word: NamedWord, language: str) -> str:
    """A declared word, alone or with a number; in Chinese the catalogue's own where none was declared."""
    if in_chinese(language) and not isinstance(word.zh, str):
        return render(word.zh, language)
    alone = word.number in (None, 1)
    thing = one_line(word.zh if in_chinese(language) and isinstance(word.zh, str) else word.one if alone else word.many)
    if word.number is None:
        return thing
    kind = "worth" if word.worth else "thing"
    return message(language, f"count.{kind}_of_{'one' if alone else 'many'}", n=f"{word.number:,}", thing=thing)


def listed(words: Sequence[str], language: str) -> str:
    """Several words as a list, the last joined by "and".

    >>> listed(["a", "b", "c"], "en")
    'a, b and c'
    >>> listed(["sbp", "人数"], "zh")
    'sbp 和人数'
    """
    first = reduce(lambda left, right: message(language, "list.between", left=left, right=right), words[:-1] or words)
    if len(words) == 1:
        return first
    return message(language, "list.last", left=first, right=words[-1])


def one_line(name: str) -> str:
    """A name as one line: whatever breaks a line, or turns the text around, becomes a space.

    >>> one_line("visits\\n\\nAll is well.")
    'visits All is well.'
    """
    turning = {*range(0x202A, 0x202F), *range(0x2066, 0x206A)}
    return " ".join("".join(" " if not c.isprintable() or ord(c) in turning else c for c in name).split()) or "…"
