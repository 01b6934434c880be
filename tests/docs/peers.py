"""The table of both READMEs beside other packages, from results and claims; ``python -m tests.docs.peers`` writes it.

A cell is links: to a page that is made from results, to the table of claims, or to what the other project says.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.claims.catalogue import load
from tests.docs.benchmarks import results, rows
from tests.docs.training import REPOSITORY

READMES = {"en": REPOSITORY / "README.md", "zh": REPOSITORY / "README.zh-CN.md"}
MADE = re.compile(r"(?<=<!-- made by python -m tests.docs.peers -->\n\n).*?(?=\n<!-- until here -->)", re.DOTALL)
HEADS = {
    "en": ("beside", "which is for", "measured", "here as well", "take it rather, where"),
    "zh": ("对照", "其用途", "实测", "本项目另有", "何时更宜选它"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One thing that is said, in both languages, and what it rests on: a page of the documentation or an address."""

    en: str
    zh: str
    at: str
    claim: str = ""

    def written(self, language: str) -> str:
        """The cell as a link; a claim is named by its number."""
        words = {"en": self.en, "zh": self.zh}[language]
        at = self.at or f"docs/claims.md#{_anchor(load().claims[self.claim].area)}"
        number = "" if not self.claim else {"en": f" ({self.claim})", "zh": f"（{self.claim}）"}[language]
        return f"[{words}{number}]({at})"


def claimed(number: str, en: str, zh: str) -> Cell:
    """What a claim of the catalogue says, in a few words."""
    return Cell(en=en, zh=zh, at="", claim=number)


def measured(at: str, of: str, peer: str, en: str, zh: str) -> Cell:
    """A ratio of the benchmarks in the place of ``{}``, from the smallest to the largest of a file and a package."""
    found = sorted(row.median for row in rows() if row.of == of and row.beside.startswith(peer))
    if not found:
        raise ValueError(f"{of} has no comparison with {peer}: run the benchmark, or change the cell.")
    ends = dict.fromkeys(_short(one) for one in (found[0], found[-1]))
    page = "docs/explanation/benchmarks.md"
    return Cell(en=en.format(" to ".join(ends)), zh=zh.format(" 至 ".join(ends)), at=f"{page}#{at}")


def _slower() -> Cell:
    """Where Opacus is faster: the search for a noise multiplier by its Rényi accountant."""
    found = min(row.median for row in rows() if row.of == "accounting" and row.beside.startswith("Opacus"))
    return Cell(
        en=f"its search for σ takes {_short(found)} of our time",
        zh=f"它求 σ 的时间为我们的 {_short(found)}",
        at="docs/explanation/benchmarks.md#where-we-lose",
    )


def synthesis() -> Cell:
    """The error of pairs on Adult with 8 columns, ours and that of the authors' scripts on mbi."""
    found = results()["synthesis"]["measured"]
    ours, peers = found["adult-8-1"]["mean"][0], found["peers-adult-8-1"]["makers"]
    best, mst = (_mean(peers, name) for name in ("AIM, three-way", "MST"))
    return Cell(
        en=f"error of pairs of columns on Adult {ours:.4f}; AIM {best:.4f}, MST {mst:.4f}",
        zh=f"Adult 数据两列表的误差 {ours:.4f}；AIM {best:.4f}，MST {mst:.4f}",
        at="docs/explanation/synthesis-quality.md#adult",
    )


OPENDP, TUMULT = "https://docs.opendp.org/", "https://docs.tmlt.dev/analytics/latest/"
OPACUS, FLOWER = "https://opacus.ai/", "https://flower.ai/docs/framework/"
MBI = "https://github.com/ryan112358/private-pgm"
ROWS: dict[str, Callable[[], tuple[tuple[Cell, ...], ...]]] = {
    "OpenDP": lambda: (
        (Cell(en="proven algorithms, in Python, R and Rust", zh="带证明的算法，供 Python、R 和 Rust 使用", at=OPENDP),),
        (
            measured("noise", "noise", "OpenDP", "exact noise {} times as fast", "精确噪声的速度为其 {} 倍"),
            measured("streams", "streams", "OpenDP", "running totals {} times", "流的累计为其 {} 倍"),
        ),
        (
            claimed("S1-07", "intervals that hold noise and sampling", "置信区间兼含噪声与抽样"),
            claimed("S1-23", "a ledger with hard caps", "有硬上限的隐私账本"),
        ),
        (
            Cell(
                en="you work in R or Rust, or prove mechanisms of your own",
                zh="使用 R 或 Rust，或自行证明新机制",
                at=OPENDP,
            ),
        ),
    ),
    "Tumult Analytics": lambda: (
        (Cell(en="tables on Spark", zh="Spark 上的表格", at=TUMULT),),
        (
            Cell(
                en="not measured: it could not be installed there",
                zh="未测：该机器上无法安装",
                at="docs/explanation/benchmarks.md#tables",
            ),
        ),
        (
            Cell(
                en="the same answers on DuckDB, PostgreSQL and Spark",
                zh="DuckDB、PostgreSQL 与 Spark 上结果一致",
                at="docs/how-to/engines.md",
            ),
            claimed("X-03", "an exact δ for discovered keys", "分组键发现的精确 δ"),
        ),
        (Cell(en="all data lie in Spark and tables are all you ask", zh="数据全在 Spark，且只查询表格", at=TUMULT),),
    ),
    "Opacus": lambda: (
        (Cell(en="training in PyTorch", zh="PyTorch 训练", at=OPACUS),),
        (
            measured(
                "training-on-a-device-the-whole-of-fit",
                "fit_device",
                "Opacus",
                "whole runs on a GPU {} times as fast",
                "GPU 上整次训练的速度为其 {} 倍",
            ),
            _slower(),
        ),
        (
            claimed("S1-13", "persons with many records", "以人为单位，每人可有多条记录"),
            claimed("S3-04", "losses over several people", "涉及多人的损失函数"),
        ),
        (Cell(en="you train on several GPUs", zh="用多块 GPU 训练", at=f"{OPACUS}api/distributed.html"),),
    ),
    "mbi (Private-PGM)": lambda: (
        (Cell(en="distributions from noisy tables; AIM, MST", zh="由含噪声表格推断分布；AIM、MST", at=MBI),),
        (synthesis(),),
        (
            Cell(
                en="persons with their rows in other tables",
                zh="人及其在其他表中的行",
                at="docs/how-to/synthetic-persons.md",
            ),
            claimed("S1-17", "what is kept, stated beside the rows", "随数据说明保留了什么"),
        ),
        (Cell(en="you measured tables yourself and want a model of them", zh="已自行测得表格，需要其模型", at=MBI),),
    ),
    "Flower": lambda: (
        (Cell(en="federated learning with any framework", zh="适用于任意框架的联邦学习", at=FLOWER),),
        (
            measured(
                "secure-sums",
                "federated",
                "Flower",
                "a masked sum of ten sites {} times as fast",
                "十方掩码求和的速度为其 {} 倍",
            ),
        ),
        (
            claimed("S0-26", "noise is shared before it is masked", "噪声先分摊、后掩码"),
            claimed("S1-29", "a veto at each site", "各方均可否决"),
        ),
        (
            Cell(
                en="clients are many and come and go (its differential privacy is a preview)",
                zh="客户端众多且时进时出（其差分隐私尚属预览）",
                at=f"{FLOWER}how-to-use-differential-privacy.html",
            ),
        ),
    ),
}


def table(language: str) -> str:
    """The whole table; every cell but the name is made of links."""
    lines = [f"| {' | '.join(HEADS[language])} |", "|---" * len(HEADS[language]) + "|"]
    between = {"en": "; ", "zh": "；"}[language]
    for name, cells in ROWS.items():
        said = [between.join(one.written(language) for one in cell) for cell in cells()]
        lines.append(f"| **{name}** | {' | '.join(said)} |")
    return "\n".join(lines) + "\n"


def page(language: str) -> str:
    """A README with the table made anew; all else stays as it was written."""
    path = READMES[language]
    text = path.read_text("utf-8")
    if len(MADE.findall(text)) != 1:
        raise ValueError(f"{path.name} has no one place for the table; nothing was written.")
    return MADE.sub(lambda _: table(language), text)


def _mean(peers: dict[str, Any], name: str) -> float:
    found = next(figures for peer, figures in peers.items() if peer.startswith(name) and figures["runs"])
    return float(found["mean"][0])


def _short(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w-]+", "-", heading.lower())


def main() -> None:
    """Write the table into both files."""
    for language, path in READMES.items():
        Path(path).write_text(page(language), encoding="utf-8")


if __name__ == "__main__":
    main()
