"""A release that is only thought of, in words: what it could teach, how exact it would be, what several would cost."""

from fractions import Fraction

from sfumato.core import enclosures
from sfumato.core.adversary import belief
from sfumato.core.budget import Budget
from sfumato.core.exact import Exact, decimal_down, natural, positive, probability
from sfumato.core.guarantees import Approximate, Pure
from sfumato.core.units import Relation, Unit
from sfumato.errors import InvalidInput
from sfumato.laws import DiscreteLaplace, RoundedGaussian
from sfumato.mechanisms.gaussian import Gaussian
from sfumato.reports.catalogue import counted
from sfumato.reports.frequencies import OF, PRIOR, believed, guessed, so_many
from sfumato.reports.words.facts import CONFIDENCE, guarantee_of
from sfumato.reports.words.figures import amount, exact, named, risk
from sfumato.reports.words.voice import Voice

__all__ = ["nearest", "what_if"]


def what_if(
    *,
    unit: Unit,
    epsilon: Exact,
    delta: Exact = 0,
    prior: Exact = PRIOR,
    moved: Exact = 1,
    releases: int = 10,
    language: str = "en",
) -> str:
    """Explain a release of one figure that nobody has made: risk, error, and what ``releases`` of them would cost.

    Guarantee: for ``unit`` under its own relation, by basic composition. ``prior`` is the belief that the unit is in
    the data (under replace, that it has a certain trait); with a ``delta`` no belief is bounded, and the text gives how
    often a guess is right. ``moved`` is how far one unit can move the figure. Bounds out of 1,000 are rounded outward;
    percentages, and what the text calls "about", are rounded to the nearest digit shown. No data is opened.

    >>> from sfumato.core.units import user
    >>> text = what_if(unit=user("id", relation="add/remove"), epsilon=0.5)
    >>> [figure in text for figure in ("84.52%", "93.69%", "15.48%", "within about ±5.99", "10 times as much")]
    [True, True, True, True, True]
    """
    each, times = Budget.asked(epsilon=epsilon, delta=delta), natural(releases, "releases")
    total = Budget.asked(epsilon=times * each.epsilon, delta=times * each.delta)
    chance, reach = probability(prior, "prior"), positive(moved, "moved")
    if chance in (0, 1) or (OF * chance).denominator != 1:
        raise InvalidInput(f"prior = {chance} is not a number of thousandths between 0 and 1; no text was made.")
    relation = {Relation.ADD_REMOVE: "add_remove", Relation.REPLACE: "replace"}[unit.relation]
    one, several = guarantee_of(each), guarantee_of(total)
    shown = {
        **named(unit, language),
        **risk(one, unit.relation, chance, language=language),
        "cost": amount(each, language),
        "times": f"{times:,}",
        "releases": counted(language, "release", times),
        "total": amount(total, language),
        "moved": exact(reach),
    }
    if isinstance(one, Pure):
        shown |= _percent(one, chance) | _all(several, chance, language) | _laplace(reach / each.epsilon)
        told = (f"belief_{relation}", "trait") if relation == "add_remove" else (f"belief_{relation}",)
        error, after = "laplace", f"after_all_{relation}"
    else:
        shown |= {"all_guess": f"{guessed(several).high:,}"} | _gaussian(reach, each)
        told, error, after = (f"guess_{relation}", "delta"), "gaussian", "after_all_guess"
    narrower = ("narrower",) if "less" in shown else ()
    paragraphs = [("setting", *told), (error, *narrower), *([("composition", after)] if times > 1 else [])]
    voice = Voice(language=language, figures=shown)
    return "\n\n".join(voice.say(*(f"what_if.{name}" for name in names)) for names in paragraphs)


def nearest(value: Fraction, places: int) -> str:
    """A decimal to the nearest digit shown, without idle zeros; for figures that a text calls "about".

    >>> nearest(Fraction(59915, 10000), 2), nearest(Fraction(2), 2)
    ('5.99', '2')
    """
    units = round(value * 10**places)
    whole, rest = divmod(units, 10**places)
    return f"{whole:,}.{rest:0{places}d}".rstrip("0").rstrip(".") if places else f"{units:,}"


def _percent(guarantee: Pure, prior: Fraction) -> dict[str, str]:
    moved = belief(guarantee, prior)
    beliefs = {"prior": moved.prior, "low": moved.low, "high": moved.high}
    beliefs |= {"opposite": 1 - moved.prior, "opposite_low": 1 - moved.high, "opposite_high": 1 - moved.low}
    return {f"{name}_percent": _short_of_certainty(100 * chance) for name, chance in beliefs.items()}


def _short_of_certainty(percent: Fraction) -> str:
    """Two digits after the point, or as many as it takes not to show 0 or 100 where neither is true."""
    for places in range(2, 12):
        shown = nearest(percent, places)
        if shown not in ("0", "100"):
            break
    return shown


def _all(guarantee: Pure | Approximate, prior: Fraction, language: str) -> dict[str, str]:
    moved = believed(guarantee, prior)
    counts = {"low": moved.low, "high": moved.high}
    counts |= {"opposite_low": moved.opposite.low, "opposite_high": moved.opposite.high}
    return {f"all_{name}": so_many(count, language) for name, count in counts.items()}


def _laplace(scale: Fraction) -> dict[str, str]:
    """On a continuous scale: the mean absolute error is the scale b, and 95% of errors lie within b·ln 20."""
    bound = scale * enclosures.log(1 / (1 - CONFIDENCE)).high
    continuous = {"scale": exact(scale), "mean": exact(scale), "bound": nearest(bound, 2)}
    return continuous | _whole(DiscreteLaplace(scale=scale))


def _gaussian(moved: Fraction, spend: Budget) -> dict[str, str]:
    noise = Gaussian.calibrated(l2=moved, epsilon=spend.epsilon, delta=spend.delta)
    return {"sigma": nearest(noise.sigma, 3)} | _whole(noise.law)


def _whole(law: DiscreteLaplace | RoundedGaussian) -> dict[str, str]:
    """The law that runs: what ±margin covers, rounded down, and what one less would."""
    margin = law.margin(CONFIDENCE)
    shown = {"whole_mean": nearest(law.mean_absolute_error, 3), "margin": f"{margin:,}"}
    shown["covered"] = decimal_down(100 * (1 - law.tail(margin).high), 3)
    if margin > 0:
        shown |= {"less": f"{margin - 1:,}", "less_covered": nearest(100 * (1 - law.tail(margin - 1).high), 1)}
    return shown
