"""Alarms as marks over the steps that were looked at, and over the running total of the same stream if it is given."""

from dataclasses import replace
from types import ModuleType

from sfumato.core.extras import need
from sfumato.core.foreign import Chart
from sfumato.core.release import Release, only_release
from sfumato.errors import InvalidInput
from sfumato.reports.amounts import amount
from sfumato.reports.catalogue import counted, message
from sfumato.reports.plots.labels import clean
from sfumato.reports.plots.theme import Palette, dressed, palette
from sfumato.streams.alarms import Alarms
from sfumato.streams.describe import slack_of
from sfumato.streams.plots.series import course, lines

__all__ = ["alarms"]

WIDTH, HEIGHT, ABOVE = 600, 70, 200


def alarms(release: Release, language: str = "en", theme: str = "light", *, over: Release | None = None) -> Chart:
    """Draw the steps that a watch looked at as a bar, and its alarms as marks with their gaps.

    ``over`` is a release of running totals of the same stream, which is then drawn above, on its bands. Public: all of
    it; the numbers that were watched are in neither release and are not drawn.

    >>> import sfumato as sf
    >>> vault = sf.Vault(unit=sf.event(relation="add/remove"), budget=sf.Budget(epsilon=1), name="arrivals")
    >>> watch = vault.stream(name="er", version="1", horizon=9).alarms(threshold=40, alarms=1).open(epsilon=1)
    >>> alarms(watch.close()).to_dict()["title"]["text"]
    'er: alarms at 40'
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    said, colours = only_release(release).statement, palette(theme)
    if not isinstance(said.query, Alarms):
        raise InvalidInput("this is not a release of alarms; nothing was drawn.")
    asked, last, raised = said.query, max(1, said.query.told), len(said.values) // 2
    halted = raised >= asked.alarms
    drawn = _marks(altair, said.values, last, colours, language)
    if over is not None:
        above = course(over)
        if len(above.groups) > 1:
            raise InvalidInput("alarms are drawn over one total, and this release has groups; nothing was drawn.")
        rows = [row for row in above.rows if row["step"] <= last] or list(above.rows[:1])
        upper = lines(
            altair,
            rows,
            colours,
            language,
            axis=message(language, "stream_plot.total"),
            size=(WIDTH, ABOVE),
            up_to=replace(above, rows=tuple(rows)).reach,
            named=False,
        )
        drawn = altair.vconcat(upper, drawn, spacing=14).resolve_scale(x="shared")
    none = message(language, "stream.raised_none")
    return dressed(
        drawn,
        title=message(
            language, "stream_plot.alarms", dataset=clean(said.dataset.name), threshold=f"{asked.threshold:,}"
        ),
        subtitle=[
            message(
                language,
                "stream_plot.alarms_band",
                steps=counted(language, "step", asked.told),
                raised=counted(language, "alarm", raised) if raised else none,
                most=f"{asked.alarms:,}",
                slack=f"{slack_of(said.mechanism):,}",
                amount=amount(said.spend, language),
            ),
            *([message(language, "stream_plot.alarms_halted")] if halted else []),
            *([message(language, "stream_plot.alarms_over")] if over is not None else []),
        ],
        language=language,
        theme=theme,
    )


def _marks(altair: ModuleType, values: tuple[int, ...], last: int, colours: Palette, language: str) -> Chart:
    """A bar of all steps, and a mark for each alarm."""
    rows = [{"step": step, "gap": gap} for step, gap in zip(values[::2], values[1::2], strict=True)]
    x = altair.X(
        "step:Q",
        scale=altair.Scale(domain=[1, max(2, last)], nice=False),
        axis=altair.Axis(
            title=message(language, "stream_plot.step"), format=",d", grid=False, tickMinStep=1, labelFlush=False
        ),
    )
    bar = altair.Chart(altair.Data(values=[{"step": 1, "to": max(2, last)}])).mark_bar(
        color=colours.faint, height=18, cornerRadius=2
    )
    layers = [bar.encode(x=x, x2="to:Q", y=altair.value(HEIGHT - 12))]
    base = altair.Chart(altair.Data(values=rows)).encode(
        x=x,
        tooltip=[
            altair.Tooltip("step:Q", title=message(language, "stream_plot.step"), format=",d"),
            altair.Tooltip("gap:Q", title=message(language, "stream_plot.gap"), format=",d"),
        ],
    )
    if rows:
        ends = {"y": altair.value(22), "y2": altair.value(HEIGHT - 2)}
        layers.append(base.mark_rule(color=colours.mark, strokeWidth=2.5).encode(**ends))
        layers.append(
            base.mark_text(color=colours.ink, fontSize=11, baseline="bottom").encode(
                y=altair.value(20), text=altair.Text("step:Q", format=",d")
            )
        )
    return altair.layer(*layers).properties(width=WIDTH, height=HEIGHT)
