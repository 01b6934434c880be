"""Membership attacks with reference models, on models of invented people."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli.audit import REFUTED
from sfumato.cli.output import AsJson, say, say_json
from sfumato.cli.written import PAGES, check_file, written_last

if TYPE_CHECKING:
    from sfumato.audit.membership_study import MembershipStudy
    from sfumato.audit.reference_models import ModelMembership

__all__ = ["membership"]


def membership(
    *,
    epsilon: Annotated[str, typer.Option(help="The ε of each private run.")] = "2",
    delta: Annotated[str, typer.Option(help="The δ of each private run.")] = "1/1000000",
    people: Annotated[int, typer.Option(min=40, help="How many people are invented.")] = 800,
    runs: Annotated[int, typer.Option(min=3, help="How many models of each kind are attacked.")] = 10,
    references: Annotated[int, typer.Option(min=4, help="Reference models of LiRA, in pairs; RMIA has 4.")] = 64,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.999999, help="Of each interval.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Of the invented people and of the adversary.")] = 1,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write a page with the curves, .html.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask who was in the training data of two models of invented people, by attacks with reference models.

    LiRA and RMIA train models of their own, with a person and without, and compare. One of the two models is
    unprotected and learned its people by heart: there the attacks must find something. The other is trained by a
    vault at the ε that is asked for; what they find there stands beside the most that its guarantee allows any attack.

    It takes no data of yours: on real people the figures would be a release about them. Where the attacks find
    nothing on the private model, that proves no privacy. Takes some 20 seconds of a processor, and needs torch. Exits
    with 4 if the guarantee is refuted, or if an attack does not see through the unprotected model.

    Example: $ sfumato audit membership --epsilon 2 -o membership.html
    """
    from rich.console import Console
    from rich.progress import Progress

    from sfumato.audit.membership_page import write_membership_page
    from sfumato.audit.membership_study import StudySize, membership_study

    check_file(out, PAGES)
    size = StudySize(people=people, runs=runs, lira_references=references)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("training and attacking", total=None)
        study = membership_study(
            epsilon=epsilon,
            delta=delta,
            size=size,
            seed=seed,
            confidence=confidence,
            told=lambda done, of: progress.update(task, completed=done, total=of),
        )
    say_json(_plain(study)) if as_json else _told(study)
    code = written_last(
        None if out is None else lambda: write_membership_page(study, out),
        quiet=as_json,
        ending=REFUTED if study.refuted or study.blunt else 0,
    )
    if code:
        raise typer.Exit(code)


def _told(study: "MembershipStudy") -> None:
    for title, found in (
        ("Unprotected, learned by heart", study.overfitted),
        (f"Private, ε = {float(study.epsilon):g}, δ = {float(study.delta):g}", study.private),
    ):
        say(title)
        for each in found:
            for line in str(each).splitlines():
                say(f"  {line}")
        say("")


def _plain(study: "MembershipStudy") -> dict[str, object]:
    return {
        "epsilon": str(study.epsilon),
        "delta": str(study.delta),
        "seed": study.seed,
        "refuted": study.refuted,
        "blunt": study.blunt,
        "overfitted": [_one(each) for each in study.overfitted],
        "private": [_one(each) for each in study.private],
    }


def _one(found: "ModelMembership") -> dict[str, object]:
    return {**asdict(found), "finds": found.finds}
