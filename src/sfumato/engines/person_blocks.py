"""Rows beside the keyed hash of their person, for what no engine can add up. Sensitive: every row."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.engines.keyed_hash import keyed_digits
from sfumato.engines.sources import Source

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["rows_by_person"]


def rows_by_person(source: Source, columns: Sequence[str], *, person: str, secret: str) -> "tuple[pa.Table, pa.Array]":
    """These columns of all rows that name a person, and beside each row the keyed hash of who that is, as text.

    Guarantee: the hash is a function of the person and of the secret alone. Rows come in no particular order. Called
    after the charge and never shown.
    """
    with source.opened() as table:
        known = table.filter(table[person].notnull())
        prefix = "person_hash"
        while any(name.casefold() == prefix for name in known.columns):
            prefix += "_"
        hashed = known.mutate(**{prefix: keyed_digits(secret, [known[person]])})
        found = hashed.select(*dict.fromkeys(columns), prefix).to_pyarrow()
    return found.drop_columns([prefix]), found[prefix].combine_chunks()
