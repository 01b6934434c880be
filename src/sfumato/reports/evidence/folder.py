"""A pack on disk: JSON, Markdown rendered from it, metadata, certificates, receipts, and the schemas that hold them."""

import json
from pathlib import Path

from sfumato.core.documents import Json
from sfumato.errors import InvalidInput
from sfumato.reports.evidence.markdown import rendered
from sfumato.reports.evidence.pack import Pack
from sfumato.reports.evidence.shape import schema

__all__ = ["write"]


def write(pack: Pack, folder: str | Path) -> tuple[Path, ...]:
    """Write a pack into an empty folder, made if it is not there; anything that lies in it already is left alone.

    A draft has no ``fair.jsonld`` and no ``registry.json``: these exist only to be published.
    """
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InvalidInput(f"{target} already exists and is not an empty folder; nothing was written. Name a new one.")
    public = {"fair.jsonld": pack.fair, "registry.json": pack.registry}
    texts = {
        "evidence.json": _json(pack.evidence),
        "evidence.md": rendered(pack.evidence),
        **{name: _json(document) for name, document in public.items() if document is not None},
        "head.json": pack.head + "\n",
        **{f"schemas/{name}.schema.json": _json(schema(name)) for name in ("evidence", "fair", "registry")},
        **pack.certificates,
        **pack.receipts,
    }
    for name, text in texts.items():
        file = target / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tuple(target / name for name in texts)


def _json(document: dict[str, Json]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
