"""What a notebook shows of a handle: a few public facts in a small table, escaped, with nothing to load."""

from collections.abc import Iterable
from html import escape

__all__ = ["card"]


def card(title: str, facts: Iterable[tuple[str, str]], note: str = "") -> str:
    """A title, facts by their names, and a note below them, as HTML; whoever calls hands over public words alone.

    >>> card("Vault “a<b>”", [("left", "ε = 1")])
    '<div><strong>Vault “a&lt;b&gt;”</strong><table><tbody><tr><th>left</th><td>ε = 1</td></tr></tbody></table></div>'
    """
    rows = "".join(f"<tr><th>{_text(name)}</th><td>{_text(said)}</td></tr>" for name, said in facts)
    table = f"<table><tbody>{rows}</tbody></table>" if rows else ""
    below = f"<p>{_text(note)}</p>" if note else ""
    return f"<div><strong>{_text(title)}</strong>{table}{below}</div>"


def _text(words: str) -> str:
    """Without markup, and with signs that would turn or hide other text spelt out; a line break becomes a blank."""
    plain = " ".join(words.split("\n"))
    return escape("".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in plain))
