"""The audit of one training run by its canaries: is what came out compatible with the certificate?

Coins, score and confidence were sealed before the run was charged, and the certificate has their hash; how many coins
are guessed is fixed for all audits. So nobody can choose those after looking. Scores are computed from the released
weights; in a file of evidence they are what its writer says. Proof: docs/proofs/one_run.md
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato import accounting
from sfumato.audit.one_run_bounds import (
    GaussianCurve,
    PointCurve,
    counted_guesses_bound,
    curve_bound,
    curve_p_value,
    gap_bound,
    gap_p_value,
)
from sfumato.core.exact import probability
from sfumato.core.statement import Statement
from sfumato.errors import InvalidInput
from sfumato.learning.canary_commitment import commitment
from sfumato.learning.noisy_sums import NoisySums
from sfumato.learning.training import Training
from sfumato.reports.catalogue import message

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from sfumato.learning.trained import Trained

    Floats = npt.NDArray[np.float64]
    Coins = npt.NDArray[np.bool_]

__all__ = ["OneRunAudit", "canary_evidence", "judged_evidence", "trained"]

SHARE = 10  # one coin of this many is guessed
POINTS = 24
BEYOND = 1.5  # how far points of a curve go, in the ε that was charged


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OneRunAudit:
    """What the canaries of one run say about its certificate. Public: it is made of released weights and invented rows.

    ``by_counting`` is a lower bound of ε at δ with the stated confidence, whatever mechanism ran and whatever scores it
    gave. ``by_curve`` is one *if* the mechanism has the curve of a Gaussian: the ε at δ of the widest that is refuted.
    ``by_gap`` *assumes* that scores are Gaussian. ``p_curve`` and ``p_gap`` are p-values of the certificate's own
    curve; the gap is judged where every unit is in each step, since scores of sampled units are known not to be
    Gaussian (``by_gap`` 0, ``p_gap`` 1 otherwise). Where nothing is refuted, nothing is proven.
    """

    canaries: int
    inside: int
    guesses: int
    right: int
    score: str
    epsilon: float
    delta: float
    confidence: float
    by_curve: float
    by_counting: float
    by_gap: float
    p_curve: float
    p_gap: float
    gapped: bool
    scores: "Floats"
    coins: "Coins"

    @property
    def refuted(self) -> bool:
        """Whether the certificate is refuted, whatever the scores are; half of α is for this."""
        return self.p_curve <= (1 - self.confidence) / 2

    @property
    def refuted_if_gaussian(self) -> bool:
        """Whether it is refuted by the gap between scores, if these are Gaussian; half of α is for this."""
        return self.p_gap <= (1 - self.confidence) / 2

    def explain(self, language: str = "en") -> str:
        """A few lines in words; an audit that found nothing is not taken for a proof."""
        facts = {
            "canaries": f"{self.canaries:,}",
            "inside": f"{self.inside:,}",
            "guesses": f"{self.guesses:,}",
            "right": f"{self.right:,}",
            "epsilon": f"{self.epsilon:g}",
            "delta": f"{self.delta:g}",
            "confidence": f"{100 * self.confidence:g}%",
            "curve": f"{self.by_curve:.2f}",
            "counting": f"{self.by_counting:.2f}",
            "gap": f"{self.by_gap:.2f}",
            "p_curve": f"{self.p_curve:.3g}",
            "p_gap": f"{self.p_gap:.3g}",
        }
        verdict = "refuted" if self.refuted else "refuted_gap" if self.refuted_if_gaussian else "nothing"
        keys = ("claimed", "counts", f"score_{self.score}", "bounds", "gap" if self.gapped else "no_gap", verdict)
        return "\n".join(message(language, f"one_run.{key}", **facts) for key in keys)

    def __str__(self) -> str:
        return self.explain()

    def plain(self) -> dict[str, object]:
        """The figures, for JSON."""
        names = ("canaries", "inside", "guesses", "right", "score", "epsilon", "delta", "confidence")
        found = ("by_curve", "by_counting", "by_gap", "p_curve", "p_gap", "refuted", "refuted_if_gaussian")
        return {name: getattr(self, name) for name in (*names, *found)}


def trained(result: "Trained") -> OneRunAudit:
    """Audit a training run by the canaries that it was declared with; reads no data and costs nothing.

    Guarantee: a correct run is refuted with probability 1 − confidence at most, both tests together; for the gap this
    assumes Gaussian scores. Assumes: the coins were drawn by this library, and nobody who trained knew them. Nothing is
    left to choose here: score and confidence were declared with the canaries, and 10% of the coins are guessed.

    >>> import torch, sfumato as sf
    >>> from sfumato.learning import Canaries, Units
    >>> vault = sf.Vault(unit=sf.record(relation="add/remove"), budget=sf.Budget(epsilon=4, delta=1e-6), name="ward")
    >>> data = Units(torch.zeros(50, 60), torch.zeros(50), n_units=50, name="visits", version="1")
    >>> model, canaries = torch.nn.Linear(60, 1), Canaries.random(100, like=data, targets=[-1, 1])
    >>> trainer = vault.trainer(model, lambda out, y: (out[:, 0] * y).mean(), data=data, canaries=canaries)
    >>> found = trained(trainer.fit(steps=1, batch=50, epsilon=1, delta=1e-7, progress=False))
    >>> found.canaries, found.guesses, 0 <= found.right <= 10
    (100, 10, True)
    """
    return judged_evidence(result.release.statement, canary_evidence(result))


def canary_evidence(result: "Trained") -> dict[str, object]:
    """Coins and scores of a run as numbers and text, to be kept as JSON beside its certificate. Public.

    Scores are of the released weights: a model that was changed since is refused.
    """
    from sfumato.learning.trained import Trained
    from sfumato.learning.weights import weights_digest

    if not isinstance(result, Trained):
        raise InvalidInput("an audit takes what trainer.fit(…) gave; nothing was done.")
    query = _query(result.release.statement)
    if result.canaries is None:
        raise InvalidInput(
            "this run had no canaries, and there is nothing to audit it by; nothing was done. Declare them before "
            "training: vault.trainer(…, canaries=learning.Canaries(…))."
        )
    if weights_digest(result.model) != query.weights:
        raise InvalidInput("the model is not the one that was released: its weights were changed; nothing was done.")
    sealed = result.canaries.sealed
    return {
        "coins": "".join("1" if one else "0" for one in sealed.coins.tolist()),
        "salt": sealed.salt,
        "rows": sealed.rows,
        "score": sealed.score,
        "confidence": str(sealed.confidence),
        "scores": result.canaries.scores(result.model).tolist(),
    }


def judged_evidence(statement: Statement, evidence: Mapping[str, object]) -> OneRunAudit:
    """The same audit from a certificate's statement and what :func:`canary_evidence` kept; other coins are refused.

    Assumes: scores are those of the released weights. Whoever wrote the evidence says so; the certificate binds coins,
    score and confidence, and not the scores.
    """
    import numpy as np

    query = _query(statement)
    try:
        told = [evidence[name] for name in ("coins", "salt", "rows", "score", "confidence")]
        coins, salt, rows, score, level = (str(one) for one in told)
        scores = np.asarray(evidence["scores"], dtype=np.float64)
        confidence = probability(Fraction(level), "confidence")
    except (KeyError, ValueError, TypeError, ZeroDivisionError):
        raise InvalidInput("this is not the evidence of an audit: coins, salt, scores are needed.") from None
    if query.canaries is None:
        raise InvalidInput("the certificate is of a run without canaries; nothing was audited.")
    said = commitment(coins, salt=salt, rows=rows, score=score, confidence=confidence)
    if query.canaries != (len(coins), said) or set(coins) - set("01"):
        raise InvalidInput(
            "coins, score or confidence are not those that were sealed before the run was charged; nothing was audited."
        )
    if scores.shape != (len(coins),) or not np.isfinite(scores).all():
        raise InvalidInput("there must be a finite score for each canary; nothing was audited.")
    inside = np.array([one == "1" for one in coins])
    return _judged(statement, scores, inside, score=score, confidence=float(confidence))


def _judged(statement: Statement, scores: "Floats", coins: "Coins", *, score: str, confidence: float) -> OneRunAudit:
    number, delta, alpha = len(coins), float(statement.spend.delta), 1 - confidence
    guesses = number // SHARE // 2 * 2
    right = right_guesses(scores, coins, guesses)
    claimed, sides = claimed_curve(statement), (scores[coins].tolist(), scores[~coins].tolist())
    apart = claimed.apart if isinstance(claimed, GaussianCurve) else None
    gapped = apart is not None and min(map(len, sides)) >= 2  # of 20 coins fewer are on a side once in 10,000 runs
    return OneRunAudit(
        canaries=number,
        inside=int(coins.sum()),
        guesses=guesses,
        right=right,
        score=score,
        epsilon=float(statement.spend.epsilon),
        delta=delta,
        confidence=confidence,
        by_curve=curve_bound(canaries=number, guesses=guesses, right=right, delta=delta, alpha=alpha),
        by_counting=counted_guesses_bound(canaries=number, guesses=guesses, right=right, delta=delta, alpha=alpha),
        by_gap=gap_bound(*sides, delta=delta, alpha=alpha) if gapped else 0.0,
        p_curve=curve_p_value(claimed, canaries=number, guesses=guesses, right=right),
        p_gap=gap_p_value(*sides, apart=apart) if apart is not None and gapped else 1.0,
        gapped=gapped,
        scores=scores,
        coins=coins,
    )


def right_guesses(scores: "Floats", coins: "Coins", guesses: int) -> int:
    """How many guesses are right: half of them are the largest scores, "in", and half the smallest, "out"."""
    import numpy as np

    order = np.argsort(scores, kind="stable")
    return int(coins[order[len(order) - guesses // 2 :]].sum() + (~coins[order[: guesses // 2]]).sum())


def claimed_curve(statement: Statement) -> "GaussianCurve | PointCurve":
    """The curve that a certificate of training claims: that of its noise, by its accountant where units are sampled."""
    noise = statement.mechanism
    if isinstance(noise, NoisySums) and noise.rate == 1:
        return GaussianCurve(apart=math.sqrt(noise.steps) / float(noise.multiplier) * (1 + 1e-9))
    most = BEYOND * float(statement.spend.epsilon)
    grid = [Fraction(round(most * place / (POINTS - 1) * 2**20), 2**20) for place in range(POINTS)]
    points = [(float(epsilon), float(accounting.delta(statement.event, epsilon=epsilon))) for epsilon in grid]
    return PointCurve(points=tuple((epsilon, min(1.0, delta * (1 + 1e-9))) for epsilon, delta in points))


def _query(statement: Statement) -> Training:
    query = statement.query
    if not isinstance(query, Training):
        raise InvalidInput("this is not the certificate of a trained model; nothing was audited.")
    return query
