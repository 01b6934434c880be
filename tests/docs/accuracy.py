"""Tables of how good private models are, from the result file; ``python -m tests.docs.accuracy`` writes the page."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.docs.training import DOCS, RESULT

PAGE = DOCS / "explanation" / "accuracy.md"
EPSILONS = (1, 3, 8)
PICTURES = {
    "mnist": "MNIST, scattering features, linear",
    "mnist-cnn": "MNIST, network from pixels",
    "mnist-cnn-copies": "MNIST, network from pixels, 4 copies",
    "fashion-mnist": "Fashion-MNIST, scattering features, linear",
    "fashion-mnist-cnn": "Fashion-MNIST, network from pixels",
    "fashion-mnist-cnn-copies": "Fashion-MNIST, network from pixels, 4 copies",
}
TABLES_OF_PEOPLE = {
    "adult": "Adult: income above $50,000",
    "acs": "ACS 2019: income above $50,000",
    "readmissions": "diabetes-130: readmission, by patient",
    "cora": "Cora: subject, without citations",
}
PEERS = ("logistic regression", "gradient-boosted trees")


def measured() -> dict[str, Any]:
    """What the benchmark found."""
    found: dict[str, Any] = json.loads(RESULT.read_text(encoding="utf-8"))["measured"]
    return found


def by_epsilon(part: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The figures of a part at each ε that was measured."""
    return ((epsilon, part[f"epsilon {epsilon}"]) for epsilon in EPSILONS if f"epsilon {epsilon}" in part)


def told(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures that the page shows: of the average of the weights, or of the last ones where there was none."""
    found: dict[str, Any] = figures.get("averaged") or figures["last"]
    return found


def _each(part: dict[str, Any], cell: Callable[[dict[str, Any]], str]) -> list[str]:
    there = dict(by_epsilon(part))
    return [cell(there[epsilon]) if epsilon in there else "not measured" for epsilon in EPSILONS]


def _percent(figures: dict[str, float]) -> str:
    return f"{100 * figures['mean']:.1f} ({100 * figures['least']:.1f} to {100 * figures['most']:.1f})"


def _area(figures: dict[str, float]) -> str:
    return f"{figures['mean']:.3f} ({figures['least']:.3f} to {figures['most']:.3f})"


def _table(head: tuple[str, ...], rows: list[list[str]]) -> str:
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)])


def of_pictures(found: dict[str, Any]) -> str:
    """Accuracy on the test pictures, in percent."""
    head = ("", "weights", "batch", *(f"ε = {epsilon}" for epsilon in EPSILONS), "not private")
    rows = []
    for key, name in PICTURES.items():
        if key in found:
            part, settings = found[key], found[key]["settings"]
            cells = _each(part, lambda one: _percent(told(one)["accuracy"]))
            plain = f"{100 * part['not private']['accuracy']:.1f}" if "not private" in part else "not measured"
            rows.append([name, f"{settings['parameters']:,}", f"{settings['batch']:,}", *cells, plain])
    return _table(head, rows)


def of_areas(found: dict[str, Any]) -> str:
    """Areas under the curve on the test rows of tables with two classes."""
    head = ("", "private model", *(f"ε = {epsilon}" for epsilon in EPSILONS), *(f"not private: {one}" for one in PEERS))
    return _table(head, list(_people(found, "area")))


def of_accuracies(found: dict[str, Any]) -> str:
    """Accuracy on the test rows of tables, in percent."""
    head = ("", "private model", *(f"ε = {epsilon}" for epsilon in EPSILONS), *(f"not private: {one}" for one in PEERS))
    return _table((*head, "always the largest class"), list(_people(found, "accuracy")))


def _people(found: dict[str, Any], figure: str) -> Iterator[list[str]]:
    for key, name in TABLES_OF_PEOPLE.items():
        part, label = found[key], name
        for model, one in part["private"].items():
            if any(figure not in told(at) for _, at in by_epsilon(one)):
                continue
            cells = _each(one, lambda at: (_area if figure == "area" else _percent)(told(at)[figure]))
            others = [_plain(part["not private"].get(peer, {}), figure) for peer in PEERS]
            largest = [] if figure == "area" else [f"{100 * part['largest class']:.1f}"]
            yield [label, model, *cells, *others, *largest]
            label = ""


def _plain(peer: dict[str, float], figure: str) -> str:
    if figure not in peer:
        return "not measured"
    return f"{peer[figure]:.3f}" if figure == "area" else f"{100 * peer[figure]:.1f}"


def of_settings(found: dict[str, Any]) -> str:
    """What the rules give: batch, steps, clip; and noise multiplier and learning rate at each ε."""
    head = ("", "units", "batch", "steps", "clip", *(f"noise, rate at ε = {epsilon}" for epsilon in EPSILONS))
    rows = []
    for key, name in {**PICTURES, **TABLES_OF_PEOPLE}.items():
        if key not in found:
            continue
        if key in PICTURES:
            settings, part, units = found[key]["settings"], found[key], found[key]["settings"]["units"]
            named = [(name, settings, part)]
        else:
            settings, units = found[key]["settings"], found[key]["settings"]["declared units"]
            named = [
                (f"{name}, {model}", settings["models"][model], one) for model, one in found[key]["private"].items()
            ]
        for called, one, part in named:
            pairs = _each(part, lambda at: f"{at['noise multiplier']:.2f}, {at['learning rate']:g}")
            rows.append([called, f"{units:,}", f"{one['batch']:,}", f"{one['steps']:,}", one["clip"], *pairs])
    return _table(head, rows)


def _gain(figures: dict[str, Any]) -> str:
    return f"{100 * (figures['averaged']['accuracy']['mean'] - figures['last']['accuracy']['mean']):+.2f}"


def of_averages(found: dict[str, Any]) -> str:
    """How much better the average of the weights is than the last ones, in points of accuracy."""
    rows = []
    for key, name in {**PICTURES, **TABLES_OF_PEOPLE}.items():
        parts = {} if key not in found else {"": found[key]} if key in PICTURES else found[key]["private"]
        for model, part in parts.items():
            if all("averaged" in one for _, one in by_epsilon(part)):
                rows.append([f"{name}, {model}" if model else name, *_each(part, _gain)])
    return _table(("", *(f"ε = {epsilon}" for epsilon in EPSILONS)), rows)


TABLES = {
    "pictures": of_pictures,
    "areas": of_areas,
    "accuracies": of_accuracies,
    "settings": of_settings,
    "averages": of_averages,
}


def written(page: str) -> str:
    """The page with its tables as the result file has them."""
    found = measured()
    for name, table in TABLES.items():
        page = re.sub(
            rf"(<!-- table: {name} -->\n\n).*?(\n\n<!-- end -->)",
            lambda place, table=table: place[1] + table(found) + place[2],  # type: ignore[misc]
            page,
            flags=re.DOTALL,
        )
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
