"""The exact law of a sampler, from a walk through everything that it can decide.

A sampler is a deterministic program that asks for uniform whole numbers. The walk answers each question in every way.
Two paths that stand at the same places of the program with the same values in all its variables have the same future,
so they are merged; their masses are exact multiples of 2**-PRECISION, rounded down. What is not followed to the end
(paths of little mass, and all roundings) is the remainder: the law is known from below, and from above within it.
"""

import sys
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction

PRECISION = 200
Outcome = int | bool
Sampler = Callable[["Answers"], Outcome]


class _Asked(Exception):
    """The sampler asks for a number that has not been chosen yet."""

    def __init__(self, bound: int, state: Hashable) -> None:
        self.bound = bound
        self.state = state


class Answers:
    """A source of bits that gives prepared answers and then stops the sampler."""

    def __init__(self, prepared: tuple[int, ...]) -> None:
        self._prepared = prepared
        self._given = 0

    def below(self, bound: int) -> int:
        if self._given == len(self._prepared):
            raise _Asked(bound, _state(self))
        self._given += 1
        answer = self._prepared[self._given - 1]
        assert 0 <= answer < bound
        return answer


def _state(answers: Answers) -> Hashable:
    """Where the program stands and what its variables hold, from the sampler down to the question."""
    frame, state = sys._getframe(2), []
    while frame.f_code is not _run.__code__:
        held = tuple((name, value) for name, value in frame.f_locals.items() if value is not answers)
        state.append((frame.f_code, frame.f_lasti, held))
        frame = frame.f_back
    return tuple(state)


def _run(sampler: Sampler, prepared: tuple[int, ...]) -> Outcome:
    return sampler(Answers(prepared))


@dataclass(slots=True, kw_only=True)
class _Question:
    """A question that the sampler asks: one way to get there, and what comes of its answers, once looked up."""

    path: tuple[int, ...]
    bound: int
    next: dict[int, int] | None = None  # number of a question → how many answers lead to it
    last: dict[Outcome, int] | None = None  # outcome → how many answers end in it


class _Walk:
    """All questions that were met, numbered; a state of the program is one question."""

    def __init__(self, sampler: Sampler) -> None:
        self.sampler = sampler
        self.questions: list[_Question] = []
        self.numbers: dict[Hashable, int] = {}
        self.follow((), asked={}, ended={})

    def follow(self, path: tuple[int, ...], *, asked: dict[int, int], ended: dict[Outcome, int]) -> None:
        try:
            outcome = _run(self.sampler, path)
            ended[outcome] = ended.get(outcome, 0) + 1
        except _Asked as question:
            number = self.numbers.setdefault(question.state, len(self.questions))
            if number == len(self.questions):
                self.questions.append(_Question(path=path, bound=question.bound))
            asked[number] = asked.get(number, 0) + 1

    def answered(self, number: int) -> _Question:
        question = self.questions[number]
        if question.next is None:
            question.next, question.last = {}, {}
            for answer in range(question.bound):
                self.follow((*question.path, answer), asked=question.next, ended=question.last)
        return question


def walk(sampler: Sampler, *, remainder: Fraction) -> tuple[dict[Outcome, Fraction], Fraction]:
    """Masses of outcomes from below, and the mass that may belong to any of them, at most ``remainder``."""
    unit = 2**PRECISION
    enough, too_little = unit - int(remainder * unit), int(remainder * unit) >> 16
    met = _Walk(sampler)
    outcomes: Counter[Outcome] = Counter()
    masses = {0: unit}
    while masses and outcomes.total() < enough:
        ahead: Counter[int] = Counter()
        for number, mass in masses.items():
            question = met.answered(number)
            share = mass // question.bound
            for outcome, times in question.last.items():
                outcomes[outcome] += share * times
            for following, times in question.next.items():
                ahead[following] += share * times
        masses = {number: mass for number, mass in ahead.items() if mass > too_little}
    left = unit - outcomes.total()
    return {outcome: Fraction(mass, unit) for outcome, mass in outcomes.items()}, Fraction(left, unit)
