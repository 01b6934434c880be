"""What all kinds of files have in common: they are read by the embedded engine, from a list of places."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.engines.expressions import Type
from sfumato.engines.operands import DTYPES
from sfumato.engines.sources.cells import CellFormat, unreadable_name
from sfumato.engines.sources.embedded import PLACE, embedded
from sfumato.engines.sources.file_lists import FileList
from sfumato.errors import InvalidInput

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    from ibis.backends import BaseBackend

__all__ = ["DeclaredFiles", "EmbeddedFiles"]


@dataclass(slots=True, kw_only=True, eq=False)
class EmbeddedFiles:
    """One table in files of one kind."""

    files: FileList
    engine: str = "DuckDB"

    @property
    def label(self) -> str:
        """The name of the file or folder, without the way to it."""
        return self.files.label

    def state(self) -> object:
        """Which files there are, and when they were written."""
        return self.files.state()

    def stored(self, engine: BaseBackend) -> Iterable[Hashable]:
        """Each of its files."""
        return self.files.stored()

    def place(self) -> Hashable:
        """Beside other files and frames."""
        return PLACE

    def session(self) -> AbstractContextManager[BaseBackend]:
        """The embedded engine."""
        return embedded()

    def differ(self) -> InvalidInput:
        """What is wrong where the files do not have the same columns."""
        return InvalidInput(
            f"the files of {self.label} do not all have the same columns; nothing was read and nothing was spent. "
            "Declare files of one kind."
        )


@dataclass(slots=True, kw_only=True, eq=False)
class DeclaredFiles(EmbeddedFiles):
    """Files that do not state their types, which are declared, and with them how ``cells`` are written."""

    types: dict[str, Type]
    cells: Mapping[str, CellFormat] | None = None

    def __post_init__(self) -> None:
        taken = {name.casefold() for name in self.types}
        twice = next((name for name in self.virtual if name.casefold() in taken), None)
        if twice is not None:
            raise InvalidInput(
                f"a column is called {twice!r}, which is how values are called that cannot be read; nothing was done. "
                "Give the column another name."
            )

    @property
    def virtual(self) -> dict[str, Type]:
        """The truths that say where a cell could not be read: one for each column but texts, which can all be read.

        They are offered where the ``cells`` are declared, as a table of a vault does.
        """
        if self.cells is None:
            return {}
        return {unreadable_name(name): Type.TRUTH for name, kind in self.types.items() if kind is not Type.TEXT}

    def declared(self) -> dict[str, dt.DataType]:
        """What was declared."""
        import ibis

        return {name: ibis.dtype(DTYPES[kind]) for name, kind in (self.types | self.virtual).items()}
