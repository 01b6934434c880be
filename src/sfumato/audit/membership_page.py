"""The page of a membership study: curves of both models side by side, the figures, and what they do not show."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sfumato.audit.membership_study import MembershipStudy
from sfumato.audit.reference_models import ModelMembership, others_needed
from sfumato.audit.roc_plot import FEW, roc_chart
from sfumato.core.exact import decimal_up
from sfumato.core.extras import need
from sfumato.errors import MissingExtra
from sfumato.reports.catalogue import message
from sfumato.reports.page import language_switch, page_style, write_text, wrong_ending
from sfumato.reports.plots.saving import svg_of
from sfumato.reports.rendering import Markup, render

__all__ = ["membership_page", "write_membership_page"]

LANGUAGES = ("en", "zh-Hans")
Say = Callable[..., str]
PADDING = {"left": 12, "right": 12, "top": 4, "bottom": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipTable:
    """Figures of all attacks on both models under their heads; ``notes`` say what they are."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipPart:
    """What the page says in one language, as plain text; the template escapes it."""

    language: str
    lead: str
    verdict: str
    picture: Markup | None
    shaded: str
    tables: tuple[MembershipTable, ...]
    seed: str

    def say(self, identifier: str) -> str:
        """A message in the language of this part that has no facts in it."""
        return message(self.language, identifier)


def membership_page(study: MembershipStudy) -> str:
    """The page as HTML, in English and Chinese; without pictures where the ``plots`` extra is missing.

    Public: everybody in the study is invented.
    """
    return render(
        "membership.html",
        parts=[_part(study, language) for language in LANGUAGES],
        style=page_style(),
        switch=language_switch(LANGUAGES),
        switched=True,
    )


def write_membership_page(study: MembershipStudy, path: Path) -> Path:
    """Write the page as ``.html`` and return its path."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise wrong_ending(path, path.suffix)
    return write_text(membership_page(study), path)


def _part(study: MembershipStudy, language: str) -> MembershipPart:
    first, second = study.private

    def say(name: str, **facts: object) -> str:
        return message(language, f"membership_page.{name}", **facts)

    return MembershipPart(
        language=language,
        lead=say(
            "lead",
            lira=first.references,
            rmia=second.references,
            epsilon=decimal_up(study.epsilon),
            delta=decimal_up(study.delta),
            runs=first.runs,
        ),
        verdict=say(_verdict(study)),
        picture=_picture(study, language),
        shaded=say("shaded", few=FEW),
        tables=(_areas(study, say), _rates(study, say)),
        seed=say("seed", seed=study.seed),
    )


def _areas(study: MembershipStudy, say: Say) -> MembershipTable:
    """The area of each attack beside the largest that the guarantee allows."""
    first = study.private[0]

    def figures(found: ModelMembership) -> tuple[str, ...]:
        most = (say("no_limit"), "–") if found.bound is None else (f"{found.bound:.3f}", f"{found.curve_bound:.3f}")
        return (f"{found.auc:.3f}", f"{found.low:.3f} – {found.high:.3f}", *most)

    return MembershipTable(
        title=say("areas"),
        heads=_heads(study, say, "area"),
        rows=_rows(study, say, figures),
        notes=(say("area_is", runs=first.runs, members=f"{first.members:,}", others=f"{first.others:,}"),),
    )


def _rates(study: MembershipStudy, say: Say) -> MembershipTable:
    """True positives of each attack where false ones are few, beside the most that the guarantee allows."""
    needed = others_needed(study.private[0].confidence)

    def figures(found: ModelMembership) -> tuple[str, ...]:
        few = found.few_false
        told = (say("unmeasured"), "–") if few is None else (f"{few.rate:.4f}", f"{few.low:.4f} – {few.high:.4f}")
        return (
            *told,
            *(
                (say("no_limit"), "–")
                if found.most_true is None
                else (f"{found.most_true:.4f}", f"{found.curve_most_true:.4f}")
            ),
        )

    return MembershipTable(
        title=say("rates"),
        heads=_heads(study, say, "rate"),
        rows=_rows(study, say, figures),
        notes=(say("rate_is", needed=f"{needed:,}"), say("bound_is")),
    )


def _heads(study: MembershipStudy, say: Say, figure: str) -> tuple[str, ...]:
    level = f"{100 * study.private[0].confidence:g}"
    names = ("model", "attack", figure, "interval", "allowed", "allowed_curve")
    return tuple(say(name, level=level) if name == "interval" else say(name) for name in names)


def _rows(
    study: MembershipStudy, say: Say, figures: Callable[[ModelMembership], tuple[str, ...]]
) -> tuple[tuple[str, ...], ...]:
    private = say("private", epsilon=decimal_up(study.epsilon))
    return tuple(
        (name, found.attack, *figures(found))
        for name, attacks in ((say("overfitted"), study.overfitted), (private, study.private))
        for found in attacks
    )


def _verdict(study: MembershipStudy) -> str:
    if study.refuted:
        return "refuted"
    if study.blunt:
        return "blunt"
    return "found" if any(each.finds for each in study.private) else "nothing"


def _picture(study: MembershipStudy, language: str) -> Markup | None:
    try:
        need("vl_convert", "pip install 'sfumato[plots]'")
        spec = roc_chart(study, language).to_dict()
    except MissingExtra:
        return None
    spec.pop("title")
    spec["padding"] = PADDING
    return Markup(svg_of(spec))
