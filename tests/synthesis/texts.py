"""All words that synthetic rows can be described with."""

import tomllib
from importlib import resources


def every_text(language: str) -> list[str]:
    """Every message of the package in a language."""
    name = {"en": "en", "zh": "zh-Hans"}[language]
    files = [
        resources.files("sfumato.synthesis") / "messages" / f"{what}.{name}.toml" for what in ("synthesis", "related")
    ]
    read = [tomllib.loads(file.read_text(encoding="utf-8")) for file in files]
    return [text for each in read for part in each.values() for text in part.values()]
