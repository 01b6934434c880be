"""What each demonstration says, in English and Chinese: a title and a few paragraphs, filled with what was found."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib import resources

from sfumato.demo.attacks.gradients import GradientInversion
from sfumato.demo.attacks.k_anonymity import KAnonymity
from sfumato.demo.attacks.reconstruction import CountReconstruction
from sfumato.demo.attacks.ridge import RidgeInformation
from sfumato.demo.attacks.singling_out import SinglingOut
from sfumato.demo.network import SMALL_REGION
from sfumato.errors import Unsupported
from sfumato.reports.catalogue import LANGUAGES, in_chinese, read
from sfumato.reports.chinese import fill
from sfumato.reports.plots.labels import listing

__all__ = ["FINDINGS", "AttackStory", "Finding", "attack_facts", "attack_story", "attack_word", "named_diagnosis"]

Finding = CountReconstruction | SinglingOut | KAnonymity | GradientInversion | RidgeInformation
FINDINGS: Mapping[type, str] = {
    CountReconstruction: "reconstruction",
    SinglingOut: "singling_out",
    KAnonymity: "k_anonymity",
    GradientInversion: "gradients",
    RidgeInformation: "ridge",
}
PARTS = ("claim", "attack", "found", "private", "lesson")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackStory:
    """A demonstration in words: what is often said, the attack, what it found, what ε leaves of it, and the lesson."""

    name: str
    title: str
    paragraphs: tuple[str, ...]


def attack_word(language: str, identifier: str, **facts: object) -> str:
    """Fill in a message of the demonstrations.

    >>> attack_word("en", "attack_word.years", age=31), attack_word("zh", "attack_word.F")
    ('31 years', '女')
    """
    if language not in LANGUAGES:
        raise Unsupported(f"there is no text in {language!r}; the languages are en and zh-Hans (zh for short).")
    words = _messages()[LANGUAGES[language]][identifier]
    return fill(words, facts) if in_chinese(language) else words.format(**facts)


def named_diagnosis(diagnosis: str, language: str) -> str:
    """A diagnosis of the generated hospital in a language."""
    return attack_word(language, f"attack_diagnosis.{diagnosis.replace(' ', '_')}")


def attack_story(found: Finding, language: str = "en") -> AttackStory:
    """The words of a demonstration."""
    name, facts = FINDINGS[type(found)], attack_facts(found, language)
    title, *paragraphs = (attack_word(language, f"{name}.{part}", **facts) for part in ("title", *PARTS))
    return AttackStory(name=name, title=title, paragraphs=tuple(paragraphs))


def attack_facts(found: Finding, language: str) -> dict[str, object]:
    """What the messages of a demonstration are filled with."""
    match found:
        case CountReconstruction():
            return _of_reconstruction(found)
        case SinglingOut():
            return _of_singling_out(found, language)
        case KAnonymity():
            return _of_k_anonymity(found, language)
        case GradientInversion():
            return _of_gradients(found)
        case RidgeInformation():
            return _of_ridge(found)


def _of_reconstruction(found: CountReconstruction) -> dict[str, object]:
    most = found.most
    return {
        "people": found.people,
        "counts": most.counts,
        "epsilon": found.epsilon,
        "scale": most.scale,
        "exact": round(most.exact * found.people),
        "rounded": round(most.rounded * found.people),
        "private": round(most.private * found.people),
        "bound": _share(found.bound),
    }


def _of_singling_out(found: SinglingOut, language: str) -> dict[str, object]:
    told = dict(found.told)
    words = [
        attack_word(language, f"attack_word.{told['sex']}"),
        attack_word(language, "attack_word.years", **_of(told, "age")),
    ]
    if "sbp" in told:
        words.append(attack_word(language, "attack_word.pressure", **_of(told, "sbp")))
    return {
        "region": found.region,
        "diagnosis": named_diagnosis(found.diagnosis, language),
        "count": found.count,
        "told": listing(words, language),
        "cells": found.cells,
        "ones": found.cells_of_one,
        "epsilon": found.epsilon,
        "released": found.released,
        "margin": found.margin,
        **{name: _share(getattr(found, name)) for name in ("prior", "posterior", "low", "high")},
    }


def _of_k_anonymity(found: KAnonymity, language: str) -> dict[str, object]:
    one = found.example
    return {
        "k": min(found.k),
        "region": SMALL_REGION,
        "people": found.people,
        "age": one.age,
        "sex": attack_word(language, f"attack_word.{one.sex}"),
        "first_class": one.first,
        "second_class": _class(one.second, language),
        "first": _diagnoses(one.of_first, language),
        "second": _diagnoses(one.of_second, language),
        "common": _diagnoses(one.common, language),
        "alone": found.alone,
        "told": found.told,
        "homogeneous": found.homogeneous,
        "ruled_out": named_diagnosis(found.ruled_out, language),
        "background": found.background[0],
    }


def _of_gradients(found: GradientInversion) -> dict[str, object]:
    return {
        "patient": found.patient,
        "features": len(found.true),
        "candidates": found.candidates,
        "worst": _at_most(found.worst),
        "right_without": found.right_without,
        "multiplier": f"{float(found.multiplier):.2f}",
        "epsilon": found.epsilon,
        "delta": f"{float(found.delta):g}",
        "right": found.right,
        "tries": found.tries,
        "allowed": f"{found.allowed * found.tries:.1f}",
        "blind": f"{found.tries / found.candidates:.1f}",
    }


def _of_ridge(found: RidgeInformation) -> dict[str, object]:
    first = found.penalties[0]
    return {
        "people": found.people,
        "least": f"{int(first.penalty):,}",
        "most": f"{int(found.penalties[-1].penalty):,}",
        "true": f"{found.true:.1f}",
        "worst": _at_most(found.worst),
        "high": f"{first.information[0]:.2f}",
        "low": f"{first.information[-1]:.2f}",
        "small": float(found.noises[0]),
        "large": found.noises[-1],
    }


def _class(shown: str, language: str) -> str:
    sex, _, ages = shown.partition(" ")
    return listing([attack_word(language, f"attack_word.{sex}"), ages], language)


def _diagnoses(names: tuple[str, ...], language: str) -> str:
    return listing([named_diagnosis(name, language) for name in names], language)


def _of(told: Mapping[str, str], name: str) -> dict[str, str]:
    return {name: told[name]}


def _share(share: Fraction | float) -> str:
    return f"{100 * float(share):.1f}".removesuffix(".0") + "%"


def _at_most(size: float) -> str:
    """A small number to one digit, rounded up."""
    if size == 0:
        return "0"
    power = math.floor(math.log10(size))
    return f"{math.ceil(size / 10.0**power) * 10.0**power:.0e}"


@cache
def _messages() -> dict[str, dict[str, str]]:
    folder = resources.files("sfumato.demo").joinpath("messages")
    languages = sorted(set(LANGUAGES.values()))
    return read({each: [folder.joinpath(f"attacks.{each}.toml").read_text("utf-8")] for each in languages})
