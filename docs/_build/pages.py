"""What the site makes of pages as they are kept: claims by area, folded sections, a gallery, Chinese marked as such."""

import re
from typing import Any

from mkdocs.structure.files import File, Files

CLAIMS, GALLERIES = "claims.md", ("gallery.md", "tour.md")
AREA = re.compile(r"^## (?!Counts$)(.+)$", re.MULTILINE)
BESIDE = ("proofs/", "decisions/", "claims")
"""Pages that the search finds after all others: they answer how something is known, and hardly ever how it is done."""
KEPT = re.compile(
    r"^\| (\w\d?-\d\d) \| (.*?)<br>\*Check:\* (.*?) \| (\w+) \| (.*?) \| (.*?) \| (\w+) \|$", re.MULTILINE
)
"""A row of the table of claims, whose check and tests are folded up on the site."""
FOLDED = {
    "explanation/benchmarks.md": 2,
    "explanation/threat-model.md": 2,
    "explanation/audited.md": 0,
    "explanation/semantics-of-predicates.md": 2,
    "explanation/synthesis-quality.md": 2,
    "explanation/accuracy.md": 2,
    "explanation/plans-and-policies.md": 2,
    "how-to/train-a-model.md": 2,
    "how-to/sql.md": 2,
    "how-to/plots-and-reports.md": 1,
    "how-to/paradigms.md": 1,
    "how-to/local-model.md": 2,
    "how-to/engines.md": 2,
    "how-to/run-code-on-blocks.md": 3,
    "how-to/serve.md": 8,
    "how-to/streams.md": 3,
    "sharp-edges/index.md": 0,
    "tutorial/steward.md": 4,
    "zh/steward.md": 4,
    "tutorial/meters-and-messages.md": 1,
    "tutorial/office-and-city.md": 1,
    "tutorial/ward-contacts.md": 5,
    "proofs/paradigms.md": 1,
    "proofs/regression.md": 1,
    "proofs/pld.md": 2,
}
"""Pages that would be longer than 6,000 pixels, and how many of their sections stand open; others open on a click."""
SECTION = re.compile(r'(<h2 id=.*?</h2>)(.*?)(?=<h2 id=|<hr>\s*<aside|<aside class="md-source|</article>)', re.DOTALL)
CHINESE = re.compile(r"^(?:zh/|course/zh/|.*\.zh-CN\.md$)")


def split(text: str) -> dict[str, str]:
    """The page of claims as one short page and a page for each area, by their names in ``docs``."""
    head, *rest = AREA.split(text)
    areas = dict(zip(rest[::2], rest[1::2], strict=True))
    names = {area: f"claims-{re.sub(r'[^a-z]+', '-', area.lower())}.md" for area in areas}
    links = "\n".join(f"- [{area}]({names[area]})" for area in areas)
    pages = {CLAIMS: f"{head}## By area\n\n{links}\n"}
    for area, rows in areas.items():
        kept = KEPT.sub(_folded_row, rows).replace(
            "| owner | tests | result |\n|---|---|---|---|---|---|", "| result |\n|---|---|---|---|"
        )
        pages[names[area]] = f"# Claims: {area}\n\nWhat the columns mean, and all areas: [claims]({CLAIMS}).\n{kept}"
    return pages


def _folded_row(row: re.Match[str]) -> str:
    number, statement, check, verdict, owner, tests, result = row.groups()
    more = f"<details><summary>check and tests</summary>{check}<br>({owner})<br>{tests}</details>"
    return f"| {number} | {statement}{more} | {verdict} | {result} |"


def on_files(files: Files, *, config: Any) -> Files:
    """Put the pages of the areas in the place of the one page."""
    whole = files.get_file_from_path(CLAIMS)
    if whole is None:
        raise ValueError(f"docs/{CLAIMS} is missing; run make claims.")
    text = whole.content_string
    files.remove(whole)
    for name, part in split(text).items():
        files.append(File.generated(config, name, content=part))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Rank what is beside the tasks of readers lower in the search."""
    if page.file.src_uri.startswith(BESIDE):
        page.meta.setdefault("search", {"boost": 0.2})
    return markdown


def on_post_page(output: str, *, page: Any, **_: Any) -> str:
    """State the language of a Chinese page, for fonts and voices; fold up sections; lay out galleries."""
    name = page.file.src_uri
    if CHINESE.match(name):
        output = output.replace('<html lang="en"', '<html lang="zh-Hans"', 1)
    if name in GALLERIES:
        return SECTION.sub(r'<section class="picture">\1\2</section>', output)
    return folded(output, FOLDED[name]) if name in FOLDED else output


def folded(page: str, stay_open: int) -> str:
    """A page whose sections but the first ones are folded up; a link to one, or printing, opens it."""
    count = 0

    def fold(section: re.Match[str]) -> str:
        nonlocal count
        count += 1
        if count <= stay_open:
            return section[0]
        return f'<details class="fold"><summary>{section[1]}</summary>{section[2]}</details>'

    return SECTION.sub(fold, page)
