"""All words that synthetic rows can be described with."""

import tomllib
from importlib import resources


def every_text(language: str) -> list[str]:
    """Every message of the package in a language."""
    name = {"en": "en", "zh": "zh-Hans"}[language]
    file = resources.files("sfumato.synthesis") / "messages" / f"synthesis.{name}.toml"
    read = tomllib.loads(file.read_text(encoding="utf-8"))
    return [text for part in read.values() for text in part.values()]
