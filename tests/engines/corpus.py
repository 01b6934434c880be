# ruff: noqa: E501, B002 - tables of cases
"""A fixed corpus of expressions over the columns full of corners: every node of the grammar, in many combinations."""

import datetime
from fractions import Fraction

from sfumato.engines.expressions import DatePart, Expression, Part, Term, coalesce, col, greatest, least, term, when

text, word, code = col("text"), col("word"), col("code")
whole, other, tiny, natural = col("whole"), col("other"), col("tiny"), col("natural")
number, amount, single = col("number"), col("amount"), col("single")
truth, sure = col("truth"), col("sure")
day, since, moment = col("day"), col("since"), col("moment")
later, stamp, price, sum_ = col("later"), col("stamp"), col("price"), col("sum")
NOON = datetime.datetime(2000, 2, 29, 23, 59, 59)
DAY = datetime.date(2000, 2, 29)

age_group = tiny.cut([0, 18, 65], labels=["child", "adult", "senior"], above=True)
middle = number.cut([-1, 0, 0.5, 65, 1e200])
body_mass = number / (amount * amount)

VALUES: list[Term] = [
    # columns and constants as they are
    *(text, code, whole, tiny, natural, number, single, truth, day, moment),
    # arithmetic on whole numbers, saturating
    *(whole + other, whole - other, other - whole, whole * other, whole / other, other / 7, 7 / other, whole * 3),
    *(whole + 1, whole - 1, 1 - whole, whole * -1, whole * 2**62, tiny + natural, tiny * natural, tiny - natural),
    *(-whole, abs(whole), -(-whole), abs(-whole), -tiny, (whole + other) - other, (whole * other) * other),
    *((whole - other) * (whole + other), whole * whole * whole * whole, (whole + 1) * (other - 1) + tiny),
    # arithmetic on numbers, held
    *(number + amount, number - amount, amount - number, number * amount, number / amount, amount / number),
    *(number + 0.1, 0.1 - number, number * 0.1, number / 3, 1 / number, number / 0, number * 1e200, number * 1e-200),
    *(number + Fraction(1, 3), number * Fraction(2**53 + 1), number / Fraction(1, 10**400), number * 0, number - number),
    *(-number, abs(number), number.floor(), (-number).floor(), single + 1, single * number, single / amount),
    *(number * number * number, 1 / (1 / (1 / number)), (number + amount) * (number - amount), body_mass),
    *((number * 1e-300) * (amount * 1e-300), (number * 1e300) * (amount * 1e300), number / amount / amount),
    *((number + amount) / (number - amount), (number * amount) / amount, number + amount + single),
    *((number - amount).floor(), (number * 2).floor() / 2, (number / amount).floor(), abs(number - amount)),
    # the least and the greatest
    *(least(whole, other), greatest(whole, other), least(number, amount, 1), greatest(number, single, -1)),
    *(least(day, since), greatest(day, since, DAY), whole.clip(0, 65), number.clip(0, 1), number.clip(-1e200, 1e-200)),
    # casts
    *(whole.cast("number"), other.cast("number") / 3, number.cast("whole"), amount.cast("whole") + whole),
    *((number * 10).cast("whole"), single.cast("whole"), truth.cast("whole"), truth.cast("whole") + sure.cast("whole")),
    *(code.cast("whole"), code.cast("whole") * 2, text.cast("whole"), code.cast("whole").cast("number") / 8),
    *(number.floor().cast("whole"), (-number).cast("whole"), (whole / other).cast("whole"), natural.cast("number")),
    # missing values
    *(coalesce(whole, other), coalesce(number, amount, 0), number.fill(1), text.fill("none"), coalesce(text, word, "")),
    *(truth.fill(False), day.fill(DAY), coalesce(day, since), coalesce(code.cast("whole"), tiny, 0), coalesce(number / 0, 7)),
    *(coalesce(whole, other) + coalesce(tiny, 0), coalesce(number, 2**53 + 1) * 2, (number / amount).fill(-1)),
    # choices
    when(whole > 0).then(whole).otherwise(-whole),
    when(number > 0).then(1).when(number < 0).then(-1).otherwise(0),
    when(truth == True).then("yes").when(truth == False).then("no"),  # noqa: E712
    when(number > amount).then(number).otherwise(amount),
    when(text < word).then(text).when(word < text).then(word),
    when(whole.isnull()).then(other).when(other.isnull()).then(whole).otherwise(least(whole, other)),
    when(day > since).then(day).otherwise(since),
    when(number != 0).then(1 / number).otherwise(0.5),
    when(code.cast("whole") >= 12).then(code.cast("whole")).otherwise(tiny),
    when(when(whole > 0).then(whole).otherwise(other) > 1).then(number).otherwise(number * 2),
    when(truth == sure).then(number).when(truth != sure).then(amount),
    when(when(tiny > 0).then(True).otherwise(False) == sure).then("a").otherwise("b"),
    when(~(number > 1)).then(whole).otherwise(1),
    when(number > 1).then(Fraction(1, 3)).otherwise(2**53 + 1),
    # dates
    *(day.year(), day.quarter(), day.month(), day.day(), day.weekday(), moment.year(), moment.month(), moment.day()),
    *(moment.weekday(), moment.quarter(), day.days_since(since), since.days_since(day), day.days_since(DAY)),
    *(moment.days_since(day), coalesce(day, DAY).weekday(), greatest(day, since).year() * 100 + day.month()),
    *(least(day, since).days_since(greatest(day, moment)), day.days_since(moment) / 365, day.year() - since.year()),
    when(day.weekday() >= 6).then("weekend").otherwise("week"),
    # text
    *(text.length(), code.length(), text.fill("").length() + word.length(), age_group.length()),
    # times
    *(moment.hour(), later.minute(), moment.week(), later.truncate("year"), moment.truncate("quarter"), moment.truncate("month")),
    *(moment.truncate("week"), moment.truncate("day"), moment.truncate("hour"), day.truncate("month")),
    *(day.week(), since.truncate("week"), moment.cast("date"), day.cast("time"), day.cast("text")),
    *((moment - later).seconds(), (moment - day).seconds(), day - since, day + tiny, day - whole, moment.seconds(), since.seconds()),
    *(moment - later, moment - NOON, (moment - later) + (later - NOON), moment + datetime.timedelta(hours=30), later - datetime.timedelta(1)),
    *(moment + (later - NOON), NOON + (moment - later), (moment - later) - datetime.timedelta(seconds=1), day + datetime.timedelta(1)),
    *(moment.shift(months=1), later.shift(months=-1, seconds=-1), day.shift(months=12), since.shift(months=-119_987)),
    *(moment.since(later, "year"), moment.since(day, "month"), day.since(since, "quarter"), moment.since(later, "week")),
    *(later.since(since, "minute"), moment.since(DAY, "second")),
    *(stamp.cast("time"), stamp.cast("date"), stamp.cast("number"), code.cast("number"), stamp.cast("date").year()),
    *(least(moment, later), greatest(moment, NOON), coalesce(moment, day), coalesce(day, NOON), coalesce(stamp.cast("time"), later)),
    *(when(moment > later).then(moment).otherwise(day), moment.cut([NOON, datetime.datetime(2026, 1, 1)], below=True, above=True)),
    Term(DatePart(of=Part.SUNDAY_WEEKDAY, part=moment.node)),
    Term(DatePart(of=Part.YEAR_DAY, part=day.node)),
    # texts
    *(text.lower(), text.upper(), word.lower().upper(), text.strip(), code.strip(side="start"), stamp.strip(side="end"), text.left(1)),
    *(code.right(3), text.right(0), stamp.substring(6, 2), text.substring(2), code.replace("0", "<>"), text.replace("e", "")),
    *(text.concat("-", word), code.concat(code), whole.cast("text").right(2), code.left(0)),
    # rounding, and whole numbers beside numbers
    *(number.round(), number.round(2), (-amount).round(1), whole.round(3), price.round(1), number.nearest(), single.nearest()),
    *(truth.nearest(), code.nearest(), whole.nearest(), (price / 2).nearest(), whole.floor(), number.ceil(), whole + number, tiny * amount),
    *(price, sum_, price * 3, sum_ + price, least(whole, price), coalesce(tiny, number), price.cut([0, 0.1, 65])),
    # bins
    *(age_group, middle, middle.fill("none"), whole.cut([0, 2**53, 2**53 + 1], below=True), natural.cut([0, 2**32 - 1])),
    number.cut([0], labels=["below 'zero'", "not below"], below=True, above=True),
    day.cut([datetime.date(1582, 10, 15), datetime.date(1970, 1, 1), DAY], above=True),
    moment.cut([datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]),
    day.days_since(since).cut([-365, 0, 365], below=True, above=True),
    body_mass.cut([0, 18.5, 25, 30], above=True),
    (number / amount).cut([Fraction(-1, 3), Fraction(1, 3)]),
    single.cut([Fraction(1, 10), 65]),
    coalesce(age_group, "unknown"),
    # constants alone, which an engine computes while it plans
    *(term(1) / 0, term(2**63 - 1) + 1, term(-(2**63)) * -1, -term(-(2**63)), term("x").cast("whole"), term("12").cast("whole")),
    *(term(1e300) * 1e300, term(1e-200) * 1e-200, term(DAY).year(), term(0.5).floor(), term(1e300).cast("whole")),
    *(when(term(1) / 0 > 1).then(1).otherwise(0), coalesce(term("x").cast("whole"), 3), term(-0.1).cut([-1, 0, 1])),
    when(age_group == "child").then(0).when(age_group.isnull()).then(1).otherwise(2),
]  # fmt: skip

PREDICATES: list[Expression] = [
    # columns against columns
    *(whole == other, whole != other, whole < other, whole <= other, whole > other, whole >= other),
    *(number == amount, number != amount, number < amount, number <= amount, number > amount, number >= amount),
    *(text == word, text != word, text < word, text <= word, text > word, text >= word, text < code),
    *(day == since, day != since, day < since, day <= since, day > since, day >= since, moment == day, moment < day),
    *(truth == sure, truth != sure, tiny < natural, single < number, single == amount, whole == tiny),
    # times, and what is mixed
    *(moment == later, moment < later, moment == day, day >= later, moment >= NOON, moment == NOON, day <= NOON),
    *(moment.isin([NOON, datetime.datetime(1970, 1, 1)]), moment.isin([DAY, datetime.date(1970, 1, 1)]), day.isin([NOON, DAY])),
    *(moment - later > datetime.timedelta(days=2), (moment - later).isin([datetime.timedelta(0)]), moment != DAY, moment <= DAY),
    *(whole < number, tiny >= price, tiny != Fraction(5, 2), whole.isin([1, 0.5]), price == 0.1, sum_ >= 0.3),
    *(price == sum_, truth & (tiny > 0), truth | sure, ~truth, text.lower() == "a", text.upper().isin(["A", "É", "SS"])),
    # columns against constants
    *(text >= "é", text < "\U00010000", text == "", text.isin(["a", "é", "\uffff"]), code.isin(["1\n", "1"])),
    *(whole >= 2**63 - 1, whole == -(2**63), whole.isin([0, -(2**63), 2**53 + 1]), number.isin([0, 0.1, 1e300])),
    *(number >= 0.1, number == 0, number < Fraction(1, 3), number <= 5e-324, number > 1e300),
    *(day == DAY, day.isin([DAY, datetime.date(1, 1, 1)]), day < datetime.date(1582, 10, 15), moment >= DAY),
    *(truth == True, truth != True, truth.isin([True, False])),  # noqa: E712
    # between, missing, prefix
    *(whole.between(0, 2**53), number.between(-0.1, 0.1), number.between(amount, 1), text.between("A", "é")),
    *(day.between(since, DAY), ~whole.between(0, other), moment.between(datetime.date(1970, 1, 1), DAY)),
    *(text.isnull(), number.isnull(), day.isnull(), (number / amount).isnull(), (whole * other).isnull()),
    *(code.cast("whole").isnull(), ~code.cast("whole").isnull(), middle.isnull(), age_group.isnull(), moment.isnull()),
    *(when(truth == True).then(1).isnull(), coalesce(number, amount).isnull(), coalesce(whole, 1).isnull()),  # noqa: E712
    *(text.startswith("a"), text.startswith("é"), text.startswith("e"), text.startswith("\U0001f469"), text.startswith("%")),
    *(text.startswith("\\"), text.startswith("\uffff"), text.startswith("\U0010ffff"), text.startswith("a "), code.startswith("-")),
    *(text.fill("a").startswith("a"), middle.startswith("[0"), ~text.startswith("a")),
    # computed values
    *(whole + 1 > other, whole * other == 0, whole - other > 0, number + amount > 0, number * amount >= 1),
    *(number / amount > 1, number / amount == amount / number, abs(number - amount) <= 1, -whole == other),
    *(number.floor() == number, number.cast("whole") == whole, whole.cast("number") == number, body_mass > 25),
    *(whole.cast("number") < amount, code.cast("whole") > 0, code.cast("whole").isin([12, -12, 7]), truth.cast("whole") == tiny),
    *(day.year() == since.year(), day.weekday().isin([6, 7]), day.days_since(since) > 365, moment.month() == day.month()),
    *(text.length() == word.length(), text.length() == 1, code.length() > 18, age_group == "adult", age_group != "adult"),
    *(middle.isin(["[0, 0.5)", "[-1, 0)"]), age_group < "b", coalesce(text, word) < code, least(number, amount) > 0),
    *(greatest(whole, other) == whole, coalesce(number, 0) == 0, number.clip(0, 1) == number, (number - number) == 0),
    *(when(number > 0).then(number).otherwise(amount) > 1, (whole + other).isin([0, 2**63 - 1, -(2**63)])),
    # combinations
    (whole > 0) & (number > 0) | ~(text == word),
    ~((number / amount > 1) & ~(whole * other > 0)) | day.isnull(),
    ((number > 0) | (number <= 0)) & ~number.isnull(),
    ~(term(1) / 0 == 1),
    (term(2) > 1) & (text == "a"),
    (tiny > 0) & (tiny > 1) & (tiny > 2) | (natural == 65) & ~(truth == sure),
]  # fmt: skip
