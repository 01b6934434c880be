"""The tables and curves of the tutorial on training, from the result file: ``python -m tests.docs.training``."""

import json
from typing import Any

from sfumato.reports import plots
from tests.docs.test_docs import DOCS, REPOSITORY

RESULT = REPOSITORY / "benchmarks" / "results" / "accuracy.json"
PAGE = DOCS / "tutorial" / "training.md"
PICTURES_TO_TRAIN_ON = 60_000
PICTURES = {
    "mnist": ("MNIST", DOCS / "images" / "training-mnist.svg"),
    "fashion-mnist": ("Fashion-MNIST", DOCS / "images" / "training-fashion-mnist.svg"),
}


def measured() -> dict[str, Any]:
    """What the benchmark wrote."""
    found: dict[str, Any] = json.loads(RESULT.read_text("utf-8"))["measured"]
    return found


def table_of_pictures(found: dict[str, Any]) -> str:
    """Accuracy by data set: settings, the mean, and each run."""
    lines = [
        "| pictures | batch | learning rate | noise multiplier | accuracy, mean of 3 | each run |",
        "|---|---|---|---|---|---|",
    ]
    for key, (name, _) in PICTURES.items():
        one, runs = found[key], found[key]["runs"]
        each = ", ".join(f"{100 * run['accuracy'][-1]:.2f}" for run in runs)
        lines.append(
            f"| {name} | {one['settings']['batch']:,} | {one['settings']['learning rate']:g} "
            f"| {runs[0]['noise multiplier']:.2f} | **{100 * one['accuracy, mean']:.2f}%** | {each} |"
        )
    return "\n".join(lines) + "\n"


def table_of_epochs(found: dict[str, Any]) -> str:
    """ε and the mean accuracy after some of the epochs."""
    shown = (1, 2, 5, 10, 20, 30, 40)
    lines = [
        "| after about this many epochs | " + " | ".join(str(epoch) for epoch in shown) + " |",
        "|---" * (len(shown) + 1) + "|",
    ]
    for key, (name, _) in PICTURES.items():
        runs, batch = found[key]["runs"], found[key]["settings"]["batch"]
        passes = [step * batch / PICTURES_TO_TRAIN_ON for step in runs[0]["steps"]]
        places = [_nearest(passes, epoch) for epoch in shown]
        spent = [f"{runs[0]['epsilon'][place]:.2f}" for place in places]
        right = [f"{100 * sum(run['accuracy'][place] for run in runs) / len(runs):.1f}%" for place in places]
        lines += [f"| {name}, ε | {' | '.join(spent)} |", f"| {name}, accuracy | {' | '.join(right)} |"]
    return "\n".join(lines) + "\n"


def _nearest(passes: list[float], epoch: int) -> int:
    return min(range(len(passes)), key=lambda place: abs(passes[place] - epoch))


def table_of_stays(found: dict[str, Any]) -> str:
    """Area under the curve by model and ε, with the least of three runs, and without privacy."""
    models = found["readmissions"]["area under the curve"]
    sizes = [key for key in next(iter(models.values())) if key.startswith("epsilon ")]
    sizes.sort(key=lambda key: int(key.split()[1]))
    lines = [
        "| model | " + " | ".join(f"ε = {key.split()[1]}" for key in sizes) + " | not private |",
        "|---" * (len(sizes) + 2) + "|",
    ]
    for name, one in models.items():
        cells = [f"{one[key]['mean']:.3f}" for key in sizes]
        lines.append(f"| {name} | {' | '.join(cells)} | {one['not private']:.3f} |")
    return "\n".join(lines) + "\n"


def curve(found: dict[str, Any], key: str) -> Any:
    """The accuracy of three runs while ε grows."""
    runs = found[key]["runs"]
    course = plots.Trials(
        name="", epsilon=tuple(runs[0]["epsilon"]), runs=tuple(tuple(run["accuracy"]) for run in runs)
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
