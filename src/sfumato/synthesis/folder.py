"""A folder for whoever gets synthetic rows: the rows, certificate, schema, data dictionary and explanation."""

import hashlib
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.errors import InvalidInput
from sfumato.synthesis.declared import DeclaredRows
from sfumato.synthesis.dictionary import counted_words, dictionary
from sfumato.synthesis.table_schema import table_schema

if TYPE_CHECKING:
    from sfumato.synthesis.result import SyntheticTable

__all__ = ["CERTIFICATE", "FORMS", "QUALITY", "SCHEMA", "check_folder", "into_folder", "write_folder"]

FORMS = ("parquet", "csv")
SHORT = {"en": "en", "zh": "zh", "zh-Hans": "zh"}
CERTIFICATE, SCHEMA, QUALITY = "certificate.json", "schema.json", "quality.html"


def check_folder(folder: str | Path) -> Path:
    """Refuse a folder that holds anything already, or that lies nowhere; what is there is left alone."""
    target = Path(folder)
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise InvalidInput(f"{target} already exists and is not a folder; nothing was written. Name a new one.")
    if target.is_dir() and any(target.iterdir()):
        raise InvalidInput(f"{target} already exists and is not an empty folder; nothing was written. Name a new one.")
    if not target.absolute().parent.is_dir():
        raise InvalidInput(f"there is no folder {target.absolute().parent}; nothing was written. Make it.")
    return target


def write_folder(
    made: "SyntheticTable",
    folder: str | Path,
    *,
    form: str = "parquet",
    languages: Sequence[str] = ("en", "zh"),
    grounds: tuple[str, str] = ("", ""),
) -> tuple[Path, ...]:
    """Write the files into a new or empty folder: all of them or, where something goes wrong, none.

    Guarantee: every file is a function of the release and of what was declared.
    """
    declared = made.declared
    if declared is None:
        raise InvalidInput("these rows come without the facts that were declared of them; nothing was written.")

    def fill(place: Path, languages: Sequence[str]) -> list[str]:
        return _fill(place, made, declared, form, languages, grounds)

    return into_folder(folder, form, languages, fill)


def into_folder(
    folder: str | Path, form: str, languages: Sequence[str], fill: Callable[[Path, Sequence[str]], list[str]]
) -> tuple[Path, ...]:
    """Have a new or empty folder filled: with all files or, where something goes wrong, with none; their paths.

    ``fill`` writes into the folder that it is handed, in these languages by their short names, and returns the names.
    """
    target = check_folder(folder)
    if not isinstance(form, str) or form not in FORMS:
        raise InvalidInput(f"rows are written as {' or '.join(FORMS)}, and not as {form!r}; nothing was written.")
    listed = isinstance(languages, (list, tuple)) and all(isinstance(each, str) for each in languages)
    if not listed or not languages or any(each not in SHORT for each in languages):
        raise InvalidInput("languages is a list of en and zh, such as ['en']; nothing was written.")
    try:
        with tempfile.TemporaryDirectory(dir=target.absolute().parent, prefix=".sfumato-") as aside:
            place = Path(aside) / "made"
            place.mkdir()
            names = fill(place, list(dict.fromkeys(SHORT[each] for each in languages)))
            if target.is_dir():
                target.rmdir()  # an empty one; whatever was put there meanwhile is not removed
            place.rename(target)
    except OSError as wrong:
        raise InvalidInput(
            f"{target} cannot be written: {wrong.strerror or type(wrong).__name__}. Nothing was written. Choose "
            "another folder."
        ) from None
    return tuple(target / name for name in names)


def _fill(
    place: Path,
    made: "SyntheticTable",
    declared: DeclaredRows,
    form: str,
    languages: Sequence[str],
    grounds: tuple[str, str],
) -> list[str]:
    """Write each file; their names, the rows first."""
    rows = f"rows.{form}"
    written = made.to_csv(place / rows) if form == "csv" else made.to_parquet(place / rows)
    made.release.certificate.save(place / CERTIFICATE)
    with written.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    schema = table_schema(made, declared, path=rows, form=form, size=written.stat().st_size, digest=digest)
    text = json.dumps(schema, indent=1, ensure_ascii=False, allow_nan=False)
    (place / SCHEMA).write_text(text + "\n", encoding="utf-8")
    names = [rows, CERTIFICATE, SCHEMA]
    for number, release in enumerate(made.releases[:-1], 1):
        names.append(f"certificate.before-{number}.json")
        release.certificate.save(place / names[-1])
    made.report(place / QUALITY, languages=languages, reason=grounds[0], legal_basis=grounds[1])
    names.append(QUALITY)
    for language in languages:
        columns, explanation = f"dictionary.{language}.md", f"explanation.{language}.txt"
        beside = {"explanation": explanation, "schema": SCHEMA, "certificate": CERTIFICATE}
        words = dictionary(made, declared, language, file=rows, form=form, beside=beside)
        (place / columns).write_text(words, encoding="utf-8")
        words = "\n\n".join([made.explain(language), *counted_words(made, declared, language)])
        (place / explanation).write_text(words + "\n", encoding="utf-8")
        names += [columns, explanation]
    return names
