"""Every figure and name that a text may show, worked out once for all texts and rounded against us.

One table of figures for all readers, and for both languages but for how they are written: texts that are filled in from
it cannot contradict one another. A figure that must not be shown (a bound on a belief where there is a δ) is not in
the table.
"""

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import reduce

from sfumato.core import enclosures
from sfumato.core.budget import Budget
from sfumato.core.cut import row_words
from sfumato.core.description import Description, Form, Word, plain
from sfumato.core.exact import decimal_down, decimal_up
from sfumato.core.guarantees import Approximate, Pure
from sfumato.core.units import Family, Relation, Unit, User
from sfumato.errors import Unsupported
from sfumato.reports.catalogue import counted, in_chinese, message, messages
from sfumato.reports.columns import magnitude
from sfumato.reports.frequencies import PRIOR, believed, guessed, so_many
from sfumato.reports.words.facts import Facts, Margins, Span
from sfumato.reports.words.facts import named as dataset_words
from sfumato.reports.words.rendering import listed, one_line, render
from sfumato.reports.words.voice import paragraph

__all__ = [
    "amount",
    "exact",
    "factor",
    "figures",
    "named",
    "one_line",
    "ranges",
    "risk",
    "span_figure",
    "span_line",
]

HOUSEHOLD, BELONGINGS = 4, 5  # the examples: persons in a household, rows (events, links) of one person
TIMES = 10  # the example of what several releases cost
QUESTIONS = ("trait", "traits", "example", "case")  # what may be asked of a unit: an illness, the kind of a link
LONGEST = 10**9


def figures(facts: Facts, language: str) -> dict[str, str]:
    """The whole table."""
    return {
        **named(facts.unit, language),
        **_rendered(facts.description.roles, language),
        **_described(facts, language),
        **_promise(facts.guarantee),
        **risk(facts.cumulative, facts.unit.relation, language=language),
        **_together(facts, language),
        **_error(facts, language),
        **_held(facts, language),
        **_limit(facts, language),
        **_account(facts, language),
        **({"vouched": listed([one_line(name) for name in facts.vouched], language)} if facts.vouched else {}),
    }


def named(unit: Unit, language: str) -> dict[str, str]:
    """The unit, and what stands for it in a sentence."""
    kind, size = unit.KIND.removeprefix("unit."), f"{unit.size:,}" if isinstance(unit, Family) else "1"
    roles = ("unit", "member", "this", "that", "another", "yours", "thing", "several", *QUESTIONS)
    return {role: message(language, f"{role}.{kind}", size=size) for role in roles}


def risk(
    guarantee: Pure | Approximate, relation: Relation, prior: Fraction = PRIOR, *, language: str = "en"
) -> dict[str, str]:
    """How far a belief can move, or with a δ how often a guess is right; a trait counts twice under add/remove."""
    double = guarantee.group(2) if relation is Relation.ADD_REMOVE else None
    if isinstance(guarantee, Approximate) and guarantee.delta > 0:
        shown = {"blind": guessed(guarantee).prior, "guess": guessed(guarantee).high}
        if double is not None:
            shown["trait_guess"] = guessed(double).high
        return {name: f"{count:,}" for name, count in shown.items()}
    pure = Pure(epsilon=guarantee.epsilon)
    moved = believed(pure, prior)
    shown = {"prior": moved.prior, "low": moved.low, "high": moved.high}
    shown |= {"opposite": moved.opposite.prior, "opposite_low": moved.opposite.low}
    shown |= {"opposite_high": moved.opposite.high}
    if double is not None:
        trait = believed(pure.group(2), prior)
        shown |= {"trait_low": trait.low, "trait_high": trait.high}
    return {name: so_many(count, language) for name, count in shown.items()}


def amount(given: Budget, language: str, *, delta: bool = True, up: bool = True) -> str:
    """ε and δ, or ε alone where a ``delta`` is not in question. What is left or allowed is rounded down, not ``up``."""
    shown = {"epsilon": exact(given.epsilon, up=up), "delta": exact(given.delta, up=up)}
    return message(language, "amount.both" if delta else "amount.pure", **shown)


def exact(value: Fraction, *, up: bool = True) -> str:
    """A rational as it is, ``1/1,000,000``; one with endless digits as one with few that is not smaller (not larger).

    >>> exact(Fraction(1, 2)), exact(Fraction(1, 10**6)), exact(Fraction(10**12 + 1, 3 * 10**18))
    ('1/2', '1/1,000,000', '1/2,999,999')
    """
    if max(value.numerator, value.denominator) <= LONGEST:
        whole = value.denominator == 1
        return f"{value.numerator:,}" if whole else f"{value.numerator:,}/{value.denominator:,}"
    if value < Fraction(1, 1000):
        return f"1/{math.floor(1 / value) if up else math.ceil(1 / value):,}"
    return decimal_up(value) if up else decimal_down(value)


def _described(facts: Facts, language: str) -> dict[str, str]:
    """What was released: how many numbers, of what, and the figures that the description brings."""
    description = facts.description
    shown = {"data": render(dataset_words(facts.dataset), language), **_rendered(description.figures, language)}
    shown["truth"] = message(language, "truth.figure_limited" if facts.cuts else "truth.figure")
    if description.form not in (Form.MODEL, Form.FOUND, Form.TOP):
        item = "point" if description.form is Form.CURVE else "number"
        shown["numbers"] = counted(language, item, description.numbers)
        shown["item"] = message(language, f"item.{item}")
        several = "two" if description.numbers == 2 else "many"
        shown["all_numbers"] = message(language, f"all.{item}_{several}", n=f"{description.numbers:,}")
        if description.measure is not None:
            if description.measure not in messages(language):
                raise Unsupported(f"there are no words yet for {description.measure!r}; no text was made.")
            shown["measure"] = message(language, description.measure, **shown)
            if facts.cut is not None:
                limit = render(facts.cut, language)
                shown["measure"] = message(language, "measure.limited", measure=shown["measure"], limit=limit)
    if description.columns:
        shown["columns"] = " × ".join(one_line(column) for column in description.columns)
    if facts.joint is not None:
        shown["joint"] = magnitude(facts.joint)
    return shown


def _rendered(words: Mapping[str, Word], language: str) -> dict[str, str]:
    return {name: render(word, language) for name, word in words.items()}


def _promise(guarantee: Pure | Approximate) -> dict[str, str]:
    delta = guarantee.delta if isinstance(guarantee, Approximate) else Fraction(0)
    return {"epsilon": exact(guarantee.epsilon), "delta": exact(delta), "factor": factor(guarantee.epsilon)}


def factor(epsilon: Fraction) -> str:
    """e^ε, rounded up; beyond a million as a power of ten.

    >>> factor(Fraction(1, 2)), factor(Fraction(100))
    ('1.649', '10^44')
    """
    if epsilon <= 13:
        return decimal_up(enclosures.exp(epsilon).high)
    return f"10^{math.ceil(epsilon / enclosures.log(Fraction(10)).low):,}"


def _together(facts: Facts, language: str) -> dict[str, str]:
    """The guarantee for several units at once: a household, or one person's rows; with a δ, group privacy's own δ."""
    unit, guarantee = facts.unit, facts.cumulative
    if isinstance(unit, Family):
        count, steps = 2 * unit.size, 2
    else:
        count = steps = HOUSEHOLD if isinstance(unit, User) else BELONGINGS
    weaker = guarantee.group(steps)
    delta = weaker.delta if isinstance(weaker, Approximate) else Fraction(0)
    name = facts.description.together or f"together.{unit.KIND.removeprefix('unit.')}"
    return {
        "for_together": message(language, name, together=f"{count:,}"),
        "together_epsilon": exact(weaker.epsilon),
        "together_delta": _at_most(delta),
    }


def _at_most(delta: Fraction) -> str:
    """A δ rounded up to 1/n, with n to three digits."""
    if delta == 0 or 1 / delta < 1000:
        return exact(Fraction(math.ceil(1000 * delta), 1000))
    many = math.floor(1 / delta)
    step = 10 ** (len(str(many)) - 3)
    return f"1/{many // step * step:,}"


def span_figure(span: Span, language: str) -> str:
    """The margins of one column: one figure, or the best and the worst of its numbers."""
    if span.chosen:
        name = "span.figure_chosen" if span.rank is None else "span.figure_rank"
        return message(language, name, rank=f"{span.rank or 0:,}")
    if not span.known:
        return message(language, "span.figure_untold")
    if span.least is None or span.most is None:
        return message(language, "span.figure_open" if span.open else "span.figure_none")
    least, most = magnitude(span.least), magnitude(span.most)
    return message(language, f"span.figure_{'alike' if least == most else 'apart'}", least=least, most=most)


def span_line(span: Span, language: str) -> str:
    """The margins of one column, after its name."""
    figure = span_figure(span, language)
    if span.chosen and span.rank is not None and in_chinese(language):
        figure = f"的{figure}"  # "the rank error of the median", where other figures follow the name directly
    return message(language, "span.line", name=one_line(span.name), figure=figure)


def _error(facts: Facts, language: str) -> dict[str, str]:
    if facts.margins is not None:
        return _margins(facts.margins)
    told = [span_line(span, language) for span in facts.spans if not span.known or span.chosen or span.most is not None]
    if not told:
        return {}
    return {"spans": reduce(lambda left, right: message(language, "span.between", left=left, right=right), told)}


def _margins(margins: Margins) -> dict[str, str]:
    each = margins.each
    return {
        "margin": _size(each),
        "joint": _size(margins.joint),
        "tenfold": _size(10 * each),
        "hundredfold": _size(100 * each),
        "rate_thousand": _size(each),
        "rate_ten_thousand": _size(each / 10),
    }


def _size(value: Fraction) -> str:
    """The size of an error, rounded up to four digits unless it is whole."""
    return f"{value.numerator:,}" if value.denominator == 1 else magnitude(value, 4)


def _held(facts: Facts, language: str) -> dict[str, str]:
    """Sentences about values that were held to a range, and about numbers that say nothing."""
    clips = [
        message(language, "limit.clip", value=value, low=low, high=high)
        for value, low, high in ranges(facts.description, language)
    ]
    opens = [
        message(language, "span.open", numbers=counted(language, "number", span.open), name=one_line(span.name))
        for span in facts.spans
        if span.open
    ]
    found = {"clips": clips, "opens": opens}
    return {name: paragraph(sentences, language) for name, sentences in found.items() if sentences}


def ranges(description: Description, language: str) -> Iterator[tuple[str, str, str]]:
    """Each value that was held to a range: the value, its least and its most."""
    for held in description.ranges:
        yield render(held.value, language), plain(held.low), plain(held.high)


def _limit(facts: Facts, language: str) -> dict[str, str]:
    if facts.limit is None:
        return {}
    return {
        "groups": counted(language, "group", facts.limit.groups),
        "kept": counted(language, "value", facts.limit.groups),
        "rows": render(row_words(facts.limit, facts.limit.rows_per_group), language),
        "groups_alone": counted(language, "row", facts.limit.groups),
    }


def _account(facts: Facts, language: str) -> dict[str, str]:
    account, cost = facts.account, facts.cost
    total, spent = account.budget, account.spent
    left = Budget(
        epsilon=max(Fraction(0), total.epsilon - spent.epsilon), delta=max(Fraction(0), total.delta - spent.delta)
    )
    ten = Budget(epsilon=TIMES * cost.epsilon, delta=min(Fraction(1), TIMES * cost.delta))
    delta = max(total.delta, spent.delta, cost.delta) > 0
    used = max(_part(spent.epsilon, total.epsilon), _part(spent.delta, total.delta))
    shown = {
        "account": one_line(account.name),
        "charges": counted(language, "charge", account.releases),
        "promised": amount(spent, language),
        "allowed": amount(total, language, up=False),
        "remaining": amount(left, language, up=False),
        "spent": amount(spent, language, delta=delta),
        "spent_delta": exact(spent.delta),
        "total": amount(total, language, delta=delta, up=False),
        "left": amount(left, language, delta=delta, up=False),
        "used": f"{math.ceil(100 * used):,}",
        "cost": amount(cost, language, delta=delta),
        "times": f"{TIMES:,}",
        "ten": amount(ten, language, delta=delta),
        "fits": f"{_fits(left, cost):,}",
    }
    return shown | _filter(facts, language)


def _filter(facts: Facts, language: str) -> dict[str, str]:
    """The same figures of an account with a filter, in the measure that it adds up."""
    account = facts.account
    cap, spent, each = account.filter_cap, account.filter_spent, facts.lost or Fraction(0)
    if cap is None or spent is None:
        return {}
    left, order = max(Fraction(0), cap - spent), {} if account.order is None else {"order": exact(account.order)}

    def measure(loss: Fraction, *, up: bool = True) -> str:
        return message(language, f"amount.{account.method}", loss=exact(loss, up=up), **order)

    return order | {
        "spent": measure(spent),
        "total": measure(cap, up=False),
        "left": measure(left, up=False),
        "used": f"{math.ceil(100 * _part(spent, cap)):,}",
        "cost": measure(each),
        "ten": measure(TIMES * each),
        "fits": f"{left // each if each else 0:,}",
    }


def _part(part: Fraction, whole: Fraction) -> Fraction:
    """How much of the allowance is used; where nothing was allowed, nothing or all."""
    return part / whole if whole else Fraction(min(1, math.ceil(part)))


def _fits(left: Budget, cost: Budget) -> int:
    """How many more releases of this cost fit; 0 where it costs nothing, since the question does not arise."""
    ways = [amount // each for amount, each in ((left.epsilon, cost.epsilon), (left.delta, cost.delta)) if each]
    return min(ways, default=0)
