"""The privacy loss of a training run, step by step, and how well models do on the way."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato import accounting
from sfumato.core.events import Gaussian, Repeated
from sfumato.core.extras import need
from sfumato.core.foreign import Chart
from sfumato.core.release import Release, only_release
from sfumato.core.statement import Statement
from sfumato.errors import InvalidInput
from sfumato.learning.correlated import CorrelatedSums
from sfumato.learning.training import Training
from sfumato.reports.amounts import amount
from sfumato.reports.catalogue import message
from sfumato.reports.plots.labels import clean
from sfumato.reports.plots.theme import dressed, palette
from sfumato.reports.words.figures import exact

__all__ = ["Trials", "accuracies", "training"]

WIDTH, HEIGHT = 560, 260
POINTS = 48
LEAST, MOST = 2, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """The accuracies of several runs of one kind, each a number for every epoch. ``epsilon`` goes by epoch."""

    name: str
    epsilon: tuple[float, ...]
    runs: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        if not self.runs or any(len(run) != len(self.epsilon) for run in self.runs) or not self.epsilon:
            raise InvalidInput("each run has an accuracy for every epoch, and there is one; nothing was drawn.")


def training(release: Release, language: str = "en", theme: str = "light") -> Chart:
    """Draw the ε of the steps of a training run, at the δ of its release. Public: nothing of the data is in it.

    Guarantee: the line is nowhere below the ε of that step; it is computed at a few of them and stands, before
    each, at what that one has. Where noise is correlated over the steps, the run has one
    guarantee, and the curve says what the steps so far have of it.
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    said, colours = only_release(release).statement, palette(theme)
    if not isinstance(said.query, Training):
        raise InvalidInput("this is not a release of a trained model; nothing was drawn.")
    rows = [{"step": step, "epsilon": float(spent)} for step, spent in _spent(said)]
    base = altair.Chart(altair.Data(values=[{"step": 0, "epsilon": 0.0}, *rows])).encode(
        x=altair.X(
            "step:Q",
            scale=altair.Scale(domain=[0, said.query.steps], nice=False),
            axis=altair.Axis(
                title=message(language, "training_plot.step"), format=",d", grid=False, tickCount=6, tickMinStep=1
            ),
        ),
        y=altair.Y(
            "epsilon:Q",
            scale=altair.Scale(domain=[0, 1.12 * float(said.spend.epsilon)], nice=False),
            axis=altair.Axis(title="ε", tickCount=5, format=",.6~g"),
        ),
    )
    last = {**rows[-1], "words": amount(said.spend, language)}
    end = altair.Chart(altair.Data(values=[last])).encode(x="step:Q", y="epsilon:Q")
    drawn = altair.layer(
        base.mark_area(color=colours.faint, opacity=0.7, interpolate="step-before"),
        base.mark_line(color=colours.mark, strokeWidth=2.2, interpolate="step-before"),
        end.mark_point(color=colours.mark, filled=True, size=60, opacity=1),
        end.mark_text(align="right", dx=-2, dy=-12, color=colours.ink, fontSize=12).encode(text="words:N"),
    ).properties(width=WIDTH, height=HEIGHT)
    passes = _passes(said.query)
    return dressed(
        drawn,
        title=message(language, "training_plot.title", dataset=clean(said.dataset.name)),
        subtitle=[
            message(language, "training_plot.curve", delta=exact(said.spend.delta)),
            message(language, "training_plot.epoch", epochs=passes),
        ],
        language=language,
        theme=theme,
        labels=[said.dataset.name],
    )


def accuracies(courses: Sequence[Trials], language: str = "en", theme: str = "light", *, name: str) -> Chart:
    """Draw how often models are right while ε grows: the mean of several runs as a line, from worst to best as a band.

    Public: outcomes on public test data, or numbers that were released.

    >>> one = Trials(name="scattering", epsilon=(1.0, 2.0), runs=((0.9, 0.95), (0.92, 0.96)))
    >>> accuracies([one], name="digits").to_dict()["title"]["text"]
    'digits: test accuracy (%) against ε'
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    colours = palette(theme)
    if not 1 <= len(courses) <= 2:
        raise InvalidInput("one or two courses can be distinguished by tone; nothing was drawn.")
    tones, layers = (colours.mark, colours.band), []
    found = [100 * value for course in courses for run in course.runs for value in run]
    low = max(0.0, min(found) - 0.08 * (max(found) - min(found)) - 0.5)
    x = altair.X(
        "epsilon:Q",
        scale=altair.Scale(zero=False, nice=False),
        axis=altair.Axis(title=message(language, "training_plot.epsilon_axis"), grid=False, tickCount=6),
    )
    y, floor = (
        altair.Y(
            f"{part}:Q",
            scale=altair.Scale(domain=[low, min(100.0, max(found) + 0.5)], nice=False),
            axis=altair.Axis(title=message(language, "training_plot.accuracy_axis"), tickCount=6),
        )
        for part in ("mean", "low")
    )
    for tone, course in zip(tones, courses, strict=False):
        rows = []
        for epsilon, values in zip(course.epsilon, zip(*course.runs, strict=True), strict=True):
            shares = [100 * value for value in values]
            rows.append(
                {"epsilon": epsilon, "low": min(shares), "high": max(shares), "mean": sum(shares) / len(shares)}
            )
        base = altair.Chart(altair.Data(values=rows)).encode(x=x)
        layers += [
            base.mark_area(color=tone, opacity=0.25).encode(y=floor, y2="high:Q"),
            base.mark_line(color=tone, strokeWidth=2.2).encode(y=y),
            altair.Chart(altair.Data(values=[{**rows[-1], "name": clean(course.name)}]))
            .mark_text(align="left", dx=8, color=colours.ink, fontSize=12)
            .encode(x=x, y=y, text="name:N"),
        ]
    return dressed(
        altair.layer(*layers).properties(width=WIDTH, height=HEIGHT),
        title=message(language, "training_plot.accuracy_title", name=clean(name)),
        subtitle=[message(language, "training_plot.accuracy_band", runs=len(courses[0].runs))],
        language=language,
        theme=theme,
        labels=[name, *(course.name for course in courses)],
    )


def _passes(run: Training) -> str:
    """How often the data was gone through, in the number of steps that were made."""
    passes = float(run.rate * run.done)
    return f"{passes:,.0f}" if passes >= MOST or passes == int(passes) else f"{passes:,.{LEAST}g}"


def _spent(said: Statement) -> list[tuple[int, Fraction]]:
    """The ε after some of the steps that were made; the last one of the declared run is what was charged."""
    run = said.query
    assert isinstance(run, Training)  # noqa: S101 - for the reader of types
    places = sorted({1, *(-(-run.done * place // POINTS) for place in range(1, POINTS + 1))} - {0})
    return [(step, _after(said, run, step)) for step in places or [run.steps]]


def _after(said: Statement, run: Training, step: int) -> Fraction:
    whole, event, delta = said.spend.epsilon, said.event, said.spend.delta
    if step >= run.steps:
        return whole
    if isinstance(event, Repeated):
        turns = -(-step // getattr(said.mechanism, "groups", 1))
        return min(whole, accounting.epsilon(Repeated(event=event.event, times=turns), delta=delta))
    if isinstance(event, Gaussian) and isinstance(said.mechanism, CorrelatedSums):
        part = said.mechanism.after(step) / said.mechanism.squared
        some = Gaussian(l2_squared=part * event.l2_squared, sigma_squared=event.sigma_squared)
        return min(whole, accounting.epsilon(some, delta=delta))
    return whole
