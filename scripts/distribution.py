"""Build the wheel and the sdist, the same bytes from the same commit: ``python scripts/distribution.py FOLDER``.

Times in both are that of the commit (or SOURCE_DATE_EPOCH), owners and modes are fixed and entries sorted. Nothing is
fetched: what builds is the setuptools that is installed.
"""

import contextlib
import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TAKEN = (
    "src",
    "pyproject.toml",
    "MANIFEST.in",
    "README.md",
    "README.zh-CN.md",
    "LICENSE",
    "CHANGELOG.md",
    "SECURITY.md",
)


def epoch() -> int:
    """The time that everything gets: SOURCE_DATE_EPOCH, or that of the last commit."""
    said = os.environ.get("SOURCE_DATE_EPOCH")
    if said is None:
        command = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(said)


def build(folder: Path) -> tuple[Path, Path]:
    """Build both into a folder, from a copy of what belongs in them, and return wheel and sdist."""
    time = epoch()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="sfumato-") as place:
        copy = Path(place, "copy")
        copy.mkdir()
        for name in TAKEN:
            source = ROOT / name
            if source.is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyc")
                shutil.copytree(source, copy / name, ignore=ignored)
            else:
                shutil.copy(source, copy / name)
        code = (
            "import sys; from setuptools import build_meta as b; to = sys.argv[1]; b.build_wheel(to); b.build_sdist(to)"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, place],
            cwd=copy,
            env=os.environ | {"SOURCE_DATE_EPOCH": str(time)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"setuptools did not build: {done.stderr[-2000:]}")
        wheel, sdist = next(Path(place).glob("*.whl")), next(Path(place).glob("*.tar.gz"))
        made = folder / wheel.name, folder / sdist.name
        shutil.copy(wheel, made[0])
        made[1].write_bytes(_repacked(sdist, time))
    return made


def _repacked(sdist: Path, time: int) -> bytes:
    packed = io.BytesIO()
    with (
        tarfile.open(sdist) as old,
        contextlib.closing(tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT)) as new,
    ):
        for entry in sorted(old.getmembers(), key=lambda one: one.name):
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname, entry.pax_headers = time, 0, 0, "", "", {}
            entry.mode = 0o755 if entry.isdir() else 0o644
            new.addfile(entry, old.extractfile(entry) if entry.isfile() else None)
    return gzip.compress(packed.getvalue(), mtime=time)


def main() -> int:
    """Build, and say what was made and how large it is."""
    for path in build(Path(sys.argv[1] if len(sys.argv) > 1 else "dist")):
        print(f"{path}  {path.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
