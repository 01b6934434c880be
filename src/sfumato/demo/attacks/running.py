"""Runs all demonstrations, and writes their pictures and one page that shows them with their words."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from sfumato.core import enclosures
from sfumato.core.budget import Budget
from sfumato.core.exact import Exact
from sfumato.demo.attacks.gradients import demonstrate_gradient_inversion
from sfumato.demo.attacks.hospital import Register, register
from sfumato.demo.attacks.k_anonymity import demonstrate_k_anonymity
from sfumato.demo.attacks.pictures import attack_picture
from sfumato.demo.attacks.reconstruction import demonstrate_reconstruction
from sfumato.demo.attacks.ridge import demonstrate_ridge
from sfumato.demo.attacks.singling_out import demonstrate_singling_out
from sfumato.demo.attacks.words import FINDINGS, Finding, attack_story, attack_word
from sfumato.errors import InvalidInput, MissingExtra
from sfumato.reports.catalogue import LANGUAGES
from sfumato.reports.drawings import Drawing, laid_out
from sfumato.reports.gallery import GalleryPart, ShownPicture, gallery
from sfumato.reports.page import write_text
from sfumato.reports.plots.saving import save

__all__ = ["FOLDER", "NAMES", "AttackDemonstrations", "claimed", "demonstrate", "show", "written"]

FOLDER = "sfumato-attacks"
NAMES = tuple(FINDINGS.values())
MARK = "This folder was made by `sfumato demo attacks`, which overwrites its own files when it is run again."
README = f"{MARK}\nThe people in it are generated: no real person occurs.\n"
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackDemonstrations:
    """What all demonstrations found. Public: experiments on invented people."""

    epsilon: Fraction
    patients: int
    found: tuple[Finding, ...]


def demonstrate(
    *, epsilon: Exact = 1, hospital: Register | None = None, progress: Progress | None = None
) -> AttackDemonstrations:
    """Run the five demonstrations on the generated hospital; ``progress`` hears the name of each before it starts."""
    spend = Budget.asked(epsilon=epsilon, delta=0).epsilon
    people = register() if hospital is None else hospital
    steps: tuple[Callable[[], Finding], ...] = (
        lambda: demonstrate_reconstruction(people, epsilon=spend),
        lambda: demonstrate_singling_out(people, epsilon=spend),
        lambda: demonstrate_k_anonymity(people),
        lambda: demonstrate_gradient_inversion(people, epsilon=spend),
        lambda: demonstrate_ridge(people),
    )
    found = []
    for name, step in zip(NAMES, steps, strict=True):
        if progress is not None:
            progress(name)
        found.append(step())
    return AttackDemonstrations(epsilon=spend, patients=len(people), found=tuple(found))


def show(made: AttackDemonstrations, languages: Sequence[str] = ("en", "zh")) -> str:
    """One page with the words and pictures of all demonstrations; without the ``plots`` extra it has words alone."""
    return gallery([_part(made, LANGUAGES[language]) for language in languages])


def written(
    made: AttackDemonstrations,
    folder: str | Path = FOLDER,
    *,
    languages: Sequence[str] = ("en", "zh"),
    progress: Progress | None = None,
) -> tuple[Path, ...]:
    """Write ``attacks.html`` and each picture as SVG and PNG, in the first of the languages, and return the paths.

    A folder that holds anything but an earlier run is refused. Without the ``plots`` extra there are no pictures.
    """
    place = claimed(folder)
    if progress is not None:
        progress("attacks.html")
    files = [write_text(show(made, languages), place / "attacks.html")]
    for found in made.found:
        name = FINDINGS[type(found)]
        if progress is not None:
            progress(name)
        targets = [place / f"{name}.{ending}" for ending in ("svg", "png")]
        try:
            chart = attack_picture(found, languages[0])
            files += [save(chart, target) for target in targets]
        except MissingExtra:
            for target in targets:
                target.unlink(missing_ok=True)  # of an earlier run, which showed other numbers
    return tuple(files)


def claimed(folder: str | Path) -> Path:
    """Take an empty or a new folder, or one that an earlier run made; any other is refused."""
    place = Path(folder)
    mark = place / "README.txt"
    try:
        place.mkdir(parents=True, exist_ok=True)
        ours = mark.is_file() and mark.read_text(encoding="utf-8", errors="replace").startswith(MARK)
        if not ours and any(place.iterdir()):
            raise InvalidInput(
                f"the folder {place} holds files that are not from an earlier run, and a run overwrites files. "
                "Nothing was written. Choose another folder: sfumato demo attacks --folder NEW"
            )
        mark.write_text(README, encoding="utf-8")
    except OSError as wrong:
        raise InvalidInput(
            f"{place} cannot be written: {wrong.strerror or wrong}. "
            "Choose another folder: sfumato demo attacks --folder NEW"
        ) from None
    return place


def _part(made: AttackDemonstrations, language: str) -> GalleryPart:
    facts = {
        "patients": f"{made.patients:,}",
        "epsilon": made.epsilon,
        "factor": f"{float(enclosures.exp(made.epsilon).high):.3g}",
    }
    stories = [attack_story(found, language) for found in made.found]
    return GalleryPart(
        language=language,
        kind=attack_word(language, "attack_page.kind"),
        title=attack_word(language, "attack_page.title"),
        lead=tuple(attack_word(language, f"attack_page.{part}", **facts) for part in ("lead", "terms", "limits")),
        shown=tuple(
            ShownPicture(
                name=story.name,
                title=story.title,
                paragraphs=story.paragraphs,
                drawing=_drawn(found, language),
            )
            for found, story in zip(made.found, stories, strict=True)
        ),
    )


def _drawn(found: Finding, language: str) -> Drawing | None:
    try:
        spec = attack_picture(found, language).to_dict()
        return laid_out(spec, label=attack_word(language, f"{FINDINGS[type(found)]}.plot_label"))
    except MissingExtra:
        return None
