"""One charged run through a vault, as users make it, and the figures of several."""

import copy
import datetime
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.accuracy_rules import MOMENTUM, Setting, averaged_over, rate
from benchmarks.harness import commit

if TYPE_CHECKING:
    import torch

__all__ = ["DELTA", "EPSILONS", "RUNS", "data_folder", "device", "figures", "measured_on", "plainly", "trained"]

RUNS, EPSILONS, DELTA = 3, (1, 3, 8), "1/100000"
Figures = dict[str, float]
Measure = Callable[[Any], Figures]  # of a model, on rows that are public here


def data_folder() -> Path:
    """Where the data sets are: ``SFUMATO_DATA``, or the shared folder beside the project."""
    return Path(os.environ.get("SFUMATO_DATA") or Path(__file__).parents[2] / "shared" / "data")


def device() -> "torch.device":
    """A GPU where there is one."""
    import torch

    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def trained(
    model: Any,
    seen: Sequence[Any],
    setting: Setting,
    *,
    epsilon: int,
    facts: Mapping[str, Any],
    measure: Measure,
    watched: bool = False,
    copies: Any = None,
) -> dict[str, Any]:
    """One charged run; the figures of its last weights and of their average, and of each epoch where ``watched``."""
    import torch

    import sfumato as sf
    from sfumato.learning import Average, Units

    unit = sf.user("id", relation="add/remove") if "ids" in facts else sf.record(relation="add/remove")
    budget = sf.Budget(epsilon=epsilon, delta=DELTA)
    vault = sf.Vault(unit=unit, budget=budget, name="benchmark", population=facts["n_units"])
    data = Units(*seen, **facts)
    trainer = vault.trainer(
        model, torch.nn.functional.cross_entropy, data=data, clip=setting.clip, augmentations=copies
    )
    settings: dict[str, Any] = {
        "epsilon": epsilon, "delta": DELTA, "steps": setting.steps, "batch": setting.batch,
        "max_physical_batch_size": setting.batch + 4 * int(setting.batch**0.5),  # nearly always one part a step
    }  # fmt: skip
    multiplier = float(trainer.plan(**settings).mechanism.multiplier)  # type: ignore[attr-defined]  # noisy sums
    average, shown = Average(decay=averaged_over(setting.steps)), copy.deepcopy(model)
    steps: list[int] = []
    course: list[Figures] = []

    def watch(step: int, weights: Any) -> None:
        shown.load_state_dict(weights)
        steps.append(step)
        course.append(measure(shown))

    result = trainer.fit(
        **settings,
        optimizer=torch.optim.SGD(model.parameters(), lr=rate(setting, multiplier), momentum=MOMENTUM),
        average=average,
        callback=watch if watched else None,
        progress=False,
    )
    shown.load_state_dict(average.weights)
    found = {
        "last": measure(model),
        "averaged": measure(shown),
        "charged": str(result.release.charged.epsilon),
        "noise multiplier": round(multiplier, 4),
        "learning rate": rate(setting, multiplier),
    }
    if watched:
        found |= {"steps": steps, "course": course}
    return found


def figures(told: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean, least and most of some runs, for the average of the weights and for the last ones."""

    def over(which: str, name: str) -> Figures:
        some = [run[which][name] for run in told]
        return {"mean": round(statistics.mean(some), 5), "least": min(some), "most": max(some)}

    return {
        **{which: {name: over(which, name) for name in told[0]["averaged"]} for which in ("averaged", "last")},
        "noise multiplier": told[0]["noise multiplier"],
        "learning rate": told[0]["learning rate"],
        "runs": list(told),
    }


def plainly(model: Any, rows: Any, targets: Any, measure: Measure, *, passes: int = 10) -> Figures:
    """Train without privacy: Adam, ten passes in batches of 512, by row."""
    import torch

    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
    for _ in range(passes):
        for some in torch.randperm(len(rows), device=rows.device).split(512):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(rows[some]), targets[some]).backward()
            optimiser.step()
    return measure(model)


def told_settings(setting: Setting, **more: object) -> dict[str, object]:
    """What a result file says of the settings of a part."""
    return {
        "batch": setting.batch,
        "steps": setting.steps,
        "clip": str(setting.clip),
        "momentum": MOMENTUM,
        "average, decay": str(Fraction(averaged_over(setting.steps))),
        "delta": DELTA,
        **more,
    }


def measured_on() -> dict[str, str]:
    """When and where a part was measured: parts of one file may come from several machines."""
    import torch

    return {
        "when": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "processor",
        "torch": torch.__version__,
        "commit": commit(),
    }
