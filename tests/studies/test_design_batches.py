"""Batches: shifts are found as often as the claim says, none is found by noise, and the evidence pack shows it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import sfumato as sf
from sfumato.core.certificate import Certificate
from sfumato.core.query import Dataset
from sfumato.core.question import Question
from sfumato.core.signature import SigningKey
from sfumato.engines.expressions import Named
from sfumato.errors import InvalidInput, NotDeclared, Refused
from sfumato.governance.ledger import Ledger
from sfumato.reports.evidence import Scope, pack, write
from sfumato.reports.verify import load, verify
from sfumato.studies.batches import BatchSums, batch_statistic, batch_test
from sfumato.studies.error_sum import NoiseShape, drawn
from sfumato.tables.keys import Keys
from sfumato.tables.queries.aggregate import Aggregate
from sfumato.tables.schema import Schema
from sfumato.tables.table import Table
from tests.governance.homes import Home, sqlite_home

PARTS = np.array([[1.0, 1.0, 1.0], [0.0, 0.5, 1.0], [0.0, 0.0, 1.0]])
"""Rows, sum and square, of the parts (1 − x)², 2x(1 − x) and x²."""


def sums(
    random: np.random.Generator, *, shift: float, epsilon: float = 1.0, n: int = 2000, sd: float = 1 / 8
) -> BatchSums:
    """Released sums of six batches, of which the first is shifted by some standard deviations."""
    noise = NoiseShape(variance=2 / epsilon**2, laplace=True)
    which = random.integers(0, 6, n)
    x = np.clip(0.5 + sd * (random.standard_normal(n) + shift * (which == 0)), 0, 1)
    parts = np.stack([np.bincount(which, part, 6) for part in ((1 - x) ** 2, 2 * x * (1 - x), x**2)], axis=1)
    found = (parts + drawn(noise, (6, 3), random)) @ PARTS.T
    return BatchSums(number=found[:, 0], first=found[:, 1], product=found[:, 2], weights=PARTS, noise=noise)


def p_values(runs: int, seed: int, replicates: int, **asked: float) -> NDArray[np.float64]:
    random = np.random.default_rng(seed)
    return np.array([batch_test(sums(random, **asked), random, replicates=replicates) for _ in range(runs)])  # type: ignore[arg-type]


@pytest.mark.claim("S0-36")
@pytest.mark.parametrize(("shift", "least"), [(1.0, 0.9), (0.3, 0.8)])
def test_a_shift_in_one_of_six_batches_is_found(shift: float, least: float) -> None:
    """n = 2,000, ε = 1, 300 seeded runs."""
    assert float((p_values(300, 3, 399, shift=shift) <= 0.05).mean()) >= least


@pytest.mark.claim("S0-36", "S1-09")
@pytest.mark.parametrize("epsilon", [1.0, 0.3])
def test_without_a_shift_hardly_any_batch_differs(epsilon: float) -> None:
    """At most 5% + 4.75 SE of 500 seeded runs; a test that leaves the noise out finds batch effects in noise."""
    runs, random = 500, np.random.default_rng(21)
    drawn_sums = [sums(random, shift=0, epsilon=epsilon) for _ in range(runs)]
    limit = 0.05 + 4.75 * np.sqrt(0.05 * 0.95 / runs)
    assert np.mean([batch_test(each, random, replicates=399) <= 0.05 for each in drawn_sums]) <= limit
    if epsilon < 1:
        silent = NoiseShape(variance=0.0, laplace=True)
        naive = [batch_statistic(replace(each, noise=silent)).value > 11.07 for each in drawn_sums]
        assert np.mean(naive) > limit


@pytest.mark.claim("S1-09")
def test_a_batch_that_spreads_wider_is_no_batch_effect() -> None:
    """500 seeded runs, a small batch with twice the spread; one pooled spread for all would reject in 13% of them."""
    runs, random = 500, np.random.default_rng(31)
    noise, sizes = NoiseShape(variance=2.0, laplace=True), [400] * 5 + [100]
    found = 0
    for _ in range(runs):
        values = [
            np.clip(0.5 + random.standard_normal(n) / (4 if place == 5 else 8), 0, 1) for place, n in enumerate(sizes)
        ]
        parts = np.array([[((1 - x) ** 2).sum(), (2 * x * (1 - x)).sum(), (x**2).sum()] for x in values])
        made = (parts + drawn(noise, (6, 3), random)) @ PARTS.T
        given = BatchSums(number=made[:, 0], first=made[:, 1], product=made[:, 2], weights=PARTS, noise=noise)
        found += batch_test(given, random, replicates=399) <= 0.05
    assert found / runs <= 0.05 + 4.75 * np.sqrt(0.05 * 0.95 / runs)


@pytest.mark.long
@pytest.mark.claim("S0-36", "S1-09")
@pytest.mark.parametrize(("shift", "least", "most"), [(1.0, 0.9, 1.0), (0.3, 0.8, 1.0), (0.0, 0.04, 0.0604)])
def test_many_comparisons(shift: float, least: float, most: float) -> None:
    """10,000 seeded runs without a shift, 2,000 with one; 0.0604 is 5% + 4.75 SE."""
    runs = 2000 if shift else 10_000
    assert least <= float((p_values(runs, 5, 999, shift=shift) <= 0.05).mean()) <= most


def declared(vault: sf.Vault, *, shift: float = 1.0, n: int = 2000, name: str = "assays") -> Table:
    random = np.random.default_rng(9)
    lot = random.integers(0, 6, n)
    crp = 100 + 12.5 * (random.standard_normal(n) + shift * (lot == 2))
    rows = pa.table(
        {"id": list(range(n)), "lot": [f"L{k}" for k in lot], "device": [f"D{k % 2}" for k in lot], "crp": crp}
    )
    return vault.table(
        rows,
        name=name,
        version="1",
        keys={"lot": [f"L{k}" for k in range(6)], "device": ["D0", "D1"]},
        bounds={"crp": (50, 150)},
        provenance={"batch": "lot", "instrument": "device"},
        limit=sf.Limit(groups=1, rows_per_group=1) if vault.unit.KIND == "unit.user" else None,
    )


@pytest.fixture
def vault() -> sf.Vault:
    return sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=99), name="trial")


@pytest.mark.alpha(1e-9)
@pytest.mark.claim("S0-36")
def test_a_comparison_of_batches_is_one_charge(vault: sf.Vault, tmp_path: Path) -> None:
    study = declared(vault).compare_batches("crp")
    assert "found in 8 of 10 comparisons" in str(study.preview(epsilon=1, rows=333))
    found = study.release(epsilon=1)
    assert vault.spent.epsilon == 1
    assert found.verdict == "differ"
    assert found.p_value == 1 / 10_000
    table = found.to_arrow().to_pydict()
    assert table["batch"] == [f"L{k}" for k in range(6)]
    assert table["shift in standard deviations"][2] == pytest.approx(1, abs=0.3)
    assert sum(table["rows"]) == pytest.approx(2000, abs=60)
    assert all(low < mean < high for low, mean, high in zip(table["low"], table["mean"], table["high"], strict=True))
    assert study.release(epsilon=1).p_value == found.p_value  # the stored answer, and the same seed
    again = load(found.sources[0].certificate.save(tmp_path / "batches.json"))
    assert again.statement.query.batch_comparison(again).p_value == found.p_value  # type: ignore[attr-defined]
    for text in ("Comparison of batches", "they differ: a batch effect", "batch = lot and instrument = device"):
        assert text in str(found)
    assert "批次效应" in found.summary("zh")
    picture = found.picture()
    assert picture is not None
    assert len(picture.rows) == 6
    assert declared(vault, name="more").compare_batches("crp", by="instrument").release(epsilon=1).field == "instrument"
    assert sf.adjust({"batch": found}).rejected == ("batch",)


def test_the_variance_of_a_mean_is_sampling_and_noise() -> None:
    given = sums(np.random.default_rng(1), shift=0, epsilon=0.1)
    found = batch_statistic(given)
    m, n = found.means, given.number
    noise = (2 / 0.1**2) * (m**2 + (0.5 - m) ** 2 + (1 - m) ** 2) / n**2
    np.testing.assert_allclose(found.variances, found.spreads / n + noise, rtol=1e-12)
    assert (noise > found.spreads / n).all()


@pytest.mark.alpha(1e-9)
def test_batches_without_enough_rows_are_left_out_in_words(vault: sf.Vault) -> None:
    rows = pa.table({"lot": ["a"] * 400 + ["b"] * 400 + ["c"], "crp": [4.0, 6.0] * 400 + [5.0]})
    facts = {"keys": {"lot": ["a", "b", "c"]}, "bounds": {"crp": (0, 10)}, "provenance": {"batch": "lot"}}
    found = vault.table(rows, name="few", version="1", **facts).compare_batches("crp").release(epsilon=40)  # type: ignore[arg-type]
    assert "left out of the test: c" in str(found)
    assert found.table("test").columns["batches"] == [2]
    rows = pa.table({"lot": ["a", "b", "c"], "crp": [4.0, 5.0, 6.0]})
    empty = vault.table(rows, name="none", version="1", **facts).compare_batches("crp")  # type: ignore[arg-type]
    result = empty.release(epsilon=40, even_if_useless=True)
    assert result.verdict == "open"
    assert np.isnan(result.p_value)
    assert "fewer than two" in str(result)
    assert result.picture() is None
    assert np.isnan(result.table().columns["mean"]).all()


def test_a_field_that_is_not_declared_is_refused(vault: sf.Vault) -> None:
    table = declared(vault)
    with pytest.raises(NotDeclared, match="the site of rows is not declared"):
        table.compare_batches("crp", by="site")
    with pytest.raises(InvalidInput, match="by is one of batch, instrument, site, step"):
        table.compare_batches("crp", by="lot")
    with pytest.raises(InvalidInput, match="not grouped"):
        table.group_by("device").compare_batches("crp")
    with pytest.raises(InvalidInput, match="provenance has no field 'lot'"):
        vault.table(pa.table({"lot": ["a"]}), name="x", version="1", provenance={"lot": "lot"})
    plain = vault.table(pa.table({"lot": ["a"], "crp": [1.0]}), name="y", version="1", bounds={"crp": (0, 2)})
    with pytest.raises(NotDeclared, match="declared: none"):
        plain.compare_batches("crp")
    assert vault.spent.epsilon == 0


def test_several_rows_of_a_person_are_refused_before_the_charge() -> None:
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
    table = declared(vault)
    table.compare_batches("crp")
    with pytest.raises(Refused, match="a person can have several rows"):
        table.with_limit(sf.Limit(groups=1, rows_per_group=2)).compare_batches("crp")
    person = table.per_person(lot=sf.first("lot", by="id"), crp=sf.mean("crp"))
    assert person.with_keys(lot=[f"L{k}" for k in range(6)]).compare_batches("crp").release(epsilon=1).field == "batch"
    other = table.per_person(lot=sf.first("device", by="id"), crp=sf.mean("crp")).with_keys(lot=["D0", "D1"])
    with pytest.raises(NotDeclared, match="no longer the declared batch"):
        other.compare_batches("crp")
    query = person.with_keys(lot=["L0", "L1"]).compare_batches("crp").question.query
    forged = Question(query=replace(query, joins=other.joins), gate=table._gate)  # type: ignore[type-var]
    with pytest.raises(Refused, match="was not declared as this comparison says"):
        forged.release(epsilon=1)


def test_a_comparison_by_another_column_than_declared_is_refused(vault: sf.Vault) -> None:
    """A question that is put together by hand and says that the device is the batch."""
    table = declared(vault)
    honest = table.compare_batches("crp").question
    forged = replace(honest.query, by=(table.keys["device"],))  # type: ignore[type-var]
    with pytest.raises(Refused, match="was not declared as this comparison says"):
        Question(query=forged, gate=table._gate).release(epsilon=1)
    assert vault.spent.epsilon == 0


def test_a_certificate_of_a_comparison_by_other_groups_does_not_verify(vault: sf.Vault) -> None:
    """Signed as it should be, of the same cost: only what it says of the batches is wrong."""
    table = declared(vault)
    question = table.compare_batches("crp").question
    said, key = question.release(epsilon=1).statement, SigningKey.new()
    query = said.query
    assert isinstance(query, Aggregate)
    (lots,) = query.by
    computed = replace(lots, value=Named(column="device"))
    others = [(replace(lots, column="device"),), (computed,), (lots, Keys(column="device", values=("D0",)))]
    for by in others:
        forged = replace(query, by=by)
        outcome = verify(Certificate.sign(replace(said, query=forged), key).document)
        assert [finding.field for finding in outcome.findings] == ["statement.query.measures[0]"]
        with pytest.raises(Refused, match="was not declared as this comparison says"):
            Question(query=forged, gate=table._gate).release(epsilon=1)
    assert verify(Certificate.sign(said, key).document).consistent


def test_a_schema_declares_provenance_and_keeps_it_in_its_file() -> None:
    text = """
kind = "schema"
version = 1
[dataset]
name = "assays"
[provenance]
batch = "lot"
site = "hospital"
[columns.lot]
type = "text"
keys = ["a", "b"]
[columns.hospital]
type = "text"
[columns.crp]
type = "number"
bounds = [0, 10]
"""
    schema = Schema.from_toml(text)
    assert schema.provenance == (("batch", "lot"), ("site", "hospital"))
    assert Schema.from_toml(schema.to_toml()) == schema
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
    rows = pa.table({"lot": ["a", "b"] * 200, "hospital": ["h"] * 400, "crp": [4.0, 6.0] * 200})
    assert dict(vault.table(rows, schema=schema).provenance) == {"batch": "lot", "site": "hospital"}
    with pytest.raises(InvalidInput, match="provenance has an unknown field 'lots'"):
        Schema.from_toml(text.replace('batch = "lot"', 'lots = "lot"'))
    with pytest.raises(InvalidInput, match="not one of the columns"):
        Schema.from_toml(text.replace('batch = "lot"', 'batch = "lots"'))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "house").mkdir()
    return sqlite_home(tmp_path / "house")


@pytest.mark.alpha(1e-9)
@pytest.mark.claim("S0-36")
def test_the_evidence_pack_shows_provenance_and_the_comparison(home: Home, tmp_path: Path) -> None:
    ledger: Ledger = home.create()
    ledger.open_account("lab", unit=sf.record(relation="add/remove"), cap=sf.Budget(epsilon=9), reason="trial")
    roomy = sf.Budget(epsilon=9)
    ledger.declare_population("patients", unit=sf.record(relation="add/remove"), cap=roomy, reason="trial")
    ledger.declare_dataset(Dataset(name="assays", edition="1"), population="patients", cap=roomy)
    vault = sf.Vault(unit=sf.record(relation="add/remove"), ledger=ledger, account="lab")
    table = declared(vault)
    table.count().release(epsilon=1)
    assert "No comparison of batches" in _section(pack(ledger, Scope()).evidence)["says"][-1]
    found = table.compare_batches("crp").release(epsilon=1)
    made = pack(ledger, Scope())
    (row,) = _section(made.evidence)["rows"]
    assert row[2:] == ["batch = lot, instrument = device", "batch (lot)", "0.0001", "differ"]
    said = made.evidence["releases"][-1]["batches"]  # type: ignore[index, call-overload]
    assert said["verdict"] == found.verdict  # type: ignore[index, call-overload]
    assert said["declared"] == [{"field": "batch", "column": "lot"}, {"field": "instrument", "column": "device"}]  # type: ignore[index, call-overload]
    assert "批次" in said["words"]["zh"][0]  # type: ignore[index, call-overload]
    write(made, tmp_path / "pack")
    page = (tmp_path / "pack" / "evidence.md").read_text("utf-8")
    for text in ("Provenance and batch effects", "Comparison of batches (en)", "Comparison of batches (zh)"):
        assert text in page
    assert any("is it the processing or the people" in each for each in made.evidence["questions"])  # type: ignore[union-attr]


def _section(evidence: object) -> dict[str, list[list[str]]]:
    sections = json.loads(json.dumps(evidence))["sections"]
    return next(each for each in sections if each["title"] == "Provenance and batch effects")
