"""The two networks of the tutorials, small, from their files to certificates and a page; what comes out is the truth.

ε is so large that noise is 0, or below what is allowed here, but with a probability (α) below e^−190.
"""

from collections import Counter
from itertools import combinations
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import sfumato as sf
from examples import contacts, proteins
from sfumato.reports.verify import verify

LARGE = sf.Budget(epsilon=10**6)


@pytest.mark.claim("S0-21")
def test_contacts_go_from_their_file_to_a_page_and_no_patient_counts_beyond_the_cap(tmp_path: Path) -> None:
    path, register = contacts.generate(tmp_path, patients=96), list(contacts.patients_of(96))
    pairs = {tuple(sorted((row["source"], row["target"]))) for row in pq.read_table(path).to_pylist()}
    degrees = Counter(name for pair in pairs for name in pair)
    told = {}
    for unit in (sf.edge(relation="add/remove"), sf.node(max_degree=2, relation="add/remove")):
        vault = sf.Vault(unit=unit, budget=LARGE, name="contacts")
        told[unit.KIND] = vault.graph(path, name="wards", version="spring", nodes=register)
    edges, capped = (graph.edges().release(epsilon=1000) for graph in told.values())
    assert edges.values == (len(pairs),)
    assert told["unit.edge"].degrees().release(epsilon=1000).values == tuple(degrees[name] for name in register)
    assert max(degrees.values()) > 2
    assert 0 < capped.values[0] <= sum(min(many, 2) for many in degrees.values()) // 2
    for release in (edges, capped):
        assert verify(release.certificate.document).consistent
        assert "wards" in release.report(tmp_path / "page.html").read_text("utf-8")


@pytest.mark.claim("S0-21")
def test_affinities_go_from_their_file_to_a_page(tmp_path: Path) -> None:
    path = proteins.generate(tmp_path)
    rows = pq.read_table(path).to_pylist()
    exact = {tuple(sorted((row["source"], row["target"]))): row["affinity"] for row in rows}
    vault = sf.Vault(unit=sf.weight(bound=1, relation="replace"), budget=LARGE, name="affinities")
    graph = vault.graph(path, name="affinities", version="2026", nodes=list(proteins.PROTEINS), weight="affinity")
    release = graph.weights().release(epsilon=10**6)
    found = release["weight"]
    assert list(zip(*found.labels.values(), strict=True)) == list(combinations(proteins.PROTEINS, 2))
    for pair, value in zip(combinations(proteins.PROTEINS, 2), found.values, strict=True):
        assert abs(float(value) - exact.get(pair, 0)) < 1e-3
    assert verify(release.certificate.document).consistent
    assert "affinities" in release.report(tmp_path / "page.html").read_text("utf-8")
