"""Write the bill of materials, ``sbom.cdx.json`` (CycloneDX 1.6), and the licences of what Sfumato needs.

Names and versions are those of the lock files, licences those that the installed packages state. A package whose
licence is not on the list below stops the script: read its licence, then decide.

``python scripts/sbom.py`` writes the file and the table of ``docs/reference/packaging.md``.
"""

import hashlib
import json
import re
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCKS = ("requirements.lock", "requirements-torch-processors.lock")
FILE = ROOT / "sbom.cdx.json"
PAGE = ROOT / "docs" / "reference" / "packaging.md"
MADE = re.compile(r"(?<=<!-- made by scripts/sbom.py -->\n\n).*?(?=\n<!-- until here -->)", re.DOTALL)
PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)(?: *; *([^\\\n]+))?", re.MULTILINE)
ALLOWED = ("Apache", "BSD", "MIT", "ISC", "PSF", "Python", "MPL", "Zlib", "Unlicense", "OFL", "HPND", "CC0", "0BSD")
"""Words of licences that may stand in a dependency; the LGPL is allowed where its package is named below."""
NAMED = {
    "psycopg": "LGPL-3.0-only",
    "psycopg-binary": "LGPL-3.0-only",
    "igraph": "GPL-2.0-or-later",
    "text-unidecode": "Artistic-1.0-Perl OR GPL-1.0-or-later",
}
"""Stricter licences that were read: psycopg is called and not changed; the others are tools of the tests alone."""
ONLY_DEVELOPERS = {"igraph", "text-unidecode"}


def plain(name: str) -> str:
    """The name of a package as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked() -> dict[str, str]:
    """Every locked package with its version; a local part such as +cpu is left out.

    Of a package that is locked for several Pythons the version is that of the running one.
    """
    return dict(sorted({name: version for name, version, _ in sorted(_entries(), key=lambda one: one[2])}.items()))


def elsewhere() -> set[str]:
    """The locked packages that only another platform or another Python needs."""
    found = _entries()
    return {name for name, _, here in found if not here} - {name for name, _, here in found if here}


def needed(requirements: Iterable[str]) -> set[str]:
    """What these requirements bring with them, as the installed packages state it; absent packages bring nothing."""
    found: set[str] = set()
    waiting = [_parts(one) for one in requirements]
    seen: set[tuple[str, str]] = set()
    while waiting:
        name, extras = waiting.pop()
        for extra in ("", *extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            found.add(name)
            waiting += [_parts(one) for one in _requires(name, extra)]
    return found


def groups() -> dict[str, set[str]]:
    """The packages of a bare installation under ``base``, and what each extra adds."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    base = needed(project["dependencies"]) & set(locked())
    extras = project["optional-dependencies"]
    return {"base": base} | {name: (needed(said) & set(locked())) - base for name, said in extras.items()}


def licence(name: str) -> str:
    """The licence that an installed package states, or ``""`` where it is not installed."""
    if name in NAMED:
        return NAMED[name]
    try:
        said = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return ""
    classified = [one.rpartition(" :: ")[2] for one in said.get_all("Classifier", []) if one.startswith("License :: ")]
    short = (said.get("License") or "").strip()
    named = said.get("License-Expression") or (short if 0 < len(short) < 60 and short != "UNKNOWN" else "")
    return str(named or ", ".join(one for one in classified if one != "OSI Approved") or "not stated")


def refused() -> list[str]:
    """Installed packages whose licence is not on the list, each with it."""
    stated = {name: licence(name) for name in locked()}
    return [
        f"{name}: {said}"
        for name, said in stated.items()
        if said and name not in NAMED and not any(word.lower() in said.lower() for word in ALLOWED)
    ]


def bill() -> dict[str, object]:
    """The bill of materials; it holds no time, so that the same lock gives the same file."""
    versions, parts = locked(), groups()
    digest = hashlib.sha256("".join((ROOT / name).read_text("utf-8") for name in LOCKS).encode()).hexdigest()
    version = re.search(
        r'"(.+)"', (ROOT / "src" / "sfumato" / "version.py").read_text("utf-8").partition("__version__")[2]
    )
    own = {"type": "library", "name": "sfumato", "version": version[1] if version else ""}
    components = []
    for name, number in versions.items():
        used = [group for group, names in parts.items() if name in names]
        components.append(
            {
                "type": "library",
                "name": name,
                "version": number,
                "purl": f"pkg:pypi/{name}@{number}",
                "scope": "required" if "base" in used else "optional",
                "licenses": [{"license": {"name": licence(name) or "not stated"}}],
                "properties": [{"name": "sfumato:needed-by", "value": ", ".join(used) or "other platforms"}],
            }
        )
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": own | {"licenses": [{"license": {"id": "Apache-2.0"}}]},
            "properties": [{"name": "sfumato:locks-sha256", "value": digest}],
        },
        "components": components,
    }


def table() -> str:
    """Packages of a bare installation and of each extra, with their licences."""
    versions, lines = locked(), ["| part | package | version | licence |", "|---|---|---|---|"]
    for group, names in groups().items():
        if group not in ("docs", "dev"):
            lines += [
                f"| {group} | {name} | {versions[name]} | {licence(name) or 'absent'} |" for name in sorted(names)
            ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write both; 1 where a licence has to be read first."""
    for one in (found := refused()):
        print(f"a licence to be read first: {one}")
    if found:
        return 1
    FILE.write_text(json.dumps(bill(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(MADE.sub(lambda _: table(), PAGE.read_text("utf-8")), encoding="utf-8")
    return 0


def _entries() -> list[tuple[str, str, bool]]:
    from packaging.markers import Marker

    text = "\n".join((ROOT / name).read_text("utf-8") for name in LOCKS)
    return [
        (plain(name), version.partition("+")[0], not marker or Marker(marker.strip()).evaluate())
        for name, version, marker in PINNED.findall(text)
    ]


def _parts(requirement: str) -> tuple[str, tuple[str, ...]]:
    found = re.match(r"([\w.-]+)\s*(?:\[([\w\s,.-]+)\])?", requirement)
    if found is None:
        raise ValueError(f"{requirement!r} is no requirement; nothing was written.")
    return plain(found[1]), tuple(one.strip() for one in (found[2] or "").split(",") if one.strip())


def _requires(name: str, extra: str) -> list[str]:
    from packaging.requirements import Requirement

    try:
        said = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    read = [Requirement(one) for one in said]
    return [
        f"{one.name}[{','.join(one.extras)}]" if one.extras else one.name
        for one in read
        if one.marker is None or (one.marker.evaluate({"extra": extra}) and (not extra or "extra" in str(one.marker)))
    ]


if __name__ == "__main__":
    sys.exit(main())
