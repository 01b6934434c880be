"""The log-rank test on noisy exit cells, for two groups or more: sampling and noise are both in its variance.

Proof: docs/proofs/survival.md
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc

from sfumato.studies.exit_cells import ExitNoise, Floats, StudySteps, at_risk

__all__ = ["LogRankScore", "log_rank_score"]

FEWEST = 8.0  # events that noise may leave of more
CLEAR = 8.0  # in standard deviations of its noise: from here on noise decides nothing


@dataclass(frozen=True, kw_only=True)
class LogRankScore:
    """χ² of the test and its p-value, with how many steps it could use: without any, p is 1 and there is no verdict."""

    statistic: Floats
    p: Floats
    freedom: int
    used: npt.NDArray[np.int_]
    verdict: npt.NDArray[np.bool_]


def log_rank_score(cells: Floats, noise: ExitNoise) -> LogRankScore:
    """Test whether groups share one hazard: cells (…, groups, 2, m), all measured with one noise.

    Cells that were measured in blocks too are taken by block (:class:`~sfumato.studies.exit_cells.StudySteps`), and by
    single steps where no number at risk is near its noise.

    U_j = Σ(d_j − r_j·D) with variance V + N₁ + N₂: V is the hypergeometric one, N₁ the noise through the linear weights
    of the cells, N₂ that of products of two noises. A step at which some group is lost in noise ends the sums.
    """
    cells = np.asarray(cells, dtype=np.float64)
    found = _score(cells, StudySteps(noise=noise))
    if noise.widths == (1,):
        return found
    clear = clear_of_noise(cells, noise)
    single = _score(cells, StudySteps(noise=noise, single=True))
    return LogRankScore(
        statistic=np.where(clear, single.statistic, found.statistic),
        p=np.where(clear, single.p, found.p),
        freedom=found.freedom,
        used=np.where(clear, noise.steps, found.used * noise.widths[-1]),
        verdict=np.where(clear, single.verdict, found.verdict),
    )


def clear_of_noise(cells: Floats, noise: ExitNoise) -> npt.NDArray[np.bool_]:
    """Whether every number at risk, of each group in each step, is many times as large as its noise."""
    found = at_risk(cells) >= CLEAR * np.sqrt(noise.at_risk)
    return np.asarray(found.all(axis=(-1, -2)))


def _score(cells: Floats, steps: StudySteps) -> LogRankScore:
    score, covariance, used = score_parts(cells, steps)
    freedom = score.shape[-1]
    sound = (used > 0) & (np.linalg.eigvalsh(covariance)[..., 0] > 0)
    safe = np.where(sound[..., None, None], covariance, np.eye(freedom))
    solved = np.linalg.solve(safe, score[..., None])[..., 0]
    statistic = np.where(sound, (score * solved).sum(axis=-1), 0.0)
    usable = np.arange(steps.number) < used[..., None]
    deaths = np.where(usable, steps.events(cells).sum(axis=-2), 0.0).sum(axis=-1)
    # with few events the variance is itself uncertain: F in place of χ², with one degree of freedom an event
    p = np.where(sound, fdtrc(freedom, np.maximum(deaths, FEWEST), np.maximum(statistic, 0.0) / freedom), 1.0)
    return LogRankScore(statistic=statistic, p=p, freedom=freedom, used=used, verdict=sound)


def score_parts(cells: Floats, steps: StudySteps) -> tuple[Floats, Floats, npt.NDArray[np.int_]]:
    """The score (…, groups − 1), its covariance with the noise in it, and how many steps were used."""
    groups = cells.shape[-3]
    risk, events = steps.at_risk(cells), steps.events(cells)
    used = steps.used(risk)
    usable = np.arange(steps.number) < used[..., None]
    total, deaths = np.where(usable, risk.sum(axis=-2), 1.0), np.where(usable, events.sum(axis=-2), 0.0)
    share = np.where(usable[..., None, :], risk / total[..., None, :], 0.0)
    first = share[..., :-1, :]  # the last group is known from the others
    own = np.eye(groups)[:-1]  # (j, g)
    apart = np.where(usable[..., None, None, :], own[..., None] - first[..., None, :], 0.0)  # (…, j, g, m)
    score = (np.where(usable[..., None, :], events[..., :-1, :], 0.0) - first * deaths[..., None, :]).sum(axis=-1)
    # what products of two noises add on average, where groups are of unequal size
    mean = steps.shared / total - deaths * steps.risk_variance / total**2
    score = score + np.einsum("...m,...jgm->...j", mean, apart)
    # the hypergeometric covariance; events of a block are spread over its steps
    spare = deaths * (total - deaths / steps.sizes) / np.maximum(total - 1, 1.0)
    sampling = np.einsum("...m,...jm,...km->...jk", -spare, first, first)
    place = np.arange(groups - 1)
    sampling[..., place, place] += (spare[..., None, :] * first).sum(axis=-1)
    # noise through the linear weights: an event moves d and all risk sets before it, a censored one the sets alone
    seen = steps.through(apart, apart * (deaths / total)[..., None, None, :])  # (…, j, g, 2, measured)
    linear = np.einsum("...jgcm,...kgcm->...jk", seen, seen)
    # noise in the shares at risk times noise in the events
    scaled = apart / total[..., None, None, :]
    product = np.einsum("m,...jgm,...kgm->...jk", groups * steps.event_variance * steps.risk_variance, scaled, scaled)
    return score, sampling + linear + product, used
