"""Rules of accessibility for a page in a real browser, as axe has them, worked out from what the browser shows."""

from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["broken_rules", "unreached"]


@cache
def _rules(name: str) -> str:
    text = Path(__file__).with_name(name).read_text("utf-8")
    return text[text.index("() =>") :]


def broken_rules(page: Any) -> list[str]:
    """What the page that is open breaks, each with its rule; nothing where all is well."""
    return list(page.evaluate(_rules("accessible.js")))


def unreached(page: Any) -> list[str]:
    """What is wrong for somebody with a keyboard: no focus that is seen, or a part that cannot be reached."""
    page.keyboard.press("Tab")  # from here on the browser shows the focus as it does to whoever uses the keyboard
    return list(page.evaluate(_rules("reached.js")))
