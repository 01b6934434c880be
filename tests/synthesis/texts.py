"""All words that synthetic rows can be described with."""

import tomllib
from importlib import resources


def every_text(language: str) -> list[str]:
    """Every message of the package in a language."""
    name = {"en": "en", "zh": "zh-Hans"}[language]
    folder = resources.files("sfumato.synthesis") / "messages"
    files = [file for file in folder.iterdir() if file.name.endswith(f".{name}.toml")]
    read = [tomllib.loads(file.read_text(encoding="utf-8")) for file in files]
    return [text for document in read for part in document.values() for text in part.values()]
