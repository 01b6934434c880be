"""The validation report in both languages, and as PDF; ``python -m tests.docs.validation`` writes all four files.

What is written by hand stays. The tables are made from the catalogue of claims with their results (``docs/claims.md``),
the deliberate faults, the proofs, and the results of the audits. A PDF needs a browser; ``--pages`` leaves it out.
"""

import hashlib
import re
import sys
from collections import Counter
from html import escape
from pathlib import Path

from sfumato.reports.browser import print_pdf
from sfumato.version import __version__
from tests.alpha import LIMIT
from tests.claims import breaks as breaking
from tests.claims.breaks import BREAKS
from tests.claims.catalogue import load
from tests.docs import attacks
from tests.docs.training import DOCS, REPOSITORY

PAGES = {"en": DOCS / "validation.md", "zh": DOCS / "validation.zh-CN.md"}
MADE = re.compile(r"<!-- made: (\w+) -->.*?<!-- end -->", re.DOTALL)
RESULT = re.compile(r"^\| (\w\d?-\d\d) \|.*\| (passes|fails|open) \|$", re.MULTILINE)
VERDICTS = ("true", "assuming", "corrected", "policy")
AREAS = {
    "Core and mechanisms": "基础与机制",
    "Accounting": "隐私核算",
    "Tables and inference": "表格与推断",
    "Graphs": "图",
    "Streams and local model": "数据流与本地模型",
    "Learning": "学习",
    "Federated": "跨机构",
    "Synthesis": "合成数据",
    "Audit and attacks": "审计与攻击",
    "Governance and explanation": "治理与说明",
    "Genomics and research environment": "基因组学与研究环境",
}
KINDS = {
    "Tables": "表格",
    "Streams": "数据流",
    "Graphs": "图",
    "The local model": "本地模型",
    "Synthetic rows": "合成数据",
    "Training": "训练",
}
STYLE = """
@page { size: A4; margin: 18mm 16mm; }
body { font: 10pt/1.5 "Noto Sans", "Noto Sans CJK SC", system-ui, sans-serif; color: #16191d; }
h1, h2 { color: #1f3a5f; line-height: 1.25; break-after: avoid; }
h1 { font-size: 20pt; } h2 { font-size: 13pt; margin-top: 1.6em; }
a { color: inherit; text-decoration: none; }
table { border-collapse: collapse; width: 100%; margin: .8em 0; }
th, td { border: 0; border-bottom: .5pt solid #b9c4d2; padding: 3pt 6pt; text-align: left; vertical-align: top; }
tr { break-inside: avoid; }
:lang(zh) em { font-style: normal; font-weight: 600; }
td:empty { min-width: 40%; height: 2.4em; }
code, pre { font: 9pt "Noto Sans Mono", monospace; } pre { background: #f4f6f9; padding: 6pt; }
"""


def results() -> dict[str, str]:
    """Of each claim, how it stands after its tests ran, as the table of claims says."""
    return dict(RESULT.findall((DOCS / "claims.md").read_text("utf-8")))


def page(language: str) -> str:
    """One page, with the parts from the results made anew."""
    text = PAGES[language].read_text("utf-8")
    parts = {name: make(language) for name, make in MAKERS.items()}
    if sorted(MADE.findall(text)) != sorted(parts):
        raise ValueError(f"{PAGES[language].name} needs one place for each of {', '.join(parts)}; nothing was written.")
    return MADE.sub(lambda found: _placed(found[1], parts[found[1]]), text)


def _placed(name: str, made: str) -> str:
    around = "\n\n" if made.endswith("\n") else ""  # a sentence stays in its line
    return f"<!-- made: {name} -->{around}{made.strip()}{around}<!-- end -->"


def digest(language: str) -> str:
    """What the title of a PDF holds of the page that it was printed from."""
    return hashlib.sha256(PAGES[language].read_bytes()).hexdigest()[:12]


def document(language: str) -> str:
    """The page as HTML that needs nothing else; comments and the addresses of other pages are left out."""
    import markdown

    text = re.sub(r"<!--.*?-->", "", PAGES[language].read_text("utf-8"), flags=re.DOTALL)
    body = markdown.markdown(text, extensions=["tables", "fenced_code", "attr_list", "md_in_html"])
    body = re.sub(r'<a href="(?!#|https?:)[^"]*">(.*?)</a>', r"\1", body)
    title = f"Sfumato {__version__} validation {digest(language)}"
    return (
        f'<!doctype html><html lang="{"zh-Hans" if language == "zh" else "en"}"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>{body}</body></html>"
    )


def _short(language: str) -> str:
    claims, held, found = load().claims, results(), attacks.measured()
    passing = sum(held.get(number) == "passes" for number in claims)
    assumed = sum(claim.verdict == "assuming" for claim in claims.values())
    honest, broken = ([row for row in found if (row["flaw"] is None) is whole] for whole in (True, False))
    refuted, caught = (sum(bool(row["refuted"]) for row in rows) for rows in (honest, broken))
    figures = (len(_proofs()), passing, len(claims), len(honest), refuted, len(broken), caught, assumed)
    lines = {
        "en": (
            "| | |",
            "|---|---|",
            f"| version | {__version__} |",
            "| guaranteed | differential privacy of every release, for a stated unit, relation, ε and δ |",
            "| proven | {0} pages of proofs |",
            "| tested | {1} of {2} claims pass |",
            "| attacked | {3} ways out: {4} refuted; {5} deliberately broken copies: {6} refuted |",
            "| assumed | the table [below](#what-is-assumed), and what {7} of the claims name |",
        ),
        "zh": (
            "| | |",
            "|---|---|",
            f"| 版本 | {__version__} |",
            "| 保证 | 每次发布均满足差分隐私，并写明保护对象、相邻关系、ε 与 δ |",
            "| 证明 | {0} 页证明 |",
            "| 测试 | {2} 项声明中 {1} 项通过 |",
            "| 攻击 | {3} 个出口，{4} 个被推翻；{5} 个故意做坏的副本，{6} 个被推翻 |",
            "| 假定 | 见[下表](#assumed)，另有 {7} 项声明自带条件 |",
        ),
    }
    return "\n".join(lines[language]).format(*figures) + "\n"


def _proofs() -> list[tuple[str, Path]]:
    found = [(path.read_text("utf-8").partition("\n")[0].lstrip("# "), path) for path in (DOCS / "proofs").glob("*.md")]
    return sorted(found, key=lambda one: one[0].lower())


def _proof_list(language: str) -> str:
    links = [f"[{title}](proofs/{path.name})" for title, path in _proofs()]
    return {"en": ", ".join(links) + ".\n", "zh": "、".join(links) + "。\n"}[language]


def _claims(language: str) -> str:
    claims, held = load().claims.values(), results()
    head = {
        "en": ("area", "claims", "passing", "failing", "open", "true", "assuming", "corrected", "policy"),
        "zh": ("领域", "声明", "通过", "未通过", "未测试", "成立", "有条件", "已更正", "规则"),
    }[language]
    lines = [f"| {' | '.join(head)} |", "|---" + "|---:" * (len(head) - 1) + "|"]
    areas = list(dict.fromkeys(claim.area for claim in claims))
    for area in (*areas, None):
        mine = [claim for claim in claims if area in (None, claim.area)]
        ends = Counter(held.get(claim.number, "open") for claim in mine)
        said = Counter(claim.verdict for claim in mine)
        name = {"en": area or "all", "zh": AREAS[area] if area else "合计"}[language]
        figures = (len(mine), *(ends[end] for end in ("passes", "fails", "open")), *(said[one] for one in VERDICTS))
        lines.append(f"| {name} | {' | '.join(map(str, figures))} |")
    return "\n".join(lines) + "\n"


def _faults(language: str) -> str:
    listed = [each for each in BREAKS if each.replace.__module__ == breaking.__name__]  # examples of docs add others
    watched = {number for each in listed for number in each.claims}
    figures = (len(listed), len(watched & set(load().claims)), len(load().claims), f"{LIMIT:g}")
    words = {
        "en": "The product is broken on purpose in {0} ways; for each, a test of each claim that it breaks has to "
        "fail. {1} of {2} claims are tried so. All statistical tests together fail on a correct product with a "
        "probability of at most {3} in a run.",
        "zh": "软件被故意以 {0} 种方式做坏；每一种都必须使其所违反的每项声明有测试不通过。"
        "{2} 项声明中有 {1} 项经此检验。软件无误时，全部统计检验合计在一次运行中误报的概率不超过 {3}。",
    }
    return words[language].format(*figures)


def _attacks(language: str) -> str:
    made = attacks.MADE.findall(attacks.PAGE.read_text("utf-8"))[0]
    lines = [line for line in made.splitlines() if line.startswith("|")]
    if language == "zh":
        lines[0] = "| 种类 | 出口 | 被推翻 | 做坏的副本 | 被推翻 | 已证明的 ε 最大占比 |"
        for name, words in KINDS.items():
            lines = [line.replace(f"| {name} |", f"| {words} |") for line in lines]
    return "\n".join(lines) + "\n"


def _corrections(language: str) -> str:
    text = (REPOSITORY / "CHANGELOG.md").read_text("utf-8")
    parts = re.findall(r"^### Privacy claims corrected\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    count = sum(len(re.findall(r"^- ", part, re.MULTILINE)) for part in parts)
    return {"en": f"There are {count} of them so far.", "zh": f"至今共 {count} 项。"}[language]


MAKERS = {
    "short": _short,
    "proofs": _proof_list,
    "claims": _claims,
    "faults": _faults,
    "attacks": _attacks,
    "corrections": _corrections,
}


def write() -> None:
    """Write both pages."""
    for language, path in PAGES.items():
        path.write_text(page(language), encoding="utf-8")


def main() -> None:
    """Write both pages, then print them unless ``--pages`` is given."""
    write()
    if "--pages" not in sys.argv[1:]:
        for language, path in PAGES.items():
            print_pdf(document(language), path.with_suffix(".pdf"))


if __name__ == "__main__":
    main()
