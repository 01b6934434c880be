"""The tables and curves of the tutorial on training, from the result file: ``python -m tests.docs.training``."""

import json
from typing import Any

from sfumato.reports import plots
from tests.docs.test_docs import DOCS, REPOSITORY

RESULT = REPOSITORY / "benchmarks" / "results" / "accuracy.json"
PAGE = DOCS / "tutorial" / "training.md"
PICTURES_TO_TRAIN_ON, SHOWN = 60_000, "epsilon 3"
PICTURES = {
    "mnist": ("MNIST", DOCS / "images" / "training-mnist.svg"),
    "fashion-mnist": ("Fashion-MNIST", DOCS / "images" / "training-fashion-mnist.svg"),
}


def measured() -> dict[str, Any]:
    """What the benchmark wrote."""
    found: dict[str, Any] = json.loads(RESULT.read_text("utf-8"))["measured"]
    return found


def which(figures: dict[str, Any]) -> str:
    """Which weights are told of: their average, or the last ones where none was made."""
    return "averaged" if "averaged" in figures else "last"


def table_of_pictures(found: dict[str, Any]) -> str:
    """Accuracy by data set at ε = 3: settings, the mean, and each run."""
    lines = [
        "| pictures | batch | learning rate | noise multiplier | accuracy, mean of 3 | each run |",
        "|---|---|---|---|---|---|",
    ]
    for key, (name, _) in PICTURES.items():
        one = found[key][SHOWN]
        each = ", ".join(f"{100 * run[which(one)]['accuracy']:.2f}" for run in one["runs"])
        lines.append(
            f"| {name} | {found[key]['settings']['batch']:,} | {one['learning rate']:g} "
            f"| {one['noise multiplier']:.2f} | **{100 * one[which(one)]['accuracy']['mean']:.2f}%** | {each} |"
        )
    return "\n".join(lines) + "\n"


def table_of_epochs(found: dict[str, Any]) -> str:
    """ε and the mean accuracy of the weights after some of the epochs."""
    shown = (1, 2, 5, 10, 20, 40, 60, 80)
    lines = [
        "| after about this many epochs | " + " | ".join(str(epoch) for epoch in shown) + " |",
        "|---" * (len(shown) + 1) + "|",
    ]
    for key, (name, _) in PICTURES.items():
        runs, batch = found[key][SHOWN]["runs"], found[key]["settings"]["batch"]
        passes = [step * batch / PICTURES_TO_TRAIN_ON for step in runs[0]["steps"]]
        places = [_nearest(passes, epoch) for epoch in shown]
        spent = [f"{found[key]['epsilon by step'][place]:.2f}" for place in places]
        each = [[run["course"][place]["accuracy"] for run in runs] for place in places]
        right = [f"{100 * sum(some) / len(some):.1f}%" for some in each]
        lines += [f"| {name}, ε | {' | '.join(spent)} |", f"| {name}, accuracy | {' | '.join(right)} |"]
    return "\n".join(lines) + "\n"


def _nearest(passes: list[float], epoch: int) -> int:
    return min(range(len(passes)), key=lambda place: abs(passes[place] - epoch))


def table_of_stays(found: dict[str, Any]) -> str:
    """Area under the curve by model and ε, and without privacy."""
    part = found["readmissions"]
    sizes = ("epsilon 1", "epsilon 3", "epsilon 8")
    lines = [
        "| model | " + " | ".join(f"ε = {key.split()[1]}" for key in sizes) + " |",
        "|---" * (len(sizes) + 1) + "|",
    ]
    for name, one in part["private"].items():
        cells = [f"{one[key][which(one[key])]['area']['mean']:.3f}" for key in sizes]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    for name, plain in part["not private"].items():
        cells = [f"{plain['area']:.3f}"] * len(sizes)
        lines.append(f"| {name}, not private | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def curve(found: dict[str, Any], key: str) -> Any:
    """The accuracy of three runs while ε grows."""
    runs = found[key][SHOWN]["runs"]
    course = plots.Trials(
        name="",
        epsilon=tuple(found[key]["epsilon by step"]),
        runs=tuple(tuple(one["accuracy"] for one in run["course"]) for run in runs),
    )
    return plots.accuracies([course], name=PICTURES[key][0])


def main() -> None:
    """Draw both curves anew, and show the tables that the page must have."""
    found = measured()
    for key, (_, path) in PICTURES.items():
        plots.save(curve(found, key), path)
    print(table_of_pictures(found), table_of_epochs(found), table_of_stays(found), sep="\n")


if __name__ == "__main__":
    main()
