"""Every way out, attacked: what is shipped is not refuted, and each copy that is broken on purpose is.

An honest row is refuted by chance with probability α at most. Twins lie far above their claims: a unit that counts
twice has twice the loss, and with these draws its bound is many standard deviations above the claim.
"""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

from sfumato.audit import ATTACKS, TWINS, ways_out
from sfumato.audit.bounds import epsilon_lower_bound, gaussian_lower_bound
from sfumato.audit.ways import KINDS, Heard, WayAudited, WayOut
from sfumato.audit.ways_played import drawn_again
from sfumato.audit.ways_shipped import WAYS
from sfumato.cli.app import app
from sfumato.errors import InvalidInput

NAMED = {way.name: way for way in WAYS}
QUICK = ("edges", "alarms", "reports: kary response")
HONEST_ALPHA = 1e-10
TWIN_ALPHA = 1e-3


def test_all_kinds_have_ways_out_with_names_of_their_own() -> None:
    assert {way.kind for way in WAYS} == set(KINDS)
    assert len(NAMED) == len(WAYS) == len({way.name for way in WAYS})
    with pytest.raises(InvalidInput, match="nothing was attacked"):
        next(ways_out("paper"))


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.alpha(1e-10)
def test_a_way_out_is_not_refuted_and_its_broken_copy_is(name: str) -> None:
    way = NAMED[name]
    honest = way.run(samples=3_000, alpha=HONEST_ALPHA)
    assert not honest.refuted, honest
    assert honest.epsilon == 1
    assert honest.proven > 0.3 * float(honest.epsilon)
    assert way.run(samples=3_000, alpha=TWIN_ALPHA, twin=True).refuted


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(NAMED) - set(QUICK)))
@pytest.mark.alpha(1e-10)
def test_every_other_way_out_too(name: str) -> None:
    way = NAMED[name]
    assert not way.run(samples=40_000, alpha=HONEST_ALPHA).refuted
    assert way.run(samples=40_000, alpha=TWIN_ALPHA, twin=True).refuted


@pytest.mark.long
@pytest.mark.alpha(1e-9)
def test_counts_are_proven_to_95_percent_and_gaussian_noise_to_90_percent_of_what_they_claim() -> None:
    """With 400,000 and a million draws, at the α of one row of the table; five standard deviations from failing."""
    alpha = 0.01 / (2 * len(WAYS))
    counts = NAMED["counts"].run(samples=1_000_000, alpha=alpha)
    gaussian = NAMED["counts of a person in eight groups, Gaussian noise"].run(samples=1_000_000, alpha=alpha)
    assert 0.95 < counts.ratio <= 1
    assert 0.9 < gaussian.by_curve / float(gaussian.epsilon) <= 1


def test_the_claim_is_the_charge_and_not_what_was_asked_for() -> None:
    """A certificate with less than was asked for is what a row is held to."""
    heard = Heard(scores=np.zeros(100), epsilon=Fraction(1, 3), delta=Fraction(0), releases=1)
    way = WayOut(name="w", kind="release", how="by hand", play=lambda _size, _times: heard)
    (row,) = ways_out(ways=[way], twins=False, samples=100)
    assert (row.epsilon, row.proven, row.refuted, row.ratio) == (Fraction(1, 3), 0.0, False, 0.0)
    assert row.confidence == pytest.approx(0.99)
    rows = list(ways_out(ways=[way, replace(way, name="v")], samples=100, confidence=0.9))
    assert [one.confidence for one in rows] == pytest.approx([1 - 0.1 / 4] * 4)
    assert [one.twin for one in rows] == [False, False, True, True]


def test_both_neighbours_are_scored_in_the_same_way() -> None:
    """The answers are read off once: a score that differs between neighbours would be told apart by its digits."""
    asked: list[tuple[int, int]] = []

    def release(times: int, epsilon: int) -> object:
        asked.append((times, epsilon))
        from sfumato.audit.ways_tables import _one

        return _one(lambda table: table.count())(times, epsilon)

    play = drawn_again(release)  # type: ignore[arg-type]
    play(10, 0)
    play(10, 1)
    assert [times for times, epsilon in asked if epsilon > 1] == [0, 1]
    assert [times for times, epsilon in asked if epsilon == 1] == [0, 1]


def test_an_event_chosen_on_a_fifth_is_judged_by_the_rest_alone() -> None:
    """Where the first fifth tells the neighbours apart and the rest do not, nothing is proven."""
    here, there = np.zeros(1000), np.concatenate([np.ones(200), np.zeros(800)])
    assert epsilon_lower_bound(here, there, delta=0.0, alpha=0.01, chosen_on=0.2) == 0.0
    assert gaussian_lower_bound(here, there, delta=1e-5, alpha=0.01, chosen_on=0.2) == 0.0
    there[200:] = 1
    assert epsilon_lower_bound(here, there, delta=0.0, alpha=0.01, chosen_on=0.2) > 4


def test_a_half_line_fitted_to_a_part_is_judged_by_the_rest_alone() -> None:
    """Where the first tenth is moved and the rest is not, nothing is proven; scores need not be normal for that."""
    drawn = np.random.default_rng(1)
    for scores in (drawn.normal(size=(2, 10_000)), drawn.standard_cauchy(size=(2, 10_000)), np.zeros((2, 10_000))):
        here, there = scores.copy()
        there[:1_000] += 2
        given = {"delta": 0.0, "alpha": 1e-6, "chosen_on": 0.1, "normal": True}
        assert epsilon_lower_bound(here, there, **given) == 0.0
        assert epsilon_lower_bound(here, here + 2, **given) > 0.4


def test_the_fitted_half_line_proves_more_of_gaussian_noise_than_the_luckiest_one() -> None:
    """Noise of ε = 1 and δ = 1e-5, 200,000 draws with a fixed seed; above the claim neither ever is."""
    drawn, found = np.random.default_rng(2), []
    for _ in range(5):
        here, there = drawn.normal(size=200_000), drawn.normal(size=200_000) + 1 / 3.730632
        given = {"delta": 1e-5, "alpha": 1e-4}
        fitted = epsilon_lower_bound(here, there, chosen_on=0.1, normal=True, **given)
        found.append((fitted, epsilon_lower_bound(here, there, chosen_on=0.2, **given)))
    fitted, lucky = np.mean(found, axis=0)
    assert lucky < fitted < 1
    assert max(map(max, found)) < 1


@pytest.mark.alpha(1e-10)
def test_the_command_prints_the_claimed_and_the_proven() -> None:
    said = CliRunner().invoke(app, ["audit", "graph", "--only", "highest", "--json"])
    assert said.exit_code == 0, said.output
    honest, twin = json.loads(said.stdout)
    assert (honest["twin"], honest["refuted"], twin["twin"], twin["refuted"]) == (False, False, True, True)
    assert honest["epsilon"] == "1"
    assert CliRunner().invoke(app, ["audit", "graph", "--only", "Highest Degree", "--json"]).exit_code == 0


@pytest.mark.parametrize("kind", [*KINDS, ""])
def test_a_name_that_no_attack_has_is_refused_with_the_names(kind: str) -> None:
    done = CliRunner().invoke(
        app, ["audit", *([kind] if kind else []), "--only", "no such way"], env={"COLUMNS": "9999"}
    )
    assert done.exit_code == 2
    names = [way.name for way in WAYS if way.kind == kind] if kind else [attack.name for attack in (*ATTACKS, *TWINS)]
    assert all(name in done.stderr for name in names)


def _rows(kind: str) -> list[WayAudited]:
    """Rows as an audit of the real ways out gives them, with the longest numbers."""
    found = {"epsilon": Fraction(1, 3), "delta": Fraction(1, 10**5), "point": 0.123, "confidence": 0.99972}
    way = [way for way in WAYS if way.kind == kind]
    return [
        *(
            WayAudited(way=one, twin=twin, by_curve=12.345, draws=200_000, **found)
            for twin in (False, True)
            for one in way
        ),
        WayAudited(way=way[0], skipped="not attacked: needs sfumato[learning]"),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_tables_can_be_read_at_80_columns(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers and verdicts stand whole in their columns, names are broken between words, and nothing is cut off."""
    rows = _rows(kind)
    monkeypatch.setattr("sfumato.audit.ways_out", lambda *_args, **_asked: iter(rows))
    done = CliRunner().invoke(app, ["audit", kind], env={"COLUMNS": "80", "TERM": "dumb"})
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert "…" not in done.stdout
    assert "no proof" in done.stdout
    assert "not attacked" in done.stdout
    numbers = [line for line in lines if "12.345" in line]
    assert len(numbers) == len(rows) - 1
    for line in numbers:
        assert line.split()[-7:-2] == ["0.333333", "1e-05", "0.123", "12.345", "37.035"] or "refuted" in line
    assert all(word.strip(",:") in done.stdout for row in rows for word in row.way.name.split())
    assert "each by itself with 0.99972" in " ".join(done.stdout.split())
