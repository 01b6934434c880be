"""The tour shows every picture that its script takes, each described, and none too large for a page."""

import re
from pathlib import Path

from tests.docs.tour import FOLDER, MOST_BYTES, PICTURES

PAGE = Path(__file__).parents[2] / "docs" / "tour.md"


def test_every_picture_is_shown_with_its_description_and_is_small() -> None:
    shown = re.findall(r"!\[([^\]]{30,})\]\(images/tour/([\w-]+)\.png\)", PAGE.read_text("utf-8"))
    assert {name for _, name in shown} == {picture.name for picture in PICTURES}
    assert {file.stem for file in FOLDER.iterdir()} == {picture.name for picture in PICTURES}
    for file in FOLDER.iterdir():
        head = file.read_bytes()
        assert head.startswith(b"\x89PNG"), file.name
        assert len(head) <= MOST_BYTES, file.name
