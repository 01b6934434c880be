"""Reconstruction: enough exact counts about groups give away every secret bit (Dinur and Nissim, 2003).

Everybody in a list of invented patients has a secret test result. The attacker knows the list, asks how many positive
results there are in many random groups, and solves for the results. Exact counts give nearly all of them away, and so
do counts that are rounded. The same questions through a vault, on one privacy budget, do not.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.core import adversary
from sfumato.core.budget import Budget
from sfumato.core.exact import Exact, natural
from sfumato.core.guarantees import Pure
from sfumato.core.limits import Limit
from sfumato.core.release import Release
from sfumato.core.units import user
from sfumato.demo.attacks.hospital import Register
from sfumato.engines.expressions import col
from sfumato.errors import InvalidInput
from sfumato.laws import DiscreteLaplace
from sfumato.vault import Vault

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bits = npt.NDArray[np.bool_]
    Numbers = npt.NDArray[np.int64] | npt.NDArray[np.float64]

__all__ = [
    "CountReconstruction",
    "CountsAnswered",
    "demonstrate_reconstruction",
    "laplace_of",
    "private_counts",
    "questions",
    "reconstruct",
    "secrets",
]

PEOPLE, ROUNDED_TO = 200, 5
SHARES = (Fraction(1, 4), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4))  # counts for each person


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsAnswered:
    """The share of bits that the attacker gets right from a number of counts: exact, rounded, and from the vault."""

    counts: int
    exact: float
    rounded: float
    private: float
    scale: Fraction
    """Of the noise on each count of the vault: the number of counts divided by ε."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountReconstruction:
    """What the attacker reached. Public: an experiment on invented people.

    ``bound`` is the most that any attacker gets right on average, about one person and from even odds, under ε.
    ``attained`` is what the best attacker gets right who knows everybody else and asks the vault for one count.
    """

    people: int
    epsilon: Fraction
    spent: Fraction
    answered: tuple[CountsAnswered, ...]
    bound: Fraction
    attained: Fraction

    @property
    def most(self) -> CountsAnswered:
        """The largest number of counts."""
        return self.answered[-1]


def secrets(people: int, *, seed: int = 3) -> "Bits":
    """Invented test results, each a fair coin, so that a blind guess is right half of the time.

    >>> secrets(4).tolist()
    [True, True, False, False]
    """
    import numpy as np

    return np.random.default_rng(seed).random(natural(people, "people")) < 0.5


def questions(people: int, counts: int, *, seed: int = 4) -> "Bits":
    """Who is in which of ``counts`` random groups: counts × people.

    >>> questions(3, 2).shape
    (2, 3)
    """
    import numpy as np

    return np.random.default_rng(seed).random((natural(counts, "counts"), natural(people, "people"))) < 0.5


def reconstruct(asked: "Bits", answers: "Numbers") -> "Bits":
    """Guess each bit: the least squares solution within 0 and 1, cut at one half.

    Assumes: ``answers[j]`` is near the number of true bits among the people of ``asked[j]``.

    >>> asked, bits = questions(20, 60), secrets(20)
    >>> bool((reconstruct(asked, asked @ bits.astype(int)) == bits).all())
    True
    """
    import numpy as np
    from scipy.optimize import lsq_linear

    if asked.ndim != 2 or len(answers) != len(asked):
        raise InvalidInput("there must be one answer for each question; nothing was solved.")
    solved = lsq_linear(asked.astype(np.float64), np.asarray(answers, dtype=np.float64), bounds=(0, 1), tol=1e-8)
    return np.asarray(solved.x > 0.5)


def private_counts(names: tuple[str, ...], asked: "Bits", bits: "Bits", *, epsilon: Exact) -> Release:
    """The same counts through a vault: one release of all of them, for all of the vault's privacy budget.

    Guarantee: ε-DP for one person exchanged for another (replace), over all counts together. A person may be in every
    group, so the limit is as many groups as there are questions, and the noise has scale counts/ε.

    >>> asked, bits = questions(3, 2), secrets(3)
    >>> released = private_counts(("a", "b", "c"), asked, bits, epsilon=1)
    >>> str(released.charged.epsilon), len(released.values), str(released.statement.law.scale)
    ('1', 2, '2')
    """
    import pyarrow as pa

    group, person = asked.nonzero()
    keys = tuple(f"group {number}" for number in range(len(asked)))
    rows = pa.table(
        {
            "patient": pa.array(names).take(pa.array(person)),
            "group": pa.array(keys).take(pa.array(group)),
            "positive": pa.array(bits[person].astype(int)),
        }
    )
    vault = Vault(unit=user("patient", relation="replace"), budget=Budget(epsilon=epsilon), name="test results")
    limit = Limit(groups=len(keys), rows_per_group=1)
    table = vault.table(rows, name="tests", version="demo", limit=limit, keys={"group": keys})
    return table.where(col("positive") == 1).group_by("group").count().release(epsilon=epsilon)


def laplace_of(release: Release) -> DiscreteLaplace:
    """The distribution of the noise on each number of a release, as its statement has it; Laplace noise alone."""
    law = release.statement.law
    if not isinstance(law, DiscreteLaplace):
        raise InvalidInput("the noise of this release is not Laplace noise; nothing was computed.")
    return law


def demonstrate_reconstruction(
    hospital: Register, *, epsilon: Exact = 1, people: int = PEOPLE, shares: tuple[Fraction, ...] = SHARES
) -> CountReconstruction:
    """Attack exact, rounded and private counts about the first ``people`` of the hospital, with ever more counts.

    ``shares`` are the counts for each person, in rising order. Each is a release of its own vault, of the whole ε.
    """
    import numpy as np

    natural(people, "people", least=4, most=len(hospital))
    spend = Budget.asked(epsilon=epsilon, delta=0)
    names, bits = hospital.names[:people], secrets(people)
    answered, spent = [], Fraction(0)
    for share in shares:
        asked = questions(people, int(share * people))
        exact = asked.astype(np.int64) @ bits.astype(np.int64)
        released = private_counts(names, asked, bits, epsilon=spend.epsilon)
        spent = max(spent, released.charged.epsilon)
        answered.append(
            CountsAnswered(
                counts=len(asked),
                exact=_right(reconstruct(asked, exact), bits),
                rounded=_right(reconstruct(asked, ROUNDED_TO * np.rint(exact / ROUNDED_TO)), bits),
                private=_right(reconstruct(asked, np.array(released.values, dtype=np.float64)), bits),
                scale=laplace_of(released).scale,
            )
        )
    return CountReconstruction(
        people=people,
        epsilon=spend.epsilon,
        spent=spent,
        answered=tuple(answered),
        bound=adversary.accuracy(Pure(epsilon=spend.epsilon)),
        attained=_one_count(names, bits, spend.epsilon),
    )


def _one_count(names: tuple[str, ...], bits: "Bits", epsilon: Fraction) -> Fraction:
    """How often whoever knows everybody else is right about one person from one count: P(noise ≥ 0), of its law."""
    import pyarrow as pa

    vault = Vault(unit=user("patient", relation="replace"), budget=Budget(epsilon=epsilon), name="one count")
    rows = pa.table({"patient": list(names), "positive": bits.astype(int)})
    table = vault.table(rows, name="tests", version="demo", limit=Limit(groups=1, rows_per_group=1))
    law = laplace_of(table.where(col("positive") == 1).count().release(epsilon=epsilon))
    return 1 - law.tail(0).low / 2


def _right(guess: "Bits", bits: "Bits") -> float:
    return float((guess == bits).mean())
