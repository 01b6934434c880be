"""The page about accuracy says what was measured, with settings by its rules; and the file has what was asked for."""

from fractions import Fraction
from typing import Any

import pytest

from benchmarks.accuracy import PARTS, merged
from benchmarks.accuracy_rules import CAPS, MOMENTUM, Setting, averaged_over, rate, tabular
from tests.docs.accuracy import PAGE, PICTURES, TABLES, TABLES_OF_PEOPLE, by_epsilon, measured, written

FOUND = measured()


def settled() -> list[tuple[str, dict[str, Any], dict[str, Any], str]]:
    """Each model of the file: its name, settings, figures, and which rule its learning rate has."""
    found = [
        (key, FOUND[key]["settings"], FOUND[key], "network" if "cnn" in key else "linear")
        for key in PICTURES
        if key in FOUND
    ]
    for key in TABLES_OF_PEOPLE:
        for model, one in FOUND[key]["private"].items():
            kind = "network" if "network" in model else "linear"
            found.append((f"{key}, {model}", FOUND[key]["settings"]["models"][model], one, kind))
    return [one for one in found if "average, decay" in one[1]]  # those of before the rules stay as they were


def test_the_tables_are_those_of_the_result_file() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert written(page) == page
    assert all(table(FOUND) in page for table in TABLES.values())


@pytest.mark.parametrize(("name", "settings", "figures", "kind"), settled())
def test_three_charged_runs_at_each_epsilon_with_settings_by_the_rules(
    name: str, settings: dict[str, Any], figures: dict[str, Any], kind: str
) -> None:
    one = Setting(batch=settings["batch"], steps=settings["steps"], clip=Fraction(settings["clip"]), kind=kind)
    assert settings["delta"] == "1/100000"
    for epsilon, at in by_epsilon(figures):
        assert [run["charged"] for run in at["runs"]] == [str(epsilon)] * 3
        assert at["learning rate"] == pytest.approx(rate(one, at["noise multiplier"]), rel=0.01)
        each = [run["averaged"]["accuracy"] for run in at["runs"]]
        told = at["averaged"]["accuracy"]
        assert (told["least"], told["most"]) == (min(each), max(each))
        assert told["mean"] == pytest.approx(sum(each) / 3, abs=1e-4)
    assert settings["average, decay"] == str(averaged_over(one.steps))


@pytest.mark.parametrize("key", list(TABLES_OF_PEOPLE))
def test_settings_of_tables_follow_from_the_declared_number(key: str) -> None:
    part = FOUND[key]
    for model, settings in part["settings"]["models"].items():
        rule = tabular(part["settings"]["declared units"], "network" if "network" in model else "linear")
        assert (settings["batch"], settings["steps"], settings["clip"]) == (rule.batch, rule.steps, str(rule.clip))


def test_noise_alone_moves_a_weight_by_a_ninth() -> None:
    """A run of SGD on noise alone, simulated: the walk that the rule for the learning rate allows."""
    import torch

    one, multiplier = Setting(batch=1000, steps=400, clip=Fraction(1, 2), kind="linear"), 4.0
    weights = torch.nn.Parameter(torch.zeros(4000))
    optimiser = torch.optim.SGD([weights], lr=rate(one, multiplier), momentum=MOMENTUM)
    chance = torch.Generator().manual_seed(0)
    for _ in range(one.steps):
        weights.grad = torch.randn(4000, generator=chance) * multiplier * float(one.clip) / one.batch
        optimiser.step()
    assert float(weights.detach().std()) == pytest.approx(1 / 9, rel=0.1)
    assert rate(one, 1e-6) * float(one.clip) == CAPS["linear"]


def test_results_of_several_machines_make_one_file() -> None:
    early, late = ({"measured on": {"when": f"2026-11-17T0{hour}:00:00+00:00"}} for hour in (1, 2))
    assert merged({"mnist": late, "gone": late}, {"mnist": early, "cora": early}) == {"mnist": late, "cora": early}
    assert merged({"mnist": {"pairs": 0}}) == {}, "a part that does not say when it was measured is none of these"
    assert set(FOUND) <= set(PARTS)
