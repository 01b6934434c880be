"""The keyed hash that decides what is kept of a person: the same on every engine, and of nothing but its own parts.

Parts are written one after the other so that different parts never give the same text: text with its length in front
(the last part needs none, being last), everything else with a sign behind it that cannot be part of it. The hash is the
first twelve hexadecimal digits of md5 of the secret and that text. Why md5: docs/decisions/0005-md5-for-limits.md
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.engines.dialect import Dialect, builtin
from sfumato.errors import Unsupported

if TYPE_CHECKING:
    import ibis.expr.types as ir

__all__ = ["DIGITS", "keyed_digits", "keyed_hash", "md5"]

DIGITS = 12  # 48 bits, which DuckDB holds without a pointer; a tie is broken by the caller and harms nobody


def keyed_hash(secret: str, parts: Sequence[ir.Value], dialect: Dialect, *, missing: bool = False) -> ir.Value:
    """A hash of some columns that orders the same, bytewise, on every engine.

    Assumes: no part is null, unless it is said that some may be ``missing``. Public: nothing. The bound on what a
    person contributes holds for every secret and for every function in place of the hash; text that tells its parts
    apart only keeps the choice fair.
    """
    return dialect.ordered(keyed_digits(secret, parts, missing=missing))


def keyed_digits(secret: str, parts: Sequence[ir.Value], *, missing: bool = False) -> ir.Value:
    """The same hash as :data:`DIGITS` hexadecimal digits, which is text on every engine."""
    import ibis

    text: ir.Value = ibis.literal(f"{len(secret)}:{secret}")
    for place, part in enumerate(parts):
        written = _written(part, last=place == len(parts) - 1)
        text = text + (ibis.coalesce(written, "-") if missing else written)
    return md5(text).substr(0, DIGITS)


def md5(text: ir.Value) -> ir.Value:
    """The hexadecimal digits of the md5 of a text, which every engine knows."""
    return builtin("md5", ("string",), "string")(text)


def _written(part: ir.Value, *, last: bool) -> ir.Value:
    """One part as text that tells where it ends and of which type it is."""
    import ibis

    dtype = part.type()
    if dtype.is_string():
        if last:
            return ibis.literal("t") + part
        return ibis.literal("t") + part.length().cast("string") + ":" + part
    if dtype.is_boolean():
        return ibis.ifelse(part, "y", "n")
    if dtype.is_integer():
        return ibis.literal("w") + part.cast("string") + ";"
    if dtype.is_date():
        return ibis.literal("d") + part.cast("string") + ";"
    raise Unsupported(
        f"a column of type {dtype} cannot identify persons or groups: its values do not compare exactly on every "
        "engine. Use text, whole numbers, truth values or dates."
    )
