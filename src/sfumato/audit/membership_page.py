"""The page of a membership study: curves of both models side by side, the figures, and what they do not show."""

from dataclasses import dataclass
from pathlib import Path

from sfumato.audit.membership_study import MembershipStudy
from sfumato.audit.reference_models import ModelMembership, others_needed
from sfumato.audit.roc_plot import roc_chart
from sfumato.core.exact import decimal_up
from sfumato.core.extras import need
from sfumato.errors import MissingExtra
from sfumato.reports.catalogue import message
from sfumato.reports.page import language_switch, page_style, write_text, wrong_ending
from sfumato.reports.plots.saving import svg_of
from sfumato.reports.rendering import Markup, render

__all__ = ["check_page", "membership_page", "write_membership_page"]

LANGUAGES = ("en", "zh-Hans")
PADDING = {"left": 12, "right": 12, "top": 4, "bottom": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipPart:
    """What the page says in one language, as plain text; the template escapes it."""

    language: str
    lead: str
    verdict: str
    picture: Markup | None
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]
    seed: str

    def say(self, name: str) -> str:
        """A message of the page that has no facts in it."""
        return message(self.language, f"membership_page.{name}")


def membership_page(study: MembershipStudy) -> str:
    """The page as HTML, in English and Chinese; without pictures where the ``plots`` extra is missing.

    Public: everybody in the study is invented.
    """
    return render(
        "membership.html",
        parts=[_part(study, language) for language in LANGUAGES],
        style=page_style(),
        switch=language_switch(LANGUAGES),
    )


def write_membership_page(study: MembershipStudy, path: Path) -> Path:
    """Write the page as ``.html`` and return its path."""
    check_page(path)
    return write_text(membership_page(study), path)


def check_page(path: Path) -> None:
    """Refuse a path that is not that of a page, before anything is computed."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise wrong_ending(path, path.suffix)


def _part(study: MembershipStudy, language: str) -> MembershipPart:
    def say(name: str, **facts: object) -> str:
        return message(language, f"membership_page.{name}", **facts)

    first, second = study.private
    level = f"{100 * first.confidence:g}"
    names = ("model", "attack", "references", "area", "interval", "allowed", "allowed_curve", "rate", "interval")
    return MembershipPart(
        language=language,
        lead=say(
            "lead",
            lira=first.references,
            rmia=second.references,
            epsilon=decimal_up(study.epsilon),
            delta=f"{float(study.delta):g}",
            runs=first.runs,
        ),
        verdict=say(_verdict(study)),
        picture=_picture(study, language),
        heads=tuple(say(name, level=level) if name == "interval" else say(name) for name in names),
        rows=tuple(
            (say("overfitted") if found.bound is None else say("private", epsilon=decimal_up(study.epsilon)), *figures)
            for found in (*study.overfitted, *study.private)
            for figures in (_figures(found, say("unmeasured"), say("no_limit")),)
        ),
        notes=(
            say("area_is", runs=first.runs, members=f"{first.members:,}", others=f"{first.others:,}"),
            say("bound_is"),
            say("rate_is", needed=f"{others_needed(first.confidence):,}"),
        ),
        seed=say("seed", seed=study.seed),
    )


def _verdict(study: MembershipStudy) -> str:
    if study.refuted:
        return "refuted"
    if study.blunt:
        return "blunt"
    return "found" if any(each.finds for each in study.private) else "nothing"


def _figures(found: ModelMembership, unmeasured: str, no_limit: str) -> tuple[str, ...]:
    few = found.few_false
    return (
        found.attack,
        str(found.references),
        f"{found.auc:.3f}",
        f"{found.low:.3f} – {found.high:.3f}",
        no_limit if found.bound is None else f"{found.bound:.3f} · {found.most_true:.4f}",
        "–" if found.curve_bound is None else f"{found.curve_bound:.3f} · {found.curve_most_true:.4f}",
        unmeasured if few is None else f"{few.rate:.4f}",
        "–" if few is None else f"{few.low:.4f} – {few.high:.4f}",
    )


def _picture(study: MembershipStudy, language: str) -> Markup | None:
    try:
        need("vl_convert", "pip install 'sfumato[plots]'")
        spec = roc_chart(study, language).to_dict()
    except MissingExtra:
        return None
    spec.pop("title")
    spec["padding"] = PADDING
    return Markup(svg_of(spec))
