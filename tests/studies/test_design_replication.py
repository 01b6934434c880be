"""Replication: agreement is as often as was foreseen, the same people are refused, and bias is a figure of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.limits import Limit
from sfumato.core.release import Release
from sfumato.errors import InvalidInput, Refused
from sfumato.inference.consistency import non_negative
from sfumato.studies.design_result import DesignResult
from sfumato.studies.error_sum import NoiseShape, drawn
from sfumato.studies.estimates import Estimate
from sfumato.studies.replication import Replication
from sfumato.studies.result import Cell, ResultTable
from sfumato.tables.table import Table
from tests.studies.planned_trials import off, verdicts

QUESTIONS = {
    "a difference of shares": lambda: sf.power("proportion", first=0.3, second=0.2, n=400, epsilon=0.5),
    "a difference of means": lambda: sf.power("mean", difference=5, sd=20, bounds=(60, 240), n=300, epsilon=1),
    "a hazard ratio": lambda: sf.power("log-rank", hazard_ratio=0.7, events=0.5, bins=20, n=300, epsilon=1),
}


def agreement(name: str, runs: int) -> float:
    planned = QUESTIONS[name]()
    return float((verdicts(planned, runs, seed=101) == verdicts(planned, runs, seed=202)).mean())


@pytest.mark.claim("S0-37")
@pytest.mark.parametrize("name", list(QUESTIONS))
def test_two_fresh_samples_agree_as_often_as_was_foreseen(name: str) -> None:
    """Within 4.75 SE of 3,000 seeded pairs; what is foreseen without the noise is not."""
    planned, runs = QUESTIONS[name](), 3000
    found = agreement(name, runs)
    assert off(found, sf.expected_agreement(planned), runs) < 4.75
    assert sf.expected_agreement(planned) == pytest.approx(planned.power**2 + (1 - planned.power) ** 2)


@pytest.mark.claim("S0-37")
def test_the_noise_must_be_in_what_is_foreseen() -> None:
    planned, runs = sf.power("proportion", first=0.3, second=0.2, n=400, epsilon=0.2), 3000
    found = float((verdicts(planned, runs, seed=1) == verdicts(planned, runs, seed=2)).mean())
    assert off(found, sf.expected_agreement(planned), runs) < 4.75
    assert off(found, sf.expected_agreement(planned.power_without_noise), runs) > 4.75


@pytest.mark.long
@pytest.mark.claim("S0-37")
@pytest.mark.parametrize("name", list(QUESTIONS))
def test_many_pairs_agree_as_often_as_was_foreseen(name: str) -> None:
    """Within 4.75 SE of 10,000 seeded pairs."""
    assert off(agreement(name, 10_000), sf.expected_agreement(QUESTIONS[name]()), 10_000) < 4.75


def estimates(p: float, n: int, noise: NoiseShape, runs: int, seed: int) -> Sequence[Estimate]:
    random = np.random.default_rng(seed)
    met = random.binomial(n, p, runs)
    cells = np.stack([met, n - met]) + drawn(noise, (2, runs), random)
    rows = cells.sum(axis=0)
    shares = cells[0] / rows
    return [
        Estimate(value=q, sampling=q * (1 - q) / m, noises=(((1 - q) / m, noise), (-q / m, noise)))
        for q, m in zip(shares.tolist(), rows.tolist(), strict=True)
    ]


@pytest.mark.claim("S0-37", "S1-09")
def test_the_test_of_equality_holds_its_level_and_overlap_does_not() -> None:
    """200 seeded pairs of equal samples: about 5% differ; intervals that fail to overlap are far fewer than 5%."""
    noise, runs = NoiseShape(variance=2 / 0.1**2, laplace=True), 200
    pairs = zip(estimates(0.3, 300, noise, runs, 4), estimates(0.3, 300, noise, runs, 5), strict=True)
    found = [Replication(first=one, second=two, null=0.3, level=0.95) for one, two in pairs]
    differ = float(np.mean([each.p_value <= 0.05 for each in found]))
    assert 0.01 < differ < 0.05 + 4.75 * np.sqrt(0.05 * 0.95 / runs)
    apart = [
        not (a[0] <= b[1] and b[0] <= a[1])
        for a, b in ((each.first.interval(0.95), each.second.interval(0.95)) for each in found)
    ]
    assert np.mean(apart) < differ / 2
    without = [each.first.minus(each.second) for each in found]
    naive = [abs(each.value) > 1.96 * np.sqrt(each.sampling) for each in without]
    assert np.mean(naive) > 0.05 + 4.75 * np.sqrt(0.05 * 0.95 / runs)
    agree = float(np.mean([each.agree for each in found]))  # the null is true: both intervals include it in 95%
    assert off(agree, sf.expected_agreement(0.05), runs) < 4.75


def samples(rates: Sequence[float], n: int = 2000) -> list[Table]:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=99), name="trial")
    random = np.random.default_rng(6)
    tables = []
    for place, rate in enumerate(rates):
        arm = random.integers(0, 2, n)
        ill = random.uniform(size=n) < rate * (1 + arm)
        rows = pa.table(
            {"arm": [["control", "treated"][k] for k in arm], "ill": ill, "sbp": 120 + 15 * random.standard_normal(n)}
        )
        tables.append(
            vault.table(
                rows,
                name=f"sample{place}",
                version="1",
                keys={"arm": ["control", "treated"]},
                bounds={"sbp": (60, 200)},
            )
        )
    return tables


def asked(table: Table) -> Release:
    return table.group_by("arm").proportion("ill").release(epsilon=1)


@pytest.mark.alpha(1e-10)
@pytest.mark.claim("S0-33", "S0-37")
def test_two_releases_of_the_same_question() -> None:
    first, second = samples([0.15, 0.15])
    planned = sf.power("proportion", first=0.15, second=0.3, n=1000, epsilon=1)
    found = sf.replication(asked(first), asked(second), expected=planned)
    assert found.verdicts == (True, True)
    assert found.agree
    assert found.p_value > 1e-6
    assert found.expected == pytest.approx(sf.expected_agreement(planned))
    table = found.to_arrow().to_pydict()
    assert table["estimate"][2] == pytest.approx(table["estimate"][0] - table["estimate"][1])
    for text in ("they agree", "Agreement expected beforehand", "not of this pair"):
        assert text in str(found)
    assert "一致" in found.summary("zh")
    other = sf.replication(asked(samples([0.3])[0]), asked(samples([0.1, 0.1])[1]))
    assert other.p_value < 0.01


def test_means_need_their_variance_in_the_same_release() -> None:
    first, second = samples([0.2, 0.2])
    both = [each.agg(m=sf.mean("sbp"), v=sf.variance("sbp")).release(epsilon=1) for each in (first, second)]
    found = sf.replication(*both, null=100)
    assert found.verdicts == (True, True)
    assert found.first.standard_error == pytest.approx(15 / np.sqrt(2000), rel=0.15)
    alone = [each.mean("sbp").release(epsilon=1) for each in (first, second)]
    with pytest.raises(InvalidInput, match="needs its variance"):
        sf.replication(*alone)


@pytest.mark.claim("S0-37")
def test_a_fresh_draw_for_the_same_people_is_no_replication() -> None:
    (table,) = samples([0.2])
    question = table.proportion("ill")
    again = question.release(epsilon=1), question.release(epsilon=1, fresh=True)
    with pytest.raises(Refused, match="a fresh draw of noise for the same people is no replication"):
        sf.replication(*again)


def test_other_questions_are_refused() -> None:
    first, second = samples([0.2, 0.2])
    one = first.proportion("ill").release(epsilon=1)
    with pytest.raises(Refused, match="not to the same declared question"):
        sf.replication(one, second.proportion(sf.col("sbp") > 140).release(epsilon=1))
    with pytest.raises(InvalidInput, match="two releases"):
        sf.replication(0.3, 0.2)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="of one share, or of one mean"):
        sf.replication(first.count().release(epsilon=1), second.count().release(epsilon=1))


def test_several_rows_of_a_person_are_refused() -> None:
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
    rows = pa.table({"id": [1, 1, 2, 3], "ill": [True, False, True, False]})
    limit = Limit(groups=1, rows_per_group=2)
    tables = [vault.table(rows, name=name, version="1", limit=limit) for name in ("a", "b")]
    answers = [each.proportion("ill").release(epsilon=1, even_if_useless=True) for each in tables]
    with pytest.raises(Refused, match="no independent sample"):
        sf.replication(*answers)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Shown(DesignResult):
    """A result of another study: an estimate with its interval in a table."""

    columns: Mapping[str, Sequence[Cell]]
    sources: tuple[Release, ...]
    title = "shown"
    facts = ()
    notes = ()

    def tables(self, confidence: object = None) -> tuple[ResultTable, ...]:
        return (ResultTable(name="shown", columns=self.columns),)


def test_results_of_other_studies_are_read_by_their_tables() -> None:
    answers = [asked(each) for each in samples([0.2, 0.2])]
    by_error = {"estimate": [0.3], "standard error": [0.1]}
    by_interval = {"estimate": [0.4], "low": [0.4 - 1.959964 * 0.2], "high": [0.4 + 1.959964 * 0.2]}
    one, two = (Shown(columns=each, sources=(a,)) for each, a in zip((by_error, by_interval), answers, strict=True))
    found = sf.replication(one, two)
    assert found.verdicts == (True, True)
    assert found.second.standard_error == pytest.approx(0.2)
    with pytest.raises(InvalidInput, match="no estimate with a standard error"):
        sf.replication(one, Shown(columns={"estimate": [0.3, 0.4]}, sources=(answers[1],)))


def test_versions_of_one_dataset_are_compared_with_a_warning() -> None:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=9), name="trial")
    rows = pa.table({"ill": [True, False] * 200})
    one, two = (vault.table(rows, name="visits", version=version) for version in ("1", "2"))
    found = sf.replication(*(each.proportion("ill").release(epsilon=1) for each in (one, two)), null=0.5)
    assert "versions of one dataset" in str(found)


@pytest.mark.alpha(1e-10)
@pytest.mark.claim("S0-33", "S0-37")
def test_bias_of_a_limit_is_a_figure_of_its_own() -> None:
    """40 persons with 8 rows each under a limit of 3: 200 of 320 rows are cut, and the interval holds that."""
    vault = sf.Vault(unit=sf.user("id", relation="add/remove"), budget=sf.Budget(epsilon=99), name="trial")
    rows = pa.table({"id": [k // 8 for k in range(320)]})
    table = vault.table(rows, name="visits", version="1", limit=Limit(groups=1, rows_per_group=3))
    release = table.count(uncut_to=8).release(epsilon=2)
    found = sf.bias(release["within_limit"], release["count"], cause="limit")
    shown = found.table(confidence="0.9999999999").columns
    assert shown["low"][0] <= -200 <= shown["high"][0]
    assert found.biases[0] == pytest.approx(
        float(release["within_limit"].forms[0].value - release["count"].forms[0].value)
    )
    assert "Sampling is not in it" in str(found)
    assert "偏差" in found.summary("zh")


@pytest.mark.alpha(1e-10)
@pytest.mark.claim("S0-37")
def test_bias_of_clipping_and_of_post_processing() -> None:
    vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=99), name="trial")
    rows = pa.table({"cost": [10.0] * 500 + [90.0] * 500, "ward": ["a", "b"] * 500})
    table = vault.table(rows, name="stays", version="1", keys={"ward": ["a", "b", "none"]})
    means = [table.with_bounds(cost=(0, high)).mean("cost").release(epsilon=1) for high in (50, 100)]
    found = sf.bias(*means, cause="clipping")
    shown = found.table(confidence="0.9999999999").columns
    assert shown["low"][0] <= -20 <= shown["high"][0]
    assert found.biases[0] == pytest.approx(-20, abs=8)
    counts = table.group_by("ward").count().release(epsilon=1)
    raised = non_negative(counts)
    after = sf.bias(raised, counts["count"], cause="post-processing")
    assert after.biases == tuple(float(max(value, 0) - value) for value in counts.values)
    assert len(after.table().columns["figure"]) == 3


def test_bias_is_of_the_same_data_and_of_a_known_cause() -> None:
    first, second = samples([0.2, 0.2])
    answers = [each.proportion("ill").release(epsilon=1) for each in (first, second)]
    with pytest.raises(Refused, match="same version of the same data"):
        sf.bias(*answers, cause="limit")
    with pytest.raises(InvalidInput, match="the cause of a bias"):
        sf.bias(answers[0], answers[0], cause="chance")  # type: ignore[arg-type]
    grouped = first.group_by("arm").proportion("ill").release(epsilon=1)
    with pytest.raises(InvalidInput, match="not of the same groups"):
        sf.bias(answers[0], grouped, cause="limit")
