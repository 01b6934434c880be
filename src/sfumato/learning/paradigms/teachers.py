"""Teachers: models that are each trained on one part of the persons, and vote on public questions.

The part of a person is a keyed hash of who they are: of nothing else, so nobody moves anybody else to another part.
Proof: docs/proofs/paradigms.md
"""

import hashlib
import hmac
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice

from sfumato.core.interrupts import FAILED
from sfumato.learning.given import GivenRows
from sfumato.learning.paradigms.own_rows import own
from sfumato.learning.paradigms.persons import canonical_id
from sfumato.learning.paradigms.soft_labels import whole_shares
from sfumato.learning.shielded import shielded
from sfumato.learning.unchanged import Unchanged

__all__ = ["Predict", "Train", "counted", "part_of", "seed_of", "shared_vote", "summed", "vote"]

Predict = Callable[[GivenRows], GivenRows]
Train = Callable[[GivenRows, GivenRows, int], Predict]
"""From the inputs and targets of one part, and a seed, to a teacher of a list of public questions.

It says a class of each question, or where soft labels are asked for, a row of probabilities.
"""


def part_of(person: object, parts: int, secret: bytes) -> int:
    """The part that all data of a person belong to: HMAC-SHA-256 of who they are, modulo the number of parts.

    Guarantee: a function of the person, the public number of parts and the key alone.

    >>> part_of("patient 7", 250, b"key") == part_of("patient 7", 250, b"key"), part_of(1, 9, b"k") in range(9)
    (True, True)
    """
    return int.from_bytes(_hashed(secret, "part", _written(person))) % parts


def seed_of(part: int, secret: bytes) -> int:
    """A seed for the teacher of one part, of 63 bits: it depends on no data.

    >>> seed_of(3, b"key") != seed_of(4, b"key")
    True
    """
    return int.from_bytes(_hashed(secret, "seed", str(part))[:8]) >> 1


def vote(
    train: Train, inputs: GivenRows, targets: GivenRows, questions: GivenRows, *, classes: int, seed: int
) -> list[int]:
    """Train one teacher and let it vote once on each question. Sensitive: inputs, targets and the votes.

    Guarantee: there is one vote in 0 … classes − 1 for each question, whatever the teacher does. A teacher that fails,
    or says something else, votes for class 0: whether it fails can depend on its data, so there is no error.
    Whatever ``train`` can reach is restored before the next teacher is trained, and what the teacher made is gone by
    then. It gets copies of its arguments.
    """
    number = len(questions)

    def said() -> list[int]:
        found = train(own(inputs), own(targets), seed)(own(questions))
        return [int(each) for each in islice(found, number)]  # votes may be made only as they are read

    votes = shielded(said, _own_randomness(seed), Unchanged(train))
    if votes is FAILED:
        return [0] * number
    votes += [0] * (number - len(votes))
    return [each if 0 <= each < classes else 0 for each in votes]


def shared_vote(
    train: Train, inputs: GivenRows, targets: GivenRows, questions: GivenRows, *, classes: int, steps: int, seed: int
) -> list[list[int]]:
    """Train one teacher and let it share ``steps`` parts of a vote among the classes of each question. Sensitive.

    Guarantee: the rows of :func:`~sfumato.learning.paradigms.soft_labels.whole_shares`, whatever the teacher does; one
    that fails says that all classes are alike. The rest is as for :func:`vote`.
    """
    number = len(questions)

    def said() -> list[list[int]]:
        found = train(own(inputs), own(targets), seed)(own(questions))
        found = found.detach().cpu().double().numpy() if hasattr(found, "detach") else found
        return whole_shares(found, questions=number, classes=classes, steps=steps)

    shares = shielded(said, _own_randomness(seed), Unchanged(train))
    if shares is FAILED:
        return whole_shares([], questions=number, classes=classes, steps=steps)
    return shares


def summed(votes: Sequence[Sequence[Sequence[int]]], *, classes: int, questions: int) -> list[list[int]]:
    """How many parts of votes each class of each question gets.

    >>> summed([[[1, 1]], [[0, 2]]], classes=2, questions=1)
    [[1, 3]]
    """
    totals = [[0] * classes for _ in range(questions)]
    for teacher in votes:
        for row, given in zip(totals, teacher, strict=True):
            for chosen, parts in enumerate(given):
                row[chosen] += parts
    return totals


def counted(votes: Sequence[Sequence[int]], *, classes: int, questions: int) -> list[list[int]]:
    """How many teachers vote for each class of each question.

    >>> counted([[0, 1], [0, 0]], classes=2, questions=2)
    [[2, 0], [1, 1]]
    """
    counts = [[0] * classes for _ in range(questions)]
    for teacher in votes:
        for row, chosen in zip(counts, teacher, strict=True):
            row[chosen] += 1
    return counts


def _hashed(secret: bytes, purpose: str, text: str) -> bytes:
    return hmac.new(secret, f"{purpose} {text}".encode("utf-8", "surrogatepass"), hashlib.sha256).digest()


def _written(person: object) -> str:
    """Who somebody is as text; the rule is that of :func:`~sfumato.learning.paradigms.persons.canonical_id`."""
    plain = canonical_id(person)
    return f"{type(plain).__name__} {plain!r}"


@contextmanager
def _own_randomness(seed: int) -> Iterator[None]:
    """Generators of its own for each teacher: shared ones would tell it how much the others drew, and so their sizes.

    Those of torch, of NumPy and of Python, where they are in use, are set to the seed and set back. They decide how a
    teacher is trained and make no privacy noise.
    """
    with ExitStack() as stack:
        torch, numpy, plain = (sys.modules.get(name) for name in ("torch", "numpy", "random"))
        if torch is not None:
            stack.enter_context(torch.random.fork_rng(devices=[]))
            torch.manual_seed(seed)
        if numpy is not None:
            stack.callback(numpy.random.set_state, numpy.random.get_state())
            numpy.random.seed(seed % 2**32)
        if plain is not None:
            stack.callback(plain.setstate, plain.getstate())
            plain.seed(seed)
        yield
