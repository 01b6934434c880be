"""A picture of each demonstration, in the style of all pictures. Only for invented people: they show exact numbers."""

from collections.abc import Callable, Sequence
from typing import cast

from sfumato.core.extras import need
from sfumato.core.foreign import Chart, ChartRow
from sfumato.demo.attacks.gradients import FEATURES, GradientInversion
from sfumato.demo.attacks.k_anonymity import KAnonymity
from sfumato.demo.attacks.reconstruction import CountReconstruction
from sfumato.demo.attacks.ridge import RidgeInformation
from sfumato.demo.attacks.singling_out import SinglingOut
from sfumato.demo.attacks.words import FINDINGS, Finding, attack_facts, attack_word, named_diagnosis
from sfumato.demo.network import DIAGNOSES, REGIONS
from sfumato.reports.plots.theme import Palette, dressed, palette

__all__ = ["attack_picture"]

WIDTH, HEIGHT, STEP = 520, 260, 24


def attack_picture(found: Finding, language: str = "en", theme: str = "light") -> Chart:
    """Draw what a demonstration found. Public: outcomes on invented people.

    >>> from sfumato.demo.attacks.hospital import register
    >>> from sfumato.demo.attacks.ridge import demonstrate_ridge
    >>> attack_picture(demonstrate_ridge(register(patients=60), people=30)).to_dict()["title"]["text"]
    'Information in the coefficients about the outcomes'
    """
    altair = need("altair", "pip install 'sfumato[plots]'")
    name, facts = FINDINGS[type(found)], attack_facts(found, language)

    def say(part: str, **more: object) -> str:
        return attack_word(language, f"{name}.{part}", **facts | more)

    return dressed(
        _DRAWN[name](altair, found, palette(theme), say, language),
        title=say("plot"),
        subtitle=say("plot_note").split("\n"),
        language=language,
        theme=theme,
    )


Say = Callable[..., str]


def _reconstruction(altair: Chart, some: Finding, colours: Palette, say: Say, language: str) -> Chart:
    found = cast(CountReconstruction, some)
    names = [say("exact"), say("rounded"), say("vault")]
    rows: list[ChartRow] = [
        {"counts": each.counts, "right": 100 * share, "name": name}
        for each in found.answered
        for name, share in zip(names, (each.exact, each.rounded, each.private), strict=True)
    ]
    x = altair.X(
        "counts:Q",
        scale=altair.Scale(type="log", nice=False),
        axis=altair.Axis(title=say("x"), values=[each.counts for each in found.answered], format=",d", grid=False),
    )
    y = altair.Y("right:Q", scale=altair.Scale(domain=[30, 105]), axis=altair.Axis(title=say("y"), tickCount=6))
    layers = [_bound(altair, found, colours, say, y)]
    # Where each name stands: beside its line, where no other line is.
    places: tuple[tuple[int, ChartRow], ...] = (
        (2, {"align": "right", "dx": -9, "dy": -8}),
        (2, {"align": "left", "dx": 9, "dy": 10}),
        (-1, {"align": "right", "dy": 14 if _falls([each.private for each in found.answered]) else -13}),
    )
    tones = (colours.mark, colours.band, colours.ink)
    for name, tone, (place, how) in zip(names, tones, places, strict=True):
        line = [row for row in rows if row["name"] == name]
        base = altair.Chart(altair.Data(values=line)).encode(x=x, y=y)
        word = altair.Chart(altair.Data(values=[line[min(place, len(line) - 1)]])).encode(x=x, y=y, text="name:N")
        dash = [2, 3] if name == names[-1] else [1, 0]
        layers += [
            base.mark_line(color=tone, strokeWidth=2.5, strokeDash=dash),
            base.mark_point(color=tone, filled=True, size=55, opacity=1),
            word.mark_text(fontSize=12, color=colours.ink, **how),
        ]
    return altair.layer(*layers).properties(width=WIDTH, height=HEIGHT)


def _falls(values: Sequence[float]) -> bool:
    """Whether a line comes down to its end: then a name over the end would be crossed by it."""
    return len(values) > 1 and values[-2] > values[-1]


def _bound(altair: Chart, found: CountReconstruction, colours: Palette, say: Say, y: Chart) -> Chart:
    rule = altair.Chart(altair.Data(values=[{"right": 100 * float(found.bound), "words": say("bound")}])).encode(y=y)
    words = rule.mark_text(align="right", dy=-7, color=colours.quiet, fontSize=11)
    return altair.layer(
        rule.mark_rule(color=colours.quiet, strokeWidth=1.5, strokeDash=[6, 3]),
        words.encode(x=altair.value(WIDTH), text="words:N"),
    )


def _singling_out(altair: Chart, some: Finding, colours: Palette, say: Say, language: str) -> Chart:
    found = cast(SinglingOut, some)
    rows: list[ChartRow] = [
        {
            "name": named_diagnosis(name, language),
            "exact": exact,
            "noisy": noisy,
            "low": noisy - found.margin,
            "high": noisy + found.margin,
        }
        for name, exact, noisy in found.shown
    ]
    cells = altair.Chart(altair.Data(values=rows)).encode(y=_names(altair, [row["name"] for row in rows], colours))
    counts = altair.X("low:Q", axis=altair.Axis(title=say("counts"), tickCount=6), scale=altair.Scale(nice=False))
    left = altair.layer(
        cells.mark_bar(height=8, color=colours.band, cornerRadius=2).encode(x=counts, x2="high:Q"),
        cells.mark_tick(thickness=3, size=14, color=colours.mark, opacity=1).encode(x="noisy:Q"),
        cells.mark_point(shape="circle", size=70, filled=False, strokeWidth=2, color=colours.ink, opacity=1).encode(
            x="exact:Q"
        ),
    ).properties(width=270, height=STEP * len(rows))
    sure: list[ChartRow] = [
        {"name": say("before"), "belief": 100 * float(found.prior)},
        {"name": say("after_exact"), "belief": 100.0},
        {"name": say("after_private"), "belief": 100 * float(found.posterior)},
    ]
    ends = {"low": 100 * float(found.low), "high": 100 * float(found.high)}
    sure[-1] |= ends
    beliefs = altair.Chart(altair.Data(values=sure)).encode(y=_names(altair, [row["name"] for row in sure], colours))
    x, within = (
        altair.X(
            f"{name}:Q",
            scale=altair.Scale(domain=[0, 100], nice=False),
            axis=altair.Axis(title=say("belief"), tickCount=5),
        )
        for name in ("belief", "low")
    )
    right = altair.layer(
        beliefs.transform_filter("isValid(datum.low)")
        .mark_bar(height=14, color=colours.faint, cornerRadius=2)
        .encode(x=within, x2="high:Q"),
        beliefs.mark_point(filled=True, size=80, color=colours.mark, opacity=1).encode(x=x),
    ).properties(width=190, height=2 * STEP * len(sure))
    return altair.hconcat(left, right, spacing=30)


def _k_anonymity(altair: Chart, some: Finding, colours: Palette, say: Say, language: str) -> Chart:
    one = cast(KAnonymity, some).example
    sex, _, ages = one.second.partition(" ")
    second = f"{attack_word(language, f'attack_word.{sex}')} {ages}"
    heads = [say("first_table", words=one.first), say("second_table", words=second), say("both")]
    held = dict(zip(heads, (one.of_first, one.of_second, one.common), strict=True))
    names = [named_diagnosis(name, language) for name in DIAGNOSES if name in {*one.of_first, *one.of_second}]
    rows: list[ChartRow] = [
        {"table": head, "name": named_diagnosis(name, language), "both": head == heads[-1]}
        for head, found in held.items()
        for name in found
    ]
    base = altair.Chart(altair.Data(values=rows)).encode(
        x=altair.X(
            "table:N",
            sort=heads,
            scale=altair.Scale(domain=heads),
            axis=altair.Axis(
                title=None,
                orient="top",
                labelAngle=0,
                labelExpr="split(datum.label, '\\n')",
                labelColor=colours.ink,
                labelFontSize=12,
                labelPadding=20,
            ),
        ),
        y=_names(altair, names, colours),
    )
    tone = altair.condition("datum.both", altair.value(colours.mark), altair.value(colours.band))
    return (
        base.mark_point(filled=True, size=260, opacity=1)
        .encode(color=tone)
        .properties(width=WIDTH, height=1.4 * STEP * len(names))
    )


def _gradients(altair: Chart, some: Finding, colours: Palette, say: Say, language: str) -> Chart:
    found = cast(GradientInversion, some)
    names = [name if name in REGIONS else attack_word(language, f"attack_word.{name}") for name in FEATURES]
    panels: list[Chart] = []
    for part in ("true", "inverted", "noisy"):
        values = getattr(found, part)
        rows: list[ChartRow] = [{"name": name, "size": value} for name, value in zip(names, values, strict=True)]
        tone = colours.band if part == "noisy" else colours.mark
        y = _names(altair, names, colours) if not panels else altair.Y("name:N", sort=names, axis=None)
        bars = (
            altair.Chart(altair.Data(values=rows))
            .mark_bar(height=11, color=tone)
            .encode(
                y=y,
                x=altair.X(
                    "size:Q",
                    axis=altair.Axis(title=None, tickCount=4),
                    scale=altair.Scale() if part == "noisy" else altair.Scale(domain=[0, 1]),
                ),
            )
        )
        title = altair.TitleParams(say(part), fontSize=12, color=colours.ink, anchor="start", offset=6)
        panels.append(altair.layer(bars).properties(width=160, height=0.8 * STEP * len(names), title=title))
    return altair.concat(*panels, columns=len(panels), spacing=24)


def _ridge(altair: Chart, some: Finding, colours: Palette, say: Say, language: str) -> Chart:
    found = cast(RidgeInformation, some)
    tones = (colours.mark, colours.band, colours.quiet)
    top = 4 * max(found.penalties[0].information)
    floor = min(found.penalties[-1].information) / 2
    x = altair.X(
        "penalty:Q",
        scale=altair.Scale(type="log", nice=False),
        axis=altair.Axis(
            title=say("x"), format=",d", grid=False, values=[int(each.penalty) for each in found.penalties]
        ),
    )
    y = altair.Y(
        "information:Q",
        scale=altair.Scale(type="log", domain=[floor, 2 * top], nice=False),
        axis=altair.Axis(
            title=say("y"), format="~g", values=[10.0**power for power in range(-12, 9) if 10.0**power < top / 4]
        ),
    )
    layers = []
    for place, (noise, tone) in enumerate(zip(found.noises, tones, strict=True)):
        rows: list[ChartRow] = [
            {"penalty": int(each.penalty), "information": each.information[place]} for each in found.penalties
        ]
        base = altair.Chart(altair.Data(values=rows)).encode(x=x, y=y)
        name = altair.Chart(altair.Data(values=[rows[-1] | {"name": f"τ = {float(noise):g}"}])).encode(x=x, y=y)
        layers += [
            base.mark_line(color=tone, strokeWidth=2.5, point={"color": tone, "size": 40}),
            name.mark_text(align="left", dx=9, color=colours.ink, fontSize=12).encode(text="name:N"),
        ]
    rule = altair.Chart(altair.Data(values=[{"information": top, "words": say("infinite")}])).encode(y=y)
    layers += [
        rule.mark_rule(color=colours.ink, strokeWidth=2, strokeDash=[2, 3]),
        rule.mark_text(align="left", dx=4, dy=-8, color=colours.ink, fontSize=12).encode(
            x=altair.value(0), text="words:N"
        ),
    ]
    return altair.layer(*layers).properties(width=WIDTH - 40, height=HEIGHT)


def _names(altair: Chart, names: Sequence[str], colours: Palette) -> Chart:
    room = max(sum(13 if ord(sign) > 0x2E80 else 7.3 for sign in name) for name in names)  # in the widest of fonts
    axis = altair.Axis(
        title=None, labelLimit=240, labelColor=colours.ink, labelFontSize=12, grid=False, minExtent=min(240, room)
    )
    return altair.Y("name:N", sort=list(names), axis=axis)


_DRAWN: dict[str, Callable[[Chart, Finding, Palette, Say, str], Chart]] = {
    "reconstruction": _reconstruction,
    "singling_out": _singling_out,
    "k_anonymity": _k_anonymity,
    "gradients": _gradients,
    "ridge": _ridge,
}
