"""The tutorials on networks from data to report, against the exact figures: these can be had, as the data is invented.

α: every interval here is taken at 1 − 10⁻¹⁰, for all numbers of a release at once; about twenty are, in all.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import sfumato as sf
from examples import contacts, proteins
from sfumato.errors import BudgetExceeded, Refused
from tests import parts
from tests.docs.networks import IMAGES, PROTEINS, WARDS, run
from tests.docs.test_gallery import words

SURE = "9999999999/10000000000"
Pair = tuple[str, str]


@pytest.fixture(scope="module", autouse=True)
def drawer() -> None:
    for name in ("altair", "vl_convert"):
        parts.package(name)


@pytest.fixture(scope="module")
def wards(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("wards")
    return run(WARDS, folder), folder


@pytest.fixture(scope="module")
def affinities(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    folder = tmp_path_factory.mktemp("proteins")
    return run(PROTEINS, folder), folder


class Truth:
    """What is exactly true of a contact network, in its first days."""

    def __init__(self, path: Path, days: int = contacts.DAYS) -> None:
        rows = pq.read_table(path, filters=[("day", "<", days)]).to_pylist()
        self.edges = {tuple(sorted((row["source"], row["target"]))) for row in rows}
        self.near: dict[str, set[str]] = {name: set() for name in contacts.patients_of()}
        for one, other in self.edges:
            self.near[one].add(other)
            self.near[other].add(one)
        self.degree = {name: len(others) for name, others in self.near.items()}
        corners = Counter(
            name for one, other in self.edges for name in (one, other) for _ in self.near[one] & self.near[other]
        )
        self.corner = {name: many // 2 for name, many in corners.items()}
        self.triangles = sum(self.corner.values()) // 3
        self.wedges = sum(many * (many - 1) // 2 for many in self.degree.values())

    def between(self) -> Counter[frozenset[str]]:
        """How many contacts run inside and between wards."""
        ward = contacts.patients_of()
        return Counter(frozenset((ward[one], ward[other])) for one, other in self.edges)


def missed(found: Iterable[tuple[Any, Any]], exact: Iterable[Any]) -> list[tuple[Any, Any, Any]]:
    """Intervals that do not hold the exact figure."""
    return [(low, value, high) for (low, high), value in zip(found, exact, strict=True) if not low <= value <= high]


def outside(page: dict[str, Any], truth: Truth) -> list[str]:
    """The releases at edge level that cannot come from this network."""
    counts = Counter(min(many, 40) for many in truth.degree.values())
    between = truth.between()
    blocks = page["blocks"]["edges"]
    cells = [between[frozenset(part.split(" – "))] for part in blocks.labels["part"] if " – " in part]
    clustering = page["clustering"]
    checks = {
        "edges": (page["edges"].interval(SURE), [len(truth.edges)]),
        "degrees": (page["degrees"].interval(SURE, joint=True), [counts[degree] for degree in range(41)]),
        "blocks": (blocks.interval(SURE, joint=True)[: len(cells)], cells),
        "across": (page["across"].interval(SURE), [sum(many for ward, many in between.items() if len(ward) == 2)]),
        "triangles": (clustering["triangles"].interval(SURE), [truth.triangles]),
        "wedges": (clustering["wedges"].interval(SURE), [truth.wedges]),
        "clustering": (clustering["clustering"].interval(SURE), [Fraction(3 * truth.triangles, truth.wedges)]),
    }
    return [name for name, (found, exact) in checks.items() if missed(found, exact)]


@pytest.mark.claim("S0-21")
@pytest.mark.alpha(7e-10)
def test_what_is_released_of_contacts_holds_the_truth(wards: tuple[dict[str, Any], Path]) -> None:
    page, folder = wards
    assert outside(page, Truth(folder / contacts.FILE)) == []


@pytest.mark.alpha(1e-9)
def test_another_network_would_be_noticed(wards: tuple[dict[str, Any], Path]) -> None:
    """The twin: the same intervals against the contacts of the first half alone."""
    page, folder = wards
    half = Truth(folder / contacts.FILE, days=contacts.DAYS // 2)
    assert {"edges", "degrees", "blocks", "across", "wedges"} <= set(outside(page, half))


@pytest.mark.claim("S0-21")
@pytest.mark.alpha(3e-10)
def test_what_is_released_of_patients_holds_what_the_caps_leave(wards: tuple[dict[str, Any], Path]) -> None:
    """A projection drops an edge only where an end has its cap already: at most the excess of each node."""
    page, folder = wards
    truth = Truth(folder / contacts.FILE)
    cap = page["patient_edges"].values[0]
    excess = sum(max(0, many - cap) for many in truth.degree.values())
    ((low, high),) = page["patient_edges"]["edges"].interval(SURE)
    assert low <= len(truth.edges)
    assert high >= len(truth.edges) - excess

    cap = page["patient_triangles"].values[0]
    beyond = sum(max(0, many - cap * (cap - 1) // 2) for many in truth.corner.values())
    ((low, high),) = page["patient_triangles"]["triangles"].interval(SURE)
    assert low <= truth.triangles
    assert high >= truth.triangles - beyond

    nodes = page["patient_degrees"]["nodes"]
    ((low, high),) = nodes.raw.total().interval(SURE)
    assert low <= len(truth.degree) <= high  # no cap takes a patient away


@pytest.mark.claim("S0-21")
def test_every_release_of_contacts_is_charged_once_in_one_ledger(
    wards: tuple[dict[str, Any], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    page, folder = wards
    monkeypatch.chdir(folder)  # where the ledger and its anchor are
    by_level = {"contacts": page["releases"][:4], "patients": page["releases"][4:]}
    for account, releases in by_level.items():
        spent = page["ledger"].balance(account)
        assert spent.epsilon_spent == sum(release.charged.epsilon for release in releases)
        assert spent.charges == len(releases)
        assert {release.statement.account.name for release in releases} == {account}
    assert page["ledger"].verify() == ()
    with pytest.raises(BudgetExceeded):
        page["contacts"].stars(max_degree=40).release(epsilon=1)
    assert page["by_contact"].left.epsilon == 0


@pytest.mark.claim("S0-21")
def test_certificates_of_both_pages_verify_and_a_changed_one_does_not(
    wards: tuple[dict[str, Any], Path], affinities: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    for (_, folder), key, many in (
        (wards, wards[0]["by_contact"].public_key, 7),
        (affinities, affinities[0]["vault"].public_key, 3),
    ):
        files = sorted(folder.glob("release-*.json"))
        assert len(files) == many
        for file in files:
            sf.load(file, key=key)
        document = json.loads(files[0].read_text("utf-8"))
        document["statement"]["values"][0] += 1
        (tmp_path / "changed.json").write_text(json.dumps(document), "utf-8")
        with pytest.raises(Refused):
            sf.load(tmp_path / "changed.json", key=key)


def exact_affinities(path: Path) -> dict[Pair, Fraction]:
    """The affinity of every pair, as the release counts it: in steps of 2⁻²⁰."""
    table = pq.read_table(path).to_pylist()
    known = {tuple(sorted((row["source"], row["target"]))): row["affinity"] for row in table}
    return {pair: Fraction(round(known.get(pair, 0) * 2**20), 2**20) for pair in combinations(proteins.PROTEINS, 2)}


def inside_or_between(pairs: Iterable[Pair], one: str, other: str) -> list[Pair]:
    return [pair for pair in pairs if {proteins.PROTEINS[name] for name in pair} == {one, other}]


def outside_affinities(page: dict[str, Any], exact: dict[Pair, Fraction]) -> list[str]:
    """The releases that cannot come from these affinities; steps may be rounded either way."""
    slack = Fraction(1, 2**20)
    weights = page["weights"].interval(SURE, joint=True)
    wrong = ["weights"] if missed([(low - slack, high + slack) for low, high in weights], exact.values()) else []
    for (one, other), figure in page["means"].items():
        chosen = [exact[pair] for pair in inside_or_between(exact, one, other)]
        ((low, high),) = figure.interval(SURE)
        if not low - slack <= sum(chosen) / len(chosen) <= high + slack:
            wrong.append(f"{one} – {other}")
    binds = [
        sum(exact[pair] > 0 for pair in inside_or_between(exact, *part.split(" – ")))
        for part in page["blocks"]["edges"].labels["part"]
    ]
    if missed(page["blocks"]["edges"].interval(SURE, joint=True), binds):
        wrong.append("blocks")
    if missed(page["edges"].interval(SURE), [sum(weight > 0 for weight in exact.values())]):
        wrong.append("edges")
    return wrong


@pytest.mark.claim("S0-21")
@pytest.mark.alpha(2e-9)
def test_what_is_released_of_proteins_holds_the_truth(affinities: tuple[dict[str, Any], Path]) -> None:
    page, folder = affinities
    exact = exact_affinities(folder / proteins.FILE)
    assert list(exact) == page["pairs"]
    assert outside_affinities(page, exact) == []
    charged = [page[name].charged.epsilon for name in ("release", "blocks", "edges")]
    assert sum(charged) == page["vault"].spent.epsilon == 8
    assert page["vault"].left.epsilon == 0


@pytest.mark.alpha(1e-9)
def test_other_affinities_would_be_noticed(affinities: tuple[dict[str, Any], Path]) -> None:
    """The twin: complex A, and its pairs with B, gone."""
    page, folder = affinities
    exact = exact_affinities(folder / proteins.FILE)
    gone = inside_or_between(exact, "A", "A") + inside_or_between(exact, "A", "B")
    changed = exact | dict.fromkeys(gone, Fraction(0))
    assert {"A – A", "blocks", "edges"} <= set(outside_affinities(page, changed))


@pytest.mark.parametrize("page", ["wards", "affinities"])
def test_the_pictures_are_those_that_the_page_draws(page: str, request: pytest.FixtureRequest) -> None:
    _, folder = request.getfixturevalue(page)
    shown = re.findall(r"\]\(\.\./images/([^)]+)\)", {"wards": WARDS, "affinities": PROTEINS}[page].read_text("utf-8"))
    drawn = {path.name for path in folder.iterdir() if path.suffix in (".svg", ".png")}
    assert set(shown) == drawn
    for name in shown:
        assert (IMAGES / name).stat().st_size < 200_000, "the repository keeps its pictures small"
        if name.endswith(".svg"):
            assert words((IMAGES / name).read_text("utf-8")) == words((folder / name).read_text("utf-8")), name
