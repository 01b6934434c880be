"""The folder of the tour: claimed before anything is written, a key that stays, files that say what they are."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.core.release import Release
from sfumato.core.signature import SigningKey
from sfumato.errors import InvalidInput, MissingExtra

__all__ = ["FILES", "FOLDER", "claim", "key_of", "write"]

FOLDER = "sfumato-demo"
README = """\
This folder was made by `sfumato demo`, which overwrites its own files when it is run again.
The hospital network in it is generated: no real person occurs.
"""
REASON = (
    "a tour of generated data: ε = 1/2 keeps regions apart and shows an error that can be seen. "
    "演示所用数据均由程序生成：ε = 1/2 足以区分各地区，误差也清晰可见。"
)
LEGAL_BASIS = (
    "none is needed: the data are generated, and no real person occurs in them. "
    "无需法律依据：数据为程序生成，不涉及任何真实个人。"
)
FILES = {
    "visits.parquet": "the fictional visits; only the steward would hold such a file",
    "key": "signs releases; only the steward would hold it",
    "key.pub": "public: readers check signatures with it",
    "ili.json": "public: the first release as a certificate",
    "everyone.json": "public: the second",
    "heat.json": "public: the third",
    "ili.svg": "public: the first release as a picture",
    "ili.png": "public: the same picture",
    "report.html": "public: the first release as a page, in English and Chinese",
}


def claim(place: Path) -> None:
    """Take an empty or a new folder, or one that an earlier tour made; any other is refused."""
    mark = place / "README.txt"
    with _writing(place):
        place.mkdir(parents=True, exist_ok=True)
        ours = mark.is_file() and mark.read_text(encoding="utf-8", errors="replace").startswith(README.splitlines()[0])
        if not ours and any(place.iterdir()):
            raise InvalidInput(
                f"the folder {place} holds files that are not from an earlier tour, and the tour overwrites files. "
                "Nothing was written. Choose another folder: sfumato demo --folder NEW"
            )
        mark.write_text(
            README + "\n" + "".join(f"{name:16}{words}\n" for name, words in FILES.items()), encoding="utf-8"
        )


def key_of(place: Path) -> SigningKey:
    """The key of an earlier tour, or a new one; a file that is no key is left alone."""
    path = place / "key"
    if path.exists():
        try:
            key = SigningKey.load(path)
        except InvalidInput:
            raise InvalidInput(
                f"{path} is in the place of the tour's key and cannot be read as one. Nothing was overwritten. "
                "Remove it, or choose another folder: sfumato demo --folder NEW"
            ) from None
    else:
        key = SigningKey.new()
        path.with_name("key.pub").unlink(missing_ok=True)
        key.save(path)
    with _writing(path):
        path.with_name("key.pub").write_text(key.public_text + "\n", encoding="ascii")
    return key


def write(place: Path, *, ili: Release, everyone: Release, heat: Release) -> tuple[tuple[Path, ...], str | None]:
    """Write certificates, picture and report; say why there is no picture if there is none."""
    certificates = {"ili.json": ili, "everyone.json": everyone, "heat.json": heat}
    files = [place / name for name in certificates]
    missing = None
    with _writing(place):
        for file, release in zip(files, certificates.values(), strict=True):
            release.certificate.save(file)
        pictures = (place / "ili.svg", place / "ili.png")
        try:
            from sfumato.reports.plots import save

            chart = ili.plot()
            files += [save(chart, picture) for picture in pictures]
        except MissingExtra as extra:
            missing = str(extra)
            for picture in pictures:
                picture.unlink(missing_ok=True)  # of an earlier tour, which showed other numbers
        files.append(ili.report(place / "report.html", reason=REASON, legal_basis=LEGAL_BASIS))
    return tuple(files), missing


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as wrong:
        raise InvalidInput(
            f"{place} cannot be written: {wrong.strerror or wrong}. Choose another folder: sfumato demo --folder NEW"
        ) from None
