"""Fonts: which to ask for, and whether what draws here has the signs that a picture needs.

An SVG or a web page is set in the fonts of whoever opens it. A PNG is set here, and a sign that no font here has
becomes an empty box; so the signs are looked for first, by the very program that will draw them. The ``plots`` extra
brings a Chinese font of its own (Noto Sans CJK, under the SIL Open Font License), so that the machine needs none.
"""

from collections.abc import Iterable
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path

from sfumato.core.extras import need
from sfumato.core.foreign import Chart
from sfumato.errors import InvalidInput, MissingExtra

__all__ = ["check_signs", "chinese", "drawer", "family", "missing", "use_fonts"]

EXTRA = "pip install 'sfumato[plots]'"
BROUGHT = "noto_cjk_sans_otc"  # the package of the extra that holds the font file and nothing else

LATIN = "Noto Sans, Helvetica Neue, Arial, Liberation Sans, sans-serif"
CHINESE = "Noto Sans CJK SC, Source Han Sans SC, PingFang SC, Microsoft YaHei, sans-serif"  # Linux, macOS, Windows
NO_SIGN = "\U0010fffd"  # for private use, the last of all: no font has it
IDEOGRAPHS = (
    (0x2E80, 0x303F),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF00, 0xFFEF),
    (0x20000, 0x323AF),
)


def chinese(sign: str) -> bool:
    """Whether a sign is Chinese, or punctuation of Chinese text.

    >>> [chinese(sign) for sign in "数，a±"]
    [True, True, False, False]
    """
    return any(first <= ord(sign) <= last for first, last in IDEOGRAPHS)


def family(texts: Iterable[str]) -> str:
    """The fonts to ask for; Chinese ones first where any of the texts is Chinese, since they hold Latin letters too.

    >>> family(["visits", "就诊"]).partition(",")[0], family(["visits"]).partition(",")[0]
    ('Noto Sans CJK SC', 'Noto Sans')
    """
    return CHINESE if any(chinese(sign) for text in texts for sign in text) else LATIN


def drawer() -> Chart:
    """What draws pictures here (vl-convert), with the font of the extra beside those of the machine."""
    found = need("vl_convert", EXTRA)
    _bring_font()
    return found


@cache
def _bring_font() -> None:
    """Add the font of the extra, once in a process; it is looked up and never imported."""
    package = find_spec(BROUGHT)
    for folder in () if package is None else package.submodule_search_locations or ():
        need("vl_convert", EXTRA).register_font_directory(str(Path(folder).resolve()))


def use_fonts(folder: str | Path) -> None:
    """Let pictures use the font files in a folder, besides those that are installed; lasts as long as the process."""
    place = Path(folder).resolve()
    if not place.is_dir():
        raise InvalidInput(f"{folder} is not a folder; no font was added. Give the folder that holds the font files.")
    drawer().register_font_directory(str(place))
    _drawn.cache_clear()


def missing(text: str) -> str:
    """The signs of a text that no font here has, each once, in the order of the text."""
    fonts = family([text])
    signs = (sign for sign in dict.fromkeys(text) if not sign.isascii() and not sign.isspace())
    return "".join(sign for sign in signs if _drawn(sign, fonts) == _drawn(NO_SIGN, fonts))


def check_signs(text: str) -> None:
    """Refuse to draw Chinese text where no font here has its signs."""
    absent = "".join(sign for sign in missing(text) if chinese(sign))
    if absent:
        raise MissingExtra(
            f"no font here has the Chinese sign {absent[0]}, one of {len(absent)} that this picture needs; nothing was "
            f"written. Install the font of the plots extra, Noto Sans CJK ({EXTRA}), or name the folder of a font "
            "file that has it: sfumato.reports.plots.use_fonts(folder). SVG and HTML need no font here."
        )


@cache
def _drawn(sign: str, fonts: str) -> bytes:
    """A picture of one sign."""
    text = f'<text x="4" y="24" font-size="20" font-family="{fonts}">{escape(sign)}</text>'
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32">{text}</svg>'
    picture: bytes = drawer().svg_to_png(svg)
    return picture
