"""Text from the record in a document for people: quoted, never obeyed.

Names, purposes and reasons are written by whoever declared them. In Markdown they must not become a heading, a link, a
picture or HTML, and a control character must not move a cursor. A verdict that somebody wrote into the record is not
repeated either: a reader could take it for ours.
"""

import json
import re
import unicodedata

__all__ = ["WITHHELD", "code", "plain", "quoted"]

UNSEEN = ("Cf", "Mn", "Me", "Cc")
"""Kinds of signs that a reader does not see, or sees as part of the letter before: they end no word."""
WITHHELD = "[a verdict in the record, not repeated here]"
_VERDICT = re.compile(r"(?:non[\s\-]?)?compl(?:iant|iance)|合规|合規", re.IGNORECASE)
_ALIKE = str.maketrans(
    "аеорсухіјѕԁһкмтвнпѵӏαενορτικμуӀɑɩıΑΒΕΖΗΙΚΜΝΟΡΤΥΧАВЕКМНОРСТУХІЈЅ",
    "aeopcyxijsdhkmtbhnvlaevoptikmylaiiABEZHIKMNOPTYXABEKMHOPCTYXIJS",
)
"""Letters of other alphabets, and the Latin ones that they look like."""
_SPECIAL = re.compile(
    r"[\\`*{}\[\]<>&|~$^]|(?<!\w)_|_(?!\w)|:(?=//)|(?<=www)\.|(?<=mailto):|(?<=javascript):", re.IGNORECASE
)
_IN_CODE = re.compile(r"[`|<>&]")


def plain(text: str) -> str:
    r"""One line without control characters and without a verdict.

    >>> plain("ε = 1\n\x1b[2J\u202egnp")
    'ε = 1 \\x1b[2J\\u202egnp'
    >>> plain("GDPR-Compliant"), plain("compli\u00adant")
    ('GDPR-[a verdict in the record, not repeated here]', '[a verdict in the record, not repeated here]')
    """
    held = _withheld(text)
    line = "".join(sign if sign.isprintable() else " " if sign in "\n\r\t" else ascii(sign)[1:-1] for sign in held)
    return " ".join(line.split())


def quoted(text: str) -> str:
    """The same as Markdown that every reader shows as it is: signs with a meaning become character references.

    >>> quoted("a|b <script> [x](https://evil.example)")
    'a&#124;b &#60;script&#62; &#91;x&#93;(https&#58;//evil.example)'
    """
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", plain(text))


def code(text: str) -> str:
    r"""JSON as a code span; signs that could end it, or a cell, are written as JSON itself writes them.

    >>> print(code('{"a|b":"`"}'))
    `{"a\u007cb":"\u0060"}`
    """
    line = "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in _withheld(text))
    held = _IN_CODE.sub(lambda found: f"\\u{ord(found[0]):04x}", line)
    return f"`{held}`"


def _withheld(text: str) -> str:
    """A text without a verdict, however it is spelt: signs that cannot be seen, and letters that only look alike.

    It is looked for in a plainer spelling, and taken out of the text as it was written.

    >>> _withheld("a C\N{CYRILLIC SMALL LETTER O}mpliant firm, ｃｏｍｐｌｉａｎｃｅ")
    'a [a verdict in the record, not repeated here] firm, [a verdict in the record, not repeated here]'
    """
    spelt: list[tuple[str, int]] = []
    for place, sign in enumerate(text):
        if unicodedata.category(sign) in UNSEEN:
            continue
        letters = unicodedata.normalize("NFKD", sign).translate(_ALIKE)
        spelt += [(letter, place) for letter in letters if unicodedata.category(letter) not in UNSEEN]
    parts, end = [], 0
    for found in _VERDICT.finditer("".join(letter for letter, _ in spelt)):
        first, last = spelt[found.start()][1], spelt[found.end() - 1][1]
        parts += [text[end:first], WITHHELD]
        end = last + 1
    return "".join([*parts, text[end:]])
