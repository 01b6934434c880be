"""A page of pictures with words beside them, in the style of the page of a release; it has no script and loads nothing.

It is for what no release stands behind, such as demonstrations on invented people.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.errors import InvalidInput
from sfumato.reports import page as release_page
from sfumato.reports.catalogue import message
from sfumato.reports.drawings import Drawing
from sfumato.reports.rendering import render

__all__ = ["GalleryPart", "ShownPicture", "gallery"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPicture:
    """A picture, or None where the ``plots`` extra is missing, under its title and after its words."""

    name: str
    title: str
    paragraphs: tuple[str, ...]
    drawing: Drawing | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GalleryPart:
    """What the page says in one language, as plain text; the template escapes it."""

    language: str
    kind: str
    title: str
    lead: tuple[str, ...]
    shown: tuple[ShownPicture, ...]

    def say(self, identifier: str) -> str:
        """A message in the language of this part."""
        return message(self.language, identifier)


def gallery(parts: Sequence[GalleryPart]) -> str:
    """Lay out the page, a part for each language."""
    if not parts:
        raise InvalidInput("a page needs a language at least; nothing was written.")
    languages = tuple(part.language for part in parts)
    return render(
        "gallery.html",
        parts=list(parts),
        style=release_page.page_style(),
        switch=release_page.language_switch(languages),
        switched=len(languages) > 1,
    )
