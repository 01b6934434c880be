"""Arrow files (Feather among them), which state their types; read into the embedded engine for one release."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.engines.sources.columns import projected
from sfumato.engines.sources.embedded_files import EmbeddedFiles
from sfumato.engines.sources.frames import held_types, usable
from sfumato.engines.sources.origin import Settle

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    import pyarrow as pa
    from ibis.backends import BaseBackend

__all__ = ["ARROW", "ArrowFiles"]

ARROW = (".feather", ".arrow", ".ipc")


@dataclass(slots=True, kw_only=True, eq=False)
class ArrowFiles(EmbeddedFiles):
    """One table in Arrow files of the same columns."""

    advice: str = "Check that it is a whole Arrow file (Feather, version 2)."

    def held(self, engine: BaseBackend) -> dict[str, dt.DataType]:
        """Read from the schema that each file states."""
        return held_types(self._schema().empty_table(), engine)

    def table(self, engine: BaseBackend, settle: Settle, until: ExitStack) -> ir.Table:
        """The rows, mapped into memory for the length of a release."""
        import pyarrow as pa

        types = settle(self.held(engine))
        schema = self._schema()
        opened = [until.enter_context(pa.memory_map(str(file))) for file in self.files.checked()]
        rows = usable(pa.concat_tables([pa.ipc.open_file(file).read_all() for file in opened]), like=schema)
        name = f"arrow_{secrets.token_hex(8)}"
        engine.con.register(name, rows)
        until.callback(engine.con.unregister, name)
        return projected(engine.table(name), types)

    def _schema(self) -> pa.Schema:
        first, *others = self.files.checked()
        schema = _stated(first)
        if any(_stated(other) != schema for other in others):
            raise self.differ()
        return schema


def _stated(file: Path) -> pa.Schema:
    import pyarrow as pa

    with pa.memory_map(str(file)) as held:
        return pa.ipc.open_file(held).schema
