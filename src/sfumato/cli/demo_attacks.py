"""The demonstrations of attacks on invented people."""

import dataclasses
import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato.cli.output import AsJson, say, say_json, say_paragraphs

if TYPE_CHECKING:
    from sfumato.demo.attacks.running import AttackDemonstrations

__all__ = ["attacks"]


def attacks(
    *,
    folder: Annotated[Path, typer.Option(help="Where the files go; made if it is not there.")] = Path(
        "sfumato-attacks"
    ),
    epsilon: Annotated[
        str, typer.Option(metavar="ε", help="The privacy budget of each vault, such as 1 or 1/2.")
    ] = "1",
    lang: Annotated[Literal["both", "en", "zh"], typer.Option(help="The languages of the page.")] = "both",
    as_json: AsJson = False,
) -> None:
    """Attack a generated hospital: what removed names, k-anonymity, federated updates and penalties do not protect.

    Five demonstrations on invented people, each beside what differential privacy leaves of it: secret bits from exact
    counts, one person in a table without identifiers, two 3-anonymous tables laid side by side, a row from the gradient
    that it gave, and a blood pressure from a ridge regression. Writes one page with words and pictures, and the
    pictures by themselves. No real person occurs in the data. A folder that holds anything else is refused.

    Example: $ sfumato demo attacks

    Example: $ sfumato demo attacks --folder attacks --lang zh --epsilon 1/2 --json
    """
    from rich.console import Console
    from rich.progress import Progress

    from sfumato.core.budget import Budget
    from sfumato.demo.attacks.running import NAMES, claimed, demonstrate, written
    from sfumato.demo.attacks.words import attack_story, attack_word

    spend = Budget.asked(epsilon=epsilon, delta=0).epsilon
    claimed(folder)  # before the work, so that a folder that is not ours is refused at once
    languages = ("en", "zh") if lang == "both" else (lang,)
    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("attacking", total=2 * len(NAMES) + 1)

        def step(name: str) -> None:
            shown.update(task, description=name.replace("_", " "), advance=1)

        made = demonstrate(epsilon=spend, progress=step)
        files = written(made, folder, languages=languages, progress=step)
    if as_json:
        say_json(_document(made, files))
        return
    for found in made.found:
        story = attack_story(found, languages[0])
        say(f"{story.title}\n")
        say_paragraphs("\n\n".join(story.paragraphs) + "\n\n")
    if len(files) == 1:
        say(attack_word(languages[0], "attack_page.no_pictures"), error=True)
    say(attack_word(languages[0], f"attack_page.{'written_with' if len(files) > 1 else 'written'}", file=files[0]))


def _document(made: "AttackDemonstrations", files: tuple[Path, ...]) -> dict[str, object]:
    from sfumato.demo.attacks.words import FINDINGS

    return {
        "epsilon": str(made.epsilon),
        "patients": made.patients,
        "demonstrations": {FINDINGS[type(found)]: _plain(found) for found in made.found},
        "files": [str(file) for file in files],
    }


def _plain(value: object) -> object:
    """A result for programs: exact numbers become text, and what is infinite is said in a word."""
    match value:
        case Fraction():
            return str(value) if value.denominator < 10**9 else float(value)
        case float() if not math.isfinite(value):
            return "infinite"
        case tuple():
            return [_plain(each) for each in value]
        case _ if dataclasses.is_dataclass(value):
            return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _:
            return value
